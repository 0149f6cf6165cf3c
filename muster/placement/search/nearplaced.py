"""Near the members that are already placed: repair, late members, members above the minimum.

Widening circles around the *anchors* (positions of placed members)::

    same hosts ─► same racks ─► same blocks ─► … ─► the whole required domain

Each circle takes as many as it has room for, on as few domains as can be. With a required
level, the domain that most anchors lie in is fixed and nothing goes elsewhere.

Members that take the place of lost ones look at the host and the rack of their *neighbour*, the
placed member next in rank, each at its own: that is where the lost one was. Hosts of the gang come
first, those of the neighbours before the others; then the neighbours' racks; then all racks.
"""

from collections.abc import Iterator

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.rules.caps import trim
from muster.placement.search.arena import Arena, search
from muster.placement.search.scopes import descend
from muster.placement.tree import ROOT, DomainTree, Flags, Ints

_MOST = 64
"""Hosts and racks of neighbours that are looked at one by one; beyond, all that hold members."""


def region_of(tree: DomainTree, level: int, anchors: Ints) -> Flags:
    """Return bool[positions]: the domain of ``level`` in which most ``anchors`` lie.

    ``anchors``: int64[positions], placed members per node. ``ROOT`` is everywhere.
    """
    if level == ROOT:
        return np.ones(tree.size, dtype=np.bool_)
    return region_in(tree, level, int(np.argmax(tree.sums(anchors, level, tree.host))))


def region_in(tree: DomainTree, level: int, domain: int) -> Flags:
    """Return bool[positions]: one domain of a level."""
    low, high = tree.span(level, domain)
    inside = np.zeros(tree.size, dtype=np.bool_)
    inside[low:high] = True
    return inside


def near(arena: Arena, anchors: Ints, need: int, neighbours: Ints | None = None) -> Steps[Ints]:
    """Return amounts per position for up to ``need`` members around ``anchors``.

    ``neighbours``: int64[members], the position of the anchor next in rank to each member.
    """
    arena = arena.within(region_of(arena.board.tree, arena.wish.required, anchors))
    yield
    total = np.zeros_like(arena.leaf)
    tree = arena.board.tree
    for level, centre, most in _circles(tree, anchors, neighbours):
        if not need:
            break
        inside = circle(tree, level, anchors + total) if centre is None else centre
        yield
        room = trim(np.where(inside, arena.leaf, 0), arena.cap_rules)
        take = min(need, most, int(room.sum()))
        yield
        if take:
            # Domains of the circle's own level hold members already: what counts is inside them.
            added = yield from descend(tree, room, level + 1, take)
            arena, total, need = arena.after(added), total + added, need - take
            yield
    return total


def _circles(
    tree: DomainTree, anchors: Ints, neighbours: Ints | None
) -> Iterator[tuple[int, Flags | None, int]]:
    """Yield every circle in the order of looking: level, positions, most that it may take.

    No positions: those of the domains of the level that hold an anchor or what was put down
    since.
    """
    everything = int(np.iinfo(np.int64).max)
    held, rack = anchors > 0, tree.host - 1
    if neighbours is not None:
        for inside, count in _around(tree, tree.host, neighbours):
            yield tree.host, inside & held, count
        for inside, count in _around(tree, rack, neighbours) if rack > ROOT else ():
            yield tree.host, inside & held, count
    yield tree.host, None, everything
    if neighbours is not None and rack > ROOT:
        for inside, count in _around(tree, rack, neighbours):
            yield rack, inside, count
    for level in range(rack, ROOT - 1, -1):
        yield level, None, everything


def _around(tree: DomainTree, level: int, neighbours: Ints) -> Iterator[tuple[Flags, int]]:
    """Yield the domains of a level that hold neighbours, and the members that each is next to."""
    domains, counts = np.unique(tree.at(level, neighbours), return_counts=True)
    for domain, count in list(zip(domains.tolist(), counts.tolist(), strict=True))[:_MOST]:
        yield region_in(tree, level, domain), count


def circle(tree: DomainTree, level: int, anchors: Ints) -> Flags:
    """Return bool[positions]: the domains of ``level`` that hold an anchor."""
    if level == ROOT:
        return np.ones(tree.size, dtype=np.bool_)
    held = tree.sums(anchors, level, tree.host) > 0
    inside: Flags = held[tree.owner(level, tree.host)]
    return inside


def near_whole(arena: Arena, anchors: Ints, need: int) -> Steps[Ints | None]:
    """As ``near``, all of ``need`` or ``None``; looks further where circles leave no room."""
    found = yield from near(arena, anchors, need)
    if int(found.sum()) == need:
        return found
    region = region_of(arena.board.tree, arena.wish.required, anchors)
    whole = yield from search(arena.within(region), need)
    return None if whole is None else whole.amounts
