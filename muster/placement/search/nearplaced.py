"""Near the members that are already placed: repair, late members, members above the minimum.

Widening circles around the *anchors* (positions of placed members)::

    same hosts ─► same racks ─► same blocks ─► … ─► the whole required domain

Each circle takes as many as it has room for, on as few domains as can be. With a required
level, the domain that most anchors lie in is fixed and nothing goes elsewhere.

Members that take the place of lost ones first look at the rack of their *neighbour*, the
placed member next in rank, each at its own: that is where the lost one was.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.rules.caps import trim
from muster.placement.search.arena import Arena, search
from muster.placement.search.scopes import descend
from muster.placement.tree import ROOT, DomainTree, Flags, Ints

_RACKS = 64
"""Racks of neighbours that are looked at one by one; more were lost than a repair can mend."""


def region_of(tree: DomainTree, level: int, anchors: Ints) -> Flags:
    """Return bool[positions]: the domain of ``level`` in which most ``anchors`` lie.

    ``anchors``: int64[positions], placed members per node. ``ROOT`` is everywhere.
    """
    if level == ROOT:
        return np.ones(tree.size, dtype=np.bool_)
    domain = int(np.argmax(tree.sums(anchors, level, tree.host)))
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
        circle = _circle(arena, level, anchors + total if centre is None else centre)
        yield
        room = trim(np.where(circle, arena.leaf, 0), arena.cap_rules)
        take = min(need, most, int(room.sum()))
        yield
        if take:
            added = yield from descend(tree, room, 0, take)
            arena, total, need = arena.after(added), total + added, need - take
            yield
    return total


def _circles(
    tree: DomainTree, anchors: Ints, neighbours: Ints | None
) -> Iterator[tuple[int, Ints | None, int]]:
    """Yield every circle in the order of looking: level, centre, most that it may take.

    The centre ``None`` is the anchors and all that was put down since.
    """
    level = tree.host - 1
    if neighbours is not None and level > ROOT:
        racks = tree.at(level, neighbours)
        _, firsts, counts = np.unique(racks, return_index=True, return_counts=True)
        for first, count in list(zip(firsts.tolist(), counts.tolist(), strict=True))[:_RACKS]:
            centre = np.bincount(neighbours[first : first + 1], minlength=len(anchors))
            yield level, centre, count
    for each in range(tree.host, ROOT - 1, -1):
        yield each, None, int(np.iinfo(np.int64).max)


def _circle(arena: Arena, level: int, anchors: Ints) -> Flags:
    """Return bool[positions]: the domains of ``level`` that hold an anchor."""
    tree = arena.board.tree
    if level == ROOT:
        return np.ones(tree.size, dtype=np.bool_)
    held = tree.sums(anchors, level, tree.host) > 0
    circle: Flags = held[tree.owner(level, tree.host)]
    return circle


def near_whole(arena: Arena, anchors: Ints, need: int) -> Steps[Ints | None]:
    """As ``near``, all of ``need`` or ``None``; looks further where circles leave no room."""
    found = yield from near(arena, anchors, need)
    if int(found.sum()) == need:
        return found
    region = region_of(arena.board.tree, arena.wish.required, anchors)
    whole = yield from search(arena.within(region), need)
    return None if whole is None else whole.amounts


def near_slices(
    arena: Arena, anchors: Ints, peers: NDArray[np.int64], wanted: NDArray[np.int64]
) -> Steps[Ints]:
    """Return one position per wanted member, -1 where its slice has no room.

    ``peers``: int64[placed, 2], place in rank order and position of every placed member.
    ``wanted``: int64[members], place in rank order of each member to place, ascending. A
    member goes to the slice domain of its peers, on every layer of slices; a slice without
    any gets a domain of its own choice inside the wider one, or the required one.
    """
    tree, wish = arena.board.tree, arena.wish
    arena = arena.within(region_of(arena.board.tree, wish.required, anchors))
    narrow = max(wish.slice_level, wish.required)
    flat = replace(arena, wish=replace(wish, slice_size=0, wider=(), required=narrow))
    positions = np.full(len(wanted), -1, dtype=np.int64)
    for number in np.unique(wanted // wish.slice_size).tolist():
        mine = np.flatnonzero(wanted // wish.slice_size == number)
        local = flat
        for level, size in wish.slices:
            same = peers[:, 0] // size == number * wish.slice_size // size
            if same.any():
                mates = np.bincount(peers[same, 1], minlength=tree.size)
                local = local.within(region_of(tree, level, mates))
        found = yield from search(local, len(mine))
        if found is not None:
            positions[mine] = np.repeat(np.arange(tree.size), found.amounts)
            flat = flat.after(found.amounts)
            added = np.stack([wanted[mine], positions[mine]], axis=1)
            peers = np.concatenate([peers, added])
    return positions
