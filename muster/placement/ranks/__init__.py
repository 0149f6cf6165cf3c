"""Which member gets which rank, and where.

``ringorder``      in which order ranks go through the domains: the fewest crossings
``vacantranks``    ranks of lost members, which their successors take over
``sliceplaces``    which place in the slices a member has
``unknownplaces``  the same where numbers do not say it, by where members stand
"""
