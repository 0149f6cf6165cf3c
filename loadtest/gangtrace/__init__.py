"""A trace of jobs replayed on a fleet, in virtual time: who waits, and who sits how far apart.

::

    loadtest.trace ─► stream ─► replay ─► side: planner │ rules      loadtest.bench_trace
    (jobs as read)    (load,    (FIFO,      │                        puts both sides to it
                       turns)    events)  audit ─► figures
"""
