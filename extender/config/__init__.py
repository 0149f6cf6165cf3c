"""The extender's configuration file as typed settings.

``settings``  the whole file, with every field checked
``backfill``  the section ``backfill``: who goes before a gang that waits for room
``queuefiles`` the section ``yunikornQueues``: a text that describes queues
``queueing``  the section ``queueing``: dialects whose queues admit more than gangs
``callers``   the section ``callers``: who may call
``makingroom`` the section ``makingRoom``: gangs that give way to others
``draining``  the section ``draining``: gangs that leave nodes whole
``election``  the section ``leaderElection``: how replicas agree on a leader
"""
