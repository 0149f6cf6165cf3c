"""The policies that the API server can carry out itself while no webhook answers."""
