"""A state as a file, and a file as a state."""
