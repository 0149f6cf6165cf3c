"""In which order ranks go through the domains: as few crossings as the amounts allow.

Ranks go kind by kind, and the last rank is the first one's neighbour (a ring all-reduce).
Tree order is best for one kind. With several, each kind visits each of its domains once, and
where one kind ends the next should begin::

    tree order   A  r1 r2 │ B  r1 r2          A ends in r2, B begins in r1: 4 crossings
    turned       A  r1 r2 │ B  r2 r1          2 crossings, the ring's last step included

So for every kind a host to begin and one to end with are chosen, all kinds at once: a
shortest way around the ring, exact for the crossings of every level, widest first. A kind
that begins and ends in one of several domains would visit it twice, which costs a crossing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps, run
from muster.placement.tree import DomainTree, Ints

_MOST_ENDS: Final = 32
"""Hosts of a kind that are looked at as begin or end."""

_MOST_HOSTS: Final = 64
"""Most hosts with which the visits are part of a ring's cost."""

_BEHIND: Final = np.iinfo(np.int64).max
"""Sorts behind every domain."""

_Costs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ring:
    """An order of hosts for the ranks."""

    #: Crossings of all levels as one number, to compare within one ``RingHosts``. Beyond 64 hosts
    #: it is good for choosing ends only.
    cost: int
    #: (first, last) host per kind, as indices into the hosts.
    ends: tuple[tuple[int, int], ...]


class RingHosts:
    """The hosts that a gang of several kinds stands on, ``positions`` ascending."""

    __slots__ = ("_at", "_weights", "positions")

    def __init__(self, tree: DomainTree, positions: Ints, kinds: int) -> None:
        """Leave out the levels at which all hosts are together."""
        self.positions = positions
        at = [tree.at(level, positions) for level in range(tree.host + 1)]
        self._at = [domains for domains in at if domains[0] != domains[-1]]
        visits = kinds * len(positions) if len(positions) <= _MOST_HOSTS else 0
        base = 2 * kinds + visits + 1
        self._weights = [base ** (len(self._at) - 1 - i) for i in range(len(self._at))]

    def apart(self, ends: Ints, begins: Ints) -> _Costs:
        """Return int64[ends, begins]: the crossings from one host to another."""
        costs = np.zeros((len(ends), len(begins)), dtype=np.int64)
        for domains, weight in zip(self._at, self._weights, strict=True):
            costs += weight * (domains[ends][:, None] != domains[begins][None, :])
        return costs

    def least(self) -> int:
        """Return what any ring over all hosts costs at least: every domain is left once."""
        used = [1 + int(np.count_nonzero(np.diff(domains))) for domains in self._at]
        return sum(u * w for u, w in zip(used, self._weights, strict=True))

    def ring(self, held: Sequence[Ints]) -> Ring:
        """Return the best ring when the kinds, in this order, are on these hosts (indices).

        ``way[e, x]``: the least cost from the end ``e`` of the first kind on to ``x``: in
        turn the begin and the end of each kind that follows, then the begin of the first.
        """
        hosts = [self._looked_at(each, held) for each in held]
        returns = [self._returns(all_of, some) for all_of, some in zip(held, hosts, strict=True)]
        way = self.apart(hosts[0], hosts[1])
        back: list[NDArray[np.intp]] = []
        for kind in range(1, len(held)):
            following = hosts[(kind + 1) % len(held)]
            for costs in (returns[kind], self.apart(hosts[kind], following)):
                way, origin = _joined(way, costs)
                back.append(origin)
        way = way + returns[0].T
        last, first = divmod(int(np.argmin(way)), way.shape[1])
        cost = int(way[last, first]) + sum(map(self._visits, held))
        return Ring(cost, tuple(_traced(hosts, back, last, first)))

    def _looked_at(self, hosts: Ints, held: Sequence[Ints]) -> Ints:
        """Return the hosts of a kind worth looking at: those that other kinds stand on first."""
        if len(hosts) <= _MOST_ENDS:
            return hosts
        shared = np.sum([np.isin(hosts, other) for other in held], axis=0)
        chosen: Ints = np.sort(hosts[np.argsort(-shared, kind="stable")[: _MOST_ENDS - 1]])
        return np.union1d(chosen, hosts[-1:])

    def _visits(self, hosts: Ints) -> int:
        """Return the crossings of a kind that visits each of its domains once."""
        return sum(
            weight * int(np.count_nonzero(np.diff(domains[hosts])))
            for domains, weight in zip(self._at, self._weights, strict=True)
        )

    def _returns(self, held: Ints, hosts: Ints) -> _Costs:
        """Return int64[begins, ends]: what it costs a kind to end where it began."""
        costs = np.zeros((len(hosts), len(hosts)), dtype=np.int64)
        for domains, weight in zip(self._at, self._weights, strict=True):
            if domains[held[0]] != domains[held[-1]]:
                here = domains[hosts]
                costs += weight * (here[:, None] == here[None, :])
        return costs

    def visited(self, hosts: Ints, ends: tuple[int, int]) -> Ints:
        """Return hosts in tree order, but the domains of the first first, of the last last.

        Where both are in one domain, that is visited first and, for what the last is in
        below the level at which the two part, once more at the end.
        """
        first, last = ends
        tail = np.zeros(len(hosts), dtype=np.bool_)
        keys: list[Ints] = []
        for domains in self._at:
            here = domains[hosts]
            if domains[first] != domains[last] and not tail.any():
                tail = here == domains[last]
                keys = [np.where(tail, _BEHIND, key) for key in keys]
            begun = np.where(here == domains[first], -1, here)
            keys.append(np.where(tail & (here == domains[last]), _BEHIND, begun))
        return hosts[np.lexsort(keys[::-1])] if keys else hosts


