"""A client of the API server that shares no code with Muster's own."""
