"""`muster inject` and `muster policies`: injection without a cluster."""
