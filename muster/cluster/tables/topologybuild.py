"""Building the topology tree: one sort of the nodes by path, in slices.

::

    node rows ──► path keys ──► sort ──► level by level: where does a domain begin? ──► tree
                "z1·r1·n2"     (both in Python, a slice     (numpy, one level a slice)
                                at a time)

At 130,000 nodes this takes about a tenth of a second, for which the event loop must not be blocked:
code on the event loop runs ``TopologyCell.steps``, all other code calls ``TopologyCell.get``.
"""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.nodelabels import ABSENT, LabelColumn
from muster.cluster.columns.paged import NameView
from muster.cluster.ids import NO_ROW
from muster.cluster.resumable import FEW, ITEMS_PER_STEP, Steps, sorted_order
from muster.cluster.tables.nodeview import NodeView
from muster.cluster.tables.topology import Topology, TopologyLevel

S = TypeVar("S", bound=np.generic)

_BETWEEN: Final = "\0"
"""Sorts before all that names may contain, so joined names sort like tuples of names."""

_NO_LABEL: Final = "\x7f"
"""Sorts behind all that label values may contain: pseudo domains come last."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What the tree depends on, and nothing else, so that no old columns stay in memory."""

    #: The levels' label keys, widest first.
    levels: tuple[str, ...]
    #: Node names by row.
    names: NameView[str]
    #: bool[n].
    alive: NDArray[np.bool_]
    #: A column for each level but the host, ``None`` where no node has the label.
    labels: tuple[LabelColumn | None, ...]

    @classmethod
    def of(cls, nodes: NodeView, levels: tuple[str, ...]) -> "Inputs":
        """Return the inputs from frozen node columns; the last level is the host."""
        labels = tuple(nodes.labels(key) for key in levels[:-1])
        return cls(levels, nodes.names, nodes.alive, labels)


class TopologyCell:
    """A topology that is built at its first use and shared by many snapshots.

    It is built once: several callers of ``steps`` advance the same computation, and ``get``
    finishes one that is under way.
    """

    __slots__ = ("_building", "_rows", "_topology")

    def __init__(self, nodes: NodeView, levels: tuple[str, ...]) -> None:
        self._building: Steps[Topology] | None = build(Inputs.of(nodes, levels))
        self._rows = nodes.count
        self._topology: Topology | None = None

    def get(self) -> Topology:
        """Return the topology, built to its end at once."""
        while self._topology is None:
            self._advance()
        return self._topology

    def steps(self) -> Steps[Topology]:
        """Return the topology, built in slices unless nodes are few."""
        if self._rows <= FEW:
            return self.get()
        while self._topology is None:
            self._advance()
            yield
        return self._topology

    def _advance(self) -> None:
        assert self._building is not None  # noqa: S101  # dropped below, together
        try:
            next(self._building)
        except StopIteration as end:
            self._topology = end.value
            self._building = None


def build(inputs: Inputs) -> Steps[Topology]:
    """Build the tree of a frozen set of nodes. O(n log n), one sort."""
    rows = np.flatnonzero(inputs.alive).astype(np.int32)
    keys = yield from _path_keys(inputs, rows)
    by_path = yield from sorted_order(keys)
    order = rows[by_path]
    yield
    count = inputs.names.count
    built: list[TopologyLevel] = []
    above = np.zeros(len(order), dtype=np.int32)  # the domain one level up, along `order`
    for key, column in zip(inputs.levels[:-1], inputs.labels, strict=True):
        values = None if column is None else column.values
        level = yield from _level(key, above, _codes(column, order), order, count, values)
        built.append(level)
        above = level.along
        yield
    # A node is its own host domain, whatever its hostname label is.
    host = yield from _level(inputs.levels[-1], above, order, order, count, inputs.names)
    built.append(host)
    built[0] = _without_parents(built[0])
    return Topology(inputs.levels, _sealed(order), tuple(built))


def _path_keys(inputs: Inputs, rows: NDArray[np.int32]) -> Steps[list[str]]:
    """Return a text per node row that sorts like (names of its domains, its own name)."""
    columns: list[tuple[list[str], NDArray[np.int32]]] = []
    for column in inputs.labels:
        columns.append((_texts(column), _codes(column, rows)))
        yield
    columns.append((_all(inputs.names), rows))
    yield
    keys: list[str] = []
    for first in range(0, len(rows), ITEMS_PER_STEP):
        part = slice(first, first + ITEMS_PER_STEP)
        texts = [[names[code] for code in codes[part].tolist()] for names, codes in columns]
        keys += map(_BETWEEN.join, zip(*texts, strict=True))
        yield
    return keys


def _texts(column: LabelColumn | None) -> list[str]:
    # One more at the end, which the code ABSENT (-1) indexes.
    texts = [] if column is None else _all(column.values)
    texts.append(_NO_LABEL)
    return texts


def _all(names: NameView[str]) -> list[str]:
    """Return all values by id; the value of a freed id, which no row has, is undefined."""
    found: list[str] = list(chain.from_iterable(names.values.pages))  # type: ignore[arg-type]
    del found[names.count :]
    return found


def _level(
    key: str,
    above: NDArray[np.int32],
    codes: NDArray[np.int32],
    order: NDArray[np.int32],
    count: int,
    values: NameView[str] | None,
) -> Steps[TopologyLevel]:
    # A domain begins where its parent or its own label value changes along the order.
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (above[1:] != above[:-1]) | (codes[1:] != codes[:-1])
    starts = np.flatnonzero(begins).astype(np.int32)
    yield
    domain = np.full(count, NO_ROW, dtype=np.int32)
    along = np.cumsum(begins, dtype=np.int32) - 1
    domain[order] = along
    yield
    return TopologyLevel(
        key=key,
        domain=_sealed(domain),
        parent=_sealed(above[starts]),
        starts=_sealed(starts),
        labelled=_sealed(codes[starts] != ABSENT),
        codes=_sealed(codes[starts]),
        values=values,
        along=_sealed(along),
    )


def _sealed(array: NDArray[S]) -> NDArray[S]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def _without_parents(level: TopologyLevel) -> TopologyLevel:
    none = _sealed(np.full(len(level.starts), NO_ROW, dtype=np.int32))
    return replace(level, parent=none)


def _codes(column: LabelColumn | None, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    if column is None:
        return np.full(len(rows), ABSENT, dtype=np.int32)
    return column.codes[rows]
