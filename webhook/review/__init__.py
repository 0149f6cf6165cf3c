"""From an admission review to its answer."""
