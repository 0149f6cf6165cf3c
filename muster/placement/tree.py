"""The topology as ranges: every domain of every level is one run of *positions*.

A position is an index into ``Topology.order``, the alive node rows sorted by path. The
host level has one domain per position, so a host's domain id *is* its position::

    level 0 (zone)   |z0                      |z1            |
    level 1 (rack)   |r0      |r1     |r2     |r3    |r4     |
    level 2 (host)   |0 |1 |2 |3 |4 |5|6 |7 |8|9 |10 |11 |12 |
    starts[0] = 0, 9        starts[1] = 0, 3, 5, 9 …        starts[2] = 0, 1, 2 …

Because ranges nest, a sum over domains is one ``np.add.reduceat``, and any part of the
tree is again a tree over a slice of the same arrays.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.tables.topology import Topology

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

ROOT = -1
"""Level number of the whole cluster, above the widest named level."""


@dataclass(frozen=True, slots=True, eq=False)
class DomainTree:
    """Ranges of positions per level, widest level first, the host level last."""

    #: int64[domains] per level, first position of each domain, ascending.
    starts: tuple[Ints, ...]
    #: bool[domains] per level, False for the pseudo domain of nodes that lack the level's label.
    labelled: tuple[Flags, ...]
    #: int32[positions] per level, the domain of each position.
    along: tuple[NDArray[np.integer], ...]
    #: Number of positions.
    size: int

    @property
    def host(self) -> int:
        """Return the number of the host level."""
        return len(self.starts) - 1

    def domains(self, level: int) -> int:
        """Return how many domains a level has; the root counts as one."""
        return 1 if level == ROOT else len(self.starts[level])

    def span(self, level: int, domain: int) -> tuple[int, int]:
        """Return the half-open range of positions of one domain."""
        if level == ROOT:
            return 0, self.size
        starts = self.starts[level]
        end = int(starts[domain + 1]) if domain + 1 < len(starts) else self.size
        return int(starts[domain]), end

    def offsets(self, wide: int, narrow: int) -> Ints:
        """Return, for each domain of ``wide``, the id of its first domain at ``narrow``."""
        if wide == ROOT:
            return np.zeros(1, dtype=np.int64)
        if narrow == self.host:
            return self.starts[wide]
        return np.searchsorted(self.starts[narrow], self.starts[wide]).astype(np.int64)

    def owner(self, wide: int, narrow: int) -> NDArray[np.integer]:
        """Return, for each domain of ``narrow``, the id of the domain of ``wide`` above it."""
        if wide == ROOT:
            return np.zeros(self.domains(narrow), dtype=np.int64)
        return self.along[wide] if narrow == self.host else self.along[wide][self.starts[narrow]]

    def at(self, level: int, positions: Ints) -> Ints:
        """Return the domain of ``level`` that each position lies in."""
        if level == ROOT:
            return np.zeros(len(positions), dtype=np.int64)
        if level == self.host:
            return positions
        return self.along[level][positions].astype(np.int64)

    def sums(self, values: Ints, wide: int, narrow: int) -> Ints:
        """Return sums over the domains of ``wide`` of ``values`` given per ``narrow`` domain."""
        if not len(values):
            return np.zeros(self.domains(wide), dtype=np.int64)
        return np.add.reduceat(values, self.offsets(wide, narrow), dtype=np.int64)

    def part(self, level: int, domain: int) -> "DomainTree":
        """Return one domain as a tree of its own, positions counted from its first."""
        low, high = self.span(level, domain)
        if (low, high) == (0, self.size):
            return self
        ends = [(int(at[low]), int(at[high - 1]) + 1) for at in self.along]
        return DomainTree(
            starts=tuple(
                np.maximum(s[a:b] - low, 0) for s, (a, b) in zip(self.starts, ends, strict=True)
            ),
            labelled=tuple(f[a:b] for f, (a, b) in zip(self.labelled, ends, strict=True)),
            along=tuple(at[low:high] - a for at, (a, _) in zip(self.along, ends, strict=True)),
            size=high - low,
        )


def tree_of(topology: Topology) -> DomainTree:
    """Return the ranges of a snapshot's topology.

    Nodes without a label share no domain: what they are near is not known. Each child of
    such a pseudo domain becomes a domain of its own, from the hosts upwards::

        rack    r1      |r2   |(none)               r1      |r2   |    |    |
        host    h1 |h2  |h3   |h4 |h5      ─►       h1 |h2  |h3   |h4  |h5  |

    A level of which no node has a label stays as it is.
    """
    levels = range(len(topology.levels))
    starts: list[Ints] = []
    labelled: list[Flags] = []
    along: list[NDArray[np.integer]] = []
    for level in levels:
        starts.append(topology.starts(level).astype(np.int64))
        labelled.append(topology.labelled(level))
        along.append(topology.along(level))
    for level in reversed(levels[:-1]):
        known = labelled[level]
        if known.any() and not known.all():
            split = _split(starts[level], known, starts[level + 1], along[level])
            starts[level], labelled[level], along[level] = split
    return DomainTree(tuple(starts), tuple(labelled), tuple(along), len(topology.order))


def _split(
    starts: Ints, labelled: Flags, below: Ints, along: NDArray[np.integer]
) -> tuple[Ints, Flags, NDArray[np.int32]]:
    """Return starts, flags and ``along`` with pseudo domains cut at the starts ``below``."""
    known = np.zeros(len(along), dtype=np.bool_)
    known[starts[labelled]] = True
    begins = known.copy()
    begins[below[~labelled[along[below]]]] = True
    merged = np.flatnonzero(begins)
    return merged, known[merged], np.cumsum(begins, dtype=np.int32) - 1


def domains_used(tree: DomainTree, amounts: Ints) -> tuple[int, ...]:
    """Return, per level from wide to narrow, how many domains hold at least one pod."""
    positions = np.flatnonzero(amounts)
    return tuple(
        int(np.count_nonzero(np.diff(tree.at(level, positions), prepend=-1)))
        for level in range(len(tree.starts))
    )
