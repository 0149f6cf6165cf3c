"""The scheduler extender: watches a cluster, plans gangs, releases their pods, answers.

``__main__``       the program: `python -m extender`
``process``        the life of the process: signals, the listening socket, the order of stopping
``wiring/``        how all parts are put together
``app``            the HTTP application, and the jobs with the same lifetime
``leadership/``    the one replica that plans and writes
``reservations/``  room for the members of a gang before its pods exist
``intake/``        from watched objects to events of the cluster model
``readapi/``       the read-only API: status, gangs, explain, story, what-if and dump
``calls/``         the calls of kube-scheduler
``releases/``      what is written to pods after a plan
``evictions/``     gangs that give way to another, until they are gone
``watchover/``     jobs that look at the state from time to time
``jobnetworks/``   an isolated network for each gang that wants one
``queues/``        queues: from their objects to the model, and what people see of them
``planning/``      which gang is planned next, and holding its plan
``reporting/``     log lines, Events and metrics of decisions
``access/``        who may call
``pendingpods``    what a release needs about pods that are not bound, beyond the model
``config/``        the configuration file
``engine``         the state, its clock, and the listeners to its effects
``story/``         the last events and decisions, each with its cause
``timeslice``      the event loop, shared by requests and work
``metrics``        what Prometheus reads
``errors``         the exceptions of the package
"""
