"""`muster networks`: the networks of jobs."""
