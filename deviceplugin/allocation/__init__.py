"""Which devices a container gets, and with which variables, mounts and files. Pure.

``answers``         names, variables, mounts and device files that a container gets with its devices
``attribution``     the pod for which the kubelet asks, which its call does not name
``beam``            a good set among more than 16 devices, in bounded time
``chooser``         the best set of devices of one kind
``claims``          which containers have which ids, and by what that is known
``deviations``      where a pod's devices differ from its plan
``exact``           the best set of at most 16 devices, and what it leaves, exactly
``pairs``           how near any two devices of a node are
``picking``         which ids to take where no plan names them
``plans``           what a plan means for each resource of a node
``reconciliation``  updates the claims by what the kubelet lists
``reservations``    what is kept for each pod that has no devices yet
``settings``        settings of what containers get with their devices
``table``           plans, offers and claims of a node in one table
``tablestate``      the state behind the table: pods, stocks, claims, reservations
``values``          the values that the table works on
"""
