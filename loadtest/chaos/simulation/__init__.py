"""The cluster of a run, in virtual time and without sockets.

``server``      the API server
``scheduler``   kube-scheduler
``world``       users, the Job controller, kubelets and the pod collector
``jobs``        what users submit: gangs of every size, dialect and habit
``teams``       Muster's own queues that share the cluster
``volumes``     nodes that cannot serve a gang's volumes, which kube-scheduler alone knows
``admission``   the webhook
``connection``  the extender's connection to the API server, simulated below HTTP
``link``        the network between one client and the API server, in all its moods
``clock``       wall clocks
``loop``        an event loop in virtual time: when nothing is left to do now, the clock jumps
"""
