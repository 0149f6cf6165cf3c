"""What a load test asks for: pools, jobs, their schedule, and faults by name.

``chaos``         faults as data: which there are, where and when they strike
``chaosargs``     ``--chaos KIND[@PHASE[:SHARE]],…``: faults from the command line
``mixedfleet``    a fleet of several GPU generations side by side
``podfields``     from what a pod asks for (pools.py) to the fields of its object
``pools``         what the pods of a load ask for, on hosts that are not all alike
``replayreport``  what is replayed of a trace instead of the phases
``schedule``      the load as a plan: which gang of which size comes when
``spec``          the phases as data, read strictly
"""
