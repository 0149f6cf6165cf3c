"""Who may make whom give way: rules over the tree of queues and the gangs that run.

Inside one queue a gang gives way to one of a higher priority. Between queues it gives way to one
whose queue stays within what it is entitled to, if its own queue uses more than that. The words and
the settings are Kueue's (``muster.cluster.quota.preemptionpolicy``).

``policies``       whose settings count: of queues that make room
``tenant``         a gang as the rules see it
``usagetrial``     what queues would use if some gangs ended and others ran
``fairshares``     whether a queue that borrows takes from another one by their shares
``dividedshares``  whether a queue takes up to its fair share from one above its own
``rules``          whether one gang gives way to another, rule by rule
``victimaccount``  whether several give way together, and whether the quota suffices then
``disruptionbudgets`` how many of their pods may end now
``stability``      whether those who gave way would come back
"""
