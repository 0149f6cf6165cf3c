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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.steps import Steps
from placement.tree import Ints, Tree

_MOST_HOSTS: Final = 64
"""Hosts of a kind that are looked at as begin or end."""

_Costs = NDArray[np.int64]


def in_ring(tree: Tree, amounts: Sequence[Ints]) -> Steps[list[Ints]]:
    """Return, per kind, one position per member in rank order.

    ``amounts``: int64[positions] per kind; ranks go through the kinds in this order.
    """
    held = [np.flatnonzero(each) for each in amounts]
    active = [kind for kind, hosts in enumerate(held) if len(hosts)]
    orders = [np.repeat(hosts, each[hosts]) for hosts, each in zip(held, amounts, strict=True)]
    if len(active) == 1:
        return orders
    ends = yield from _ends(tree, [held[kind] for kind in active])
    for kind, (first, last) in zip(active, ends, strict=True):
        visited = _visits(tree, held[kind], first, last)
        orders[kind] = np.repeat(visited, amounts[kind][visited])
    return orders


def _visits(tree: Tree, hosts: Ints, first: int, last: int) -> Ints:
    """Return hosts in tree order, but the domains of ``first`` first and of ``last`` last."""
    keys = []
    for level in range(tree.host, -1, -1):
        domains = tree.at(level, hosts)
        begin, end = tree.at(level, np.array([first, last])).tolist()
        keys.append(np.where(domains == begin, -1, np.where(domains == end, tree.size, domains)))
    return hosts[np.lexsort(keys)]


def _ends(tree: Tree, held: Sequence[Ints]) -> Steps[list[tuple[int, int]]]:
    """Return (first host, last host) per kind.

    ``way[e, x]``: the least cost from the end ``e`` of the first kind on to ``x``, which is
    in turn the begin and the end of each kind that follows, and at last the begin of the first.
    """
    kinds = len(held)
    weights = [(2 * kinds + 1) ** (tree.host - level) for level in range(tree.host + 1)]
    hosts = [_looked_at(each, held) for each in held]
    way = _steps(tree, weights, hosts[0], hosts[1])
    back: list[NDArray[np.int64]] = []
    for kind in range(1, kinds):
        following = hosts[(kind + 1) % kinds]
        for costs in (
            _returns(tree, weights, held[kind], hosts[kind]),
            _steps(tree, weights, hosts[kind], following),
        ):
            way, origin = _joined(way, costs)
            back.append(origin)
            yield
    way = way + _returns(tree, weights, held[0], hosts[0]).T
    last, first = np.unravel_index(int(np.argmin(way)), way.shape)
    return _traced(hosts, back, int(last), int(first))


def _traced(
    hosts: Sequence[Ints], back: Sequence[NDArray[np.int64]], last: int, first: int
) -> list[tuple[int, int]]:
    found = [(int(hosts[0][first]), int(hosts[0][last]))]
    at = first
    for kind in range(len(hosts) - 1, 0, -1):
        end = int(back[2 * kind - 1][last, at])
        at = int(back[2 * kind - 2][last, end])
        found.append((int(hosts[kind][at]), int(hosts[kind][end])))
    return [found[0], *reversed(found[1:])]


def _looked_at(hosts: Ints, held: Sequence[Ints]) -> Ints:
    """Return the hosts of a kind worth looking at: those that other kinds stand on first."""
    if len(hosts) <= _MOST_HOSTS:
        return hosts
    shared = np.sum([np.isin(hosts, other) for other in held], axis=0)
    chosen: Ints = np.sort(hosts[np.argsort(-shared, kind="stable")[: _MOST_HOSTS - 1]])
    return np.union1d(chosen, hosts[-1:])


def _steps(tree: Tree, weights: Sequence[int], ends: Ints, begins: Ints) -> _Costs:
    """Return int64[ends, begins]: what it costs that the next kind begins there."""
    costs = np.zeros((len(ends), len(begins)), dtype=np.int64)
    for level, weight in enumerate(weights):
        apart = tree.at(level, ends)[:, None] != tree.at(level, begins)[None, :]
        costs += weight * apart
    return costs


def _returns(tree: Tree, weights: Sequence[int], held: Ints, hosts: Ints) -> _Costs:
    """Return int64[begins, ends]: what it costs a kind to end where it began."""
    costs = np.zeros((len(hosts), len(hosts)), dtype=np.int64)
    for level, weight in enumerate(weights):
        if len(np.unique(tree.at(level, held))) > 1:
            domains = tree.at(level, hosts)
            costs += weight * (domains[:, None] == domains[None, :])
    return costs


def _joined(way: _Costs, costs: _Costs) -> tuple[_Costs, NDArray[np.int64]]:
    """Return the least of ``way[e, x] + costs[x, y]`` over x, and which x it was."""
    sums = way[:, :, None] + costs[None, :, :]
    origin = np.argmin(sums, axis=1)
    return np.take_along_axis(sums, origin[:, None, :], axis=1)[:, 0, :], origin
