"""Which gangs, or members of elastic ones, end so that a waiting gang gets a place.

The mechanics: who may be asked to give way is decided elsewhere (``muster.queueing.preemption``)
and comes in as units and a consent.

``costs``        what a set of victims costs, in the order of importance
``units``        what can end: a whole gang, or one member above its gang's minimum
``consent``      what others say about a set: whether it may go, and whether their side suffices
``ground``       nodes and domains with what is free, and what each unit would free
``freedtable``   the same node by node in columns, and which nodes several units share
``domaintrial``  one domain while units are added and dropped: does the gang fit by amounts?
``boundedset``   a small set, quickly: cheapest first, then whoever can be spared stays
``devicesets``   a small set that leaves devices behind, where pods share them
``exactset``     the cheapest set: branch and bound
``roomsearch``   the entry: the cheapest set over all domains, each verified by a plan
"""
