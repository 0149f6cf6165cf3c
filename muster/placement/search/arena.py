"""One group on the board: capacities and caps by position, and the search over them.

The search in full, from the plain to the particular::

    slices?  ─► slices.place_slices        otherwise scopes.place
    members that must share a label that is no level: once per value, best result wins
    spread constraints leave no room as things are: onebyone, per candidate domain
    (not with slices: those wait until the spread leaves room)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.cluster.resumable import FEW, Steps
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.topology import Topology
from muster.placement.nodelabels import Mask
from muster.placement.request import MemberGroup, TopologyWish
from muster.placement.rules.capacity import capacity, capacity_steps
from muster.placement.rules.caps import CapRule, count_up
from muster.placement.rules.feasibility import (
    BETWEEN_PODS,
    Feasibility,
    feasible_in,
    feasible_steps,
)
from muster.placement.rules.refusednodes import NOTHING, Closed
from muster.placement.rules.topologyspread import spreads
from muster.placement.scoring.profiles import DEFAULT, Scoring
from muster.placement.search.grouplimits import GroupLimits, limits_of
from muster.placement.search.onebyone import place_one_by_one
from muster.placement.search.scopes import Placing, holding, labelled_only, place
from muster.placement.search.slices import place_slices
from muster.placement.tree import ROOT, DomainTree, Flags, Ints, domains_used
from muster.placement.world import World

_VALUES_TRIED = 64
"""Values of an off-tree key tried for a gang that must share one, roomiest last."""


@dataclass(frozen=True, slots=True, eq=False)
class SearchBoard:
    """What all groups of a gang share."""

    topology: Topology
    #: Spans the positions of ``topology``.
    tree: DomainTree
    #: Nodes that the question leaves out.
    closed: Closed = NOTHING
    #: Which nodes are preferred for a pod that comes alone.
    scoring: Scoring = DEFAULT

    def rows(self, by_position: Ints, count: int) -> Ints:
        """Return int64[count] by node row for int64[positions]."""
        by_row = np.zeros(count, dtype=np.int64)
        by_row[self.topology.order] = by_position
        return by_row


@dataclass(frozen=True, slots=True, eq=False)
class Arena:
    """One group in one world."""

    board: SearchBoard
    world: World
    group: MemberGroup
    wish: TopologyWish
    feasibility: Feasibility
    #: int64[positions], members that a node can take.
    leaf: Ints
    #: The same without room that other plans keep as spares; ``None``: there is no such room.
    quiet: Ints | None
    limits: GroupLimits
    #: bool[positions], where it may go; ``None``: everywhere.
    region: Flags | None = None

    @property
    def able(self) -> Mask:
        """bool[nodes]: those that no rule about nodes removes, whatever pods are on them.

        Rules between pods change with the pods, so where they remove any node every node counts.
        """
        between = any(rule.removed for rule in self.feasibility.rules if rule.rule in BETWEEN_PODS)
        nodes = self.world.snapshot.nodes.alive if between else self.feasibility.suitable
        return self.board.closed.opened(nodes)

    @property
    def cap_rules(self) -> tuple[CapRule, ...]:
        """Caps on sets of nodes."""
        return self.limits.cap_rules

    def within(self, region: Flags) -> "Arena":
        """Return the same arena confined to some positions."""
        quiet = None if self.quiet is None else np.where(region, self.quiet, 0)
        both = region if self.region is None else region & self.region
        return replace(self, leaf=np.where(region, self.leaf, 0), quiet=quiet, region=both)

    def after(self, amounts: Ints) -> "Arena":
        """Return the arena with ``amounts`` members of this very group put down."""
        cap_rules = tuple(cap_rule.less(amounts) for cap_rule in self.cap_rules)
        caps = tuple((c, CapRule(c, caps).less(amounts).caps) for c, caps in self.limits.node_caps)
        limits = replace(self.limits, cap_rules=cap_rules, node_caps=caps)
        quiet = None if self.quiet is None else np.maximum(self.quiet - amounts, 0)
        leaf = np.maximum(self.leaf - amounts, 0)
        return replace(self, leaf=leaf, quiet=quiet, limits=limits)

    def counts(self) -> list[Ints]:
        """Return how many members every domain of every level can hold."""
        return count_up(self.board.tree, self.leaf, self.cap_rules)


def arena(world: World, board: SearchBoard, group: MemberGroup, wish: TopologyWish) -> Steps[Arena]:
    """Evaluate a group's rules and capacities in a world."""
    feasibility = yield from feasible_steps(world, group.pod_class, group.labels_id, board.closed)
    order = board.topology.order
    has_pauses = len(order) > FEW
    if has_pauses:
        yield
    devices = feasibility.devices
    free = world.free if world.placed else world.snapshot.nodes.free
    by_row = yield from capacity_steps(free, group.pod_class, feasibility.mask, devices)
    leaf = by_row[order]
    if has_pauses:
        yield
    limits = limits_of(world, board.topology, board.tree, group)
    quiet = None
    if _spares_kept(world, group):
        if has_pauses:
            yield
        kept = feasibility.mask, devices
        by_row = yield from capacity_steps(world.unreserved, group.pod_class, *kept)
        quiet = limits.clip(by_row[order])
    if has_pauses:
        yield
    inner = replace(wish, required=max(wish.required, limits.together))
    made = Arena(board, world, group, inner, feasibility, limits.clip(leaf), quiet, limits)
    # What the gang requires holds, too, where affinity asks for something narrower.
    labelled = labelled_only(board.tree, wish, inner)
    return made if labelled is None else made.within(labelled)


