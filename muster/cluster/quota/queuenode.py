"""One queue in the tree: what it is entitled to, keeps, lends and uses.

For one cell::

    entitled (of the subtree)  ├──── kept ────┼──────────── lent ────────────┤
    usage                      ├──────────────────────┤
                                              └─ over ─┘  counts at the parent, too
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from muster.cluster.quota.cells import NO_QUOTA, UNBOUNDED, UNLIMITED, Cell, Quota, capped, less
from muster.cluster.quota.queuespec import QueueSpec


@dataclass(slots=True)
class LentSum:
    """What the children of a queue lend: a sum from which unlimited parts can be taken again."""

    finite: int = 0
    unlimited: int = 0

    def add(self, amount: int) -> None:
        """Add what one child lends."""
        if amount >= UNLIMITED:
            self.unlimited += 1
        else:
            self.finite += amount

    def take(self, amount: int) -> None:
        """Take away what one child lent."""
        if amount >= UNLIMITED:
            self.unlimited -= 1
        else:
            self.finite -= amount

    @property
    def total(self) -> int:
        """The sum, at most ``UNLIMITED``."""
        return UNLIMITED if self.unlimited else capped(self.finite)


class Carried(NamedTuple):
    """What of a queue counts at its parent, of one cell."""

    #: What others may use while it is idle.
    lent: int = 0
    #: What it uses above what it keeps.
    over: int = 0
    #: What it and all below it keep.
    kept: int = 0


NOTHING_CARRIED: Final = Carried()


@dataclass(slots=True, eq=False)
class QueueNode:
    """A queue with its place in the tree."""

    spec: QueueSpec
    parent: "QueueNode | None" = None
    children: "dict[str, QueueNode]" = field(default_factory=dict)
    #: What is used by cell: the queue's own gangs, and what children use above what they keep.
    usage: dict[Cell, int] = field(default_factory=dict)
    #: What children lend, by cell.
    lent_by_children: dict[Cell, LentSum] = field(default_factory=dict)
    #: What all queues below keep, by cell.
    kept_below: dict[Cell, LentSum] = field(default_factory=dict)

    def quota(self, cell: Cell) -> Quota:
        """Return what was written for a cell.

        Nothing written means 0, without a limit; for a cluster it means no limit at all.
        """
        return self.spec.quotas.get(cell, UNBOUNDED if self.spec.is_cluster else NO_QUOTA)

    def used(self, cell: Cell) -> int:
        """Return what the subtree uses, without what its queues use of what they keep."""
        return self.usage.get(cell, 0)

    def entitled(self, cell: Cell) -> int:
        """Return what the subtree is entitled to, without what its queues keep."""
        lent = self.lent_by_children.get(cell)
        below = 0 if lent is None else lent.total
        if self.spec.is_whole:
            is_written = cell in self.spec.quotas or self.spec.is_cluster
            return self._without_kept(cell, self.quota(cell).entitled) if is_written else below
        return capped(self.quota(cell).entitled + below)

    def limit(self, cell: Cell) -> int:
        """Return the most that the subtree takes, without what its queues keep."""
        limit = self.quota(cell).limit
        return self._without_kept(cell, limit) if self.spec.is_whole else limit

    def _without_kept(self, cell: Cell, amount: int) -> int:
        """Return an amount that contains the children's, without what is kept below."""
        kept = self.kept_below.get(cell)
        return amount if kept is None else max(0, less(amount, kept.total))

    def kept(self, cell: Cell) -> int:
        """Return what nobody outside the subtree can use, even while it is idle."""
        lendable = self.quota(cell).lendable
        return 0 if lendable >= UNLIMITED else max(0, less(self.entitled(cell), lendable))

    def lent(self, cell: Cell) -> int:
        """Return what others may use while it is idle."""
        entitled, kept = self.entitled(cell), self.kept(cell)
        return 0 if kept >= UNLIMITED else less(entitled, kept)

    def carried(self, cell: Cell) -> "Carried":
        """Return what of the queue counts at its parent."""
        below = self.kept_below.get(cell)
        kept = self.kept(cell)
        in_all = kept if below is None else capped(kept + below.total)
        return Carried(self.lent(cell), self.over(cell), in_all)

    def over(self, cell: Cell) -> int:
        """Return what is used above what is kept: it counts at the parent, too."""
        return max(0, self.used(cell) - self.kept(cell))

    def borrowed(self, cell: Cell) -> int:
        """Return what is used above what the subtree is entitled to."""
        return max(0, self.used(cell) - self.entitled(cell))

    def is_shared(self, cell: Cell) -> bool:
        """Return whether any queue of the tree is entitled to some of a cell.

        Where nobody is, nobody's is borrowed: quotas of GPUs alone say nothing about CPU.
        """
        root = self.root
        below = (root.lent_by_children.get(cell), root.kept_below.get(cell))
        if any(each is not None and each.total > 0 for each in below):
            return True
        return not root.spec.is_cluster and root.quota(cell).entitled > 0

    def cells(self) -> set[Cell]:
        """Return the cells of which anything is written, lent or used."""
        return {*self.spec.quotas, *self.usage, *self.lent_by_children, *self.kept_below}

    @property
    def root(self) -> "QueueNode":
        """The top of the tree that it is in."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def path(self) -> Iterator["QueueNode"]:
        """Yield it and those above it, up to the root."""
        node: QueueNode | None = self
        while node is not None:
            yield node
            node = node.parent

    def subtree(self) -> Iterator["QueueNode"]:
        """Yield it and all below it, each before its children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += reversed(node.children.values())
