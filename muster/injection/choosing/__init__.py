"""Which profile, layers and options a pod gets."""
