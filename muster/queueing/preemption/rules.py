"""Whether one gang gives way to another, rule by rule; the first that holds decides.

::

    itself ─► of the system ─► protected ─► serves, on devices of its own ─► not preemptable
              ─► the same queue?
                                                                 │
        yes: young ─► by priority (withinClusterQueue)           │
        no, one tree: not reclaimable ─► young ─► outside a fence
              ─► the queue that wants room stays entitled?
                    yes: reclaimWithinCohort     no: borrowWithinCohort, by ``fairshares``,
                                                     or by ``dividedshares``
              ─► the other queue is above what it is entitled to, and does not fall too far
        no, two trees, or no queue: one of the queues keeps to its tree ─► young
              ─► a strictly lower priority, as kube-scheduler has it ─► its queue, if it has one
    at last: a disruption budget allows that all its pods end now

Only the *contested* cells are compared: those that the gang needs and of which there is too little
(volcano#4658, volcano#4536: a resource that one queue does not declare must not keep another from
taking back its own). All queues between a gang and the queue above both must be above what they are
entitled to (kueue#10131).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.preemptionpolicy import (
    PreemptionPolicy,
    ReclaimFloor,
    ReclaimWithin,
    WithinQueue,
)
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.specs.gangspec import Preemptibility
from muster.queueing.preemption.dividedshares import DividedShares, is_beyond, names, stays_within
from muster.queueing.preemption.fairshares import sides_of, takes_by_share
from muster.queueing.preemption.policies import GivingServices, PreemptionPolicies
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial, below_common, path


class Keeps(StrEnum):
    """Why a gang does not give way."""

    ITSELF = "it is the gang that wants room"
    SYSTEM = "it belongs to the system"
    PROTECTED = "a disruption budget protects it"
    SERVES = "it serves requests (makingRoom.services)"
    DEDICATED = "it serves requests on devices of its own (makingRoom.services)"
    NOT_PREEMPTABLE = "it is marked as not preemptable"
    YOUNG = "it has not run for the least time that its queue grants"
    COOLING = "it has not run for the time that it asks for (cooldown)"
    WITHIN_NEVER = "no gang of the queue gives way to another of it (policy)"
    NOT_LOWER = "its priority is not lower"
    HIGHER = "its priority is higher"
    NOT_NEWER = "its priority is not lower, nor is it newer"
    NOT_RECLAIMABLE = "its queue gives nothing to other queues (not reclaimable)"
    FENCED = "a fence keeps the queue from taking from it (policy)"
    OUTSIDE = "one of the two queues takes and gives only in its own tree"
    RECLAIM_NEVER = "the queue takes nothing back from others (policy)"
    BORROWER = "the queue would use more than it is entitled to"
    SHARE = "its queue would have a lesser share than the queue that wants room"
    OVER_SHARE = "the queue would use more than its fair share"
    WITHIN_SHARE = "its queue uses no more than its fair share"
    OVER_THRESHOLD = "its priority is above the threshold for those who borrow"
    ENTITLED = "its queue uses no more than it is entitled to"
    WOULD_FALL = "its queue would fall below what it is entitled to"
    GOING = "it gives way to another gang already"
    COMING = "others give way to it just now"
    IS_WHOLE = "it would end whole, for members above a minimum"
    HELD = "its disruption budget does not allow that all its pods end now"
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
    #: The fair shares of the queues, ``None``: they give no right to take.
    divided: DividedShares | None = None
    #: Whether the queue would stay entitled, beside each other queue.
    _rights: dict[QueueName, bool] = field(init=False, default_factory=dict)
    #: Whether the gang takes from queues that use more than their fair share.
    takes_by_division: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Look up whether fair shares give the gang a right to take."""
        here = self.usage.find(self.wants.queue)
        divides = here is not None and self.divided is not None
        if divides and self.policies.of(here).takes_fair_share:
            object.__setattr__(self, "takes_by_division", True)

    def keeps(self, other: Tenant) -> Keeps | None:
        """Return why a gang does not give way, ``None``: it does."""
        return self.by_right(other) or (Keeps.HELD if other.is_held else None)

    def by_right(self, other: Tenant) -> Keeps | None:
        """Return why a gang would not give way even if its budget allowed it."""
        here, there = self.usage.find(self.wants.queue), self.usage.find(other.queue)
        theirs = self.policies.of(there)
        never = self._never(other, theirs)
        if never is not None:
            return never
        if self.is_own(other):
            return self._within(other)
        if not theirs.is_reclaimable:
            return Keeps.NOT_RECLAIMABLE
        if self._is_young(other, reclaim_min_run(theirs, there, here)):
            return Keeps.YOUNG
        if here is None or there is None or here.root is not there.root:
            foreign = self._foreign(other, theirs, here)
            return foreign or (None if there is None else self._above(other, there, here))
        return self._between(other, there, here) or self._above(other, there, here)

    def _never(self, other: Tenant, theirs: PreemptionPolicy) -> Keeps | None:
        """Return why a gang gives way to nobody now."""
        if other.gang == self.wants.gang:
            return Keeps.ITSELF
        if other.is_system:
            return Keeps.SYSTEM
        if other.is_protected:
            return Keeps.PROTECTED
        serves = keeps_serving(other, self.policies.services)
        if serves is not None:
            return serves
        if is_firm(other, theirs) or self.policies.is_firm_by_class(other.queue, other.priority):
            return Keeps.NOT_PREEMPTABLE
        cools = theirs.obeys_cooldown and self._is_young(other, other.cooldown)
        return Keeps.COOLING if cools else None

    def goes_in_part(self, other: Tenant, keeps: Keeps) -> bool:
        """Return whether members above its minimum give way though a gang does not.

        Of a semi-preemptible one only these do (KAI, api/podgroup_info, ``GetTasksToEvict``).
        In KAI the least run time protects a gang's minimum alone (plugins/minruntime,
        ``reclaimScenarioValidatorFn``).
        """
        if keeps is Keeps.WOULD_FALL:
            return True
        if keeps is Keeps.HELD:  # its budget may allow a few
            return True
        policy = self.policies.of(self.usage.find(other.queue))
        if keeps is Keeps.NOT_PREEMPTABLE and policy.obeys_marks:
            if other.preemptibility is not Preemptibility.SEMI:
                return False
            surplus = replace(other, preemptibility=Preemptibility.PREEMPTIBLE)
            return self.by_right(surplus) in (None, Keeps.WOULD_FALL)
        if keeps is not Keeps.YOUNG or not policy.runs_by_department:
            return False
        return replace(self, spares_young=False).by_right(other) in (None, Keeps.WOULD_FALL)

    def is_own(self, other: Tenant) -> bool:
        """Return whether a gang is of the same queue."""
        return other.queue is not None and other.queue == self.wants.queue

    def _within(self, other: Tenant) -> Keeps | None:
        here = self.usage.find(self.wants.queue)
        policy = self.policies.of(here)
        if policy.within_queue is WithinQueue.NEVER:
            return Keeps.WITHIN_NEVER
        if self._is_young(other, preempt_min_run(here)):
            return Keeps.YOUNG
        if other.priority < self.wants.priority:
            return None
        if policy.within_queue is WithinQueue.LOWER_PRIORITY:
            return Keeps.NOT_LOWER
        is_newer = other.submitted_at > self.wants.submitted_at
        return None if is_newer and other.priority == self.wants.priority else Keeps.NOT_NEWER

    def _foreign(
        self, other: Tenant, theirs: PreemptionPolicy, here: QueueNode | None
    ) -> Keeps | None:
        if not (self.policies.of(here).reaches_outside and theirs.reaches_outside):
            return Keeps.OUTSIDE
        return None if other.priority < self.wants.priority else Keeps.NOT_LOWER

    def _between(self, other: Tenant, there: QueueNode, here: QueueNode) -> Keeps | None:
        policy, up = self.policies.of(here), below_common(here, there)
        if policy.reclaim is ReclaimWithin.NEVER:
            return Keeps.RECLAIM_NEVER
        if any(node.spec.preemption.is_fence for node in up):
            return Keeps.FENCED
        mine = compared_priority(self.wants.priority, up)
        priority = compared_priority(other.priority, below_common(there, here))
        if self.would_be_entitled(there, here):
            return _by_priority(policy.reclaim, priority, mine)
        if self.policies.fair_rules(here):
            kept = _by_priority(policy.reclaim, priority, mine)
            return kept or self._by_share(other, there, here)
        if self.divided is not None and self.takes_by_division:
            return self._by_division(self.divided, other, there, here)
        if not policy.borrows or is_firm(self.wants, policy):
            return Keeps.BORROWER
        if not policy.may_borrow_from(other.priority):
            return Keeps.OVER_THRESHOLD
        return None if priority < mine else Keeps.NOT_LOWER

    def _by_share(self, other: Tenant, there: QueueNode, here: QueueNode) -> Keeps | None:
        """Return whether its queue's share keeps a gang, if its taker's own give all they may."""
        usage, sides = self.usage.copy(), sides_of(here, there)
        usage.give_back(self.wants.queue, self.own)
        usage.give_back(other.queue, other.amounts)
        gone = [(other, other.amounts)]
        takes = takes_by_share(self.policies.fair_rules(here), usage, self.wants, sides, gone)
        return None if takes else Keeps.SHARE

    def _by_division(
        self, divided: DividedShares, other: Tenant, there: QueueNode, here: QueueNode
    ) -> Keeps | None:
        """Return whether fair shares keep a gang, if its taker's own give all they may."""
        if is_firm(self.wants, self.policies.of(here)):
            return Keeps.BORROWER
        trial = self.usage.copy()
        trial.give_back(self.wants.queue, self.own)
        if not self.stays_within_share(trial, here, there):
            return Keeps.OVER_SHARE
        cells = list(self.needed(other, is_foreign=False))
        beyond = all(
            any(is_beyond(divided, self.usage, node, cell) for cell in cells)
            for node in below_common(there, here)
        )
        return None if beyond else Keeps.WITHIN_SHARE

    def is_above(self, usage: UsageTrial, node: QueueNode, cell: Cell) -> bool:
        """Return whether a queue uses more than it is entitled to.

        Where no queue of the tree is entitled to any, all use of a divided cell is above.
        """
        if self.takes_by_division and names(node, cell):
            return usage.exceeds(node, cell)
        return usage.borrows(node, cell)

    def stays_within_share(self, usage: UsageTrial, here: QueueNode, there: QueueNode) -> bool:
        """Return whether the queue stays within its fair share once the gang runs."""
        if self.divided is None or not self.takes_by_division:
            return False
        if is_firm(self.wants, self.policies.of(here)):
            return False
        trial = usage.copy()
        trial.charge(self.wants.queue, self.wants.amounts)
        return stays_within(self.divided, trial, below_common(here, there), self.contested)

    def would_be_entitled(self, there: QueueNode, here: QueueNode) -> bool:
        """Return whether the queue stays entitled, if its own gangs give all that they may."""
        known = self._rights.get(there.spec.name)
        if known is None:
            trial = self.usage.copy()
            trial.give_back(self.wants.queue, self.own)
            known = self._rights[there.spec.name] = self.stays_entitled(trial, here, there)
        return known

    def _above(self, other: Tenant, there: QueueNode, here: QueueNode | None) -> Keeps | None:
        """Return whether the queues of a gang are entitled to what it holds."""
        floor = self.policies.of(there).floor
        cells = list(self.needed(other, is_foreign=here is None or here.root is not there.root))
        trial: UsageTrial | None = None
        for node in below_common(there, here):
            if not any(self.is_above(self.usage, node, cell) for cell in cells):
                return Keeps.ENTITLED
            if trial is None:
                trial = self.usage.copy()
                trial.give_back(other.queue, other.amounts)
            if any(falls(self.usage, trial, node, cell, floor) for cell in cells):
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
        return not any(self.is_above(trial, at, cell) for cell in self.contested)

    def overdrawn(self) -> frozenset[Cell]:
        """Return the contested cells of which the queue would use more than it is entitled to.

        Gangs of its own that give way bring it back within that.
        """
        here = self.usage.find(self.wants.queue)
        if here is None:
            return frozenset()
        trial = self.usage.copy()
        trial.charge(self.wants.queue, self.wants.amounts)
        return frozenset(cell for cell in self.contested if self.is_above(trial, here, cell))

    def _is_young(self, other: Tenant, least: float) -> bool:
        if not least or not self.spares_young:
            return False
        return other.started_at is None or self.now - other.started_at < least


