"""Labels and annotations that users write, and owners of pods."""
