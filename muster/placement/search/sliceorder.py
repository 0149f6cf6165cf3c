"""Which slice a member is in: by its place in rank order, among those that are in slices at all.

::

    role      driver   worker  worker  worker  worker      slices of 2 for workers only
    rank         0        1       2       3       4
    slice        -        0       0       1       1        the driver is a slice of its own
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from muster.cluster.snapshot import Snapshot
from muster.placement.exact.slicekinds import in_turn, loose
from muster.placement.request import GangRequest, Rows
from muster.placement.tree import Ints


@dataclass(frozen=True, slots=True, eq=False)
class SliceOrder:
    """The members of a gang in rank order, and the slices that they fill."""

    #: (level, size in members) of every layer of slices, widest first.
    slices: tuple[tuple[int, int], ...]
    #: int32[members], pod rows in rank order.
    rows: Rows
    #: int64[members], the place of each among the members that are in slices.
    places: Ints
    #: bool[members], True for members that are in no slice.
    is_loose: NDArray[np.bool_]

    @classmethod
    def of(cls, snapshot: Snapshot, request: GangRequest, placed: Rows) -> "SliceOrder":
        """Return the order of a gang: members to place, and those that have a place."""
        rows = np.concatenate([placed, request.members])
        ranks = snapshot.pods.rank[rows].astype(np.int64)
        known = bool((ranks >= 0).all())
        order = np.argsort(ranks, kind="stable")
        rows = rows[order].astype(np.int32)
        places = ranks[order] if known else np.arange(len(rows))
        roles = [snapshot.pods.roles.find(role) for role in request.spec.slice_roles]
        is_loose = np.zeros(len(rows), dtype=np.bool_)
        if roles:
            is_loose = ~np.isin(snapshot.pods.role[rows], [r for r in roles if r is not None])
            places = places - np.cumsum(is_loose)
        return cls(request.wish.slices, rows, places, is_loose)

    def numbers(self, rows: Rows) -> list[Ints]:
        """Return, per layer of slices, widest first, the slice of each of some members."""
        by_row = np.argsort(self.rows, kind="stable")
        at = by_row[np.searchsorted(self.rows[by_row], rows)]
        every = in_turn(self.slices, self.places[at])
        return [loose(numbers, self.is_loose[at], at) for numbers in every]
