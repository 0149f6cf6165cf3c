"""Which gang is planned next, and which are worth a look: pure functions of a snapshot.

Today the order is priority, then arrival. Quota, fair share and reservations join here
without touching the planner's loop.

``assembly``      whether all members of a gang have arrived
``order``         the order in which gangs are planned
``reservationterms``  how long, and how much, room is held for pods that are not stored yet
``totals``        whether the whole cluster has as much free as a gang asks for
``partialgangs``  gangs that run in part, and when to give up on them
``gangsurvival``  which evictions of single pods a gang survives
"""
