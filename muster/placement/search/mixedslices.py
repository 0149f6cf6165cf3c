"""Gangs in slices of several kinds, or beside members that have a place: exactly, else in turn.

::

    exact search ─► best, or proven: none
          │ too large, or rules between pods
          ▼
    slice after slice, each inside one domain of its level: those first that have members
    placed already (their domain is fixed), then the others, then the members in no slice;
    near the gang, in the narrowest circle that holds them

A slice that has members placed already has a *home* on every layer: the domain that most of
these are in. The second way is sound, not exact.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.exact.slicekinds import Homes, pack
from muster.placement.request import TopologyWish
from muster.placement.search.arena import Arena
from muster.placement.search.dealing import deal
from muster.placement.search.joint import Joint, Sought, Task, search_joint
from muster.placement.search.nearplaced import circle, region_in, region_of
from muster.placement.search.scopes import labelled_only
from muster.placement.search.severalgroups import (
    Mixed,
    arenas_in,
    candidate_domains,
    enough_in_all,
    place_anchored,
    place_mixed,
    put,
    settled,
)
from muster.placement.search.sliceorder import SliceUnit
from muster.placement.tree import ROOT, DomainTree, Flags, Ints


def homes_of(
    tree: DomainTree, wish: TopologyWish, numbers: Sequence[Ints], positions: Ints
) -> list[dict[int, int]]:
    """Return, per layer of slices, the home of each slice that has members placed.

    ``numbers``: per layer int64[placed], the slice of each; ``positions``: where they are.
    """
    homes = []
    for (level, _), each in zip(wish.slices, numbers, strict=True):
        domains = tree.at(level, positions)
        found = {}
        for number in np.unique(each).tolist():
            found[number] = int(np.argmax(np.bincount(domains[each == number])))
        homes.append(found)
    return homes


def place_slices_exactly(
    task: Mixed,
    arenas: Sequence[Arena],
    numbers: Sequence[Ints],
    kinds: Ints,
    homes: Sequence[Homes] = (),
) -> Steps[tuple[Ints | None, bool]]:
    """Return a position per member in rank order, and whether that was the whole search.

    ``arenas``: of each group, for the gang's whole wish. ``numbers``: per layer of slices, the
    slice of each member in rank order; ``kinds``: int64[members], the group of each.
    """
    packing = pack(task.wish.slices, numbers, kinds, len(task.needs), homes)
    if packing is None:
        return None, False
    tree, found = task.board.tree, Sought(None, exhausted=False)
    if task.anchors is None:
        candidates = yield from candidate_domains(task, arenas)
        exact = Task(arenas, task.needs, task.wish, packing.layers)
        found = yield from search_joint(exact, iter(candidates))
    else:
        for level in range(ROOT, tree.host + 1):
            here = _around(task, arenas, level, task.anchors)
            exact = Task(here, task.needs, task.wish, packing.layers, task.anchors)
            sought = yield from search_joint(exact, ())
            found = sought if level == ROOT or sought.joint is not None else found
            if found.joint is not None or found.exhausted:
                break
    if found.joint is None:
        return None, found.exhausted
    yield
    return deal(tree, packing, found.joint.shares), found.joint.proven


def _around(task: Mixed, arenas: Sequence[Arena], level: int, anchors: Ints) -> list[Arena]:
    """Confine arenas to the required domain, and there to the domains of a level that hold members.

    What opens no domain of a level is as near as can be, so where the whole cluster is too large
    for an exact search a smaller circle does.
    """
    tree = task.board.tree
    inside = region_of(tree, task.wish.required, anchors) & circle(tree, level, anchors)
    return [each.within(inside) for each in arenas]


def place_in_turn(
    task: Mixed, units: Sequence[SliceUnit], homes: Sequence[Homes]
) -> Steps[list[Ints] | None]:
    """Place slices and members in no slice one after the other, whole or not at all.

    ``homes``: per layer, of the slices that have one. Returns one position per member of each
    group.
    """
    scopes = yield from _scopes(task)
    orders = list(_orders(units, homes[-1] if homes else {}))
    for region in scopes:
        for order in orders:
            found = yield from _fill(replace(task, region=region), order, homes)
            if found is not None:
                return found
    return None


def _orders(units: Sequence[SliceUnit], homes: Homes) -> Iterator[list[SliceUnit]]:
    """Yield the orders to try: what is bound to a home first, members in no slice last or first."""

    def bound(unit: SliceUnit) -> bool:
        return not unit.is_loose and unit.numbers[-1] in homes

    yield sorted(units, key=lambda unit: (not bound(unit), unit.is_loose))
    if any(unit.is_loose for unit in units):
        yield sorted(units, key=lambda unit: (not bound(unit), not unit.is_loose))


def _scopes(task: Mixed) -> Steps[list[Flags]]:
    """Return where all may go: the required domain of those placed, else each that has room."""
    tree, level = task.board.tree, task.wish.required
    labelled = labelled_only(tree, task.wish)
    inside = np.ones(tree.size, dtype=np.bool_) if labelled is None else labelled
    if task.anchors is not None:
        return [inside & region_of(tree, level, task.anchors)]
    if level == ROOT:
        return [inside]
    enough = yield from enough_in_all(task)
    domains = np.flatnonzero(tree.labelled[level] & enough[level])
    return [inside & region_in(tree, level, domain) for domain in domains.tolist()]


def _fill(
    task: Mixed, units: Sequence[SliceUnit], homes: Sequence[Homes]
) -> Steps[list[Ints] | None]:
    tree = task.board.tree
    places = [np.full(need, -1, dtype=np.int64) for need in task.needs]
    known = [dict(each) for each in homes] or [{} for _ in task.wish.slices]
    near = np.zeros(tree.size, dtype=np.int64) if task.anchors is None else task.anchors
    world = task.world
    for unit in units:
        needs = tuple(map(len, unit.members))
        # A gang that is placed anew has no place yet that a free slice should be near.
        around = near if task.anchors is not None or unit.is_loose else None
        part = replace(task, world=world, needs=needs, anchors=around, exact=False)
        found = yield from _place_unit(part, unit, known)
        if found is None:
            return None
        for i, amounts in enumerate(found.amounts):
            places[i][unit.members[i]] = np.repeat(np.arange(tree.size), amounts)
            world = put(world, task.board, task.groups[i], amounts)
            near = near + amounts
        if not unit.is_loose:
            first = np.flatnonzero(np.sum(found.amounts, axis=0))[:1]
            for (level, _), number, home in zip(task.wish.slices, unit.numbers, known, strict=True):
                home.setdefault(number, int(tree.at(level, first)[0]))
    return places if settled(world) else None


def _place_unit(
    task: Mixed, unit: SliceUnit, homes: Sequence[Mapping[int, int]]
) -> Steps[Joint | None]:
    """Place one slice, or one member in no slice, near the gang."""
    tree, region, is_free = task.board.tree, task.region, not unit.is_loose
    if not unit.is_loose:
        for (level, _), number, home in zip(task.wish.slices, unit.numbers, homes, strict=True):
            if number in home:
                inside = region_in(tree, level, home[number])
                region = inside if region is None else region & inside
                is_free = level != task.wish.slice_level
    anywhere = replace(task, wish=TopologyWish(), region=region)
    if not is_free:
        return (yield from place_anchored(anywhere))
    wish = TopologyWish(required=task.wish.slice_level)
    free = replace(task, wish=wish, region=region, anchors=None)
    if task.anchors is None:
        return (yield from place_mixed(free))
    arenas = yield from arenas_in(free)
    for level in range(tree.host, ROOT - 1, -1):
        around = circle(tree, level, task.anchors)
        here = [each.within(around) for each in arenas]
        found = yield from place_mixed(free, here) if around.any() else _nothing()
        if found is not None:
            return found
    return None


def _nothing() -> Steps[None]:
    yield from ()