def keeps_serving(tenant: Tenant, services: GivingServices) -> Keeps | None:
    """Return whether a gang stays because it serves requests.

    A pod that shares its device is one of several replicas that its controller makes again
    elsewhere; one with devices of its own holds a model that others wait for.
    """
    if not tenant.serves or services is GivingServices.ALL:
        return None
    if services is GivingServices.NONE:
        return Keeps.SERVES
    return Keeps.DEDICATED if tenant.is_dedicated else None


def is_firm(tenant: Tenant, policy: PreemptionPolicy) -> bool:
    """Return whether a gang never gives way, as it says itself or by its priority."""
    if not tenant.is_preemptable or (policy.obeys_marks and tenant.is_marked):
        return True
    by_word = tenant.preemptibility.is_firm if policy.obeys_marks else None
    if by_word is not None:
        return by_word
    return policy.firm_from is not None and tenant.priority >= policy.firm_from


def falls(
    before: UsageTrial, after: UsageTrial, node: QueueNode, cell: Cell, floor: ReclaimFloor
) -> bool:
    """Return whether a change takes a queue below the floor that it was not below before."""
    if floor is ReclaimFloor.ZERO:
        return False
    least = (
        before.entitled(node, cell) if floor is ReclaimFloor.ENTITLED else before.kept(node, cell)
    )
    return after.used(node, cell) < least <= before.used(node, cell)


