"""Whether one gang gives way to another, rule by rule; the first that holds decides.

::

    itself ─► of the system ─► protected ─► not preemptable ─► the same queue?
                                                                 │
        yes: young ─► by priority (withinClusterQueue)           │
        no, one tree: not reclaimable ─► young ─► the queue that wants room stays entitled?
              yes: reclaimWithinCohort     no: borrowWithinCohort
              ─► the other queue is above what it is entitled to, and stays at or above it
        no, two trees, or no queue: young ─► a strictly lower priority, as kube-scheduler has it
              ─► its queue, if it has one, as before

Only the *contested* cells are compared: those that the gang needs and of which there is too little
(volcano#4658, volcano#4536: a resource that one queue does not declare must not keep another from
taking back its own). All queues between a gang and the queue above both must be above what they are
entitled to (kueue#10131).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.policies import (
    BorrowWithin,
    PreemptionPolicies,
    ReclaimWithin,
    WithinQueue,
)
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial, below_common


class Keeps(StrEnum):
    """Why a gang does not give way."""

    ITSELF = "it is the gang that wants room"
    SYSTEM = "it belongs to the system"
    PROTECTED = "a disruption budget protects it"
    NOT_PREEMPTABLE = "it is marked as not preemptable"
    YOUNG = "it has not run for the least time that its queue grants"
    WITHIN_NEVER = "no gang of the queue gives way to another of it (policy)"
    NOT_LOWER = "its priority is not lower"
    NOT_NEWER = "its priority is not lower, nor is it newer"
    NOT_RECLAIMABLE = "its queue gives nothing to other queues (not reclaimable)"
    RECLAIM_NEVER = "the queue takes nothing back from others (policy)"
    BORROWER = "the queue would use more than it is entitled to"
    OVER_THRESHOLD = "its priority is above the threshold for those who borrow"
    ENTITLED = "its queue uses no more than it is entitled to"
    WOULD_FALL = "its queue would fall below what it is entitled to"
    GOING = "it gives way to another gang already"
    COMING = "others give way to it just now"
    HOLDS_NOTHING = "it holds no room that ends with it"


@dataclass(frozen=True, slots=True, eq=False)
class RoomRules:
    """The rules for one gang that wants room."""

    #: The gang that wants room.
    wants: Tenant
    #: What queues use before anything changes.
    usage: UsageTrial
    #: The settings.
    policies: PreemptionPolicies
    #: Seconds since the epoch.
    now: float
    #: What gangs of its own queue that give way to it would give back, at most.
    own: Amounts
    #: The cells that it needs and of which there is too little.
    contested: frozenset[Cell]
    #: Whether gangs that started lately are spared.
    spares_young: bool = True
    #: Whether the queue would stay entitled, beside each other queue.
    _rights: dict[QueueName, bool] = field(init=False, default_factory=dict)

    def keeps(self, other: Tenant) -> Keeps | None:
        """Return why a gang does not give way, ``None``: it does."""
        if other.gang == self.wants.gang:
            return Keeps.ITSELF
        if other.is_system:
            return Keeps.SYSTEM
        if other.is_protected:
            return Keeps.PROTECTED
        if not other.is_preemptable:
            return Keeps.NOT_PREEMPTABLE
        if self.is_own(other):
            return self._within(other)
        here, there = self.usage.find(self.wants.queue), self.usage.find(other.queue)
        if not self.policies.of(other.queue).is_reclaimable:
            return Keeps.NOT_RECLAIMABLE
        if self._is_young(other, self.policies.of(other.queue).reclaim_min_run):
            return Keeps.YOUNG
        if here is None or there is None or here.root is not there.root:
            foreign = None if other.priority < self.wants.priority else Keeps.NOT_LOWER
            return foreign or (None if there is None else self._above(other, there, here))
        return self._between(other, there, here) or self._above(other, there, here)

    def is_own(self, other: Tenant) -> bool:
        """Return whether a gang is of the same queue."""
        return other.queue is not None and other.queue == self.wants.queue

    def _within(self, other: Tenant) -> Keeps | None:
        policy = self.policies.of(self.wants.queue)
        if policy.within_queue is WithinQueue.NEVER:
            return Keeps.WITHIN_NEVER
        if self._is_young(other, policy.preempt_min_run):
            return Keeps.YOUNG
        if other.priority < self.wants.priority:
            return None
        if policy.within_queue is WithinQueue.LOWER_PRIORITY:
            return Keeps.NOT_LOWER
        is_newer = other.submitted_at > self.wants.submitted_at
        return None if is_newer and other.priority == self.wants.priority else Keeps.NOT_NEWER

    def _between(self, other: Tenant, there: QueueNode, here: QueueNode) -> Keeps | None:
        policy = self.policies.of(self.wants.queue)
        if policy.reclaim is ReclaimWithin.NEVER:
            return Keeps.RECLAIM_NEVER
        is_lower = other.priority < self.wants.priority
        if self._would_be_entitled(there, here):
            lower_only = policy.reclaim is ReclaimWithin.LOWER_PRIORITY
            return Keeps.NOT_LOWER if lower_only and not is_lower else None
        if policy.borrow is BorrowWithin.NEVER or not self.wants.is_preemptable:
            return Keeps.BORROWER
        threshold = policy.borrow_threshold
        if threshold is not None and other.priority > threshold:
            return Keeps.OVER_THRESHOLD
        return None if is_lower else Keeps.NOT_LOWER

    def _would_be_entitled(self, there: QueueNode, here: QueueNode) -> bool:
        """Return whether the queue stays entitled, if its own gangs give all that they may."""
        known = self._rights.get(there.spec.name)
        if known is None:
            trial = self.usage.copy()
            trial.give_back(self.wants.queue, self.own)
            known = self._rights[there.spec.name] = self.stays_entitled(trial, here, there)
        return known

    def _above(self, other: Tenant, there: QueueNode, here: QueueNode | None) -> Keeps | None:
        """Return whether the queues of a gang are entitled to what it holds."""
        cells = list(self.needed(other, is_foreign=here is None or here.root is not there.root))
        trial: UsageTrial | None = None
        for node in below_common(there, here):
            if not any(self.usage.borrows(node, cell) for cell in cells):
                return Keeps.ENTITLED
            if trial is None:
                trial = self.usage.copy()
                trial.give_back(other.queue, other.amounts)
            if any(falls(self.usage, trial, node, cell) for cell in cells):
                return Keeps.WOULD_FALL
        return None

    def needed(self, other: Tenant, *, is_foreign: bool) -> Iterator[Cell]:
        """Yield the contested cells of another gang; in another tree: by resource."""
        resources = {cell.resource for cell in self.contested}
        for cell, amount in other.amounts.items():
            is_needed = cell.resource in resources if is_foreign else cell in self.contested
            if amount and is_needed:
                yield cell

    def stays_entitled(self, usage: UsageTrial, here: QueueNode, other: QueueNode | None) -> bool:
        """Return whether the queue stays within what it is entitled to, once the gang runs.

        Compared where the way up to the queue above both ends: what its neighbours below that lend
        it counts as its own.
        """
        at = (below_common(here, other) or [here])[-1]
        trial = usage.copy()
        trial.charge(self.wants.queue, self.wants.amounts)
        return not any(trial.borrows(at, cell) for cell in self.contested)

    def overdrawn(self) -> frozenset[Cell]:
        """Return the contested cells of which the queue would use more than it is entitled to.

        Gangs of its own that give way bring it back within that.
        """
        here = self.usage.find(self.wants.queue)
        if here is None:
            return frozenset()
        trial = self.usage.copy()
        trial.charge(self.wants.queue, self.wants.amounts)
        return frozenset(cell for cell in self.contested if trial.borrows(here, cell))

    def _is_young(self, other: Tenant, least: float) -> bool:
        if not least or not self.spares_young:
            return False
        return other.started_at is None or self.now - other.started_at < least


def falls(before: UsageTrial, after: UsageTrial, node: QueueNode, cell: Cell) -> bool:
    """Return whether a queue uses less than it is entitled to after a change, and not before."""
    entitled = before.entitled(node, cell)
    return after.used(node, cell) < entitled <= before.used(node, cell)
