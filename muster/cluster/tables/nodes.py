"""Node columns: what each node has, what is taken, and by which pods.

One numpy column per resource, per flag and per label key; a row per node *name*. A row
stays after its node is gone while a pod is on it or names it (the API server may show pods before
their node, or after it). Such a row is dead: it has no capacity, and its ``free`` is the negative
of what its pods use. When the node comes, its capacity is added and all sums are right.

    free = allocatable - used,   used = Σ requests of the pods that occupy the node
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import Column, freeze_all
from muster.cluster.columns.nodelabels import LabelTable
from muster.cluster.columns.paged import NameTable, PagedColumn
from muster.cluster.ids import NO_ROW
from muster.cluster.specs.podconstraints import Taint
from muster.cluster.tables.nodepods import NodePods
from muster.cluster.tables.nodeview import NodeView

AMOUNT_LIMIT: Final = 1 << 52
"""Larger amounts count as this one (4 PiB, or 4.5e15 pieces): no node has that much, and
thousands of them still add up within int64."""


class NodeTable:
    """The live node columns; ``freeze`` makes a ``NodeView``."""

    __slots__ = (
        "alive",
        "allocatable",
        "free",
        "kinds",
        "labels",
        "names",
        "pods",
        "ready",
        "refs",
        "resources",
        "spare",
        "taint_set",
        "taint_sets",
        "unschedulable",
    )

    def __init__(self, priority: PagedColumn[np.int32, int], like: NodeView | None = None) -> None:
        """``priority``: of each pod row; the pods of a node are ordered by it."""
        like = NodeView.empty() if like is None else like
        self.names: NameTable[str] = NameTable(like=like.names)
        # Replaced, never changed in place: frozen views refer to it.
        self.kinds: Mapping[str, int] = like.kinds
        self.resources = list(like.resources)
        self.taint_sets: NameTable[tuple[Taint, ...]] = NameTable(like=like.taint_sets)
        self.labels = LabelTable(like.label_view)
        self.alive: Column[np.bool_, bool] = Column(np.bool_, False, like=like.alive)
        self.ready: Column[np.bool_, bool] = Column(np.bool_, False, like=like.ready)
        self.unschedulable: Column[np.bool_, bool] = Column(
            np.bool_, False, like=like.unschedulable
        )
        self.taint_set: Column[np.int32, int] = Column(np.int32, NO_ROW, like=like.taint_set)
        self.refs: PagedColumn[np.int32, int] = PagedColumn(np.int32, 0, like=like.refs)
        self.pods = NodePods(priority, like.pods)
        self.allocatable = _amounts(like.allocatable_columns)
        self.free = _amounts(like.free_columns)
        self.spare = _amounts(like.spare_columns)

    # --- rows -------------------------------------------------------------------------

    def row(self, name: str) -> int:
        """Return the row of ``name``; an unknown name gets a new dead row."""
        row = self.names.find(name)
        if row is not None:
            return row
        row = self.names.add(name)
        self.grow(len(self.names))
        return row

    def rows(self, names: Sequence[str]) -> int:
        """Add consecutive rows for unknown names and return the first."""
        first = self.names.extend(names)
        self.grow(len(self.names))
        return first

    def refer(self, row: int, delta: int) -> None:
        """Add to the users of a row (occupying pods, spares, nominations); free it at 0."""
        count = self.refs[row] + delta
        self.refs[row] = count
        if not count and not self.alive[row]:
            self.names.remove(row)

    def resource_ids(self, names: Iterable[str]) -> list[int]:
        """Return the ids of resources; an unknown resource gets columns."""
        ids = self.kinds
        return [ids[name] if name in ids else self.resource(name) for name in names]

    def resource(self, name: str) -> int:
        """Return the id of a resource; an unknown one gets columns."""
        number = self.kinds.get(name)
        if number is not None:
            return number
        number = len(self.resources)
        self.kinds = {**self.kinds, name: number}
        self.resources.append(name)
        for columns in (self.allocatable, self.free, self.spare):
            column: Column[np.int64, int] = Column(np.int64, 0)
            column.grow(self.alive.capacity)
            columns.append(column)
        return number

    # --- capacity ---------------------------------------------------------------------

    def capacity_of(self, row: int) -> dict[str, int]:
        """Return a node's non-zero allocatable amounts by resource."""
        pairs = ((name, self.allocatable[i][row]) for i, name in enumerate(self.resources))
        return {name: amount for name, amount in pairs if amount}

    def set_capacity(self, row: int, amounts: Mapping[str, int]) -> None:
        """Replace a node's allocatable amounts; ``free`` moves by the difference."""
        wanted = {
            self.resource(name): min(amount, AMOUNT_LIMIT) for name, amount in amounts.items()
        }
        for number, column in enumerate(self.allocatable):
            difference = wanted.get(number, 0) - column[row]
            if difference:
                column.add(row, difference)
                self.free[number].add(row, difference)

    def set_taints(self, row: int, taints: tuple[Taint, ...]) -> None:
        """Replace a node's taints."""
        old = self.taint_set[row]
        self.taint_set[row] = self.taint_sets.acquire(taints)
        if old != NO_ROW:
            self.taint_sets.release(old)

    def taints(self, row: int) -> tuple[Taint, ...]:
        """Return a node's taints; none for a dead row."""
        number = self.taint_set[row]
        return () if number == NO_ROW else self.taint_sets[number]

    def set_flags(self, row: int, *, alive: bool, ready: bool, unschedulable: bool) -> None:
        """Write a node's flags."""
        self.alive[row] = alive
        self.ready[row] = ready
        self.unschedulable[row] = unschedulable

    def clear(self, row: int) -> None:
        """Make a row dead: no capacity, no labels, no taints. Its pods stay."""
        self.set_capacity(row, {})
        self.labels.set(row, {})
        if self.taint_set[row] != NO_ROW:
            self.taint_sets.release(self.taint_set[row])
            self.taint_set[row] = NO_ROW
        self.set_flags(row, alive=False, ready=False, unschedulable=False)

    # --- frozen -----------------------------------------------------------------------

    def freeze(self) -> NodeView:
        """Return all columns read-only; O(columns), nothing is copied."""
        count = self.names.count
        return NodeView(
            count=count,
            kinds=self.kinds,
            resources=tuple(self.kinds),
            label_view=self.labels.freeze(count),
            alive=self.alive.freeze(count),
            ready=self.ready.freeze(count),
            unschedulable=self.unschedulable.freeze(count),
            taint_set=self.taint_set.freeze(count),
            allocatable_columns=freeze_all(self.allocatable, count),
            free_columns=freeze_all(self.free, count),
            spare_columns=freeze_all(self.spare, count),
            names=self.names.freeze(),
            taint_sets=self.taint_sets.freeze(),
            refs=self.refs.freeze(count),
            pods=self.pods.freeze(count),
        )

    def prepare(self) -> Iterator[None]:
        """Copy part by part the columns that events have written to (``Column.prepare``)."""
        for column in (*self.free, *self.spare, *self.allocatable):
            while column.prepare():
                yield

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows."""
        self.labels.grow(count)
        self.pods.grow(count)
        if count <= self.alive.capacity:
            return
        for flags in (self.alive, self.ready, self.unschedulable):
            flags.grow(count)
        self.taint_set.grow(count)
        self.refs.grow(self.taint_set.capacity)
        for amounts in (*self.allocatable, *self.free, *self.spare):
            amounts.grow(count)


def _amounts(columns: Iterable[NDArray[np.int64]]) -> list[Column[np.int64, int]]:
    return [Column(np.int64, 0, like=column) for column in columns]
