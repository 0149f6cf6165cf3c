"""Whether several gangs give way together, and whether the quota suffices then.

Each of them gives way by the rules; together they may take a queue below what it is entitled to.
They are added and dropped one by one, as the search for the cheapest set goes on.
"""

from dataclasses import dataclass, field

from muster.cluster.quota.cells import Amounts
from muster.queueing.preemption.policies import BorrowWithin
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
        self.usage.give_back(other.queue, amounts)
        if self.rules.is_own(other):
            return True
        self._reclaimed.append(other)
        return not self._falls(other)

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

    def _falls(self, other: Tenant) -> bool:
        rules, there = self.rules, self.usage.find(other.queue)
        if there is None:
            return False
        here = self.usage.find(rules.wants.queue)
        is_foreign = here is None or here.root is not there.root
        return any(
            falls(rules.usage, self.usage, node, cell)
            for node in below_common(there, here)
            for cell in rules.needed(other, is_foreign=is_foreign)
        )

    def _has_right(self) -> bool:
        """Return whether the queue is entitled to what it takes from others, or may borrow it."""
        rules = self.rules
        here = self.usage.find(rules.wants.queue)
        if here is None or rules.policies.of(rules.wants.queue).borrow is not BorrowWithin.NEVER:
            return True
        nodes = [self.usage.find(other.queue) for other in self._reclaimed]
        there = {node.spec.name: node for node in nodes if node and node.root is here.root}
        return all(rules.stays_entitled(self.usage, here, node) for node in there.values())
