"""Which member gets which node: from amounts per node to one node per member, in rank order.

Members of a group are interchangeable, so any assignment of its members to the places found is
valid. The one chosen follows the fabric: places in tree order, members in rank order, so
neighbours in rank share the lowest domains. Beside members already placed, a member gets the
place nearest to the member of the nearest rank.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.ranks.ringorder import ring_steps
from muster.placement.request import GangRequest, Rows
from muster.placement.search.arena import Arena, SearchBoard
from muster.placement.search.fewestnewdomains import closest
from muster.placement.search.joint import Joint
from muster.placement.search.nearplaced import near, near_slices, near_whole, region_of
from muster.placement.search.onegroup import FoundPlaces, place_single, slots
from muster.placement.search.severalgroups import (
    Mixed,
    add_near,
    place_anchored,
    place_mixed_slices,
    place_slices_exactly,
)
from muster.placement.search.sliceorder import SliceOrder
from muster.placement.search.slices import partial_last
from muster.placement.tree import DomainTree, Ints, domains_used
from muster.placement.world import World


@dataclass(frozen=True, slots=True, eq=False)
class Assigned:
    """Members and the position that each of them gets, in no particular order."""

    #: int32[members], pod rows.
    pods: Rows
    #: int64[members].
    positions: Ints
    #: No assignment of these members uses fewer domains.
    proven: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PlacedMembers:
    """Members of the gang that have a place on a living node already."""

    #: int32[members], pod rows.
    rows: Rows
    #: int64[members], where each of them is.
    positions: Ints
    #: int64[positions], how many are at each position.
    amounts: Ints


def placed_members(snapshot: Snapshot, board: SearchBoard, request: GangRequest) -> PlacedMembers:
    """Return the placed members of a gang that stand on living nodes."""
    if not len(request.placed):
        none = np.zeros(0, dtype=np.int64)
        return PlacedMembers(request.placed, none, np.zeros(board.tree.size, dtype=np.int64))
    nodes = snapshot.pods.node[request.placed]
    known = nodes >= 0
    positions = board.topology.domain(board.tree.host)[nodes[known]].astype(np.int64)
    alive = positions >= 0
    amounts = np.bincount(positions[alive], minlength=board.tree.size)
    return PlacedMembers(request.placed[known][alive], positions[alive], amounts)


def assign(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]
) -> Steps[Assigned | None]:
    """Return a place for at least the mandatory members of a gang; ``None``: they do not fit."""
    board, world = arenas[0].board, arenas[0].world
    placed = placed_members(snapshot, board, request)
    if len(request.groups) == 1 and not request.spec.slice_roles:
        return (yield from _one_group(snapshot, arenas[0], request, placed))
    if request.wish.slice_size:
        return (yield from _sliced_groups(snapshot, arenas, request, placed))
    return (yield from _groups(snapshot, board, world, request, placed))


# --- one group --------------------------------------------------------------------------


def _one_group(
    snapshot: Snapshot, here: Arena, request: GangRequest, placed: PlacedMembers
) -> Steps[Assigned | None]:
    if len(placed.rows) and request.wish.slice_size:
        return (yield from _beside_slices(snapshot, here, placed))
    if len(placed.rows):
        return (yield from _beside_placed(snapshot, here, placed))
    group = here.group
    has_pauses = max(len(here.leaf), len(group.rows)) > FEW
    found = yield from place_single(here, group.mandatory, len(group.rows))
    if has_pauses:
        yield
    if found is None or not found.amounts.any():
        return None
    rows = _by_rank(snapshot, here.group.rows[: int(found.amounts.sum())])
    if has_pauses:
        yield
    assigned = _in_order(here, request, found, rows)
    if has_pauses:
        yield
    return assigned


def _beside_placed(
    snapshot: Snapshot, here: Arena, placed: PlacedMembers
) -> Steps[Assigned | None]:
    group = here.group
    ranked = bool((snapshot.pods.rank[group.rows] >= 0).all())
    neighbours = _nearest_in_rank(snapshot, placed, group.rows) if ranked else None
    amounts: Ints | None = yield from near(here, placed.amounts, len(group.rows), neighbours)
    if amounts is not None and int(amounts.sum()) < group.mandatory:
        amounts = yield from near_whole(here, placed.amounts, group.mandatory)
    if amounts is None or not amounts.any():
        return None
    region = region_of(here.board.tree, here.wish.required, placed.amounts)
    total = int(amounts.sum())
    best = yield from closest([here.within(region)], (total,), [amounts], placed.amounts)
    amounts = amounts if best is None else best[0]
    return _beside(snapshot, placed, group.rows[: int(amounts.sum())], amounts)


def _in_order(here: Arena, request: GangRequest, found: FoundPlaces, rows: Rows) -> Assigned:
    if request.wish.slice_size:
        order = partial_last(here.board.tree, request.wish, found.amounts)
        return Assigned(rows, order, found.proven)
    return Assigned(rows, slots(found.amounts, found.core), found.proven)


def _by_rank(snapshot: Snapshot, rows: Rows) -> Rows:
    """Sort members by rank; those given first come first among equals."""
    if len(rows) == 1:
        return rows
    ranks = snapshot.pods.rank[rows]
    return np.sort(rows) if (ranks < 0).all() else rows[np.argsort(ranks, kind="stable")]


def _beside(snapshot: Snapshot, placed: PlacedMembers, rows: Rows, amounts: Ints) -> Assigned:
    """Give each member the place nearest to the placed member of the nearest rank."""
    places = np.repeat(np.arange(len(amounts)), amounts)
    target = _nearest_in_rank(snapshot, placed, rows)
    return Assigned(rows[np.lexsort((snapshot.pods.rank[rows], target))], places)


def _nearest_in_rank(snapshot: Snapshot, placed: PlacedMembers, rows: Rows) -> Ints:
    """Return int64[rows], the position of the placed member next in rank to each."""
    by_rank = np.argsort(snapshot.pods.rank[placed.rows], kind="stable")
    ranks, positions = snapshot.pods.rank[placed.rows][by_rank], placed.positions[by_rank]
    wanted = snapshot.pods.rank[rows]
    after = np.minimum(np.searchsorted(ranks, wanted), len(ranks) - 1)
    before = np.maximum(after - 1, 0)
    closer = np.abs(ranks[before] - wanted) <= np.abs(ranks[after] - wanted)
    nearest: Ints = np.where(closer, positions[before], positions[after])
    return nearest


def _beside_slices(
    snapshot: Snapshot, here: Arena, placed: PlacedMembers
) -> Steps[Assigned | None]:
    rows = _by_rank(snapshot, here.group.rows)
    places = _places(snapshot, rows)
    peers = np.stack([_places(snapshot, placed.rows), placed.positions], axis=1)
    positions = yield from near_slices(here, placed.amounts, peers, places)
    found = positions >= 0
    if not found.any() or int(found.sum()) < here.group.mandatory:
        return None
    return Assigned(rows[found], positions[found])


def _places(snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    """Return the place of each pod row in rank order: its rank, or its place among these."""
    ranks = snapshot.pods.rank[rows].astype(np.int64)
    return np.arange(len(rows), dtype=np.int64) if (ranks < 0).any() else ranks


# --- several groups ---------------------------------------------------------------------


def _groups(
    snapshot: Snapshot,
    board: SearchBoard,
    world: World,
    request: GangRequest,
    placed: PlacedMembers,
) -> Steps[Assigned | None]:
    groups = request.groups
    must = tuple(group.mandatory for group in groups)
    task = Mixed(board, world, request.wish, groups, must, anchors=placed.amounts)
    core = yield from place_anchored(task)
    if core is None:
        return None
    found = yield from _with_the_others(task, request, core)
    if not any(amounts.any() for amounts in found.amounts):
        return None
    if found is core and not len(placed.rows):
        return (yield from _around_the_ring(snapshot, board.tree, request, found))
    first = placed.amounts + np.sum(core.amounts, axis=0)
    parts = []
    for group, amounts in zip(groups, found.amounts, strict=True):
        rows = group.rows[: int(amounts.sum())]
        if len(placed.rows):
            parts.append(_beside(snapshot, placed, rows, amounts))
        else:
            parts.append(Assigned(_by_rank(snapshot, rows), slots(amounts, first)))
    return replace(_joined(parts), proven=found.proven)


def _around_the_ring(
    snapshot: Snapshot, tree: DomainTree, request: GangRequest, found: Joint
) -> Steps[Assigned]:
    """Assign all members so that neighbours in rank are neighbours on the fabric."""
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
    parts = [Assigned(each, order) for each, order in zip(rows, orders, strict=True)]
    return replace(_joined(parts), proven=found.proven)


def _among(members: Rows, rows: Rows) -> Ints:
    """Return the place of each row among the members."""
    by_row = np.argsort(members, kind="stable")
    return by_row[np.searchsorted(members[by_row], rows)]


def _kind_by_kind(places: Sequence[Ints]) -> bool:
    """Return whether all members of a group come before all of the next in rank order."""
    filled = [each for each in places if len(each)]
    return all(int(a.max()) < int(b.min()) for a, b in pairwise(filled))


def _with_the_others(task: Mixed, request: GangRequest, core: Joint) -> Steps[Joint]:
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
    snapshot: Snapshot, arenas: Sequence[Arena], request: GangRequest, placed: PlacedMembers
) -> Steps[Assigned | None]:
    """All members first; the mandatory ones alone when that does not fit."""
    board, world = arenas[0].board, arenas[0].world
    order = SliceOrder.of(snapshot, request, placed.rows)
    if not len(placed.rows):
        everyone = tuple(len(group.rows) for group in request.groups)
        task = Mixed(board, world, request.wish, request.groups, everyone)
        whole, complete = yield from _exact_slices(request, task, order)
        if whole is not None or (complete and request.mandatory == len(request.members)):
            return whole
    numbers_placed = order.numbers(placed.rows)[-1]
    size = board.tree.size
    by_slice = {
        int(n): np.bincount(placed.positions[numbers_placed == n], minlength=size)
        for n in np.unique(numbers_placed)
    }
    anchors = placed.amounts if len(placed.rows) else None
    for needs in dict.fromkeys(
        (tuple(len(g.rows) for g in request.groups), tuple(g.mandatory for g in request.groups))
    ):
        rows = [g.rows[:n] for g, n in zip(request.groups, needs, strict=True)]
        numbers = [order.numbers(each)[-1] for each in rows]
        task = Mixed(board, world, request.wish, request.groups, needs, anchors=anchors)
        found = yield from place_mixed_slices(task, numbers, by_slice)
        if found is not None:
            return _joined([Assigned(r, p) for r, p in zip(rows, found, strict=True)])
    return None


def _exact_slices(
    request: GangRequest, task: Mixed, order: SliceOrder
) -> Steps[tuple[Assigned | None, bool]]:
    """Assign all members exactly. The second value: whether the search was complete."""
    kinds = np.full(len(request.members), -1, dtype=np.int64)
    for number, group in enumerate(request.groups):
        kinds[np.isin(request.members, group.rows)] = number
    numbers = order.numbers(request.members)
    positions, complete = yield from place_slices_exactly(task, numbers, kinds)
    found = None if positions is None else Assigned(request.members, positions, proven=complete)
    return found, complete


def _joined(parts: Sequence[Assigned]) -> Assigned:
    return Assigned(
        np.concatenate([each.pods for each in parts]),
        np.concatenate([each.positions for each in parts]),
    )
