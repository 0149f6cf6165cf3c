"""Why a gang waits: the reason in a fixed word, the numbers, and what would help.

The group looked at is the one that lacks most; of all domains that could do, the nearest
fit is the one with room for most of it. What it lacks is given in the resource that runs
out first there, and who holds that resource is read from the pods on the domain's nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from muster.cluster.columns.paged import PAGE_ROWS
from muster.cluster.devices.needs import asks_of
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.gangview import GangView
from muster.cluster.tables.pods import PodView
from muster.placement.decision import NearestFit, RuleCount, Wait, WaitExplanation, WaitReason
from muster.placement.nodelabels import Mask
from muster.placement.places import placed_members
from muster.placement.reasons.explanation import CLUSTER
from muster.placement.reasons.obstacles import Obstacle, nodes_for, obstacles
from muster.placement.request import GangRequest, MemberGroup
from muster.placement.rules.capacity import by_resource, capacity_steps
from muster.placement.rules.caps import count_up
from muster.placement.rules.devices import empty_rooms, text
from muster.placement.rules.feasibility import BETWEEN_PODS, BUDGET, RESOURCE
from muster.placement.search.arena import Arena, SearchBoard
from muster.placement.search.nearplaced import region_of
from muster.placement.search.scopes import holding, labelled_only
from muster.placement.tree import ROOT, Ints
from muster.placement.world import World

NO_LABEL: Final = "no label of the required level"

ROOM_FOR: Final = "room on a device for "
_PAGES_PER_STEP: Final = 16  # 130,000 pods: about half a millisecond

_VALUES: Final = 5  # of a label, named where none is the one selected
_HOLDERS: Final = 5
"""Gangs named as holders of a domain, largest first."""


@dataclass(frozen=True, slots=True)
class _Best:
    level: int
    domain: int
    fits: int


def wait(snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]) -> Steps[Wait]:
    """Return the decision to wait with its explanation; one arena per group."""
    worst, need = scarcest(snapshot, request, arenas)
    yield
    best = _best(worst)
    yield
    found = yield from obstacles(request, worst, need)
    decided = bool(found) and (yield from _room_if_empty(worst, _open_now(worst))) < need
    reason = _reason(worst, request, need)
    if decided and all(each.between_pods for each in found):
        reason = WaitReason.SPREAD_UNSATISFIABLE
    nearest = yield from _nearest(snapshot, worst, best, need)
    if decided and nearest is not None:  # no resource is short
        nearest = replace(nearest, short_of=(), held_by=(), others=0)
    unlabelled = _unlabelled(worst)
    explanation = WaitExplanation(
        nodes=int(np.count_nonzero(snapshot.nodes.alive)),
        feasible=int(np.count_nonzero(worst.feasibility.mask)) - unlabelled.removed,
        rules=(*worst.feasibility.rules, unlabelled),
        nearest=nearest,
        remedy=_with_obstacles(
            found,
            remedy(reason, worst.feasibility.rules, nearest, len(request.groups)),
            decided=decided,
        )
        + (_selectable(snapshot, worst) if reason is WaitReason.NO_FEASIBLE_NODE else ""),
        unmodelled=worst.feasibility.unmodelled,
        relaxes_at=request.relaxes_at,
        relaxes="" if request.relaxes_at is None else request.spec.preferred_level or "",
    )
    return Wait(request.key, request.generation, reason, explanation)


def unexplained(snapshot: Snapshot, request: GangRequest, error: str) -> Wait:
    """Return the decision to wait where the explanation fails: the bare reason, and the error."""
    bound = request.wish.required != ROOT or request.wish.slice_size
    reason = WaitReason.NO_DOMAIN_FITS if bound else WaitReason.NOT_ENOUGH_ROOM
    count = int(np.count_nonzero(snapshot.nodes.alive))
    return Wait(request.key, request.generation, reason, WaitExplanation(count, 0, (), error=error))


def _open_now(arena: Arena) -> Mask:
    """Return bool[nodes], where only resources and budgets can stop one more member."""
    return arena.board.closed.opened(arena.feasibility.suitable)


def _with_obstacles(found: Sequence[Obstacle], otherwise: str, *, decided: bool) -> str:
    """Return the way out: of the rules that decide, or another one and these beside it."""
    if not found:
        return otherwise
    if decided:
        return "; or ".join(map(str, found))
    rules = " or ".join(each.rule for each in found)
    return f"{otherwise}; it would go now but for {rules}"


def scarcest(
    snapshot: Snapshot, request: GangRequest, arenas: Sequence[Arena]
) -> tuple[Arena, int]:
    """Return the group that lacks most, and how many of it must fit.

    Beside members that are placed already, only the domain that these have fixed counts.
    """
    placed = placed_members(snapshot, arenas[0].board, request)
    if placed.amounts.any():
        region = region_of(arenas[0].board.tree, request.wish.required, placed.amounts)
        arenas = [each.within(region) for each in arenas]
    worst = max(arenas, key=lambda a: _lack(a, _need(request, a.group)))
    return worst, _need(request, worst.group)


def _need(request: GangRequest, group: MemberGroup) -> int:
    """Members of a group that must fit; where nothing must, one has to."""
    return group.mandatory if request.mandatory else min(1, len(group.rows))


def _unlabelled(arena: Arena) -> RuleCount:
    """Return the one rule of the gang and not of its pods: nodes outside what it requires."""
    board, wish = arena.board, arena.wish
    asked = ({wish.required} | wish.slice_levels) - {ROOT}
    keys = [board.topology.levels[i] for i in sorted(asked)]
    inside = labelled_only(board.tree, wish)
    feasible = arena.feasibility.mask[board.topology.order]
    removed = 0 if inside is None else int(np.count_nonzero(feasible & ~inside))
    return RuleCount(NO_LABEL, removed, ", ".join(keys))


def _best(arena: Arena) -> _Best:
    counts = arena.counts()
    level = arena.wish.required
    sizes = counts[level]
    tree = arena.board.tree
    if level != ROOT:
        sizes = np.where(tree.labelled[level], sizes, -1)
    if arena.region is not None:  # the domain that members already placed have fixed
        inside = tree.sums(arena.region.astype(np.int64), level, tree.host)
        sizes = np.where(inside > 0, sizes, -1)
    domain = int(np.argmax(sizes)) if len(sizes) else 0
    return _Best(level, domain, max(int(sizes.max(initial=0)), 0))


def _lack(arena: Arena, need: int) -> int:
    return max(need - _best(arena).fits, 0)


def _reason(arena: Arena, request: GangRequest, need: int) -> WaitReason:
    feasibility = arena.feasibility
    if not feasibility.suitable.any():
        between = any(r.removed for r in feasibility.rules if r.rule in BETWEEN_PODS)
        return WaitReason.SPREAD_UNSATISFIABLE if between else WaitReason.NO_FEASIBLE_NODE
    if not feasibility.mask.any() and _budgets_did_it(feasibility.rules):
        return WaitReason.BUDGET_EXHAUSTED
    total = int(arena.counts()[ROOT][0])
    if total < need:
        return _why_capped(arena, need)
    if request.wish.required != ROOT or request.wish.slice_size:
        return WaitReason.NO_DOMAIN_FITS
    return WaitReason.NOT_ENOUGH_ROOM


def _budgets_did_it(rules: tuple[RuleCount, ...]) -> bool:
    """Return whether the last nodes were removed by budgets and not by resources."""
    return any(r.removed for r in rules if r.rule == BUDGET)


def _why_capped(arena: Arena, need: int) -> WaitReason:
    """Room for each node alone would do, or not; what caps sets of nodes is left out."""
    tree, group = arena.board.tree, arena.group
    uncapped = int(arena.leaf.sum())
    if uncapped >= need:
        budgets = [f for f in arena.cap_rules if len(f.caps) == 1 and f.level is None]
        only = int(count_up(tree, arena.leaf, budgets)[ROOT][0])
        return WaitReason.BUDGET_EXHAUSTED if only < need else WaitReason.SPREAD_UNSATISFIABLE
    if arena.limits.node_caps and _room_per_node(arena, group) >= need:
        return WaitReason.SPREAD_UNSATISFIABLE
    return WaitReason.NOT_ENOUGH_ROOM


def _room_per_node(arena: Arena, group: MemberGroup) -> int:
    room = by_resource(arena.world.free, group.pod_class, arena.feasibility.mask)
    return int(np.minimum.reduce([pods for _, _, pods in room]).sum())


def _nearest(snapshot: Snapshot, arena: Arena, best: _Best, need: int) -> Steps[NearestFit | None]:
    """Describe the domain that came closest; ``None`` when no node suits at all."""
    if not arena.feasibility.suitable.any():  # maybe no node is there at all, and no domain
        return None
    low, high = arena.board.tree.span(best.level, best.domain)
    if low == high:
        return None
    inside = np.zeros(snapshot.nodes.count, dtype=np.bool_)
    inside[arena.board.topology.order[low:high]] = True
    inside &= arena.feasibility.suitable
    room = by_resource(arena.world.free, arena.group.pod_class, inside)
    devices = arena.feasibility.devices
    if devices is not None:
        room.append((f"{ROOM_FOR}{text(arena.group.pod_class)}", 1, np.where(inside, devices, 0)))
    yield
    resource, amount, pods = min(room, key=lambda r: int(np.minimum(r[2], need).sum()))
    there = max(int(np.minimum(pods, need).sum()), best.fits)
    lack = max(need - (there if there < need else best.fits), 0) * amount
    if lack and not resource.startswith(ROOM_FOR):
        lack = _least(arena.world, inside, (resource, amount, pods), lack // amount)
    held, others = yield from holders(snapshot, inside, resource)
    largest = yield from _room_if_empty(arena, nodes_for(arena), best.level)
    views = [snapshot.gang(key) for key, _ in held]
    return NearestFit(
        level=CLUSTER if best.level == ROOT else arena.board.topology.levels[best.level],
        domain=domain_name(arena.board, best.level, best.domain),
        fits=best.fits,
        needed=need,
        short_of=((resource, lack),) if lack else (),
        held_by=held,
        asks=arena.group.pod_class.requests,
        domains=_labelled_domains(arena, best.level),
        fitting=len(holding(arena.board.tree, arena.counts(), best.level, need)),
        largest=largest,
        priorities=tuple(0 if view is None else view.priority for view in views),
        sizes=tuple(0 if view is None else len(view.bound) for view in views),
        since=tuple(_since(snapshot, view) for view in views),
        others=others,
    )


def _least(world: World, inside: Mask, short: tuple[str, int, Ints], more_pods: int) -> int:
    """Return the least that must become free ``inside`` for ``more_pods`` more pods.

    ``short``: resource, amount that a pod asks for, pods that it leaves room for on each
    node. A node with part of an ask free lacks only the rest of it, and more pods lack all.
    """
    resource, amount, pods = short
    has = world.snapshot.nodes.allocatable(resource)
    at = np.flatnonzero(inside & (has // amount > pods))
    more = has[at] // amount - pods[at]
    rest = amount - np.maximum(world.free(resource)[at] - pods[at] * amount, 0)
    whole = np.full(min(int((more - 1).sum()), more_pods), amount)
    costs = np.sort(np.concatenate([rest, whole]))[:more_pods]
    return int(costs.sum()) + (more_pods - len(costs)) * amount


def _since(snapshot: Snapshot, view: GangView | None) -> float:
    """Return when the first pod of a gang that still stands was started, 0 where unknown."""
    if view is None:
        return 0.0
    started = snapshot.pods.started[view.bound]
    return float(started[started > 0].min(initial=np.inf)) if (started > 0).any() else 0.0


def _labelled_domains(arena: Arena, level: int) -> int:
    return 1 if level == ROOT else int(np.count_nonzero(arena.board.tree.labelled[level]))


def _room_if_empty(arena: Arena, nodes: Mask, level: int | None = None) -> Steps[int]:
    """Return how many members the largest domain could take if no pod were on these nodes.

    ``level``: that of the domains, ``None``: the required one.
    """
    level = arena.wish.required if level is None else level
    pod_class, board = arena.group.pod_class, arena.board
    allocatable = arena.world.snapshot.nodes.allocatable
    devices = empty_rooms(arena.world.snapshot, pod_class)
    empty = yield from capacity_steps(allocatable, pod_class, nodes, devices)
    leaf = arena.limits.clip(empty[board.topology.order])
    yield
    sizes = count_up(board.tree, leaf, arena.cap_rules)[level]
    if level != ROOT:
        sizes = np.where(board.tree.labelled[level], sizes, 0)
    return int(sizes.max(initial=0))


def domain_name(board: SearchBoard, level: int, domain: int) -> str:
    """Return a domain's path, widest level first, as "zone/block/rack"."""
    if level == ROOT:
        return CLUSTER
    row = board.topology.order[board.tree.starts[level][domain]]
    named = int(board.topology.domain(level)[row])
    return "/".join(name for name in board.topology.path(level, named) if name)


