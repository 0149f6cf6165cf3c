"""Room that is held for the members of a gang before its pods exist."""
