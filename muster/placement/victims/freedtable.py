"""What units free, node by node, in columns; and what is that for a member's place.

::

    entries, by position    unit 3 @ 0   unit 3 @ 1   unit 7 @ 1   unit 9 @ 2
                            alone        ── shared by two ──       alone

Where no other unit stands on a node, the members that fit there once a unit has gone do not depend
on who else goes. These are counted once for all; only shared nodes are counted anew in a trial.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.placement.tree import Ints
from muster.placement.victims.ground import Ground
from muster.placement.victims.units import GivingUnit


@dataclass(frozen=True, slots=True, eq=False)
class FreedTable:
    """One entry for each unit and position where it frees something, ascending by both."""

    ground: Ground
    units: Sequence[GivingUnit]
    #: int64[entries]: index into ``units``.
    owner: Ints
    #: int64[entries]: position.
    at: Ints
    #: int64[resources, entries].
    amounts: Ints
    #: int64[kinds, entries]: members that the node takes more if this unit alone goes.
    more: Ints
    #: bool[entries]: whether another unit stands on the same node.
    shared: NDArray[np.bool_]

    def within(self, low: int, high: int) -> slice:
        """Return the entries of a range of positions."""
        first, last = np.searchsorted(self.at, (low, high)).tolist()
        return slice(first, last)


def freed_table(ground: Ground, units: Sequence[GivingUnit]) -> FreedTable:
    """Return what units free on nodes of the topology."""
    counts = [len(unit.rows) for unit in units]
    rows = np.fromiter((row for unit in units for row in unit.rows), np.int64, sum(counts))
    owner = np.repeat(np.arange(len(units), dtype=np.int64), counts)
    pods = ground.snapshot.pods
    at = ground.position[pods.node[rows]]
    there = at >= 0
    rows, owner, at = rows[there], owner[there], at[there]
    places, of = np.unique(at * max(len(units), 1) + owner, return_inverse=True)
    amounts = np.zeros((len(ground.resources), len(places)), dtype=np.int64)
    vectors = ground.vectors(pods.pod_class[rows])
    for resource in range(len(ground.resources)):
        np.add.at(amounts[resource], of.ravel(), vectors[resource])
    position, who = np.divmod(places, max(len(units), 1))
    same = position[1:] == position[:-1]
    shared = np.zeros(len(places), dtype=np.bool_)
    shared[1:] |= same
    shared[:-1] |= same
    free = ground.free[:, position]
    more = [
        after - before
        for before, after in zip(
            ground.takes_at(position, free),
            ground.takes_at(position, free + amounts),
            strict=True,
        )
    ]
    return FreedTable(ground, units, who, position, amounts, np.array(more), shared)
