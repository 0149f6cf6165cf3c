"""The loop that decides which gang is planned next, and holds its plan.

``planner``       the loop: orders gangs, checks that they are complete, plans, holds, releases
``worklist``      the gangs that are to be planned, and those that wait for a change
``queueturns``    who is next by the queues, and what a queue lets a gang take now
``orderguard``    the order by queues; without queues for a while after an error
``promises/``     starts promised to gangs that wait, and what others may do beside them
``roommaker``     makes room for gangs that wait: others give way to them
``evictionorders`` who gives way to whom, and why
``holding``       holds a plan of any size, a few pods at a time
``hotspares``     reserves the hot spares of a gang as soon as the gang is placed
``gangages``      since when gangs wait that had to give way
``vacancies``     nodes of lost members, kept for their successors for a short while
``closednodes``   nodes that no gang is planned on: those that leave
``refusednodes``  nodes that kube-scheduler refused for members of a gang
``requeue``       when a waiting gang is planned again although no event arrived
``waitcauses``    the closed set of causes for which gangs wait, and their texts
``bindtimes``     the time from a gang's submission until all its members are bound
``autoscaler``    asks an autoscaler for the nodes that gangs lack
"""
