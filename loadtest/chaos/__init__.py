"""Muster against everything that can go wrong, in virtual time, for a million steps.

The extender is the real one, all of it but its HTTP: watches, state, planner, releases,
repairs, the verbs. kube-scheduler and the API server are the stand-ins of ``loadtest``,
driven without sockets. One seed is one run: it can be replayed, traced and shortened.

``__main__``       ``python -m loadtest.chaos --steps N --seed S``
``admission``      the webhook in a run
``clock``          wall clocks of a run
``clusterfaults``  faults of nodes and pods
``connection``     the extender's connection to the API server, simulated below HTTP
``faults``         what goes wrong, one thing after the other, several at a time
``jobs``           what users submit in a run: gangs of every size, dialect and habit
``judge``          the judge of a run: by the API objects alone, and by what the users asked for
``link``           the network between one client and the API server, in all its moods
``loop``           an event loop in virtual time: when nothing is left to do now, the clock jumps
``machinefaults``  faults of networks and processes
``muster``         Muster in a run
``picture``        compares the extender's model with the API objects when all is quiet
``records``        the objects of the API server as small records, for the judge
``replica``        one replica of the extender in a run: the real parts over a simulated connection
``run``            one episode from the empty cluster to rest, and many of them
``scheduler``      kube-scheduler in a run
``server``         the API server of a run
``settings``       what one run is
``terms``          who led when: judged by the Lease and by what reached the API server
``torsos``         judges gangs that run in part: which must go, which must stay
``volumes``        Nodes that cannot serve a gang's volumes, which kube-scheduler alone knows
``world``          users, the Job controller, kubelets and the pod collector
"""
