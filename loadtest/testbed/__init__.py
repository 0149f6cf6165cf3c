"""A cluster on loopback: the real control plane, stand-ins for it, and what judges Muster."""
