"""`muster bench …`: the flags of each bench and what it prints."""
