"""Gangs of several groups (launcher and workers, parameter servers), kind by kind.

This is what is left where ``joint`` cannot search exactly: rules between the pods, or more
hosts than its budget lasts for. Candidate domains are tried in order, narrow levels first,
and within a level the one with the least room that could do. In a candidate every group is
placed one after the other, each near those before it; when one does not fit, the other order
of groups is tried, and then the next candidate. The outcome is whole or nothing.

::

    host ─► rack ─► block ─► … ─► required level, or the whole cluster
      │       │
      │       └── candidates: every group alone would fit, and so would the sum
      └── first order: largest share of the scarcest resource first; then the reverse

What is missing to exactness: the groups' shapes are not packed against each other inside
a host beyond "largest first". That a fit exists and is not found is therefore possible;
that a plan is partial or wrong is not.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.request import MemberGroup, TopologyWish
from muster.placement.rules.topologyspread import spreads
from muster.placement.search.arena import Arena, SearchBoard, arena, search
from muster.placement.search.fewestnewdomains import closest
from muster.placement.search.joint import Joint, Task, at_bound, search_joint
from muster.placement.search.nearplaced import near, near_whole, region_in, region_of
from muster.placement.search.scopes import all_holding
from muster.placement.tree import ROOT, Flags, Ints
from muster.placement.world import World

CANDIDATES_PER_LEVEL: Final = 256
"""Domains tried per level before the search goes one level up."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Several groups to place."""

    board: SearchBoard
    world: World
    wish: TopologyWish
    groups: tuple[MemberGroup, ...]
    #: How many members of each group are to be placed, along ``groups``.
    needs: tuple[int, ...]
    #: bool[positions], where they may go; ``None``: everywhere.
    region: Flags | None = None
    #: int64[positions], members of the gang that are already placed; ``None``: none are.
    anchors: Ints | None = None
    #: Whether the exact search is tried first.
    exact: bool = True


def arenas_in(task: Mixed) -> Steps[list[Arena]]:
    """Return the groups' arenas, confined to where they may go."""
    arenas = []
    for group in task.groups:
        made = yield from _arena(task.world, task, group)
        arenas.append(made)
    return arenas


def place_mixed(task: Mixed, arenas: Sequence[Arena] | None = None) -> Steps[Joint | None]:
    """Return every group placed whole, or ``None``. ``arenas``: of all groups, where known."""
    if arenas is None:
        arenas = yield from arenas_in(task)
    active = [i for i, need in enumerate(task.needs) if need]
    if not active:
        return Joint([np.zeros(task.board.tree.size, dtype=np.int64) for _ in arenas], proven=True)
    exact = Task([arenas[i] for i in active], tuple(task.needs[i] for i in active), task.wish)
    candidates = yield from candidate_domains(task, arenas)
    if task.exact:
        sought = yield from search_joint(exact, iter(candidates))
        if sought.joint is not None:
            return _among_all(task, active, sought.joint)
        if sought.exhausted:
            return None
    found = yield from _kind_by_kind(task, arenas, candidates)
    if found is None:
        return None
    proven = task.exact and exact.is_plain
    if proven:
        proven = yield from at_bound(exact, [found[i] for i in active])
    return Joint(found, proven)


def _among_all(task: Mixed, active: Sequence[int], joint: Joint) -> Joint:
    amounts = [np.zeros(task.board.tree.size, dtype=np.int64) for _ in task.groups]
    for i, found in zip(active, joint.amounts, strict=True):
        amounts[i] = found
    return Joint(amounts, joint.proven)


def _kind_by_kind(
    task: Mixed, arenas: Sequence[Arena], candidates: Sequence[tuple[int, int]]
) -> Steps[list[Ints] | None]:
    orders = yield from _orders(task, arenas)
    for level, domain in candidates:
        region = region_in(task.board.tree, level, domain)
        for order in orders:
            found = yield from _attempt(task, arenas, order, region)
            if found is not None:
                return found
        yield
    return None


