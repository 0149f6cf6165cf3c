"""Nodes that a question leaves out: refused by kube-scheduler, kept, promised, of another flavor.

One refusal speaks of one node. Several in one place speak of the place: a disk that
exists in one zone only is refused by every node of the others, and to learn that node by
node would take longer than anybody waits. So refusals spread upwards::

    two nodes of a rack ─► the rack ─► two racks of a block ─► the block ─► …

That is a guess, and a guess may not cost a gang its last place: it is planned without the
places first, and where that finds nothing, without the nodes alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.quota.flavors import FlavorNodes
from muster.cluster.snapshot import Snapshot
from muster.placement.nodelabels import Mask, selector_mask

SPREADS_AT: Final = 2  # refused children (or all of them) after which a domain is suspect


@dataclass(frozen=True, slots=True, eq=False)
class Closed:
    """Nodes that a question leaves out, bool[nodes] each; ``None``: none."""

    #: kube-scheduler turned the members away from these, for a reason that the model does not know.
    refused: Mask | None = None
    #: These keep their room for lost members of other gangs.
    kept: Mask | None = None
    #: These are promised to gangs that wait longer.
    promised: Mask | None = None
    #: These are not of the flavors that the gang's queue gives it.
    others: Mask | None = None

    def opened(self, nodes: Mask) -> Mask:
        """Return bool[nodes]: those of some nodes whose room is not kept for others, or promised.

        ``Feasibility.suitable`` has these nodes, since they take members once that is over. Whoever
        counts what is free must leave them out.
        """
        for mask in (self.kept, self.promised):
            nodes = nodes if mask is None else nodes & ~mask
        return nodes


NOTHING: Final = Closed()


def closed_nodes(
    snapshot: Snapshot,
    refused: Mask | None,
    kept: Sequence[str],
    promised: Sequence[str],
    flavors: Sequence[FlavorNodes],
) -> Closed:
    """Return the nodes that a question leaves out; its fields are named alike."""
    return Closed(
        refused,
        named(snapshot, kept),
        named(snapshot, promised),
        other_flavors(snapshot, flavors),
    )


def named(snapshot: Snapshot, names: Sequence[str]) -> Mask | None:
    """Return bool[nodes] of ``names``, ``None`` when the cluster has none of them."""
    rows = [row for row in map(snapshot.nodes.row, names) if row is not None]
    if not rows:
        return None
    mask = np.zeros(snapshot.nodes.count, dtype=np.bool_)
    mask[rows] = True
    return mask


def other_flavors(snapshot: Snapshot, flavors: Sequence[FlavorNodes]) -> Mask | None:
    """Return bool[nodes]: not of all these flavors; ``None`` where none is asked for."""
    if not flavors:
        return None
    passing = np.ones(snapshot.nodes.count, dtype=np.bool_)
    for flavor in flavors:
        passing &= selector_mask(snapshot.nodes, flavor.labels)
        for labels in flavor.before:
            passing &= ~selector_mask(snapshot.nodes, labels)
    return ~passing


def masks(snapshot: Snapshot, names: Sequence[str]) -> tuple[Mask | None, ...]:
    """Return what to leave out, in the order of trying: bool[nodes], ``None`` for nothing."""
    narrow = named(snapshot, names)
    if narrow is None:
        return (None,)
    wide = _spread(snapshot, narrow)
    return (narrow,) if np.array_equal(wide, narrow) else (wide, narrow)


def _spread(snapshot: Snapshot, narrow: Mask) -> Mask:
    """Return the refused nodes and all nodes of the domains that they make suspect."""
    topology, wide = snapshot.topology, narrow.copy()
    host = len(topology.levels) - 1
    suspects = np.unique(topology.domain(host)[narrow])
    suspects = suspects[suspects >= 0]
    for level in range(host, 0, -1):
        parent = topology.parent(level)
        enough = np.minimum(np.bincount(parent, minlength=topology.size(level - 1)), SPREADS_AT)
        domains, counts = np.unique(parent[suspects], return_counts=True)
        suspects = domains[(counts >= enough[domains]) & topology.labelled(level - 1)[domains]]
        wide |= np.isin(topology.domain(level - 1), suspects)
    return wide
