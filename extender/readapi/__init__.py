"""The read-only API: status, gangs, explain, what-if and dump."""
