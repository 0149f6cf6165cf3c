"""Makes the load: nodes first, then jobs, phase by phase.

``driver``      carry the phases out, one after the other
``fleets``      the fleets by name, each of exactly so many hosts, the same for the same seed
``jobs``        creates and deletes the pods of gangs, as the Job controller would
``whygivenup``  what the pods of gangs waited for that a phase gave up
"""
