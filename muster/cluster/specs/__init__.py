"""Values that describe pods, gangs and devices; no state."""
