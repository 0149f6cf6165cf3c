"""What a ClusterQueue says of preemption (kueue.x-k8s.io/v1beta2 ClusterQueuePreemption).

Source: apis/kueue/v1beta2/clusterqueue_types.go at 0.19: every policy is ``Never`` where nothing is
written, and ``borrowWithinCohort`` means nothing without ``reclaimWithinCohort``.
pkg/scheduler/preemption/classical: a ClusterQueue is a source of candidates for as long as it uses
more than its nominal quota, so the last of them may take it below; no candidate is in another
cohort.
"""

from enum import StrEnum
from typing import Final, TypeVar

from muster.cluster.quota.preemptionpolicy import (
    BorrowWithin,
    PreemptionPolicy,
    ReclaimFloor,
    ReclaimWithin,
    WithinQueue,
)
from muster.kube import wire
from muster.workloads.queues.findings import QueueFindings

WordT = TypeVar("WordT", bound=StrEnum)

_PATH: Final = "spec.preemption"
_WITHIN: Final = (*WithinQueue,)
_RECLAIM: Final = (ReclaimWithin.NEVER, ReclaimWithin.LOWER_PRIORITY, ReclaimWithin.ANY)
_BORROW: Final = (*BorrowWithin,)


class BorrowWithinCohort(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 BorrowWithinCohort."""

    policy: str = ""
    max_priority_threshold: int | None = None


class ClusterQueuePreemption(wire.Wire, frozen=True):
    """kueue.x-k8s.io/v1beta2 ClusterQueuePreemption."""

    reclaim_within_cohort: str = ""
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()
    within_cluster_queue: str = ""


def preemption(found: ClusterQueuePreemption, findings: QueueFindings) -> PreemptionPolicy:
    """Return who may make whom give way; a wrong word means nobody, and closes the queue."""
    borrow = found.borrow_within_cohort
    policy = PreemptionPolicy(
        within_queue=_word("withinClusterQueue", found.within_cluster_queue, _WITHIN, findings),
        reclaim=_word("reclaimWithinCohort", found.reclaim_within_cohort, _RECLAIM, findings),
        borrow=_word("borrowWithinCohort.policy", borrow.policy, _BORROW, findings),
        borrow_threshold=borrow.max_priority_threshold,
        floor=ReclaimFloor.ZERO,
        reaches_outside=False,
    )
    _notes(policy, findings)
    return policy


def _notes(policy: PreemptionPolicy, findings: QueueFindings) -> None:
    """Name what is obeyed only where gangs give way, and what is never."""
    if policy.within_queue is not WithinQueue.NEVER:
        findings.needs_room(f"{_PATH}.withinClusterQueue", policy.within_queue)
    if policy.reclaim is not ReclaimWithin.NEVER:
        findings.needs_room(f"{_PATH}.reclaimWithinCohort", policy.reclaim)
    if policy.borrows:
        findings.needs_room(f"{_PATH}.borrowWithinCohort.policy", policy.borrow)
    elif policy.borrow is not BorrowWithin.NEVER:
        why = f"{policy.borrow}: means nothing without reclaimWithinCohort"
        findings.ignored(f"{_PATH}.borrowWithinCohort.policy", why)


def _word(field: str, written: str, allowed: tuple[WordT, ...], findings: QueueFindings) -> WordT:
    """Return a policy; the first of the allowed ones is Never."""
    findings.one_of(f"{_PATH}.{field}", written, allowed)
    return next((word for word in allowed if word == written), allowed[0])
