"""Places in slices: the number of a member among those that are in slices.

Only members of some roles may be in slices. They are counted among themselves, in rank order,
whether they are there or not::

    rank       0       1       2     3       4          slices of 2, of workers only
    role     leader  worker  (lost) worker  worker
    place      -       0       1     2       3

So what a lost member was must be known: the minima of the gang's roles say it, which go in rank
order, else the member next to it.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from muster.cluster.ids import NO_ROW
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import GangSpec, ranks
from muster.cluster.tables.gangview import GangView
from muster.placement.ranks.unknownplaces import Layers, doubtful, ways
from muster.placement.tree import Flags, Ints

Rows = NDArray[np.int32]

_LOST = -1
"""The role of a rank that no member has."""


def slice_places(snapshot: Snapshot, spec: GangSpec, rows: Rows) -> tuple[Ints, Flags]:
    """Return the place of each member (int64), and which members are in no slice (bool).

    ``rows``: int32 pod rows in the order of their ranks. The place of a member in no slice
    means nothing. Where the numbers do not say it, this is the first of ``slice_ways``.
    """
    return next(slice_ways(snapshot, spec, rows)), in_no_slice(snapshot, spec, rows)


def slice_ways(
    snapshot: Snapshot, spec: GangSpec, rows: Rows, room: Ints | None = None
) -> Iterator[Ints]:
    """Yield the places that members may have: one way, several where their numbers are in doubt.

    ``rows``: as in ``slice_places``. ``room``: int64 by node row, members that it could take.
    """
    numbers = ranks(spec, snapshot.pods.rank[rows])
    is_loose = in_no_slice(snapshot, spec, rows)
    if are_doubtful(snapshot, spec):
        yield from _ways(snapshot, spec, rows, is_loose, room)
    elif spec.slice_roles:
        known = _roles(snapshot, spec, rows, int(numbers.max(initial=-1)) + 1)
        before = np.concatenate(
            [[0], np.cumsum(_loose(snapshot, spec, _filled(snapshot, spec, known)))]
        )
        yield numbers - before[numbers]
    else:
        yield numbers


def in_no_slice(snapshot: Snapshot, spec: GangSpec, rows: Rows) -> Flags:
    """Return which of some members are in no slice, because their role is in none."""
    return _loose(snapshot, spec, snapshot.pods.role[rows])


def are_doubtful(snapshot: Snapshot, spec: GangSpec) -> bool:
    """Return whether the numbers of a gang's members, placed or waiting, do not say the places."""
    view = snapshot.gang(spec.key)
    if view is None:
        return False
    rows = np.concatenate([view.assumed, view.released, view.bound, view.waiting])
    return doubtful(spec, ranks(spec, snapshot.pods.rank[rows]))


def sliced_in_all(spec: GangSpec, is_loose: Flags) -> int:
    """Return how many members of a gang are in slices, those to come included.

    ``is_loose``: bool[members], those that are here.
    """
    here = int(np.count_nonzero(is_loose))
    told = sum(
        r.min_count for r in spec.roles if spec.slice_roles and r.name not in spec.slice_roles
    )
    in_all = max(spec.size or 0, spec.min_count) - max(here, told)
    return max(in_all, len(is_loose) - here)


def slice_layers(snapshot: Snapshot, spec: GangSpec) -> Layers:
    """Return the layers of a gang's slices, of those levels that the cluster has."""
    own = (*spec.wider_slices, (spec.slice_level or "", spec.slice_size or 1))
    known = [(level, size) for level, size in own if level in snapshot.levels]
    topology = snapshot.topology
    return Layers(
        tuple(size for _, size in known),
        tuple(topology.domain(topology.levels.index(level)) for level, _ in known),
    )


def _ways(
    snapshot: Snapshot, spec: GangSpec, rows: Rows, is_loose: Flags, room: Ints | None
) -> Iterator[Ints]:
    """Yield places by where members stand; of a gang of which none stands, by their turn."""
    pods, layers = snapshot.pods, slice_layers(snapshot, spec)
    nodes = pods.node[rows].astype(np.int64)
    stands = (nodes != NO_ROW) & ~is_loose
    stands[stands] = snapshot.nodes.alive[nodes[stands]]
    if not stands.any() or not layers.sizes:
        yield np.arange(len(rows), dtype=np.int64) - np.cumsum(is_loose)
        return
    waits = np.flatnonzero(~stands & ~is_loose)
    own = [column[rows[waits]].tolist() for column in (pods.pod_class, pods.labels, pods.role)]
    kinds = list(zip(*own, strict=True))
    size = sliced_in_all(spec, is_loose)
    order = np.concatenate([np.flatnonzero(stands), waits])
    for found in ways(layers, nodes[stands], kinds, size, room):
        places = np.zeros(len(rows), dtype=np.int64)
        places[order] = found
        yield places


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
