"""Jobs that look at the state from time to time: conditions, statuses, troubles.

``census``          counts gangs and holds, and shows every gang to the parts that check all gangs
``conditions``      writes into the pods of a gang why it waits
``groupstatuses``   statuses that controllers of other schedulers wait for
``devicetroubles``  bad devices of running members: noted, and reported on the pods
``bypassedpods``    pods that slipped past admission while no webhook answered
``admissionfacts``  what the webhook adds to pods in this cluster
"""
