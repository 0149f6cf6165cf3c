"""Full clusters in which room is made, an exact oracle for them, and the rules of other schedulers.

``bench``   who gives way on random clusters, beside the least that would do and other rules
``cases``   random full clusters: gangs of several queues that run, and one that waits
``oracle``  the least cost and the fewest victims, from OR-tools CP-SAT, which knows no Muster
``rules``   how others choose victims, re-stated from the descriptions of their rules
``score``   cases put to the solver, and its answers counted and checked from outside
``churn``   the same gangs in turn, each making room for itself: does anybody come back?
``large``   how long one answer takes on many nodes
``waves``   three waves of gangs under load, each of which has the one before give way
"""
