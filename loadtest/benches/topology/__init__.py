"""Small random topologies, an exact oracle for them, and the rules of other schedulers."""
