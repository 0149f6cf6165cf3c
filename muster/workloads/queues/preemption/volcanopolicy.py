"""What a Queue of Volcano says of preemption (scheduling.volcano.sh/v1beta1).

Action ``preempt``: lower priorities of the queue give way. Action ``reclaim``: gangs of queues that
are ``reclaimable`` and use more than they deserve do, but never so that one of them has less than
its ``guarantee`` (pkg/scheduler/plugins/capacity/capacity.go, ``checkGuaranteeConstraint``,
``checkDeservedExceedance``; pkg/scheduler/actions/reclaim). Whether the two are done stands in the
file of Volcano's scheduler, and here in ``makingRoom.volcano``.

A pod's cooldown time counts from when it was scheduled, for both actions (plugins/cdp, which the
file has to name; here it always counts). ``volcano.sh/preemptable`` counts on pods: neither action
looks at that of a PodGroup.
"""

from muster.cluster.quota.preemptionpolicy import PreemptionPolicy, ReclaimFloor


def volcano_preemption(*, is_reclaimable: bool) -> PreemptionPolicy:
    """Return who may make whom give way."""
    return PreemptionPolicy(
        is_reclaimable=is_reclaimable,
        floor=ReclaimFloor.KEPT,
        reaches_outside=False,
        obeys_marks=True,
        obeys_cooldown=True,
    )
