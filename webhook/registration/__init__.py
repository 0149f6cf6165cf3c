"""The webhook configurations that the API server is given."""
