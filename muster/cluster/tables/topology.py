"""The topology tree: nodes grouped into domains, level by level, as dense arrays.

A *level* is a node label key; levels are ordered from the widest to the host. A *domain*
is one value at a level **within its parent**: rack "r1" under block "a" and rack "r1"
under block "b" are two domains. Nodes that lack a level's label share a pseudo domain
under the same parent; it completes the tree and is False in ``labelled``, because a
required level must not be satisfied by "all nodes without a rack".

::

    levels     zone        rack          host            order: node rows, sorted by path
    domains    z1 ─┬─ z1/r1 ─┬─ n1                       ┌────┬────┬────┬────┐
                   │         └─ n2                       │ n1 │ n2 │ n3 │ n4 │
                   └─ z1/r2 ─── n3                       └────┴────┴────┴────┘
               z2 ─── z2/r1 ─── n4             rack starts 0         2    3

With the node rows sorted by (path names, node name), every domain of every level is a
contiguous range of ``order``, its id is its position among the domains of its level, and
any count per domain is ``np.add.reduceat(count[order], starts)``.
``muster.cluster.tables.topologybuild`` makes the tree, once per change of the node set or of a
level's label.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.nodelabels import ABSENT
from muster.cluster.columns.paged import NameView


@dataclass(frozen=True, slots=True, eq=False)
class TopologyLevel:
    """One level, d domains over n node rows."""

    #: The label key.
    key: str
    #: int32[n]: the domain of each node row, -1 for dead rows.
    domain: NDArray[np.int32]
    #: int32[d]: the domain one level up, -1 at the widest.
    parent: NDArray[np.int32]
    #: int32[d]: offsets into the topology's ``order``.
    starts: NDArray[np.int32]
    #: bool[d]: False for pseudo domains.
    labelled: NDArray[np.bool_]
    #: int32[d]: index into ``values``, -1 for a pseudo domain.
    codes: NDArray[np.int32]
    #: Label values by code (host: node names by row), ``None`` where no node has the label.
    values: NameView[str] | None
    #: int32[alive nodes]: the domain of each entry of the topology's ``order``, ascending.
    along: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """See the module's docstring."""

    #: The levels' label keys, widest first.
    levels: tuple[str, ...]
    #: int32[alive nodes]: node rows, sorted by path.
    order: NDArray[np.int32]
    #: The levels, widest first.
    parts: tuple[TopologyLevel, ...]

    def level_index(self, key: str) -> int | None:
        """Return the position of a level's label key, ``None`` when it is no level."""
        return self.levels.index(key) if key in self.levels else None

    def domain(self, level: int) -> NDArray[np.int32]:
        """Return the domain id of every node row, int32[n], -1 for dead rows."""
        return self.parts[level].domain

    def along(self, level: int) -> NDArray[np.int32]:
        """Return the domain id of every entry of ``order``, int32[alive], ascending."""
        return self.parts[level].along

    def parent(self, level: int) -> NDArray[np.int32]:
        """Return the domain id one level up of every domain, int32[d], -1 at level 0."""
        return self.parts[level].parent

    def labelled(self, level: int) -> NDArray[np.bool_]:
        """Return bool[d]: False for the pseudo domains of nodes that lack the label."""
        return self.parts[level].labelled

    def starts(self, level: int) -> NDArray[np.int32]:
        """Return int32[d]: where each domain begins in ``order``."""
        return self.parts[level].starts

    def size(self, level: int) -> int:
        """Return the number of domains of a level."""
        return len(self.parts[level].starts)

    def name(self, level: int, domain: int) -> str:
        """Return a domain's label value (host: node name), "" for a pseudo domain."""
        found = self.parts[level]
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
