"""What is written to pods after a plan: release, repair, rollback and eviction.

``releaser``      releases planned pods: one PATCH each, many in flight
``repairer``      repairs released pods that cannot bind to their planned nodes
``partialgangs``  gangs that run in part: reported, completed, or evicted whole
``plankeys``      the keys that plans are sealed with
``forgedplans``   takes plans off pods that Muster did not write them for
``eviction``      one eviction, counted and logged
"""
