"""What is written to pods, as bodies and as calls."""
