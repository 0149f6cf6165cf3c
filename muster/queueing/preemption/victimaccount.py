"""Whether several gangs give way together, and whether the quota suffices then.

Each of them gives way by the rules; together they may take a queue below what it is entitled to.
They are added and dropped one by one, as the search for the cheapest set goes on.
"""

from dataclasses import dataclass, field

from muster.cluster.quota.cells import Amounts
from muster.cluster.quota.preemptionpolicy import ReclaimFloor
from muster.cluster.quota.queuenode import QueueNode
from muster.queueing.preemption.rules import RoomRules, falls
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial, below_common


@dataclass(slots=True, eq=False)
class VictimAccount:
    """The set so far, and what queues use without it."""

    rules: RoomRules
    #: What queues use without the set.
    usage: UsageTrial = field(init=False)
    #: How many of the set are charged to other queues of the tree.
    _reclaimed: list[Tenant] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with nobody."""
        self.usage = self.rules.usage.copy()

    def add(self, other: Tenant, amounts: Amounts) -> bool:
        """Let a gang give back ``amounts``; returns whether its queues may spare that.

        It is added in any case, and dropped with ``drop``.
        """
        is_above = self._is_above(other)
        self.usage.give_back(other.queue, amounts)
        if self.rules.is_own(other):
            return True
        self._reclaimed.append(other)
        return is_above and not self._falls(other)

    def drop(self, other: Tenant, amounts: Amounts) -> None:
        """Take back an addition."""
        self.usage.charge(other.queue, amounts)
        if not self.rules.is_own(other):
            self._reclaimed.remove(other)

    def suffices(self) -> bool:
        """Return whether the queue admits the gang now, with the right that the set was taken."""
        wants = self.rules.wants
        if self.usage.short_cells(wants.queue, wants.amounts):
            return False
        return not self._reclaimed or self._has_right()

    def _is_above(self, other: Tenant) -> bool:
        """Return whether the queues of a gang still use more than they are entitled to.

        Where they must stay at that, the floor says it, too; else the gang before may have been the
        last that they spare.
        """
        rules, there = self.rules, self.usage.find(other.queue)
        if there is None or rules.is_own(other):
            return True
        if rules.policies.of(there).floor is ReclaimFloor.ENTITLED:
            return True
        cells = list(rules.needed(other, is_foreign=self._is_foreign(there)))
        return all(
            any(self.usage.borrows(node, cell) for cell in cells)
            for node in below_common(there, self.usage.find(rules.wants.queue))
        )

    def _is_foreign(self, there: QueueNode) -> bool:
        here = self.usage.find(self.rules.wants.queue)
        return here is None or here.root is not there.root

    def _falls(self, other: Tenant) -> bool:
        rules, there = self.rules, self.usage.find(other.queue)
        if there is None:
            return False
        here, floor = self.usage.find(rules.wants.queue), rules.policies.of(there).floor
        return any(
            falls(rules.usage, self.usage, node, cell, floor)
            for node in below_common(there, here)
            for cell in rules.needed(other, is_foreign=self._is_foreign(there))
        )

    def _has_right(self) -> bool:
        """Return whether the queue is entitled to what it takes from others, or may borrow it."""
        rules = self.rules
        here = self.usage.find(rules.wants.queue)
        if here is None or rules.policies.of(here).borrows:
            return True
        nodes = [self.usage.find(other.queue) for other in self._reclaimed]
        there = {node.spec.name: node for node in nodes if node and node.root is here.root}
        return all(rules.stays_entitled(self.usage, here, node) for node in there.values())
