"""Spare nodes: where a member may bind instead when its planned node becomes unfit.

A spare is room for one member on a node that the plan itself does not use and that no other
live plan keeps as a spare. Each place in such room serves one member. They are matched
level by level, from the narrowest domain outwards, all members at once::

    rack r1   members 0 1 2 3    places a b      0→a 1→b        2 3 go one level up
    rack r2   members 4 5        places c d e    4→c 5→d
    block b   members 2 3        places e        2→e            3 goes on, or has none

A spare must not break what the plan keeps: the required level, the slice, the value that
members share or must not share. Such rules set the widest level that is searched.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.rules.caps import aligned_level
from muster.placement.rules.interpodaffinity import codes_of
from muster.placement.search.arena import Arena
from muster.placement.tree import DomainTree, Ints

Spares = NDArray[np.int64]


def choose_spares(
    arenas: Sequence[Arena],
    members: Sequence[Ints],
    own: Ints,
    count: int,
) -> Steps[list[Spares]]:
    """Return, per group, int64[members, count] positions of spares, -1 where there is none.

    ``members[i]``: positions of the members of group i. ``own``: int64[positions], pods of
    the whole plan. Groups take from the same room, one after the other.
    """
    taken: dict[str, Ints] = {}
    result = []
    for arena, positions in zip(arenas, members, strict=True):
        spares = np.full((len(positions), count), -1, dtype=np.int64)
        widest = widest_level(arena)
        if widest is not None:
            room = yield from _room(arena, own, taken)
            for column in range(count):
                spares[:, column] = yield from match(arena.board.tree, positions, room, widest)
                used = spares[:, column][spares[:, column] >= 0]
                room[used] = 0  # a node serves one column, so no member gets it twice
            yield
            if arena is not arenas[-1]:
                yield from _take(arena, spares, taken)
        result.append(spares)
    return result


def _room(arena: Arena, own: Ints, taken: dict[str, Ints]) -> Steps[Ints]:
    """Return room for spares per position: not on the plan's own nodes, not in others' spares."""
    order = arena.board.topology.order
    leaf = arena.leaf if arena.quiet is None else arena.quiet
    room = np.where(own > 0, 0, leaf)
    for resource, amount in arena.group.pod_class.requests:
        if amount and resource in taken:
            free = arena.world.unreserved(resource)[order] - taken[resource]
            room = np.minimum(room, free // amount)
            yield
    found = np.maximum(room, 0)
    yield
    return found


def _take(arena: Arena, spares: Spares, taken: dict[str, Ints]) -> Steps[None]:
    size = arena.board.tree.size
    used = np.bincount(spares[spares >= 0], minlength=size)
    for resource, amount in arena.group.pod_class.requests:
        taken[resource] = taken.get(resource, np.zeros(size, dtype=np.int64)) + used * amount
        yield


def widest_level(arena: Arena) -> int | None:
    """Return the widest level at which a spare keeps every rule; ``None``: no spares at all."""
    tree, wish, group = arena.board.tree, arena.wish, arena.group
    widest = wish.required
    if wish.slice_size:
        widest = max(widest, wish.slice_level)
    attracted = {term.topology_key for term in group.pod_class.pod_affinity}
    constraints = {
        *attracted,
        *(term.topology_key for term in group.pod_class.pod_anti_affinity),
        *(c.topology_key for c in group.pod_class.spread),
    }
    for key in sorted(constraints):
        level = arena.board.topology.level_index(key)
        codes, _ = codes_of(arena.world.snapshot.nodes, key)
        found = aligned_level(tree, codes[arena.board.topology.order], level)
        if found is None:
            return None
        # To be kept off others on a node binds nothing: the spare's node is free of them.
        if found < tree.host or key in attracted:
            widest = max(widest, found)
    loose = any(cap_rule.level is None for cap_rule in arena.cap_rules)  # a budget nearly used up
    return None if loose else widest


def match(tree: DomainTree, positions: Ints, room: Ints, widest: int) -> Steps[Ints]:
    """Return one spare position per member, -1 for none: nearest domains first.

    ``positions``: int64[members]; ``room``: int64[positions], places to give away.
    """
    found = np.full(len(positions), -1, dtype=np.int64)
    order = np.argsort(positions, kind="stable")
    yield
    places = np.flatnonzero(room)
    left = room[places]
    yield
    for level in range(tree.host - 1, widest - 1, -1):
        waiting = order[found[order] < 0]
        if not len(waiting):
            break
        wanted, offered = tree.at(level, positions[waiting]), tree.at(level, places)
        yield
        index = _match_level(wanted, offered, left)
        yield
        given = index >= 0
        found[waiting[given]] = places[index[given]]
        left = left - np.bincount(index[given], minlength=len(left))
        yield
    return found


def _match_level(wanted: Ints, offered: Ints, left: Ints) -> Ints:
    """Give the i-th waiting member of a domain the domain's i-th free place.

    ``wanted``: domain of each waiting member; ``offered``: domain of each entry of
    ``left``; both ascending. Returns an index into ``left`` per member, -1 for none.
    """
    ends = np.cumsum(left)  # places are numbered through, domain after domain
    before = np.append(0, ends)
    firsts = np.flatnonzero(np.diff(wanted, prepend=-1))
    domains, members = wanted[firsts], np.diff(firsts, append=len(wanted))
    low = before[np.searchsorted(offered, domains, side="left")]
    room = before[np.searchsorted(offered, domains, side="right")] - low
    nth = np.arange(len(wanted)) - np.repeat(firsts, members)
    given = np.flatnonzero(nth < np.repeat(room, members))
    place = np.repeat(low, members)[given] + nth[given]
    index = np.full(len(wanted), -1, dtype=np.int64)
    index[given] = np.searchsorted(ends, place, side="right")
    return index
