"""Whether several gangs give way together, and whether the quota suffices then.

Each of them gives way by the rules; together they may take a queue below what it is entitled to.
They are added and dropped one by one, as the search for the cheapest set goes on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.preemptionpolicy import FairRule, ReclaimFloor
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.preemption.dividedshares import is_beyond
from muster.queueing.preemption.fairshares import sides_of, takes_by_share
from muster.queueing.preemption.rules import RoomRules, falls
from muster.queueing.preemption.tenant import Tenant
from muster.queueing.preemption.usagetrial import UsageTrial, below_common, path


@dataclass(slots=True, eq=False)
class VictimAccount:
    """The set so far, and what queues use without it."""

    rules: RoomRules
    #: What queues use without the set.
    usage: UsageTrial = field(init=False)
    #: What they use without the set and without all of the gang's own queue that may go; kept
    #: where it takes by shares.
    _least: UsageTrial = field(init=False)
    #: When the gang takes by shares, where its queue borrows; empty: never.
    _fair: tuple[FairRule, ...] = field(init=False)
    #: Who of the set is charged to other queues, by queue, with what each gives back.
    _reclaimed: dict[QueueName | None, list[tuple[Tenant, Amounts]]] = field(default_factory=dict)
    #: By queue, those below the queue above both, and whether it is of another tree.
    _ways: dict[QueueName, tuple[list[QueueNode], bool]] = field(default_factory=dict)
    #: By queue, its name and those of the queues above it.
    _paths: dict[QueueName | None, frozenset[QueueName]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nobody."""
        rules = self.rules
        self.usage, self._least = rules.usage.copy(), rules.usage.copy()
        here = rules.usage.find(rules.wants.queue)
        self._fair = () if here is None else rules.policies.fair_rules(here)
        if self._fair:
            self._least.give_back(rules.wants.queue, rules.own)

    def add(self, other: Tenant, amounts: Amounts) -> bool:
        """Let a gang give back ``amounts``; returns whether its queues may spare that.

        It is added in any case, and dropped with ``drop``. The order of additions is no matter.
        """
        self.usage.give_back(other.queue, amounts)
        if self.rules.is_own(other):
            return True
        self._reclaimed.setdefault(other.queue, []).append((other, amounts))
        if self._fair:
            self._least.give_back(other.queue, amounts)
        return not self._falls(other) and not self._outweighs(other)

    def drop(self, other: Tenant, amounts: Amounts) -> None:
        """Take back an addition."""
        self.usage.charge(other.queue, amounts)
        if not self.rules.is_own(other):
            self._forget(other, amounts)
            if self._fair:
                self._least.charge(other.queue, amounts)

    def _forget(self, other: Tenant, amounts: Amounts) -> None:
        there = self._reclaimed[other.queue]
        if there[-1] == (other, amounts):  # who came last, most often
            there.pop()
        else:
            there.remove((other, amounts))
        if not there:
            del self._reclaimed[other.queue]

    def suffices(self) -> bool:
        """Return whether the queue admits the gang now, with the right that the set was taken."""
        wants = self.rules.wants
        if self.usage.short_cells(wants.queue, wants.amounts):
            return False
        return not self._reclaimed or self._has_right()

    def _falls(self, other: Tenant) -> bool:
        """Return whether the set takes a queue of a gang below what it may fall to."""
        rules, there = self.rules, self.usage.find(other.queue)
        if there is None:
            return False
        nodes, is_foreign = self._way(there)
        floor = rules.policies.of(there).floor
        cells = list(rules.needed(other, is_foreign=is_foreign))
        if any(
            falls(rules.usage, self.usage, node, cell, floor) for node in nodes for cell in cells
        ):
            return True
        return floor is not ReclaimFloor.ENTITLED and not all(
            any(self._is_above(node, cell, self._is_over) for cell in cells) for node in nodes
        )

    def _way(self, there: QueueNode) -> tuple[list[QueueNode], bool]:
        if there.spec.name not in self._ways:
            here = self.usage.find(self.rules.wants.queue)
            is_foreign = here is None or here.root is not there.root
            self._ways[there.spec.name] = below_common(there, here), is_foreign
        return self._ways[there.spec.name]

    def _is_above(
        self, node: QueueNode, cell: Cell, above: Callable[[QueueNode, Cell], bool]
    ) -> bool:
        """Return whether a queue is above its due until the last of the set goes.

        Each gang gives way while the queue is above it. That is so in some order just if it is so
        where the one that gives most is the last. ``above``: whether the queue is, as things are.
        """
        queues = [queue for queue in self._reclaimed if node.spec.name in self._path(queue)]
        last = max(
            (one for queue in queues for one in self._reclaimed[queue]),
            key=lambda one: one[1].get(cell, 0),
        )
        self.usage.charge(last[0].queue, last[1])
        found = above(node, cell)
        self.usage.give_back(last[0].queue, last[1])
        return found

    def _path(self, queue: QueueName | None) -> frozenset[QueueName]:
        if queue not in self._paths:
            nodes = path(self.usage.find(queue))
            self._paths[queue] = frozenset(node.spec.name for node in nodes)
        return self._paths[queue]

    def _outweighs(self, other: Tenant) -> bool:
        """Return whether the set leaves a queue too small a share, whoever else goes with it."""
        here = self.usage.find(self.rules.wants.queue)
        there = self.usage.find(other.queue)
        if here is None or there is None or there.root is not here.root:
            return False
        if self._fair:
            return not self._may_take(self._least, here, there)
        if self.rules.takes_by_division and not self.rules.would_be_entitled(there, here):
            return not self._leaves_share(there, self.rules.needed(other, is_foreign=False))
        return False

    def _leaves_share(self, there: QueueNode, cells: Iterable[Cell]) -> bool:
        """Return whether queues are above their fair shares until the last of the set goes."""
        nodes, _ = self._way(there)
        known = tuple(cells)
        return all(
            any(self._is_above(node, cell, self._is_beyond) for cell in known) for node in nodes
        )

    def _is_over(self, node: QueueNode, cell: Cell) -> bool:
        return self.rules.is_above(self.usage, node, cell)

    def _is_beyond(self, node: QueueNode, cell: Cell) -> bool:
        divided = self.rules.divided
        return divided is not None and is_beyond(divided, self.usage, node, cell)

    def _has_right(self) -> bool:
        """Return whether the queue is entitled to what it takes from others, or may borrow it."""
        rules = self.rules
        here = self.usage.find(rules.wants.queue)
        if here is None or (rules.policies.of(here).borrows and not self._fair):
            return True
        nodes = map(self.usage.find, self._reclaimed)
        there = {node.spec.name: node for node in nodes if node and node.root is here.root}
        return all(self._may_take(self.usage, here, node) for node in there.values())

    def _may_take(self, usage: UsageTrial, here: QueueNode, there: QueueNode) -> bool:
        """Return whether the queue is entitled to take from another, or has the lesser share."""
        rules = self.rules
        if rules.stays_entitled(usage, here, there):
            return True
        if rules.takes_by_division:
            return rules.stays_within_share(usage, here, there) and self._leaves_share(
                there, rules.contested
            )
        if not self._fair:
            return False
        sides = sides_of(here, there)
        queues = [queue for queue in self._reclaimed if sides[1].spec.name in self._path(queue)]
        gone = [one for queue in queues for one in self._reclaimed[queue]]
        return takes_by_share(self._fair, usage, rules.wants, sides, gone)
