"""Ranks of members that were lost: their successors take them over, in order.

A pod with an index of its own keeps it. Pods without one were numbered when they were planned,
and the plan on each of them holds its number: those that no pod has any more are vacant::

    planned   0 1 2 3 4 5        members 1 and 4 are lost, two pods are made anew
    now       0 · 2 3 · 5        ► the first becomes 1, the second 4, each beside its neighbours
"""

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.placement.tree import Ints


def with_vacant_ranks(snapshot: Snapshot, view: GangView) -> Snapshot:
    """Return the cluster with ranks for waiting members that have none, where that is known."""
    wanting = view.waiting[snapshot.pods.rank[view.waiting] < 0]
    if not len(wanting):
        return snapshot
    vacant = vacant_ranks(snapshot, view, len(wanting))
    if vacant is None:
        return snapshot
    return snapshot.overlay(with_ranks=dict(zip(wanting.tolist(), vacant.tolist(), strict=True)))


def vacant_ranks(snapshot: Snapshot, view: GangView, count: int) -> Ints | None:
    """Return int64[count], the lowest ranks that no member has; ``None``: some have no rank.

    Those that succeeded keep theirs, those that failed or are being deleted do not.
    """
    pods = snapshot.pods
    placed = np.concatenate([view.assumed, view.released, view.bound])
    taken = pods.rank[np.concatenate([placed, view.done])].astype(np.int64)
    own = pods.rank[view.waiting].astype(np.int64)
    if not len(placed) or (taken < 0).any():
        return None
    taken = np.concatenate([taken, own[own >= 0]])
    vacant: Ints = np.setdiff1d(np.arange(len(taken) + count), taken)[:count]
    return vacant
