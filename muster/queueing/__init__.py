"""Which gang is looked at next, and which are worth a look: pure functions of a snapshot.

Today the order is priority, then arrival. Quota, fair share and reservations join here
without touching the planner's loop.
"""