def holders(
    snapshot: Snapshot, nodes: Mask, resource: str
) -> Steps[tuple[tuple[tuple[GangKey, int], ...], int]]:
    """Return the gangs that hold most of a resource on some nodes, largest first.

    The second value is what pods of no gang hold there.
    """
    pods = snapshot.pods
    rows = yield from _standing_on(pods, nodes)
    gangs = pods.gang[rows] + 1  # 0: of no gang
    yield
    amounts = _amounts(snapshot, rows, resource)
    held = np.bincount(gangs, amounts, minlength=1)
    yield
    largest = np.argsort(-held[1:], kind="stable")[:_HOLDERS]
    named = ((snapshot.gang_at(int(g)), int(held[g + 1])) for g in largest if held[g + 1] > 0)
    return tuple(named), int(held[0])


def _standing_on(pods: PodView, nodes: Mask) -> Steps[Ints]:
    """Return the rows of the pods on some nodes; a million pods are looked at page by page."""
    inside = np.append(nodes, False)  # row -1, no node, finds the entry at the end
    found = [np.zeros(0, dtype=np.int64)]
    for number, page in enumerate(pods.node.pages):
        found.append(np.flatnonzero(inside[page]) + number * PAGE_ROWS)
        if number % _PAGES_PER_STEP == _PAGES_PER_STEP - 1:
            yield
    return np.concatenate(found)


