"""A gang in slices, beside its placed members or of several kinds: who goes, and where.

All members go where that fits. Else the mandatory ones go, and of the others whole slices only:
where the domain of a slice that was begun is full, the rest of the slice can never follow::

    minimum 3, slices of 2, room for 5      master, workers 0 1 2 3 4 5
    mandatory                               master, workers 0 1
    with as many whole slices as fit        master, workers 0 1 2 3
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.placement.places import Assigned, PlacedMembers, joined
from muster.placement.ranks.sliceplaces import are_doubtful
from muster.placement.request import GangRequest, MemberGroup, Rows
from muster.placement.search.arena import Arena
from muster.placement.search.mixedslices import homes_of, place_in_turn, place_slices_exactly
from muster.placement.search.severalgroups import Mixed, scarcity
from muster.placement.search.sliceorder import SliceOrder
from muster.placement.tree import Flags, Ints, domains_used

_GREEDY_TRIES: Final = 3
"""Numbers of slices of one kind that are tried where the gang is too large for an exact search."""

_MOST_LOOKS: Final = 8
"""Kinds of slices beyond the minimum that are tried one after the other."""


def assign_slices(
    snapshot: Snapshot, arenas: Sequence[Arena], request: GangRequest, placed: PlacedMembers
) -> Steps[Assigned | None]:
    """Return places for at least the mandatory members of a gang in slices.

    Where the members' numbers are in doubt, the best of the ways to make slices of them is taken:
    the one that places most, and of those the one that opens the fewest domains.
    """
    if not are_doubtful(snapshot, request.spec):
        order = SliceOrder.of(snapshot, request, placed.rows)
        return (yield from SlicedGang(arenas, request, placed, order).assign())
    tree, nodes = arenas[0].board.tree, snapshot.nodes.count
    room = arenas[0].board.rows(np.maximum.reduce([each.leaf for each in arenas]), nodes)
    best: Assigned | None = None
    least: tuple[int, ...] = ()
    for order in SliceOrder.ways(snapshot, request, placed.rows, room):
        found = yield from SlicedGang(arenas, request, placed, order).assign()
        if found is None:
            continue
        amounts = np.bincount(found.positions, minlength=tree.size)
        new = domains_used(tree, placed.amounts + amounts)
        cost = (-len(found.pods), *(new[level] for level in request.wish.order(tree.host)))
        if best is None or cost < least:
            best, least = found, cost
        if len(found.pods) == len(request.members) and new == domains_used(tree, placed.amounts):
            break
    return best


class SlicedGang:
    """One gang and what is known of its slices."""

    def __init__(
        self,
        arenas: Sequence[Arena],
        request: GangRequest,
        placed: PlacedMembers,
        order: SliceOrder,
    ) -> None:
        """``arenas``: one per group of the request, in one world. ``order``: who is in which."""
        self._arenas, self._request = arenas, request
        #: Whether the last search was exact: one slice after the other takes far longer.
        self._was_exact = True
        groups = [each.group for each in arenas]
        #: int32, pod rows in rank order.
        self._members = request.members[np.isin(request.members, _rows(groups))]
        self._order = order
        everyone, widest = request.members, self._order.numbers(request.members)[0]
        inside = np.isin(everyone, self._members)
        #: bool[members]: of a slice in which no member is larger than any node.
        self._is_whole = ~np.isin(widest, widest[~inside])[inside]
        self._anchors = placed.amounts if len(placed.rows) else None
        sliced = self._order.sliced(placed.rows)
        numbers = self._order.numbers(placed.rows[sliced])
        tree = arenas[0].board.tree
        self._homes = homes_of(tree, request.wish, numbers, placed.positions[sliced])

    def assign(self) -> Steps[Assigned | None]:
        """Return places for at least the mandatory members."""
        groups = [each.group for each in self._arenas]
        must = np.isin(self._members, _rows(groups, mandatory=True))
        everyone = must | self._is_whole
        found = yield from self._attempt(everyone)
        if found is not None or must.all():
            return found
        if must.any():
            found = yield from self._attempt(must)
            if found is None:
                return None
        wholes = yield from self._wholes(must)
        for alike in wholes:
            more, must = yield from self._most(must, alike)
            found = found if more is None else more
        return found

    def _wholes(self, must: Flags) -> Steps[list[list[Flags]]]:
        """Return what may be added to the mandatory members: bool[members] each, alike together.

        The rest of slices that these begin comes first, then what asks for least.
        """
        widest, kinds = self._order.numbers(self._members)[0], self._kinds(self._members)
        weights = np.zeros(len(self._arenas))
        for number, each in enumerate(self._arenas):
            weights[number] = yield from scarcity(each, 1)
        begun = set(widest[must].tolist())
        alike: dict[tuple[object, ...], list[Flags]] = {}
        for number in dict.fromkeys(widest[self._is_whole & ~must].tolist()):
            flags = (widest == number) & ~must
            mine = kinds[flags]
            home = self._homes[0].get(number)
            look = (number not in begun, float(weights[mine].mean()), home, *sorted(mine.tolist()))
            alike.setdefault(look, []).append(flags)
        first = sorted(alike, key=lambda look: look[:2])
        return [alike[look] for look in first[:_MOST_LOOKS]]

    def _most(self, chosen: Flags, more: Sequence[Flags]) -> Steps[tuple[Assigned | None, Flags]]:
        """Add as many of ``more`` to the chosen members as fit, the first ones; bisecting."""
        best: tuple[Assigned | None, Flags] = None, chosen
        low, high = 0, len(more)
        trial, tries = high, 0
        while low < high and (self._was_exact or tries < _GREEDY_TRIES):
            tries += 1
            flags = chosen | np.logical_or.reduce(more[:trial])
            found = yield from self._attempt(flags)
            if found is None:
                high = trial - 1
            else:
                low, best = trial, (found, flags)
            trial = (low + high + 1) // 2
        return best

    def _kinds(self, rows: Rows) -> Ints:
        """Return the group of each member, by number; -1: none."""
        kinds = np.full(len(rows), -1, dtype=np.int64)
        for number, each in enumerate(self._arenas):
            kinds[np.isin(rows, each.group.rows)] = number
        return kinds

    def _attempt(self, flags: Flags) -> Steps[Assigned | None]:
        """Place some of the members, all of these or none."""
        rows = self._members[flags]
        kinds = self._kinds(rows)
        used = np.unique(kinds)
        arenas = [
            replace(arena, group=replace(arena.group, rows=rows[kinds == number]))
            for number, arena in enumerate(self._arenas)
            if number in used
        ]
        groups = tuple(each.group for each in arenas)
        board, world = arenas[0].board, arenas[0].world
        needs = tuple(len(group.rows) for group in groups)
        task = Mixed(board, world, self._request.wish, groups, needs, anchors=self._anchors)
        numbers = self._order.numbers(rows)
        kinds = np.searchsorted(used, kinds)
        places, whole = yield from place_slices_exactly(task, arenas, numbers, kinds, self._homes)
        self._was_exact = places is not None or whole
        if self._was_exact:
            proven = whole and self._anchors is None  # else the new domains are fewest, not all
            return None if places is None else Assigned(rows, places, proven)
        units = self._order.units([group.rows for group in groups])
        found = yield from place_in_turn(task, units, self._homes)
        if found is None:
            return None
        return joined([Assigned(g.rows, p) for g, p in zip(groups, found, strict=True)])


def _rows(groups: Sequence[MemberGroup], *, mandatory: bool = False) -> Rows:
    """Return int32, the members of all groups, or the mandatory ones of them."""
    return np.concatenate([g.rows[: g.mandatory] if mandatory else g.rows for g in groups])
