"""Jobs that look at the state from time to time: conditions, statuses, troubles.

``census``          counts gangs and holds, and shows every gang to the parts that look at all
``conditions``      why a gang waits, written into its pods
``groupstatuses``   statuses that controllers of other schedulers wait for
``devicetroubles``  bad devices of running members: kept, and written where users look
``bypassedpods``    pods that slipped past admission while no webhook answered
``admissionfacts``  what the webhook gives to pods in this cluster
"""
