"""Muster against everything that can go wrong, in virtual time, for a million steps.

The extender is the real one, all of it but its HTTP: watches, state, planner, releases,
repairs, the verbs. kube-scheduler and the API server are the stand-ins of ``loadtest``,
driven without sockets. One seed is one run: it can be replayed, traced and shortened.
"""
