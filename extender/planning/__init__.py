"""The loop that decides which gang is planned next, and holds what was planned.

``planner``       the loop: ordered, assembled, planned, held, handed to the release
``worklist``      which gangs are still to be looked at, and which are left alone for now
``holding``       holds a plan of any size, a few pods at a time
``hotspares``     takes the hot spares of a gang as soon as it has its place
``vacancies``     nodes of lost members, left free for their successors for a short while
``refusednodes``  nodes that kube-scheduler turned members of a gang away from
``requeue``       when time alone may have cured what a gang waits for
``waitcauses``    the closed set of causes for which gangs wait, and their texts
``bindtimes``     from a gang's submission until it is bound whole
``autoscaler``    asks an autoscaler for the nodes that gangs lack
"""
