"""The read API and the webhook's questions as types, shared by servers and clients."""
