"""Which running pods would have to move so that a waiting gang fits: a proposal, never an act.

``proposals``    the entry: the fewest, cheapest moves that make room for a gang
``movablepods``  which pods may move, and what moving them costs
``options``      how many members moving pods off each node would make room for
``search``       the cheapest set of moves, best first
``greedy``       a small set of moves where members cannot be counted node by node
``trial``        places for all pods of a set of moves and for the gang
``remedies``     what else would make the gang fit: fewer members, a wider level, an end
``text``         proposals as sentences, and as plain values for the read API
"""
