"""One load test from its settings to its verdict.

``replay``   a trace as a load of one phase: real jobs, their sizes and run times, squeezed in time
``run``      one run from nothing to a verdict
``session``  the phases, the turns beside a bare kube-scheduler, or both
``show``     progress: a panel that moves on a terminal; elsewhere a line now and then, on stderr
"""
