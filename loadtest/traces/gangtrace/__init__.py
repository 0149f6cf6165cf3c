"""A trace of jobs replayed on a fleet, in virtual time: who waits, and who sits how far apart.

::

    loadtest.traces.trace ─► stream ─► replay ─► side: planner │ rules      loadtest.benches.trace
    (jobs as read)    (load,    (FIFO,      │                        puts both sides to it
                       turns)    events)  audit ─► figures

``audit``    an account of its own beside a side, of gangs that are partial and hosts over-committed
``figures``  figures of a log: waits, utilisation, distances in a gang
``muster``   the code that plans in the extender, fed with the events of the replay
``replay``   arrivals and ends in virtual time, first come, first served
``rules``    the rules beside which the planner is put, all of them whole gangs or nothing
``stream``   from a trace to a stream of gangs that loads a fleet as much as is asked for
"""
