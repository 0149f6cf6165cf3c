"""The first list of pods, taken over page by page."""
