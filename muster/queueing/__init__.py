"""Which gang is planned next, and which are worth a look: pure functions of a snapshot.

The planner's order is priority, then arrival. Quotas and shares (``admission``, ``shares``, and
``muster.cluster.quota``) are computed and measured (`muster bench order`); the planner does not ask
them yet.

``assembly``      whether all members of a gang have arrived
``order``         the order in which gangs are planned
``reservationterms``  how long, and how much, room is held for pods that are not stored yet
``totals``        whether the whole cluster has as much free as a gang asks for
``partialgangs``  gangs that run in part, and when to give up on them
``gangsurvival``  which evictions of single pods a gang survives
``admission/``    who is next among gangs that wait for quota
``shares/``       how much of what a queue uses is more than its due
"""
