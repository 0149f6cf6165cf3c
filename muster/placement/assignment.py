"""Which member gets which node: from amounts per node to one node per member, in rank order.

Members of a group are interchangeable, so any assignment of its members to the places found is
valid. The one chosen follows the fabric: places in tree order, members in rank order, so
neighbours in rank share the lowest domains. Beside members already placed, a member gets the
place nearest to the member of the nearest rank.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from muster.cluster.resumable import FEW, Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.gangspec import ranks
from muster.placement.places import Assigned, PlacedMembers, joined
from muster.placement.ranks.ringorder import ring_steps
from muster.placement.ranks.unknownplaces import doubtful
from muster.placement.request import GangRequest, Rows
from muster.placement.search.arena import Arena, SearchBoard
from muster.placement.search.fewestnewdomains import closest
from muster.placement.search.joint import Joint
from muster.placement.search.nearplaced import near, near_whole, region_of
from muster.placement.search.onegroup import FoundPlaces, chosen, place_single, slots
from muster.placement.search.severalgroups import (
    Mixed,
    add_near,
    lightest_first,
    place_anchored,
    put,
    settled,
)
from muster.placement.search.slices import partial_last
from muster.placement.slicedgang import assign_slices
from muster.placement.tree import ROOT, DomainTree, Ints, domains_used
from muster.placement.world import World


def assign(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena], placed: PlacedMembers
) -> Steps[Assigned | None]:
    """Return a place for at least the mandatory members of a gang; ``None``: they do not fit.

    ``placed``: the members that have a place already.
    """
    board, world = arenas[0].board, arenas[0].world
    if request.wish.slice_size and not is_cut_in_turn(snapshot, request):
        return (yield from assign_slices(snapshot, arenas, request, placed))
    if len(request.groups) == 1:
        return (yield from _one_group(snapshot, arenas[0], request, placed))
    return (yield from _groups(snapshot, board, world, request, placed))


def is_cut_in_turn(snapshot: Snapshot, request: GangRequest) -> bool:
    """Return whether the members are alike, none has a place, and each slice is the next few."""
    if len(request.groups) > 1 or request.spec.slice_roles or len(request.placed):
        return False
    numbers = ranks(request.spec, snapshot.pods.rank[request.groups[0].rows])
    return doubtful(request.spec, numbers) or int(numbers.max()) == len(numbers) - 1


# --- one group --------------------------------------------------------------------------


def _one_group(
    snapshot: Snapshot, here: Arena, request: GangRequest, placed: PlacedMembers
) -> Steps[Assigned | None]:
    if len(placed.rows):
        return (yield from _beside_placed(snapshot, here, placed))
    group = here.group
    has_pauses = max(len(here.leaf), len(group.rows)) > FEW
    found = yield from place_single(here, group.mandatory, len(group.rows))
    if has_pauses:
        yield
    if found is None or not found.amounts.any():
        return None
    rows, count = here.group.rows, int(found.amounts.sum())
    if request.wish.slice_size:  # slices are cut in turn, whatever is mandatory
        in_order = request.members[np.sort(_among(request.members, rows))]
        rows = chosen(in_order, request.wish, count)
    else:
        rows = _by_rank(snapshot, rows[:count])
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
        parts = [each for each in (found.core, found.amounts - found.core) if each.any()]
        order = [partial_last(here.board.tree, request.wish, each) for each in parts]
        return Assigned(rows, np.concatenate(order), found.proven)
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
    found = yield from _with_the_others(task, core)
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
    return replace(joined(parts), proven=found.proven)


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
    return replace(joined(parts), proven=found.proven)


def _among(members: Rows, rows: Rows) -> Ints:
    """Return the place of each row among the members."""
    by_row = np.argsort(members, kind="stable")
    return by_row[np.searchsorted(members[by_row], rows)]


def _kind_by_kind(places: Sequence[Ints]) -> bool:
    """Return whether all members of a group come before all of the next in rank order."""
    filled = [each for each in places if len(each)]
    return all(int(a.max()) < int(b.min()) for a, b in pairwise(filled))


def _with_the_others(task: Mixed, core: Joint) -> Steps[Joint]:
    """Members above the minimum: all at once where that costs no domain, else nearby."""
    totals = tuple(len(group.rows) for group in task.groups)
    if totals == task.needs:
        return core
    whole = yield from place_anchored(replace(task, needs=totals))
    found, bar = core.amounts, _domains(task, core.amounts)[:-1]
    fixed = task.anchors is not None and task.anchors.any()
    # Beside members that have a place, all that wait are placed together: the gang is there.
    if whole is not None and (fixed or _domains(task, whole.amounts)[:-1] <= bar):
        return Joint(whole.amounts, proven=False)
    if task.wish.required != ROOT and not fixed:
        more = whole
        if more is None:
            more = yield from _most(task, totals)
        if more is not None:
            inside = region_of(task.board.tree, task.wish.required, np.sum(more.amounts, axis=0))
            there = yield from place_anchored(replace(task, region=inside))
            if there is not None and _domains(task, there.amounts)[:-1] <= bar:
                found = there.amounts
    grown = yield from _around_core(task, found, totals)
    return Joint(grown, proven=False)


def _around_core(task: Mixed, core: Sequence[Ints], totals: Sequence[int]) -> Steps[list[Ints]]:
    """Add the members above the minimum around those that are placed: all, else as many as fit."""
    others = tuple(t - int(f.sum()) for t, f in zip(totals, core, strict=True))
    anchors = np.zeros(task.board.tree.size, dtype=np.int64)
    around = anchors if task.anchors is None else task.anchors
    near_all = around + np.sum(core, axis=0)
    if near_all.any():
        world = _all_put(task.world, task, core)
        rest = yield from place_anchored(
            replace(task, world=world, needs=others, anchors=near_all, region=None)
        )
        if rest is not None and settled(_all_put(world, task, rest.amounts)):
            return [c + r for c, r in zip(core, rest.amounts, strict=True)]
    rest_task = Mixed(task.board, task.world, task.wish, task.groups, others)
    return (yield from add_near(rest_task, core, around))


def _all_put(world: World, task: Mixed, found: Sequence[Ints]) -> World:
    """Return the world with members of each group put down."""
    for group, amounts in zip(task.groups, found, strict=True):
        if amounts.any():
            world = put(world, task.board, group, amounts)
    return world


def _most(task: Mixed, totals: Sequence[int]) -> Steps[Joint | None]:
    """Place as many above the minimum as fit into one required domain, by bisecting.

    Who asks for least comes first.
    """
    order = yield from lightest_first(task)
    steps = [i for i in order for _ in range(totals[i] - task.needs[i])]
    best, low, high = None, 0, len(steps) - 1
    while low < high:
        trial = (low + high + 1) // 2
        more = np.bincount(steps[:trial], minlength=len(totals))
        needs = tuple(n + int(m) for n, m in zip(task.needs, more, strict=True))
        found = yield from place_anchored(replace(task, needs=needs))
        if found is None:
            high = trial - 1
        else:
            low, best = trial, found
    return best


def _domains(task: Mixed, found: Sequence[Ints]) -> tuple[int, ...]:
    total = np.sum(found, axis=0) + (0 if task.anchors is None else task.anchors)
    return domains_used(task.board.tree, total)
