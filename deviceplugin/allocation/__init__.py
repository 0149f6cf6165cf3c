"""Which devices a container gets, and what it is told of them. Pure.

``answers``         names, variables, mounts and device files that a container gets with its devices
``attribution``     the pod for which the kubelet asks, which its call does not name
``beam``            a good set among more than 16 devices, in bounded time
``chooser``         the best set of devices of one kind
``claims``          who holds which ids, and how that is known
``deviations``      where plans and what is given disagree, as of now
``exact``           the best set of at most 16 devices, and what it leaves, exactly
``pairs``           how near any two devices of a node are
``picking``         which ids to take where no plan names them
``plans``           what a plan means for each resource of a node
``reconciliation``  takes over which pod has what, as the kubelet lists it
``reservations``    what is kept for each pod that is still to come, derived anew after every change
``settings``        settings of what containers get with their devices
``table``           the one table of a node: plans, offers, and holders of devices
``tablestate``      the state behind the table: pods, stocks, claims, and what follows from them
``values``          what the handshake works on
"""
