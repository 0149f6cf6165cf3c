"""From candidate domains to the number of members on each node.

``arena``             one group in one world: room and caps by position, and the search over them
``grouplimits``       what members of one group forbid each other
``lonepod``           a pod that comes alone
``onegroup``          a gang of equal members: the mandatory ones first, then the others
``scopes``            counts up, selection down
``fewest``            the fewest domains out of a pool, and among those the tightest
``slices``            a number of members at a time share one domain
``sliceorder``        which slice a member is in
``mixedslices``       slices of several kinds, or with members that have a place already
``onebyone``          members one after the other, where a spread constraint must be raised
``severalgroups``     gangs of several groups, one group after the other
``joint``             several groups at once, exactly
``dealing``           which slice goes to which domain after the exact search
``nearplaced``        near the members that have a place already
``fewestnewdomains``  near them with the fewest domains that hold no member yet
``memberspares``      where a member may bind instead of its planned node

``muster.placement`` has the phases in order.
"""