def _arena(world: World, task: Mixed, group: MemberGroup) -> Steps[Arena]:
    made = yield from arena(world, task.board, group, task.wish.unsliced)
    return made if task.region is None else made.within(task.region)


def _orders(task: Mixed, arenas: Sequence[Arena]) -> Steps[list[list[int]]]:
    """Return the orders of groups to try: placeable at once and scarcest first.

    Groups with spread constraints come last: they see what the others count for.
    """
    active = [i for i, need in enumerate(task.needs) if need]
    share: dict[int, float] = {}
    for i in active:
        share[i] = yield from scarcity(arenas[i], task.needs[i])
    stuck = {i: not arenas[i].leaf.any() for i in active}
    spread = {i: bool(task.groups[i].pod_class.spread) for i in active}
    first = sorted(active, key=lambda i: (stuck[i], spread[i], -share[i], i))
    second = sorted(active, key=lambda i: (stuck[i], spread[i], share[i], i))
    return [first] if first == second else [first, second]


def scarcity(arena: Arena, need: int) -> Steps[float]:
    """Return the largest share of a resource's free amount that ``need`` members ask for."""
    shares = [0.0]
    for resource, amount in arena.group.pod_class.requests:
        free = np.maximum(arena.world.free(resource)[arena.feasibility.suitable], 0).sum()
        shares.append(amount * need / float(free) if free else 0.0)
        yield
    return max(shares)


def _attempt(
    task: Mixed, arenas: Sequence[Arena], order: Sequence[int], region: Flags
) -> Steps[list[Ints] | None]:
    """Place the groups one after the other inside ``region``."""
    size = task.board.tree.size
    found = [np.zeros(size, dtype=np.int64) for _ in task.groups]
    anchors = np.zeros(size, dtype=np.int64) if task.anchors is None else task.anchors
    world = task.world
    for i in order:
        here = arenas[i]
        if world is not task.world:
            made = yield from _arena(world, task, task.groups[i])
            here = made if here.region is None else made.within(here.region)
        here = here.within(region)
        yield
        if anchors.any():
            amounts = yield from near_whole(here, anchors, task.needs[i])
        else:
            placing = yield from search(here, task.needs[i])
            amounts = None if placing is None else placing.amounts
        if amounts is None:
            return None
        found[i], anchors = amounts, anchors + amounts
        world = put(world, task.board, task.groups[i], amounts)
        yield
    return found if settled(world) else None


def settled(world: World) -> bool:
    """Return whether every spread constraint holds when all that is put down is bound.

    A pod that was placed before others of its count may have been within the skew only
    then; bound after them it would wait for ever. When the final counts keep the skew,
    every order of binding ends well: the emptiest values can always go on.
    """
    for placed in world.placed:
        for spread in spreads(world, placed.pod_class, placed.labels_id):
            used = np.unique(spread.codes[placed.amounts > 0])
            skew = spread.counts[used] - spread.minimum()
            if (skew > spread.constraint.max_skew).any():
                return False
    return True


def put(world: World, board: SearchBoard, group: MemberGroup, amounts: Ints) -> World:
    """Return the world with members of a group put down at positions."""
    by_row = board.rows(amounts, world.snapshot.nodes.count)
    return world.put(group.pod_class, group.labels_id, by_row)


def lightest_first(task: Mixed) -> Steps[list[int]]:
    """Return the groups by what one member asks for, the least first."""
    weights = []
    for group in task.groups:
        here = yield from _arena(task.world, task, group)
        weight = yield from scarcity(here, 1)
        weights.append(weight)
    return sorted(range(len(weights)), key=weights.__getitem__)


def add_near(task: Mixed, found: Sequence[Ints], anchors: Ints) -> Steps[list[Ints]]:
    """Add up to ``needs`` members of each group around what is already there.

    Who asks for least goes first, so that as many as can be find room. ``found``: what this plan
    has put down of each group; the result includes it.
    """
    world = task.world
    for group, amounts in zip(task.groups, found, strict=True):
        if amounts.any():
            world = put(world, task.board, group, amounts)
    result = list(found)
    order = yield from lightest_first(task)
    for i in order:
        group, need, around = task.groups[i], task.needs[i], anchors + sum(result)
        if not need or not around.any():
            continue
        here = yield from _arena(world, task, group)
        added = yield from near(here, around, need)
        grown = put(world, task.board, group, added)
        if settled(grown):
            result[i], world = result[i] + added, grown
    return result


