"""Where a gang goes, and why not: pure decisions over a ``muster.cluster.snapshot.Snapshot``.

One plan (``gang.plan``) goes through these phases. A gang that fails one of the first three waits
or is rejected there, with the reason.

Phase 1, *the request* (``request``): members that no rule can tell apart become groups; wishes for
    topology levels become level numbers. ``mandatory`` members are placed together or not at all.
    Contradictions and members larger than any node end the plan here.
Phase 2, *the board* (``search.arena``), per group:
    2a  the nodes that pass kube-scheduler's filters (``rules.feasibility``);
    2b  how many members each of them can take (``rules.capacity``, ``rules.devices``);
    2c  what members forbid each other, as caps on sets of nodes (``search.grouplimits``,
        ``rules.caps``).
Phase 3, *the search* (``assignment`` chooses the way by what is asked for):
    3a  a pod that comes alone: where the free room loses the least worth (``search.lonepod``,
        ``scoring``);
    3b  equal members: counts up the tree, then down it (``search.scopes``). *Up*: how many members
        each domain of each level can hold. *Down*: first the scope, which is the narrowest domain
        that holds all; then, level by level, the fewest domains of the pool that hold them
        (``search.fewest``). Where a bound does not prove the result, the exact search looks for a
        better one (``exact``);
    3c  slices: the same, with whole slices counted per domain (``search.slices``); of several
        kinds, or with members that have a place, ``slicedgang`` and ``search.mixedslices``;
    3d  several groups: all kinds at once and exactly (``search.joint``), else one after the other
        in each candidate domain (``search.severalgroups``);
    3e  beside members that have a place already: the nearest places to them
        (``search.nearplaced``, ``search.fewestnewdomains``);
    3f  no fit for the first members as the minimum: others (``otherminima``).
Phase 4, *the members* (``assignment``): amounts per node become one node per member, so that
    neighbours in rank are neighbours on the network (``ranks.ringorder``).
Phase 5, *the spares*: nodes where a member may bind instead (``search.memberspares``).

No fit in phase 3: ``reasons.waiting`` finds out which members lack what, and where. A gang that
keeps hot spares goes through the phases as if it were larger (``hotspares``).

``question``    what is asked: the gang, the time, nodes left out, preferences
``decision``    what is answered: plan, wait or reject
``request``     what exactly the gang asks for
``gang``        the entry: one question in, one decision out
``hotspares``   room beside a gang for members that it may lose
``assignment``  which member gets which node
``otherminima`` other members for the minimum, where the first do not fit
``slicedgang``  the same for gangs in slices of several kinds, or with members placed
``soundness``   a last look at a plan before it is held
``places``      members with the places that they have, or get
``world``       the snapshot plus what this plan has put down so far
``preferences`` preferred nodes first, where places are equal otherwise
``tree``        the topology as ranges of positions
``nodelabels``  node selector requirements over label columns
``search/``     from candidate domains to amounts per node
``exact/``      the exact search, within a budget
``rules/``      what a node must have for a pod
``scoring/``    which node a pod that comes alone should take
``ranks/``      the order of ranks through the domains; ranks of lost members
``reasons/``    why a gang waits, in words and numbers
``moves/``      which running pods would have to move so that a waiting gang fits
``victims/``    which gangs end so that a waiting gang fits
"""
