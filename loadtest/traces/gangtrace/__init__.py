"""A trace of jobs replayed on a fleet, in virtual time: who waits, and who sits how far apart.

::

    loadtest.traces.trace ─► stream ─► replay ─► side: planner │ rules      loadtest.benches.trace
    (jobs as read)    (load,    (FIFO,      │                        puts both sides to it
                       turns)    events)  audit ─► figures
"""