def _amounts(snapshot: Snapshot, rows: Ints, resource: str) -> Ints:
    classes = snapshot.pods.pod_class[rows]
    used = np.unique(classes)
    per_class = [_held(snapshot.classes[int(c)], resource) for c in used]
    found: Ints = np.array(per_class, dtype=np.int64)[np.searchsorted(used, classes)]
    return found


def _held(pod_class: PodClass, resource: str) -> int:
    if resource.startswith(ROOM_FOR):
        return sum(ask.count for ask in asks_of(pod_class))
    return pod_class.request(resource)


def remedy(
    reason: WaitReason,
    rules: tuple[RuleCount, ...],
    nearest: NearestFit | None,
    groups: int,
) -> str:
    """Return one sentence about what would let the gang go."""
    if reason is WaitReason.NO_FEASIBLE_NODE:
        return _most_removing(rules)
    if reason is WaitReason.BUDGET_EXHAUSTED:
        names = ", ".join(r.detail for r in rules if r.rule == BUDGET)
        return f"raise the budget or wait for its pods to end{f': {names}' if names else ''}"
    if reason is WaitReason.SPREAD_UNSATISFIABLE:
        return (
            "the spread and affinity rules of the pods leave too few nodes: relax them, "
            "or wait until the pods they speak of have moved or ended"
        )
    if nearest is not None and nearest.largest < nearest.needed:
        return (
            f"even empty, the largest holds {nearest.largest} of {nearest.needed} members: "
            "require a wider level, make the gang smaller, or add nodes"
        )
    if nearest is not None and nearest.short_of:
        resource, amount = nearest.short_of[0]
        place = nearest.domain if nearest.level != CLUSTER else "the cluster"
        if resource.startswith(ROOM_FOR):
            kind = resource.removeprefix(ROOM_FOR)
            return f"goes when devices in {place} have room for {kind}, {amount} times more"
        each = dict(nearest.asks).get(resource, 1)
        unit = f", {each} together on a node" if each > 1 and amount % each else ""
        return f"goes when {amount} more {resource} are free in {place}{unit}"
    if groups > 1:
        return "each kind of member would fit alone, all of them together do not in any domain"
    return "free room is scattered: it goes when whole nodes become free in one domain"


def _selectable(snapshot: Snapshot, arena: Arena) -> str:
    """Return what nodes have of the labels that the pods select and no node has so."""
    found = []
    for key, value in arena.group.pod_class.node_selector:
        column = snapshot.nodes.labels(key)
        values = [] if column is None else sorted(v for v in column.values if v is not None)
        if value not in values:
            named = ", ".join(values[:_VALUES]) + (" and others" if len(values) > _VALUES else "")
            found.append(f"; {key} of the nodes: {named}" if values else f"; no node has {key}")
    return "".join(found)


def _most_removing(rules: tuple[RuleCount, ...]) -> str:
    hard = [rule for rule in rules if rule.rule not in (RESOURCE, BUDGET) and rule.removed]
    if not hard:
        return "no node is there: add nodes"
    top = max(hard, key=lambda rule: rule.removed)
    detail = f" ({top.detail})" if top.detail else ""
    return f"most nodes are removed by: {top.rule}{detail}; change the pods or the nodes"
