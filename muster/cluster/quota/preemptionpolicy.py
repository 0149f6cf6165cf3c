"""Who may make whom give way, as an administrator wrote it for one queue.

The words are Kueue's (kubernetes-sigs/kueue, apis/kueue/v1beta2/clusterqueue_types.go at 0.19,
ClusterQueuePreemption). What other dialects demand beyond them is a field of its own; each reader
of ``muster.workloads.queues`` says what its dialect means by them. Claims (Kueue's Workloads) and
gangs obey the same settings.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class WithinQueue(StrEnum):
    """Which gangs of its own queue a gang makes give way (``withinClusterQueue``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class ReclaimWithin(StrEnum):
    """Which gangs of other queues give way to one that is entitled (``reclaimWithinCohort``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    #: YuniKorn's; Kueue has no such word.
    LOWER_OR_EQUAL_PRIORITY = "LowerOrEqualPriority"
    ANY = "Any"


class BorrowWithin(StrEnum):
    """Which gangs of other queues give way to one whose queue borrows (``borrowWithinCohort``)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"


class ReclaimFloor(StrEnum):
    """How far a queue that uses more than it is entitled to may be taken down by one gang."""

    #: It stays at or above what it is entitled to.
    ENTITLED = "Entitled"
    #: It stays at or above what it keeps (Volcano's ``guarantee``).
    KEPT = "Kept"
    #: The gang that takes it below may be the last to give way (Kueue).
    ZERO = "Zero"


class FairRule(StrEnum):
    """When who borrows takes from a queue with a greater share (``preemptionStrategies``).

    Compared are the shares just below the lowest queue above both.
    """

    #: The taker's with what it asks for ≤ the other's without what is taken.
    FINAL = "LessThanOrEqualToFinalShare"
    #: The taker's with what it asks for < the other's with what is taken.
    INITIAL = "LessThanInitialShare"


FAIR_RULES: Final = (FairRule.FINAL, FairRule.INITIAL)
"""Kueue's default."""


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """The settings of one queue; the defaults are those of Muster's own queues."""

    #: For gangs of this queue that make others of it give way.
    within_queue: WithinQueue = WithinQueue.LOWER_PRIORITY
    #: For gangs of this queue that take back what it is entitled to.
    reclaim: ReclaimWithin = ReclaimWithin.ANY
    #: For gangs of this queue that borrow; it means nothing where ``reclaim`` is NEVER.
    borrow: BorrowWithin = BorrowWithin.NEVER
    #: With ``borrow``: the highest priority of those that give way, ``None``: no limit.
    borrow_threshold: int | None = None
    #: Whether its gangs give way to those of other queues at all (Volcano, YuniKorn).
    is_reclaimable: bool = True
    #: How far other queues may take it down.
    floor: ReclaimFloor = ReclaimFloor.ENTITLED
    #: Whether gangs of other trees, or of no queue, count: a strictly lower priority gives way.
    reaches_outside: bool = True
    #: Seconds for which its gangs run before they give way to others of it (KAI), ``None``: as the
    #: queue above says.
    preempt_min_run: float | None = None
    #: Seconds for which its gangs run before they give way to those of other queues, likewise.
    reclaim_min_run: float | None = None
    #: Whether the latter is that of the queue just below the one above both, and members above a
    #: gang's minimum may go before (KAI).
    runs_by_department: bool = False
    #: Seconds for which a gang of it waits before it makes others give way (YuniKorn).
    delay: float = 0.0
    #: Whether gangs of it, and of queues below it, make only gangs below it give way (YuniKorn).
    is_fence: bool = False
    #: What is added to the priorities of its gangs where they are compared with gangs of other
    #: queues (YuniKorn).
    priority_offset: int = 0
    #: Whether the offset stands for their priorities there (YuniKorn).
    hides_priority: bool = False
    #: Gangs of this priority and above never give way (KAI), ``None``: no gang by its priority.
    firm_from: int | None = None
    #: Whether gangs never give way that say so of themselves, by a label or an annotation.
    obeys_marks: bool = False
    #: Whether gangs run for the time that they ask for before they give way (Volcano).
    obeys_cooldown: bool = False
    #: Whether gangs of it take from queues that use more than their fair share, up to its own
    #: (KAI).
    takes_fair_share: bool = False
    #: Whether gangs that never give way run only within what the queue is entitled to (KAI,
    #: Koordinator).
    keeps_firm_within: bool = False

    @property
    def evicts(self) -> bool:
        """Whether anybody may be made to give way."""
        return self.within_queue is not WithinQueue.NEVER or self.reclaim is not ReclaimWithin.NEVER

    @property
    def is_sure(self) -> bool:
        """Whether it can always take back what it is entitled to."""
        return self.reclaim is ReclaimWithin.ANY

    @property
    def borrows(self) -> bool:
        """Whether others give way to gangs that borrow."""
        return self.borrow is not BorrowWithin.NEVER and self.reclaim is not ReclaimWithin.NEVER

    def may_borrow_from(self, priority: int) -> bool:
        """Return whether a gang of this priority gives way to one that borrows."""
        return self.borrow_threshold is None or priority <= self.borrow_threshold


OWN_PREEMPTION: Final = PreemptionPolicy()
"""That of Muster's own queues."""

NO_PREEMPTION: Final = PreemptionPolicy(
    within_queue=WithinQueue.NEVER,
    reclaim=ReclaimWithin.NEVER,
    is_reclaimable=False,
    reaches_outside=False,
)
"""Takes nothing, and gives nothing to others."""
