"""Makes the load: nodes first, then jobs, phase by phase."""
