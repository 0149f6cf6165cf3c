"""The tree of queues as columns, so that all queues are looked at in one pass.

::

    row     0      1        2       3      4        level by level, below one level by parent:
    queue   whole  research service vision speech   a level is a slice, the children of one
    parent  -      0        0       1      1        queue stand together

Numbers are those of ``muster.cluster.quota``; what is unlimited there, or that large, is ``PLENTY``
here, so that sums of two stay within int64.
"""

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.availability import own_room
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, ShareFunction
from muster.cluster.quota.tree import QuotaTree

PLENTY: Final = 1 << 61
#: All share functions; columns have their places.
ORDERS: Final = tuple(ShareFunction)

Amounts = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.int64]


class QuotaColumns:
    """A copy of a tree's numbers; whoever changes the tree says so.

    Amounts have the shape (queues, cells). ``parent``: int64[queues], -1 for a root.
    """

    def __init__(self, tree: QuotaTree) -> None:
        """Copy a tree."""
        self._tree = tree
        self._asked: set[Cell] = set()
        self.cells: list[Cell] = []
        #: how often queues came, went or got other numbers; usage does not count
        self.numbers = 0
        #: (numbers, (potential, the same by resource))
        self._potential: tuple[int, tuple[Amounts, NDArray[np.float64]]] | None = None
        self.rebuild()

    # --- copying ----------------------------------------------------------------------------

    def cover(self, cells: set[Cell]) -> None:
        """Have columns for cells that gangs ask for, whether a queue names them or not."""
        self._asked = set(cells)
        if not self._asked <= set(self.cells):
            self.rebuild()

    def rebuild(self) -> None:
        """Copy everything: queues came, went or moved."""
        self._nodes = list(_level_by_level(self._tree))
        self.row = {node.spec.name: row for row, node in enumerate(self._nodes)}
        parents = [-1 if n.parent is None else self.row[n.parent.spec.name] for n in self._nodes]
        self.parent: Rows = np.array(parents, dtype=np.int64)
        self.levels = list(_levels(self.parent))
        self._root = np.arange(len(parents))
        for level in self.levels[1:]:
            self._root[level] = self._root[self.parent[level]]
        named = {cell for node in self._nodes for cell in node.cells()}
        self.cells = sorted(named | self._asked)
        names = sorted({cell.resource for cell in self.cells})
        member = [[cell.resource == name for name in names] for cell in self.cells]
        #: float64[cells, resources]: 1 where a cell is of a resource
        self._member = np.array(member, np.float64).reshape(len(self.cells), len(names))
        shape = (len(self._nodes), len(self.cells))
        self.used, self.entitled, self.kept, self.own, self.limit = (
            np.zeros(shape, np.int64) for _ in range(5)
        )
        self.weight, self.priority = (np.zeros(shape[0], np.int64) for _ in range(2))
        self._shared = np.zeros(shape, np.bool_)
        #: by queue, its numbers as they were copied last
        self._copied: list[tuple[object, ...]] = [()] * shape[0]
        self._orders: Rows | None = None
        self.numbers += 1
        self.is_strict, self._is_open = (np.zeros(shape[0], np.bool_) for _ in range(2))
        self._is_stopped = np.array([self._tree.is_stopped(node) for node in self._nodes], np.bool_)
        for row in range(shape[0]):
            self._copy(row)

    def refresh(self, queues: Iterable[QueueName]) -> None:
        """Copy some queues and those above them: they use more or less, or have other numbers."""
        for name in queues:
            node = self._tree.find(name)
            while node is not None:
                if not node.cells() <= set(self.cells):
                    self.rebuild()
                    return
                self._copy(self.row[node.spec.name])
                node = node.parent

    def _copy(self, row: int) -> None:
        node, spec = self._nodes[row], self._nodes[row].spec
        used = [min(node.used(cell), PLENTY) for cell in self.cells]
        own = [_within(own_room(node, cell)) for cell in self.cells]
        numbers = (
            [min(node.entitled(cell), PLENTY) for cell in self.cells],
            [min(node.kept(cell), PLENTY) for cell in self.cells],
            [
                free if free >= PLENTY else free + taken
                for free, taken in zip(own, used, strict=True)
            ],
            (spec.weight, spec.priority, spec.shares),
        )
        self.used[row], self.own[row] = used, own
        if node.parent is None:
            self._shared[row] = [node.is_shared(cell) for cell in self.cells]
        self.is_strict[row], self._is_open[row] = spec.is_strict, spec.is_open
        if numbers != self._copied[row]:
            self._copied[row] = numbers
            self.numbers += 1
            self.entitled[row], self.kept[row], self.limit[row], _ = numbers
            self.weight[row], self.priority[row], self._orders = spec.weight, spec.priority, None

    # --- looking ----------------------------------------------------------------------------

    def shared(self, rows: Rows) -> Flags:
        """Return bool[rows, cells]: some queue of the tree is entitled to some of a cell."""
        return self._shared[self._root[rows]]

    def used_by_own(self, row: int) -> list[int]:
        """Return by cell what a queue uses without what counts of the queues below."""
        node, used = self._nodes[row], self.used[row].tolist()
        if not node.children:
            return [int(amount) for amount in used]
        below = [sum(child.over(cell) for child in node.children.values()) for cell in self.cells]
        return [max(0, have - over) for have, over in zip(used, below, strict=True)]

    def by_name(self, rows: slice) -> list[int]:
        """Return the places of some rows in the order of their queues' names."""
        nodes = self._nodes[rows]
        return sorted(range(len(nodes)), key=lambda place: nodes[place].spec.name)

    def orders(self, rows: Rows | slice = slice(None)) -> Rows:
        """Return what orders queues beside their siblings: places in ``ORDERS``."""
        if self._orders is None:
            default = ORDERS.index(ShareFunction.BORROWED)
            below: list[int] = []
            found = []
            for parent, node in zip(self.parent.tolist(), self._nodes, strict=True):
                found.append(default if parent < 0 else below[parent])
                shares = node.spec.shares
                below.append(found[-1] if shares is None else ORDERS.index(shares))
            self._orders = np.array(found, dtype=np.int64)
        return self._orders[rows]

    def available(self) -> Amounts:
        """Return what each queue may take now; see ``muster.cluster.quota.availability``."""
        idle = np.where(self.kept >= PLENTY, PLENTY, np.maximum(self.kept - self.used, 0))
        return self._from_above(self.own, idle)

    def potential(self) -> Amounts:
        """Return the most that each queue could take if no other queue used anything.

        It is computed anew when queues have other numbers, and must not be written to.
        """
        return self._potentials()[0]

    def potential_by_resource(self) -> NDArray[np.float64]:
        """Return the same with the flavors of a resource added up: float64[queues, resources]."""
        return self._potentials()[1]

    def _potentials(self) -> tuple[Amounts, NDArray[np.float64]]:
        if self._potential is None or self._potential[0] != self.numbers:
            found = self._from_above(self.limit, self.kept)
            self._potential = (self.numbers, (found, self.by_resource(found)))
        return self._potential[1]

    def by_resource(self, amounts: Amounts | NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up the flavors of each resource; float64[rows, resources]."""
        found: NDArray[np.float64] = np.minimum(amounts, PLENTY).astype(np.float64) @ self._member
        return found

    def _from_above(self, own: Amounts, kept: Amounts) -> Amounts:
        """Return from the roots down the lesser of ``own`` and of ``kept`` plus the parent's."""
        found = own.copy()
        for level in self.levels[1:]:
            above = found[self.parent[level]]
            is_plenty = (kept[level] >= PLENTY) | (above >= PLENTY)
            found[level] = np.minimum(
                found[level], np.where(is_plenty, PLENTY, kept[level] + above)
            )
        return found

    def admits(self) -> Flags:
        """Return bool[queues]: open, and nothing above it is closed or stopped."""
        found = self._is_open & ~self._is_stopped
        for level in self.levels[1:]:
            found[level] &= found[self.parent[level]]
        return found


def _within(amount: int) -> int:
    """Return an amount that sums of two within int64 can be made of."""
    return max(-PLENTY, min(amount, PLENTY))


def _level_by_level(tree: QuotaTree) -> Iterator[QueueNode]:
    level = [node for node in tree.nodes() if node.parent is None]
    while level:
        yield from level
        level = [child for node in level for child in node.children.values()]


def _levels(parent: Rows) -> Iterator[slice]:
    """Yield the rows of each level: those whose parents are in the level before."""
    start, stop = 0, int((parent < 0).sum())
    while start < stop:
        yield slice(start, stop)
        start, stop = stop, stop + int(((parent >= start) & (parent < stop)).sum())
