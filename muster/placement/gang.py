"""Where does this gang go, and if nowhere, why? The planner's one question.

::

    read the request ─► contradiction, unknown level, too large? ─► Reject
          │             members missing? ─────────────────────────► Wait
          ▼
    assign the members (mandatory ones whole, the others where they fit)
          │             no fit ─► who lacks what, where ──────────► Wait
          ▼
    choose spares ─► rank order ──────────────────────────────────► Plan

A pure function of the snapshot: the same snapshot gives the same decision.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import FEW, Steps, run
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.deviceasks import MigAsk
from muster.cluster.tables.nodeview import NodeView
from muster.cluster.tables.topology import Topology
from muster.placement.assignment import assign, is_cut_in_turn
from muster.placement.decision import Decision, Plan, Reject, RejectReason
from muster.placement.otherminima import other_minima
from muster.placement.places import Assigned, placed_members
from muster.placement.preferences import preferred_first
from muster.placement.question import Question
from muster.placement.reasons.errors import described
from muster.placement.reasons.waiting import unexplained, wait
from muster.placement.request import GangRequest, MemberGroup, Rows, reading, without_groups
from muster.placement.rules.capacity import capacity
from muster.placement.rules.devices import beyond_devices
from muster.placement.rules.refusednodes import closed_nodes, masks
from muster.placement.search.arena import Arena, SearchBoard, arenas_of
from muster.placement.search.memberspares import choose_spares
from muster.placement.tree import DomainTree, Ints, domains_used, tree_of
from muster.placement.world import World

_NODES: Final = "add nodes that hold it (it is looked at again when nodes come)"
_FIRST_ROWS: Final = 1 << 12  # looked at before all: some microseconds


def plan(
    snapshot: Snapshot, question: Question, members: Rows | None = None
) -> Generator[None, None, Decision]:
    """Decide about one gang, in slices of about a millisecond at 130,000 nodes.

    ``members``: int32 pod rows to place, by default all that are waiting; a subset (repair,
    late members) goes near the members that are already placed. The generator's return value
    is the decision. Raises ``KeyError`` when the snapshot has no such gang.
    """
    request = yield from reading(snapshot, question, members)
    yield
    if not isinstance(request, GangRequest):
        return request
    prefers = _prefers(snapshot, request)
    fitting = _within_nodes(snapshot, request)
    if isinstance(fitting, Reject):
        return fitting
    request = fitting
    topology = yield from snapshot.topology_steps()
    if prefers:
        topology = yield from preferred_first(snapshot, topology, request.groups)
    tree = tree_of(topology)
    yield
    too_large = _slice_too_large(snapshot, topology, tree, request)
    if too_large is not None:
        return too_large
    yield
    world, arenas = World(snapshot), list[Arena]()
    for refused in masks(snapshot, question.refused):
        closed = closed_nodes(snapshot, refused, question.kept, question.promised, question.flavors)
        board = SearchBoard(topology, tree, closed, question.scoring)
        arenas = yield from arenas_of(world, board, request.groups, request.wish)
        assigned = yield from _assign(snapshot, request, arenas)
        if assigned is not None:
            return (yield from _plan(snapshot, request, arenas, assigned))
    try:
        return (yield from wait(snapshot, request, arenas))
    except Exception as error:  # noqa: BLE001  it waits for lack of room whatever the reason's text
        return unexplained(snapshot, request, described(error))


def _assign(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]
) -> Steps[Assigned | None]:
    """Place the first members as the minimum, or others where these do not fit."""
    placed = placed_members(snapshot, arenas[0].board, request)
    found = yield from assign(snapshot, request, arenas, placed)
    if found is not None or (request.wish.slice_size and is_cut_in_turn(snapshot, request)):
        return found
    for other in other_minima(snapshot, request, arenas):
        yield
        here = [replace(a, group=g) for a, g in zip(arenas, other.groups, strict=True)]
        found = yield from assign(snapshot, other, here, placed)
        if found is not None:
            return found
    return None


def _prefers(snapshot: Snapshot, request: GangRequest) -> bool:
    """Return whether some nodes may be better than others for a member, all else being equal."""
    if any(group.pod_class.preferred_nodes for group in request.groups):
        return True
    return any(snapshot.nodes.taint_sets)


def plan_now(snapshot: Snapshot, question: Question, members: Rows | None = None) -> Decision:
    """As ``plan``, run to its end at once."""
    return run(plan(snapshot, question, members))


def _within_nodes(snapshot: Snapshot, request: GangRequest) -> GangRequest | Reject:
    """Return the request without members that no node could take even when empty.

    Reject a gang that needs them for its minimum.
    """
    if not snapshot.nodes.alive.any():
        return request
    large: dict[int, str] = {}
    for number, group in enumerate(request.groups):
        # The message names a MIG profile that no device has, not a resource of which the
        # largest node has none.
        message = beyond_devices(snapshot, group.pod_class)
        if not message or not any(isinstance(a, MigAsk) for a in group.pod_class.devices.asks):
            message = _larger_than_nodes(snapshot, group) or message
        if message:
            large[number] = message
    smaller = without_groups(snapshot, request, large) if large else request
    if smaller is not None:
        return smaller
    return Reject(
        request.key,
        request.generation,
        RejectReason.LARGER_THAN_ANY_NODE,
        f"gang {request.key}: a member asks for {next(iter(large.values()))}: "
        f"ask for less, or {_NODES}",
    )


def _slice_too_large(
    snapshot: Snapshot, topology: Topology, tree: DomainTree, request: GangRequest
) -> Reject | None:
    """Reject a gang with slices that no domain of their level could take even when empty.

    Each node is counted with the kind of member of which it takes most. A slice that is cut by
    the gang's minimum needs no more than that; and of slices that have members placed already
    only those that are lost count, so such a gang is never too large.
    """
    nodes = snapshot.nodes
    if not request.wish.slices or not nodes.alive.any() or len(request.placed):
        return None
    rooms = [capacity(nodes.allocatable, g.pod_class, nodes.alive) for g in request.groups]
    room = np.maximum.reduce(rooms)[topology.order]
    for level, size in request.wish.slices:
        sums = np.where(tree.labelled[level], tree.sums(room, level, tree.host), 0)
        most = int(sums.max(initial=0))
        if 0 < most < min(size, request.mandatory):
            key = topology.levels[level]
            message = (
                f"a slice ({request.spec.where('slice_size')}) has {size} members; the largest "
                f"{key} takes {most} when empty: make slices smaller, or {_NODES}"
            )
            reason = RejectReason.LARGER_THAN_ANY_DOMAIN
            return Reject(request.key, request.generation, reason, f"gang {request.key}: {message}")
    return None


def _any_fits(nodes: NodeView, asked: Sequence[tuple[str, int]], rows: int) -> bool:
    """Return whether one of the first nodes would take a pod if it were empty."""
    fits = nodes.alive[:rows]
    for resource, amount in asked:
        fits = fits & (nodes.allocatable(resource)[:rows] >= amount)
    return bool(fits.any())


def _larger_than_nodes(snapshot: Snapshot, group: MemberGroup) -> str:
    """Dead rows offer nothing, so they need not be left out."""
    nodes = snapshot.nodes
    asked = [(resource, amount) for resource, amount in group.pod_class.requests if amount]
    # One node that fits is enough, and in most clusters there is one among the first.
    if _any_fits(nodes, asked, _FIRST_ROWS) or _any_fits(nodes, asked, nodes.count):
        return ""
    for resource, amount in asked:
        most = int(nodes.allocatable(resource).max())
        if amount > most:
            return f"{amount} {resource}; the largest node has {most}"
    together = ", ".join(f"{amount} {resource}" for resource, amount in asked)
    return f"{together}; no single node has all of these together"


def _plan(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena], assigned: Assigned
) -> Steps[Plan]:
    board = arenas[0].board
    has_pauses = max(board.tree.size, len(assigned.pods)) > FEW
    amounts = np.bincount(assigned.positions, minlength=board.tree.size)
    if has_pauses:
        yield
    spares = yield from _spares(request, arenas, assigned, amounts)
    order, left_over = _rank_order(request, assigned.pods)
    if has_pauses:
        yield
    nodes = board.topology.order
    by_node = np.append(nodes, -1).astype(np.int32)  # position -1 finds the entry at the end
    if has_pauses:
        yield
    levels, used = board.topology.levels, domains_used(board.tree, amounts)
    if has_pauses:
        yield
    return Plan(
        gang=request.key,
        generation=snapshot.generation,
        pods=assigned.pods[order].astype(np.int32),
        nodes=nodes[assigned.positions[order]].astype(np.int32),
        spares=by_node[spares[order]],
        left_over=left_over,
        domains=tuple(zip(levels, used, strict=True)),
        proven=assigned.proven,
    )


def _rank_order(request: GangRequest, pods: Rows) -> tuple[NDArray[np.int64], Rows]:
    """Return the order of ``pods`` among the members, and the members that are left over.

    ``request.members`` are sorted by rank and name.
    """
    by_row = np.argsort(request.members, kind="stable")
    place = by_row[np.searchsorted(request.members[by_row], pods)]
    left = np.ones(len(request.members), dtype=np.bool_)
    left[place] = False
    return np.argsort(place, kind="stable"), request.members[left].astype(np.int32)


def _spares(
    request: GangRequest, arenas: Sequence[Arena], assigned: Assigned, amounts: Ints
) -> Steps[NDArray[np.int64]]:
    """Return int64[members, spare_count] positions, along ``assigned``."""
    result = np.full((len(assigned.pods), request.spare_count), -1, dtype=np.int64)
    if not request.spare_count:
        return result
    groups = [np.flatnonzero(np.isin(assigned.pods, a.group.rows)) for a in arenas]
    members = [assigned.positions[mine] for mine in groups]
    found = yield from choose_spares(arenas, members, amounts, request.spare_count)
    for mine, spares in zip(groups, found, strict=True):
        result[mine] = spares
    return result
