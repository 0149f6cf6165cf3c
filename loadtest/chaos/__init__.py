"""Muster against everything that can go wrong, in virtual time, for a million steps.

The extender is the real one, all of it but its HTTP: watches, state, planner, releases,
repairs, the verbs. kube-scheduler and the API server are the stand-ins of ``loadtest``,
driven without sockets. One seed is one run: it can be replayed, traced and shortened.

``__main__``     ``python -m loadtest.chaos --steps N --seed S``
``run``          one episode from the empty cluster to rest, and many of them
``faults/``      what goes wrong, one thing after the other, several at a time
``verdict/``     what must hold, judged by the API objects alone
``muster``       Muster in a run
``replica``      one replica of the extender: the real parts over a simulated connection
``simulation/``  the cluster in virtual time: API server, scheduler, users, clocks, network
``settings``     what one run is
"""
