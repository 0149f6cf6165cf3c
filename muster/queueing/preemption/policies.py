"""The settings of an administrator: who may make whom give way.

Source: kubernetes-sigs/kueue, apis/kueue/v1beta2/clusterqueue_types.go (ClusterQueuePreemption) at
0.19; Volcano's ``reclaimable`` (scheduling.volcano.sh/v1beta1 Queue); KAI's ``preemptMinRuntime``
and ``reclaimMinRuntime`` (scheduling.run.ai/v2 Queue).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from muster.cluster.quota.queuespec import QueueName

OWN: Final = "muster/"
"""What the names of Muster's own queues begin with."""


class WithinQueue(StrEnum):
    """Which gangs of its own queue a gang makes give way (``withinClusterQueue``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimWithin(StrEnum):
    """Which gangs of other queues give way to one that is entitled (``reclaimWithinCohort``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class BorrowWithin(StrEnum):
    """Which gangs of other queues give way to one whose queue borrows (``borrowWithinCohort``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """The settings of one queue; the defaults are those of Muster's own queues."""

    #: For gangs of this queue that make others of it give way.
    within_queue: WithinQueue = WithinQueue.LOWER_PRIORITY
    #: For gangs of this queue that take back what it is entitled to.
    reclaim: ReclaimWithin = ReclaimWithin.ANY
    #: For gangs of this queue that borrow.
    borrow: BorrowWithin = BorrowWithin.NEVER
    #: With ``borrow``: the highest priority of those that give way, ``None``: no limit.
    borrow_threshold: int | None = None
    #: Whether its gangs give way to those of other queues at all (Volcano).
    is_reclaimable: bool = True
    #: Seconds for which its gangs run before they give way to others of it (KAI).
    preempt_min_run: float = 0.0
    #: Seconds for which its gangs run before they give way to those of other queues (KAI).
    reclaim_min_run: float = 0.0


@dataclass(frozen=True, slots=True)
class PreemptionPolicies:
    """The settings of all queues."""

    #: For gangs without a queue, and for queues that are not in ``queues``.
    default: PreemptionPolicy = field(default_factory=PreemptionPolicy)
    #: By queue.
    queues: Mapping[QueueName, PreemptionPolicy] = field(default_factory=dict)

    def of(self, queue: QueueName | None) -> PreemptionPolicy:
        """Return the settings of a queue."""
        return self.default if queue is None else self.queues.get(queue, self.default)


_NEITHER: Final = PreemptionPolicy(
    within_queue=WithinQueue.NEVER, reclaim=ReclaimWithin.NEVER, is_reclaimable=False
)


@dataclass(frozen=True, slots=True)
class OwnQueuePolicies(PreemptionPolicies):
    """Muster's own queues take and give; those of other dialects do neither.

    What their objects say of preemption is not read here, and a cluster that changes its scheduler
    must not begin to evict: Kueue's defaults are ``Never``, Volcano's actions have no ``reclaim``.
    """

    def of(self, queue: QueueName | None) -> PreemptionPolicy:
        """Return the settings of a queue."""
        if queue is None or queue.startswith(OWN):
            return PreemptionPolicies.of(self, queue)
        return _NEITHER
