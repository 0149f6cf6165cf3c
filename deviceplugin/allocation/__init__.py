"""Which devices a container gets, and what it is told of them. Pure."""
