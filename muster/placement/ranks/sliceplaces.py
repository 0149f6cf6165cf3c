"""Places in slices: the number of a member among those that are in slices.

Only members of some roles may be in slices. They are counted among themselves, in rank order,
whether they are there or not::

    rank       0       1       2     3       4          slices of 2, of workers only
    role     leader  worker  (lost) worker  worker
    place      -       0       1     2       3

So what a lost member was must be known: the minima of the gang's roles say it, which go in rank
order, else the member next to it.
"""

import numpy as np
from numpy.typing import NDArray

from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec, ranks
from muster.cluster.tables.gangview import GangView
from muster.placement.tree import Flags, Ints

_LOST = -1
"""The role of a rank that no member has."""


def slice_places(snapshot: Snapshot, spec: GangSpec, rows: NDArray[np.int32]) -> tuple[Ints, Flags]:
    """Return the place of each member (int64), and which members are in no slice (bool).

    ``rows``: int32 pod rows in the order of their ranks. The place of a member in no slice
    means nothing. Members without a rank are counted in the order given.
    """
    numbers = ranks(spec, snapshot.pods.rank[rows])
    is_loose = _loose(snapshot, spec, snapshot.pods.role[rows])
    if (numbers < 0).any():
        places = np.arange(len(rows), dtype=np.int64)
        return places - np.cumsum(is_loose), is_loose
    if not spec.slice_roles:
        return numbers, is_loose
    known = _roles(snapshot, spec, rows, int(numbers.max(initial=-1)) + 1)
    before = np.concatenate(
        [[0], np.cumsum(_loose(snapshot, spec, _filled(snapshot, spec, known)))]
    )
    return numbers - before[numbers], is_loose


def _loose(snapshot: Snapshot, spec: GangSpec, roles: NDArray[np.integer]) -> Flags:
    """Return which of some roles are in no slice."""
    found = [snapshot.pods.roles.find(role) for role in spec.slice_roles]
    none: Flags = np.zeros(len(roles), dtype=np.bool_)
    return ~np.isin(roles, [each for each in found if each is not None]) if found else none


def _roles(
    snapshot: Snapshot, spec: GangSpec, rows: NDArray[np.int32], count: int
) -> NDArray[np.int64]:
    """Return the role of each of the first ``count`` ranks, also of members that have ended."""
    view, pods = snapshot.gang(spec.key), snapshot.pods
    known = np.full(count, _LOST, dtype=np.int64)
    for each in (*([] if view is None else _ended_first(view)), rows):
        numbers = ranks(spec, pods.rank[each])
        here = (numbers >= 0) & (numbers < count)
        known[numbers[here]] = pods.role[each][here]
    return known


def _ended_first(view: GangView) -> list[NDArray[np.int32]]:
    """Return the members by state; who comes later says what a rank is."""
    here = [view.blocked, view.waiting, view.assumed, view.released, view.bound]
    return [view.finished, view.leaving, *here]


def _filled(snapshot: Snapshot, spec: GangSpec, known: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return roles by rank with those of lost members filled in."""
    lost = known == _LOST
    if not lost.any():
        return known
    told = _told(snapshot, spec, len(known))
    if not (lost | (told == _LOST) | (told == known)).all():
        told[:] = _LOST  # the roles do not come in the order of their minima
    filled = np.where(lost, told, known)
    at = np.flatnonzero(filled != _LOST)
    left = np.flatnonzero(filled == _LOST)
    if not len(at) or not len(left):
        return filled
    before = np.searchsorted(at, left) - 1
    filled[left] = filled[at[np.maximum(before, 0)]]
    if (before < 0).any() and not _loose(snapshot, spec, known[~lost]).any():
        filled[left[before < 0]] = _LOST  # some member is in no slice: it can only be the first
    return filled


def _told(snapshot: Snapshot, spec: GangSpec, count: int) -> NDArray[np.int64]:
    """Return the role of each rank as far as the roles' minima go."""
    told = np.full(count, _LOST, dtype=np.int64)
    first = 0
    for role in spec.roles:
        number = snapshot.pods.roles.find(role.name)
        # A role that no pod has ever had is in no slice that could be counted.
        told[first : first + role.min_count] = _LOST - 1 if number is None else number
        first += role.min_count
    return told
