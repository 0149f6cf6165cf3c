"""Which gang is planned next, and which are worth a look: pure functions of a snapshot.

Without queues the planner's order is priority, then arrival (``order``). With queues it asks
``admission``, over the quotas of ``muster.cluster.quota``.

``assembly``      whether all members of a gang have arrived
``order``         the order in which gangs are planned
``reservationterms``  how long, and how much, room is held for pods that are not stored yet
``totals``        whether the whole cluster has as much free as a gang asks for
``partialgangs``  gangs that run in part, and when to give up on them
``gangsurvival``  which evictions of single pods a gang survives
``averageuse/``   what queues used lately, of which use counts less the older it is
``admission/``    who is next among gangs that wait for quota
``claims/``       who is given quota, and evicted, of those without pods in the model
``backfill/``     who goes before a gang that waits for room, and when that gang starts
``drains/``       which nodes leave, and which gangs end for that at a time
``preemption/``   who may make whom give way
``shares/``       how much of what a queue uses is more than its due
"""
