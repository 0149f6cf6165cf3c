"""One decision as a value: what was asked, the answer, and the same asked again.

The planner decides here, the dump records the questions, ``muster replay`` asks them again. Pure:
the answer depends only on the snapshot and the question (``muster.placement.question``), which also
carries the time.

``answer``        what the planner asks about a gang, and the kinds of answers
``assign``        from a plan to the assignments that are held: names, devices, ranks
``history``       the last decisions and the snapshots that they were made on
``record``        an answer as JSON lines, the same bytes for equal answers
``recording``     the file with states, questions and answers
``replay``        a recording read, and its questions asked again
``earlieststart`` when and where a gang that waits fits, after what runs has ended
``roomplan``      which gangs end so that a waiting gang gets a place
``roomtext``     who gives way, or why nobody does, in sentences
``drainplan``     where the gangs go that have to leave nodes, and what that costs
``tenancy``       the gangs of a snapshot as the rules of preemption see them
``shortlist``     which gangs are looked at first where very many hold room
``quotaconsent``  the queues' consent to a set of victims
``budgetconsent`` the consent of disruption budgets to it
``goingpods``     the pods that are to end for other gangs
``suppositions``  the cluster or the gang as it might be, and the answer then
``recordtext``    an answer in sentences
"""
