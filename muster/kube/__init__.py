"""The only code that talks to the Kubernetes API server, and the wire types it speaks."""