def in_ring(tree: DomainTree, amounts: Sequence[Ints]) -> list[Ints]:
    """Return, per kind, one position per member in rank order.

    ``amounts``: int64[positions] per kind; ranks go through the kinds in this order.
    """
    return run(ring_steps(tree, amounts))


def ring_steps(tree: DomainTree, amounts: Sequence[Ints]) -> Steps[list[Ints]]:
    """As ``in_ring``, in slices."""
    orders = [np.repeat(np.arange(tree.size), each) for each in amounts]
    active = [kind for kind, order in enumerate(orders) if len(order)]
    if len(active) == 1:
        return orders
    positions = np.flatnonzero(np.sum(amounts, axis=0))
    yield
    fabric = RingHosts(tree, positions, len(active))
    held = [np.flatnonzero(amounts[kind][positions]) for kind in active]
    yield
    ring = fabric.ring(held)
    yield
    for kind, hosts, ends in zip(active, held, ring.ends, strict=True):
        visited = positions[fabric.visited(hosts, ends)]
        orders[kind] = np.repeat(visited, amounts[kind][visited])
        yield
    return orders


def _traced(
    hosts: Sequence[Ints], back: Sequence[NDArray[np.intp]], last: int, first: int
) -> list[tuple[int, int]]:
    found = [(int(hosts[0][first]), int(hosts[0][last]))]
    at = first
    for kind in range(len(hosts) - 1, 0, -1):
        end = int(back[2 * kind - 1][last, at])
        at = int(back[2 * kind - 2][last, end])
        found.append((int(hosts[kind][at]), int(hosts[kind][end])))
    return [found[0], *reversed(found[1:])]


def _joined(way: _Costs, costs: _Costs) -> tuple[_Costs, NDArray[np.intp]]:
    """Return the least of ``way[e, x] + costs[x, y]`` over x, and which x it was."""
    sums = way[:, :, None] + costs[None, :, :]
    origin = np.argmin(sums, axis=1)
    return np.take_along_axis(sums, origin[:, None, :], axis=1)[:, 0, :], origin
