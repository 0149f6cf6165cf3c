"""Preferred node affinity: domains that the pods prefer come first among their siblings.

Every search takes, of what is equally good, what comes first in the tree. So a preference is a
tie-break after all of Muster's own objectives, in every search, once the tree is in its order::

    racks     r1  r2  r3         prefers nodes of r3, weight 20, and of r2, weight 10
    favour     0  10  20         order: r3 r2 r1

A node's favour is the sum of the weights of the terms that it matches, as in kube-scheduler's
NodeAffinity score (pkg/scheduler/framework/plugins/nodeaffinity, Score), and a domain's is that of
its best node.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.topology import Topology, TopologyLevel
from muster.placement.nodelabels import term_mask
from muster.placement.request import MemberGroup
from muster.placement.tree import Ints


def in_favoured_order(
    snapshot: Snapshot, topology: Topology, groups: Iterable[MemberGroup]
) -> Topology:
    """Return the topology with siblings sorted by what the members prefer, then by name."""
    favour = np.zeros(snapshot.nodes.count, dtype=np.int64)
    for group in groups:
        for weight, term in group.pod_class.preferences:
            favour += weight * len(group.rows) * term_mask(snapshot.nodes, term)
    here = favour[topology.order]
    if not len(here) or (here == here[0]).all():
        return topology
    keys: list[Ints] = []
    for level in reversed(range(len(topology.levels))):
        along = topology.along(level)
        best = np.maximum.reduceat(here, topology.starts(level))
        keys += [along.astype(np.int64), -best[along]]
    return _permuted(topology, np.lexsort(keys))


def _permuted(topology: Topology, positions: Ints) -> Topology:
    """Return the topology with its entries in another order that leaves every domain together."""
    numbers: list[NDArray[np.int32]] = []  # of every level: the new number of each domain
    parts: list[TopologyLevel] = []
    for level, part in enumerate(topology.parts):
        along = part.along[positions]
        firsts = np.flatnonzero(np.diff(along, prepend=-1))
        old = along[firsts]
        new = np.full(len(old) + 1, -1, dtype=np.int32)  # the last for dead rows
        new[old] = np.arange(len(old), dtype=np.int32)
        numbers.append(new)
        parents: NDArray[np.int32] = part.parent[old]
        parts.append(
            replace(
                part,
                domain=new[part.domain],
                parent=parents if level == 0 else numbers[level - 1][parents],
                starts=firsts.astype(np.int32),
                labelled=part.labelled[old],
                codes=part.codes[old],
                along=new[along],
            )
        )
    return replace(topology, order=topology.order[positions], parts=tuple(parts))
