"""Which slice a member is in: by its place in rank order, among those that are in slices at all.

::

    role      driver   worker  worker  worker  worker      slices of 2 for workers only
    rank         0        1       2       3       4
    slice        -        0       0       1       1        the driver is a slice of its own
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from muster.cluster.snapshot import Snapshot
from muster.placement.exact.slicekinds import in_turn, loose
from muster.placement.ranks.sliceplaces import are_doubtful, in_no_slice, slice_ways
from muster.placement.request import GangRequest, Rows
from muster.placement.tree import Flags, Ints


@dataclass(frozen=True, slots=True, eq=False)
class SliceUnit:
    """What is placed together: the waiting members of a slice, or one member in no slice."""

    #: Its number on every layer of slices, widest first.
    numbers: tuple[int, ...]
    is_loose: bool
    #: Per group, int64: which of the group's members it has.
    members: tuple[Ints, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SliceOrder:
    """The members of a gang in rank order, and the slices that they fill."""

    #: (level, size in members) of every layer of slices, widest first.
    slices: tuple[tuple[int, int], ...]
    #: int32[members], pod rows in rank order; those in doubt: who has a place comes first.
    rows: Rows
    #: int64[members], the place of each among the members that are in slices.
    places: Ints
    #: bool[members], True for members that are in no slice.
    is_loose: Flags

    @classmethod
    def of(cls, snapshot: Snapshot, request: GangRequest, placed: Rows) -> "SliceOrder":
        """Return the order of a gang: members to place, and those that have a place."""
        return next(cls.ways(snapshot, request, placed))

    @classmethod
    def ways(
        cls, snapshot: Snapshot, request: GangRequest, placed: Rows, room: Ints | None = None
    ) -> Iterator["SliceOrder"]:
        """Yield the orders that a gang may have: several where its numbers are in doubt.

        ``room``: int64 by node row, members that it could take.
        """
        rows = np.concatenate([placed, request.members]).astype(np.int32)
        if not are_doubtful(snapshot, request.spec):
            rows = rows[np.argsort(snapshot.pods.rank[rows], kind="stable")]
        is_loose = in_no_slice(snapshot, request.spec, rows)
        for places in slice_ways(snapshot, request.spec, rows, room):
            yield cls(request.wish.slices, rows, places, is_loose)

    def numbers(self, rows: Rows) -> list[Ints]:
        """Return, per layer of slices, widest first, the slice of each of some members.

        Members in no slice have numbers below 0, each another.
        """
        at = self._at(rows)
        every = in_turn(self.slices, self.places[at])
        return [loose(numbers, self.is_loose[at], at) for numbers in every]

    def sliced(self, rows: Rows) -> Flags:
        """Return which of some members are in slices."""
        flags: Flags = ~self.is_loose[self._at(rows)]
        return flags

    def units(self, groups: Sequence[Rows]) -> list[SliceUnit]:
        """Return what the members of some groups make up, in rank order of the slices."""
        numbers = [np.stack(self.numbers(rows), axis=1) for rows in groups]
        found = np.unique(np.concatenate(numbers), axis=0)
        return [
            SliceUnit(
                tuple(each.tolist()),
                bool(each[-1] < 0),
                tuple(np.flatnonzero((of == each).all(axis=1)) for of in numbers),
            )
            for each in found
        ]

    def _at(self, rows: Rows) -> Ints:
        by_row = np.argsort(self.rows, kind="stable")
        at: Ints = by_row[np.searchsorted(self.rows[by_row], rows)]
        return at