def place_anchored(task: Mixed) -> Steps[Joint | None]:
    """As ``place_mixed``, around the anchors and in the required domain they fix, if any."""
    if task.anchors is None or not task.anchors.any():
        return (yield from place_mixed(task))
    arenas = []
    for group in task.groups:
        made = yield from _arena(task.world, task, group)
        arenas.append(made)
    region = region_of(arenas[0].board.tree, task.wish.required, task.anchors)
    found: Sequence[Ints] | None = None
    orders = yield from _orders(task, arenas)
    for order in orders:
        found = yield from _attempt(task, arenas, order, region)
        if found is not None:
            break
    here = [made.within(region) for made in arenas]
    found = yield from closest(here, task.needs, found, task.anchors)
    return None if found is None else Joint(list(found), proven=False)


# --- candidate domains ------------------------------------------------------------------


def candidate_domains(task: Mixed, arenas: Sequence[Arena]) -> Steps[list[tuple[int, int]]]:
    """Return (level, domain) in the order they are to be tried.

    Groups that fit nowhere *yet* (they wait for an affinity to another group) are left
    out of the counting.
    """
    tree = task.board.tree
    counts: list[list[Ints]] = []
    needs: list[int] = []
    for each, need in zip(arenas, task.needs, strict=True):
        if need and each.leaf.any():
            counts.append(each.counts())
            needs.append(need)
            yield
    if not counts:
        return []
    enough = yield from enough_in_all(task)
    floor = max(task.wish.required, task.wish.preferred, 0)
    found: list[tuple[int, int]] = []
    for level in (*range(tree.host, floor - 1, -1), *range(floor - 1, task.wish.required - 1, -1)):
        domains = all_holding(tree, counts, needs, level)
        domains = domains[enough[level][domains]]
        yield
        keys = [each[level] for each in counts]
        found += ((level, domain) for domain in tightest(keys, domains).tolist())
        yield
    return found


def tightest(keys: Sequence[Ints], domains: Ints) -> Ints:
    """Return the first ``CANDIDATES_PER_LEVEL`` domains by their keys, then in tree order.

    Key by key only those at the bar are looked at further, so that a hundred thousand
    domains are not sorted for the sake of the first few.
    """
    left, sure, tied = CANDIDATES_PER_LEVEL, [domains[:0]], domains
    for key in keys:
        if len(tied) <= left:
            break
        values = key[tied]
        bar = np.partition(values, left - 1)[left - 1]
        sure.append(tied[values < bar])
        left -= len(sure[-1])
        tied = tied[values == bar]
    found = np.sort(np.concatenate([*sure, tied[:left]]))
    tightest: Ints = found[np.lexsort([key[found] for key in reversed(keys)])]
    return tightest


def enough_in_all(task: Mixed) -> Steps[list[Flags]]:
    """Return, per level, bool[domains]: those that have what all groups together ask for.

    Of every resource. The last entry is the root's, as in ``caps.count_up``.
    """
    tree = task.board.tree
    asked: Counter[str] = Counter()
    for group, need in zip(task.groups, task.needs, strict=True):
        asked.update({name: amount * need for name, amount in group.pod_class.requests})
    enough = [
        np.ones(tree.domains(level), dtype=np.bool_) for level in (*range(tree.host + 1), ROOT)
    ]
    for resource, amount in sorted(asked.items()):
        if not amount:
            continue
        sums = np.maximum(task.world.free(resource), 0)[task.board.topology.order]
        yield
        for level in range(tree.host, ROOT - 1, -1):
            sums = sums if level == tree.host else tree.sums(sums, level, level + 1)
            enough[level] &= sums >= amount
        yield
    return enough
