"""Nodes that pods would rather have: a tie-break after every objective of Muster's.

Wherever the search has equal domains, or equal hosts, it takes the first in the tree. So a gang
with preferences gets a tree in which the better ones come first, and the search stays as it is::

    zone      a             b                          b             a
    rack      r1     r2     r3     r4          ─►      r4     r3     r1     r2
    host      h1 h2  h3 h4  h5 h6  h7 h8               h8 h7  h6 h5  h1 h2  h3 h4
    score     0  0   0  0   0  2   4  6                6  4   2  0   0  0   0  0

A node's score is kube-scheduler's: preferred node affinity (weight 2 among its default plugins) and
taints with ``PreferNoSchedule`` (weight 3), both scaled to 0 … 100 by the best, or worst, node with
room (upstream plugins/helper ``DefaultNormalizeScore``). A domain's score is the mean over the
members that it has room for.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.matching import avoided
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.nodeview import NodeView
from muster.cluster.tables.topology import Topology, TopologyLevel
from muster.placement.nodelabels import term_mask
from muster.placement.request import MemberGroup
from muster.placement.rules.capacity import capacity
from muster.placement.tree import Ints

_AFFINITY: Final = 2
_TAINTS: Final = 3
_BEST: Final = 100
_DIGITS: Final = 6  # means that differ by less are equal

Floats = NDArray[np.float64]


class _Wanted(NamedTuple):
    """What a gang thinks of nodes."""

    #: int64[nodes]: members that a node has room for.
    room: Ints
    #: float64[nodes]: their mean score; every kind of member counts as often as there are members.
    score: Floats


def preferred_first(
    snapshot: Snapshot, topology: Topology, groups: Sequence[MemberGroup]
) -> Steps[Topology]:
    """Return the topology with preferred domains first; itself where the gang has no preference."""
    wanted = _wanted(snapshot, groups)
    if wanted is None:
        return topology
    if len(topology.order) > FEW:
        yield
    return (yield from _sorted(topology, wanted))


def _wanted(snapshot: Snapshot, groups: Sequence[MemberGroup]) -> _Wanted | None:
    nodes = snapshot.nodes
    room, members, score = (np.zeros(nodes.count, dtype=np.int64) for _ in range(3))
    for group in groups:
        avoided_taints = _avoided(nodes, group.pod_class)
        if group.pod_class.preferred_nodes or any(avoided_taints):
            count = len(group.rows)
            free = np.minimum(capacity(nodes.free, group.pod_class, nodes.alive), count)
            fits = free > 0
            room += free
            members += count * fits
            score += count * fits * _scores(nodes, group.pod_class, avoided_taints, fits)
    with_room = room > 0
    if not with_room.any():
        return None
    means = score / np.maximum(members, 1)
    return None if np.ptp(means[with_room]) == 0 else _Wanted(room, means)


def _scores(
    nodes: NodeView, pod_class: PodClass, avoided_taints: Sequence[int], among: NDArray[np.bool_]
) -> Ints:
    """Return int64[nodes], 0 to 500, the higher the better.

    ``avoided_taints``: per taint set. ``among``: the nodes that set the scale.
    """
    affinity = np.zeros(nodes.count, dtype=np.int64)
    for one in pod_class.preferred_nodes:
        affinity += one.weight * term_mask(nodes, one.term)
    counts = np.array([*avoided_taints, 0], dtype=np.int64)  # the last of nodes without a set
    shunned = _scaled(counts[nodes.taint_set], among)
    return _AFFINITY * _scaled(affinity, among) + _TAINTS * (_BEST - shunned)


def _scaled(values: Ints, among: NDArray[np.bool_]) -> Ints:
    most = int(values[among].max(initial=0))
    return np.zeros_like(values) if most == 0 else np.minimum(values * _BEST // most, _BEST)


def _avoided(nodes: NodeView, pod_class: PodClass) -> list[int]:
    """Return, per taint set, how many taints the pod would rather not meet."""
    sets = list(nodes.taint_sets)
    return [len(avoided(pod_class.tolerations, taints)) if taints else 0 for taints in sets]


def _sorted(topology: Topology, wanted: _Wanted) -> Steps[Topology]:
    """Return the topology with the children of every domain sorted by score, best first."""
    room = wanted.room[topology.order]
    score = wanted.score[topology.order] * room
    orders: list[NDArray[np.intp]] = []
    above = np.zeros(1, dtype=np.int64)
    for part in topology.parts:
        if len(topology.order) > FEW:
            yield
        domains = len(part.starts)
        rooms = np.bincount(part.along, room, minlength=domains)
        means = np.bincount(part.along, score, minlength=domains) / np.maximum(rooms, 1)
        parents = above[part.parent] if orders else np.zeros(domains, dtype=np.int64)
        order = np.lexsort((-means.round(_DIGITS), parents))
        orders.append(order)
        above = _inverse(order)
    return _reordered(topology, orders)


def _inverse(order: NDArray[np.intp]) -> Ints:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks


def _reordered(topology: Topology, orders: Sequence[NDArray[np.intp]]) -> Topology:
    """Return the topology with its domains renumbered; ``orders``: per level, old ids in order."""
    hosts = orders[-1]  # a host's domain is its position
    ranks = [np.zeros(1, dtype=np.int64), *map(_inverse, orders)]
    parts = tuple(
        _reordered_level(part, order, ranks[level], ranks[level + 1][part.along][hosts])
        for level, (part, order) in enumerate(zip(topology.parts, orders, strict=True))
    )
    return Topology(topology.levels, topology.order[hosts], parts)


def _reordered_level(
    part: TopologyLevel, order: NDArray[np.intp], above: Ints, along: Ints
) -> TopologyLevel:
    parent = part.parent[order]
    dead = part.domain < 0
    return TopologyLevel(
        key=part.key,
        domain=np.where(dead, -1, _inverse(order)[part.domain]).astype(np.int32),
        parent=np.where(parent < 0, -1, above[parent]).astype(np.int32),
        starts=np.flatnonzero(np.diff(along, prepend=-1)).astype(np.int32),
        labelled=part.labelled[order],
        codes=part.codes[order],
        values=part.values,
        along=along.astype(np.int32),
    )
