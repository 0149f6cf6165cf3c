"""The topology tree: nodes grouped into domains, level by level, as dense arrays.

A *level* is a node label key; levels are ordered from the widest to the host. A *domain*
is one value at a level **within its parent**: rack "r1" under block "a" and rack "r1"
under block "b" are two domains. Nodes that lack a level's label share a pseudo domain
under the same parent; it keeps the tree complete and is flagged in ``labelled``, because
a required level must not be satisfied by "all nodes without a rack".

::

    levels     zone        rack          host            order: node rows, sorted by path
    domains    z1 ─┬─ z1/r1 ─┬─ n1                       ┌────┬────┬────┬────┐
                   │         └─ n2                       │ n1 │ n2 │ n3 │ n4 │
                   └─ z1/r2 ─── n3                       └────┴────┴────┴────┘
               z2 ─── z2/r1 ─── n4             rack starts 0         2    3

Built once per change of the node set or of a level's label, by one sort: with the node
rows sorted by (path names, node name), every domain of every level is a contiguous range
of ``order``, its id is its position among the domains of its level, and any count per
domain is ``np.add.reduceat(count[order], starts)``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cluster.columns import read_only
from cluster.ids import NO_ROW
from cluster.labelcolumns import ABSENT, LabelColumn
from cluster.names import NameView
from cluster.nodeview import NodeView


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """One level, d domains over n node rows.

    ``domain``: int32[n], -1 for dead rows. ``parent``: int32[d], domain one level up (-1 at
    the widest). ``starts``: int32[d], offsets into ``order``. ``labelled``: bool[d].
    ``codes``: int32[d], index into ``values`` or -1 for a pseudo domain. ``along``:
    int32[alive nodes], the domain of each entry of the topology's ``order``, ascending.
    """

    key: str
    domain: NDArray[np.int32]
    parent: NDArray[np.int32]
    starts: NDArray[np.int32]
    labelled: NDArray[np.bool_]
    codes: NDArray[np.int32]
    values: NameView[str] | None
    along: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """See the module's docstring. ``order``: int32[alive nodes], node rows."""

    levels: tuple[str, ...]
    order: NDArray[np.int32]
    _levels: tuple[Level, ...]

    def level_index(self, key: str) -> int | None:
        """Return the position of a level's label key, ``None`` when it is no level."""
        return self.levels.index(key) if key in self.levels else None

    def domain(self, level: int) -> NDArray[np.int32]:
        """Return the domain id of every node row, int32[n], -1 for dead rows."""
        return self._levels[level].domain

    def along(self, level: int) -> NDArray[np.int32]:
        """Return the domain id of every entry of ``order``, int32[alive], ascending."""
        return self._levels[level].along

    def parent(self, level: int) -> NDArray[np.int32]:
        """Return the domain id one level up of every domain, int32[d], -1 at level 0."""
        return self._levels[level].parent

    def labelled(self, level: int) -> NDArray[np.bool_]:
        """Return bool[d]: False for the pseudo domains of nodes that lack the label."""
        return self._levels[level].labelled

    def starts(self, level: int) -> NDArray[np.int32]:
        """Return int32[d]: where each domain begins in ``order``."""
        return self._levels[level].starts

    def size(self, level: int) -> int:
        """Return the number of domains of a level."""
        return len(self._levels[level].starts)

    def name(self, level: int, domain: int) -> str:
        """Return a domain's label value (host: node name), "" for a pseudo domain."""
        found = self._levels[level]
        code = int(found.codes[domain])
        return "" if code == ABSENT or found.values is None else found.values[code]

    def names(self, level: int) -> Sequence[str]:
        """Return the label value of every domain of a level, in id order."""
        return [self.name(level, domain) for domain in range(self.size(level))]

    def path(self, level: int, domain: int) -> tuple[str, ...]:
        """Return the names from the widest level down to this domain: its identity."""
        names: list[str] = []
        for depth in range(level, -1, -1):
            names.append(self.name(depth, domain))
            domain = int(self.parent(depth)[domain])
        return tuple(reversed(names))

    def rows(self, level: int, domain: int) -> NDArray[np.int32]:
        """Return the node rows of one domain, sorted by path: a slice of ``order``."""
        starts = self.starts(level)
        end = starts[domain + 1] if domain + 1 < len(starts) else len(self.order)
        return self.order[starts[domain] : end]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What the tree depends on, and nothing else: old columns must not be kept alive."""

    levels: tuple[str, ...]
    names: NameView[str]
    alive: NDArray[np.bool_]
    labels: tuple[LabelColumn | None, ...]

    @classmethod
    def of(cls, nodes: NodeView, levels: tuple[str, ...]) -> "Inputs":
        """Take them from frozen node columns; the last level is the host."""
        labels = tuple(nodes.labels(key) for key in levels[:-1])
        return cls(levels, nodes.names, nodes.alive, labels)


class TopologyCell:
    """A topology that is built when it is first asked for, shared by many snapshots."""

    __slots__ = ("_inputs", "_topology")

    def __init__(self, nodes: NodeView, levels: tuple[str, ...]) -> None:
        self._inputs: Inputs | None = Inputs.of(nodes, levels)
        self._topology: Topology | None = None

    def get(self) -> Topology:
        """Return the topology."""
        if self._topology is None:
            assert self._inputs is not None  # noqa: S101  # dropped below, together
            self._topology = build(self._inputs)
            self._inputs = None
        return self._topology


def build(inputs: Inputs) -> Topology:
    """Build the tree of a frozen set of nodes. O(n log n), one ``lexsort``."""
    rows = np.flatnonzero(inputs.alive).astype(np.int32)
    codes = [_codes(column, rows) for column in inputs.labels]
    ranks = [_rank(c)[code] for c, code in zip(inputs.labels, codes, strict=True)]
    by_path = np.lexsort((_name_rank(inputs.names, rows), *reversed(ranks)))
    order = rows[by_path]
    count = len(inputs.names)
    built: list[Level] = []
    above = np.zeros(len(order), dtype=np.int32)  # the domain one level up, along `order`
    for depth, column in enumerate(inputs.labels):
        values = None if column is None else column.values
        level = _level(inputs.levels[depth], above, codes[depth][by_path], order, count, values)
        built.append(level)
        above = level.domain[order]
    # A node is its own host domain, whatever its hostname label says.
    built.append(_level(inputs.levels[-1], above, order, order, count, inputs.names))
    built[0] = _without_parents(built[0])
    return Topology(inputs.levels, read_only(order), tuple(built))


def _level(
    key: str,
    above: NDArray[np.int32],
    codes: NDArray[np.int32],
    order: NDArray[np.int32],
    count: int,
    values: NameView[str] | None,
) -> Level:
    # A domain begins where its parent or its own label value changes along the order.
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (above[1:] != above[:-1]) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(begins).astype(np.int32)
    domain = np.full(count, NO_ROW, dtype=np.int32)
    along = np.cumsum(begins, dtype=np.int32) - 1
    domain[order] = along
    return Level(
        key=key,
        domain=read_only(domain),
        parent=read_only(above[starts]),
        starts=read_only(starts),
        labelled=read_only(codes[starts] != ABSENT),
        codes=read_only(codes[starts]),
        values=values,
        along=read_only(along),
    )


def _without_parents(level: Level) -> Level:
    none = read_only(np.full(len(level.starts), NO_ROW, dtype=np.int32))
    return replace(level, parent=none)


def _codes(column: LabelColumn | None, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    if column is None:
        return np.full(len(rows), ABSENT, dtype=np.int32)
    return column.codes[rows]


def _rank(column: LabelColumn | None) -> NDArray[np.int32]:
    # Position of each value in sorted order; one more entry at the end, which the code
    # ABSENT (-1) finds by wrapping around: pseudo domains come last.
    values = [] if column is None else [value or "" for value in column.values]
    return np.append(_sorted_positions(values), np.int32(len(values)))


def _name_rank(names: NameView[str], rows: NDArray[np.int32]) -> NDArray[np.int32]:
    every = list(names)
    return _sorted_positions([every[row] or "" for row in rows.tolist()])


def _sorted_positions(values: list[str]) -> NDArray[np.int32]:
    positions = np.empty(len(values), dtype=np.int32)
    positions[sorted(range(len(values)), key=values.__getitem__)] = np.arange(len(values))
    return positions
