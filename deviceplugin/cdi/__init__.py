"""CDI specs: what a container runtime does for each device's name."""
