"""Fleets, traces, stand-ins and benchmarks: everything that puts Muster under load."""