def arenas_of(
    world: World, board: SearchBoard, groups: Sequence[MemberGroup], wish: TopologyWish
) -> Steps[list[Arena]]:
    """Evaluate every group of a gang in the same world."""
    arenas: list[Arena] = []
    for group in groups:
        if arenas:
            yield
        made = yield from arena(world, board, group, wish)
        arenas.append(made)
    return arenas


def kinds_of(arenas: Sequence[Arena], needs: Sequence[int]) -> list[tuple[PodClass, int]]:
    """Return what members of each group ask for, and how many there are to place."""
    return [(arena.group.pod_class, need) for arena, need in zip(arenas, needs, strict=True)]


def _spares_kept(world: World, group: MemberGroup) -> bool:
    nodes = world.snapshot.nodes
    for resource, amount in group.pod_class.requests:
        if amount and nodes.spare_reserved(resource).any():
            return True
    return False


def search(arena: Arena, need: int) -> Steps[Placing | None]:
    """Return ``need`` members of the group, placed, or ``None``."""
    if not need:
        return Placing(np.zeros_like(arena.leaf), proven=True)
    if arena.limits.together_loose:
        return (yield from _by_value(arena, need))
    found = yield from _plain(arena, need)
    if found is None and arena.limits.spreads and not arena.wish.slice_size:
        raised = yield from _raising_spread(arena, need)
        return None if raised is None else Placing(raised, proven=False)
    return found


def _plain(arena: Arena, need: int) -> Steps[Placing | None]:
    tree, wish = arena.board.tree, arena.wish
    if wish.slice_size:
        return (yield from place_slices(tree, arena.leaf, arena.cap_rules, wish, need))
    return (yield from place(tree, arena.leaf, arena.cap_rules, wish, need))


def _by_value(arena: Arena, need: int) -> Steps[Placing | None]:
    """All members on nodes with one value of every off-tree key: try value by value."""
    best: Placing | None = None
    inner = replace(arena, limits=replace(arena.limits, together_loose=()))
    for region in _value_regions(arena, need):
        found = yield from search(inner.within(region), need)
        if found is None:
            continue
        if best is None or standing(arena, found.amounts) < standing(arena, best.amounts):
            best = Placing(found.amounts, proven=False)
    return best


def _value_regions(arena: Arena, need: int) -> Iterator[Flags]:
    """Yield the nodes of each combination of values with room enough, tightest first."""
    keys = np.stack(arena.limits.together_loose)
    _, codes = np.unique(keys, axis=1, return_inverse=True)
    codes = codes.reshape(-1)
    room = np.bincount(codes, np.where((keys >= 0).all(axis=0), arena.leaf, 0))
    fitting = np.flatnonzero(room >= need)
    for code in fitting[np.argsort(room[fitting], kind="stable")][:_VALUES_TRIED].tolist():
        yield codes == code


def _raising_spread(arena: Arena, need: int) -> Steps[Ints | None]:
    board, world = arena.board, arena.world
    limits = limits_of(world, board.topology, board.tree, arena.group, spread_caps=False)
    open_leaf = _spread_free_leaf(arena, limits)
    yield
    counted = [(s, s.codes[board.topology.order]) for s in limits.spreads]
    counts = count_up(board.tree, open_leaf, limits.cap_rules)
    level = arena.wish.required
    for domain in holding(board.tree, counts, level, need).tolist():
        low, high = board.tree.span(level, domain)
        inside = np.zeros_like(open_leaf)
        inside[low:high] = open_leaf[low:high]
        found = yield from place_one_by_one(inside, limits.cap_rules, counted, need)
        if found is not None:
            return found
    return None


def _spread_free_leaf(arena: Arena, limits: GroupLimits) -> Ints:
    """Capacities without the constraints that count the members: those are checked singly."""
    world, group = arena.world, arena.group
    unspread = replace(group.pod_class, spread=())
    open_feasibility = feasible_in(world, unspread, group.labels_id, arena.board.closed)
    mask = open_feasibility.mask
    for spread in spreads(world, group.pod_class, group.labels_id):
        mask = mask & (spread.keyed if spread.own else spread.mask())
    by_row = capacity(world.free, group.pod_class, mask, open_feasibility.devices)
    leaf = limits.clip(by_row[arena.board.topology.order])
    return leaf if arena.region is None else np.where(arena.region, leaf, 0)


def standing(arena: Arena, amounts: Ints) -> tuple[int, ...]:
    """Return a result's worth, the lower the better: domains used, the wished level first."""
    used = domains_used(arena.board.tree, amounts)
    first = max(arena.wish.preferred, arena.wish.required)
    return used if first == ROOT else (used[first], *used)