def preempt_min_run(node: QueueNode | None) -> float:
    """Return for how long gangs of a queue run before others of it make them give way.

    Its own setting, else that of the first queue above it that has one (KAI, plugins/minruntime,
    ``getPreemptMinRuntime``).
    """
    return _first(each.spec.preemption.preempt_min_run for each in path(node))


def reclaim_min_run(
    theirs: PreemptionPolicy, there: QueueNode | None, here: QueueNode | None
) -> float:
    """Return for how long gangs of a queue run before those of another make them give way.

    Its own setting, or that of the queue just below the one above both; else that of the first
    above it that has one (KAI, plugins/minruntime, ``resolveReclaimMinRuntimeLCA``).
    """
    if there is None:
        return 0.0
    by_department = theirs.runs_by_department
    top = (below_common(there, here) or [there])[-1] if by_department else there
    return _first(each.spec.preemption.reclaim_min_run for each in path(top))


def _first(found: Iterable[float | None]) -> float:
    return next((seconds for seconds in found if seconds is not None), 0.0)


def compared_priority(priority: int, up: Iterable[QueueNode]) -> int:
    """Return a gang's priority as queues beside one above it see it.

    ``up``: its queue and those above it, below the one that both have in common. Each adds its
    offset, or shows that alone (YuniKorn, pkg/scheduler/objects/queue.go,
    ``findPreemptionFenceRoot``).
    """
    for policy in (node.spec.preemption for node in up):
        priority = policy.priority_offset + (0 if policy.hides_priority else priority)
    return priority


def _by_priority(reclaim: ReclaimWithin, priority: int, mine: int) -> Keeps | None:
    """Return whether a priority keeps a gang from giving way to one that is entitled."""
    if reclaim is ReclaimWithin.LOWER_PRIORITY and priority >= mine:
        return Keeps.NOT_LOWER
    if reclaim is ReclaimWithin.LOWER_OR_EQUAL_PRIORITY and priority > mine:
        return Keeps.HIGHER
    return None
