"""A running cluster as its API server would list it, for the measure of a cold start."""
