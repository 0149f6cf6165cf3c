"""Who sits where: from amounts per node to one node per member, in rank order.

Members of a group are interchangeable, so any assignment of its members to its seats is
valid. The one chosen follows the fabric: seats in tree order, members in rank order, so
neighbours in rank share the lowest domains. Beside members already placed, a member's
seat is the one nearest to the member of the nearest rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.ranks.ringorder import ring_steps
from muster.placement.request import Request, Rows
from muster.placement.search.arena import Arena, Board
from muster.placement.search.fewestnewdomains import closest
from muster.placement.search.joint import Joint
from muster.placement.search.nearplaced import near, near_slices, near_whole, region_of
from muster.placement.search.onegroup import Found, place_single, slots
from muster.placement.search.severalgroups import (
    Mixed,
    add_near,
    place_anchored,
    place_mixed_slices,
    seat_slices_exactly,
)
from muster.placement.search.sliceorder import Roll
from muster.placement.search.slices import partial_last
from muster.placement.tree import Ints, Tree, domains_used
from muster.placement.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Seats:
    """``pods``: int32 pod rows, ``positions``: int64, same length, in no particular order.

    ``proven``: no seats for these members are in fewer domains.
    """

    pods: Rows
    positions: Ints
    proven: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Kin:
    """Members already placed: pod ``rows``, ``positions``, ``amounts`` per position."""

    rows: Rows
    positions: Ints
    amounts: Ints


def kin_of(snapshot: Snapshot, board: Board, request: Request) -> Kin:
    """Return the placed members of a gang that stand on living nodes."""
    topology = snapshot.topology
    nodes = snapshot.pods.node[request.placed]
    known = nodes >= 0
    positions = topology.domain(board.tree.host)[nodes[known]].astype(np.int64)
    alive = positions >= 0
    amounts = np.bincount(positions[alive], minlength=board.tree.size)
    return Kin(request.placed[known][alive], positions[alive], amounts)


def seat(snapshot: Snapshot, request: Request, arenas: Sequence[Arena]) -> Steps[Seats | None]:
    """Seat at least the mandatory members of a gang; ``None`` when they do not fit."""
    board, world = arenas[0].board, arenas[0].world
    kin = kin_of(snapshot, board, request)
    if len(request.groups) == 1 and not request.spec.slice_roles:
        return (yield from _one_group(snapshot, arenas[0], request, kin))
    if request.wish.slice_size:
        return (yield from _sliced_groups(snapshot, arenas, request, kin))
    return (yield from _groups(snapshot, board, world, request, kin))


# --- one group --------------------------------------------------------------------------


def _one_group(snapshot: Snapshot, here: Arena, request: Request, kin: Kin) -> Steps[Seats | None]:
    if len(kin.rows) and request.wish.slice_size:
        return (yield from _beside_slices(snapshot, here, kin))
    if len(kin.rows):
        return (yield from _beside_kin(snapshot, here, kin))
    group = here.group
    found = yield from place_single(here, group.mandatory, len(group.rows))
    yield
    if found is None or not found.amounts.any():
        return None
    rows = _by_rank(snapshot, here.group.rows[: int(found.amounts.sum())])
    yield
    seats = _in_order(here, request, found, rows)
    yield
    return seats


def _beside_kin(snapshot: Snapshot, here: Arena, kin: Kin) -> Steps[Seats | None]:
    group = here.group
    ranked = bool((snapshot.pods.rank[group.rows] >= 0).all())
    neighbours = _nearest_in_rank(snapshot, kin, group.rows) if ranked else None
    amounts: Ints | None = yield from near(here, kin.amounts, len(group.rows), neighbours)
    if amounts is not None and int(amounts.sum()) < group.mandatory:
        amounts = yield from near_whole(here, kin.amounts, group.mandatory)
    if amounts is None or not amounts.any():
        return None
    region = region_of(here.board.tree, here.wish.required, kin.amounts)
    total = int(amounts.sum())
    best = yield from closest([here.within(region)], (total,), [amounts], kin.amounts)
    amounts = amounts if best is None else best[0]
    return _beside(snapshot, kin, group.rows[: int(amounts.sum())], amounts)


def _in_order(here: Arena, request: Request, found: Found, rows: Rows) -> Seats:
    if request.wish.slice_size:
        order = partial_last(here.board.tree, request.wish, found.amounts)
        return Seats(rows, order, found.proven)
    return Seats(rows, slots(found.amounts, found.core), found.proven)


def _by_rank(snapshot: Snapshot, rows: Rows) -> Rows:
    """Sort members by rank; those given first come first among equals."""
    ranks = snapshot.pods.rank[rows]
    return np.sort(rows) if (ranks < 0).all() else rows[np.argsort(ranks, kind="stable")]


def _beside(snapshot: Snapshot, kin: Kin, rows: Rows, amounts: Ints) -> Seats:
    """Give each member the seat nearest to the placed member of the nearest rank."""
    seats = np.repeat(np.arange(len(amounts)), amounts)
    target = _nearest_in_rank(snapshot, kin, rows)
    return Seats(rows[np.lexsort((snapshot.pods.rank[rows], target))], seats)


def _nearest_in_rank(snapshot: Snapshot, kin: Kin, rows: Rows) -> Ints:
    """Return int64[rows], the position of the placed member next in rank to each."""
    by_rank = np.argsort(snapshot.pods.rank[kin.rows], kind="stable")
    ranks, positions = snapshot.pods.rank[kin.rows][by_rank], kin.positions[by_rank]
    wanted = snapshot.pods.rank[rows]
    after = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    before = np.maximum(after - 1, 0)
    closer = np.abs(ranks[before] - wanted) <= np.abs(ranks[after] - wanted)
    nearest: Ints = np.where(closer, positions[before], positions[after])
    return nearest


def _beside_slices(snapshot: Snapshot, here: Arena, kin: Kin) -> Steps[Seats | None]:
    rows = _by_rank(snapshot, here.group.rows)
    places = _places(snapshot, rows)
    peers = np.stack([_places(snapshot, kin.rows), kin.positions], axis=1)
    positions = yield from near_slices(here, kin.amounts, peers, places)
    placed = positions >= 0
    if not placed.any() or int(placed.sum()) < here.group.mandatory:
        return None
    return Seats(rows[placed], positions[placed])


def _places(snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    """Return the place of each pod row in rank order: its rank, or its place among these."""
    ranks = snapshot.pods.rank[rows].astype(np.int64)
    return np.arange(len(rows), dtype=np.int64) if (ranks < 0).any() else ranks


# --- several groups ---------------------------------------------------------------------


def _groups(
    snapshot: Snapshot, board: Board, world: World, request: Request, kin: Kin
) -> Steps[Seats | None]:
    groups = request.groups
    must = tuple(group.mandatory for group in groups)
    task = Mixed(board, world, request.wish, groups, must, anchors=kin.amounts)
    core = yield from place_anchored(task)
    if core is None:
        return None
    found = yield from _with_the_others(task, request, core)
    if not any(amounts.any() for amounts in found.amounts):
        return None
    if found is core and not len(kin.rows):
        return (yield from _around_the_ring(snapshot, board.tree, request, found))
    first = kin.amounts + np.sum(core.amounts, axis=0)
    seats = []
    for group, amounts in zip(groups, found.amounts, strict=True):
        rows = group.rows[: int(amounts.sum())]
        if len(kin.rows):
            seats.append(_beside(snapshot, kin, rows, amounts))
        else:
            seats.append(Seats(_by_rank(snapshot, rows), slots(amounts, first)))
    return replace(_joined(seats), proven=found.proven)


def _around_the_ring(
    snapshot: Snapshot, tree: Tree, request: Request, found: Joint
) -> Steps[Seats]:
    """Seat all members so that neighbours in rank are neighbours on the fabric."""
    rows = [
        _by_rank(snapshot, group.rows[: int(amounts.sum())])
        for group, amounts in zip(request.groups, found.amounts, strict=True)
    ]
    in_turn = _kind_by_kind([_among(request.members, each) for each in rows])
    yield
    if in_turn:
        orders = yield from ring_steps(tree, found.amounts)
    else:
        orders = [np.repeat(np.arange(tree.size), amounts) for amounts in found.amounts]
    seats = [Seats(each, order) for each, order in zip(rows, orders, strict=True)]
    return replace(_joined(seats), proven=found.proven)


def _among(members: Rows, rows: Rows) -> Ints:
    """Return the place of each row among the members."""
    by_row = np.argsort(members, kind="stable")
    return by_row[np.searchsorted(members[by_row], rows)]


def _kind_by_kind(places: Sequence[Ints]) -> bool:
    """Tell whether all members of a group come before all of the next in rank order."""
    filled = [each for each in places if len(each)]
    return all(int(a.max()) < int(b.min()) for a, b in pairwise(filled))


def _with_the_others(task: Mixed, request: Request, core: Joint) -> Steps[Joint]:
    """Members above the minimum: all at once where that costs no domain, else nearby."""
    totals = tuple(len(group.rows) for group in task.groups)
    if totals == task.needs:
        return core
    found = core.amounts
    whole = yield from place_anchored(
        Mixed(task.board, task.world, task.wish, task.groups, totals, anchors=task.anchors)
    )
    if whole is not None and _domains(task, whole.amounts)[:-1] <= _domains(task, found)[:-1]:
        return Joint(whole.amounts, proven=False)
    others = tuple(t - int(f.sum()) for t, f in zip(totals, found, strict=True))
    rest = Mixed(task.board, task.world, request.wish, task.groups, others)
    anchors = np.zeros(task.board.tree.size, dtype=np.int64)
    around = anchors if task.anchors is None else task.anchors
    grown = yield from add_near(rest, found, around)
    return Joint(grown, proven=False)


def _domains(task: Mixed, found: Sequence[Ints]) -> tuple[int, ...]:
    total = np.sum(found, axis=0) + (0 if task.anchors is None else task.anchors)
    return domains_used(task.board.tree, total)


def _sliced_groups(
    snapshot: Snapshot, arenas: Sequence[Arena], request: Request, kin: Kin
) -> Steps[Seats | None]:
    """All members first; the mandatory ones alone when that does not fit."""
    board, world = arenas[0].board, arenas[0].world
    roll = Roll.of(snapshot, request, kin.rows)
    if not len(kin.rows):
        everyone = tuple(len(group.rows) for group in request.groups)
        task = Mixed(board, world, request.wish, request.groups, everyone)
        whole, complete = yield from _exact_slices(request, task, roll)
        if whole is not None or (complete and request.mandatory == len(request.members)):
            return whole
    kin_numbers = roll.numbers(kin.rows)[-1]
    size = board.tree.size
    by_slice = {
        int(n): np.bincount(kin.positions[kin_numbers == n], minlength=size)
        for n in np.unique(kin_numbers)
    }
    anchors = kin.amounts if len(kin.rows) else None
    for needs in dict.fromkeys(
        (tuple(len(g.rows) for g in request.groups), tuple(g.mandatory for g in request.groups))
    ):
        rows = [g.rows[:n] for g, n in zip(request.groups, needs, strict=True)]
        numbers = [roll.numbers(each)[-1] for each in rows]
        task = Mixed(board, world, request.wish, request.groups, needs, anchors=anchors)
        found = yield from place_mixed_slices(task, numbers, by_slice)
        if found is not None:
            return _joined([Seats(r, p) for r, p in zip(rows, found, strict=True)])
    return None


def _exact_slices(request: Request, task: Mixed, roll: Roll) -> Steps[tuple[Seats | None, bool]]:
    """Seat all members exactly. The second value tells whether the search was complete."""
    kinds = np.full(len(request.members), -1, dtype=np.int64)
    for number, group in enumerate(request.groups):
        kinds[np.isin(request.members, group.rows)] = number
    numbers = roll.numbers(request.members)
    positions, complete = yield from seat_slices_exactly(task, numbers, kinds)
    found = None if positions is None else Seats(request.members, positions, proven=complete)
    return found, complete


def _joined(seats: Sequence[Seats]) -> Seats:
    return Seats(
        np.concatenate([s.pods for s in seats]), np.concatenate([s.positions for s in seats])
    )
