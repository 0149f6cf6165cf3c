"""The search for a place: from candidate domains to nodes."""
