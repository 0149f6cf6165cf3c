"""The loop that decides which gang is planned next, and holds what was planned."""
