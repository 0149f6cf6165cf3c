"""Places in slices where no number says them: members without one, or with one that comes twice.

Jobs of one gang that count from 0 each have numbers that come twice. Such members may be in any
slice that is in one domain. Who stands in a domain fills slices of that domain, and what these lack
is open::

    slices of 2     rack r1: a b c      rack r2: d      waiting: e f
    places          a 0, b 1, c 2       d 4             open: 3 in r1, 5 in r2

Which waiting member gets which open place is free, and so is whether it begins a slice as long as
the gang may have one more. So there are several *ways*, tried in turn.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.specs.gangspec import GangSpec
from muster.placement.tree import Ints

MOST_WAYS: Final = 24
"""Ways that are tried for one gang."""

_FEW: Final = 12
"""Waiting members for which more than the first way is looked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """The layers of slices, widest first."""

    #: Members of a slice of each layer.
    sizes: tuple[int, ...]
    #: Per layer, the domain of every node row.
    domains: tuple[NDArray[np.int32], ...]


@dataclass(frozen=True, slots=True)
class _Slice:
    """A slice with open places, of the layer inside."""

    places: tuple[int, ...]
    #: How many members its domain has room for, as far as known.
    room: int
    is_new: bool


def doubtful(spec: GangSpec, numbers: Ints) -> bool:
    """Return whether some member has no number, or one that another one has, too.

    A role with parts counts members beyond those that it is known to have with its last ones
    (``gangspec.number``): there a number that comes twice says where they belong.
    """
    is_twice = not spec.numbered_roles and len(np.unique(numbers)) < len(numbers)
    return is_twice or bool((numbers < 0).any())


def in_turn(spec: GangSpec, numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the order of members by number; those with a number that comes twice Job by Job.

    Of Jobs that count from 0 each, one goes after the other::

        numbers  0 1 2 0 1 2   ►   0 1 2   0 1 2        not 0 0 1 1 2 2
    """
    order = np.argsort(numbers, kind="stable")
    if spec.numbered_roles:
        return order
    along = numbers[order]
    times = np.arange(len(along)) - np.searchsorted(along, along, side="left")
    return order[np.lexsort((along, np.where(along < 0, 0, times)))]


def standing_places(layers: Layers, nodes: Ints) -> Ints:
    """Return the place of each member that stands on a node, by its domains.

    ``nodes``: int64[members], node rows.
    """
    paths = np.stack([domains[nodes] for domains in layers.domains])
    places = np.zeros(len(nodes), dtype=np.int64)
    at, before = 0, None
    for each in np.lexsort(paths[::-1]).tolist():
        path = paths[:, each]
        if before is not None:
            left = np.flatnonzero(path != before)
            at = _up(at, layers.sizes[int(left[0])] if len(left) else 1)
        places[each], before = at, path
        at += 1
    return places


def ways(
    layers: Layers, nodes: Ints, kinds: Sequence[object], size: int, room: Ints | None
) -> Iterator[Ints]:
    """Yield int64[members], places of all members: those who stand, then those who wait.

    ``nodes``: node rows of those who stand. ``kinds``: of each that waits, what it is like.
    ``size``: members of the whole gang that are in slices. ``room``: int64 by node row, members
    that it could take.
    """
    standing = standing_places(layers, nodes)
    open_ones = _Open.of(layers, nodes, standing, len(kinds), size, room)
    for chosen in islice(open_ones.fillings(kinds), MOST_WAYS):
        left = [list(each.places) for each in open_ones.slices]
        waiting = [left[number].pop(0) for number in chosen]
        yield np.concatenate([standing, np.array(waiting, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class _Open:
    """The slices with open places: begun ones first, with most room, then new ones."""

    slices: tuple[_Slice, ...]
    #: New slices that the gang may begin.
    most_new: int

    @classmethod
    def of(
        cls,
        layers: Layers,
        nodes: Ints,
        standing: Ints,
        waiting: int,
        size: int,
        room: Ints | None,
    ) -> "_Open":
        """Return what is open where some members stand and others wait."""
        inside, widest = layers.sizes[-1], layers.sizes[0]
        top = _up(int(standing.max(initial=-1)) + 1, widest)
        node_of = np.full(top, -1, dtype=np.int64)
        node_of[standing] = nodes
        begun: list[_Slice] = []
        new: list[_Slice] = []
        for first in range(0, top, inside):
            those = node_of[first : first + inside]
            places = tuple((first + np.flatnonzero(those < 0)).tolist())
            if len(places) == inside:
                new.append(_Slice(places, inside, is_new=True))
            elif places:
                there = _room(layers, room, int(those.max()))
                begun.append(_Slice(places, min(there, len(places)), is_new=False))
        begun.sort(key=lambda each: -each.room)
        needed = -(-(waiting - sum(len(each.places) for each in begun)) // inside)
        most_new = max(needed, -(-size // inside) - (top // inside - len(new)), 0)
        beyond = max(-(-size // widest) - top // widest, 0) * (widest // inside)
        more = max(needed - len(new), min(most_new, beyond), 0)
        firsts = range(top, top + more * inside, inside)
        fresh = (_Slice(tuple(range(f, f + inside)), inside, is_new=True) for f in firsts)
        return cls((*begun, *new, *fresh), most_new)

    def fillings(self, kinds: Sequence[object]) -> Iterator[tuple[int, ...]]:
        """Yield which slice each waiting member goes to, the first ones with room first."""
        room = [each.room for each in self.slices]
        if sum(room) < len(kinds):
            room = [len(each.places) for each in self.slices]
        if len(kinds) > _FEW:
            every = (number for number, most in enumerate(room) for _ in range(most))
            yield tuple(islice(every, len(kinds)))
        else:
            yield from self._fillings(kinds, room, ())

    def _fillings(
        self, kinds: Sequence[object], room: Sequence[int], chosen: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        """Yield all fillings that differ in more than members that are alike."""
        at = len(chosen)
        if at == len(kinds):
            yield chosen
            return
        like = [number for number, kind in zip(chosen, kinds, strict=False) if kind == kinds[at]]
        rest = sum(kind == kinds[at] for kind in kinds[at:])
        begun = {number for number in chosen if self.slices[number].is_new}
        for number in range(max(like, default=0), len(room)):
            if sum(room[number:]) < rest:
                return
            is_more = self.slices[number].is_new and number not in begun
            if room[number] and not (is_more and len(begun) >= self.most_new):
                left = [most - (i == number) for i, most in enumerate(room)]
                yield from self._fillings(kinds, left, (*chosen, number))


def _room(layers: Layers, room: Ints | None, node: int) -> int:
    """Return how many members the domain of a node has room for, in the layer inside."""
    if room is None:
        return layers.sizes[-1]
    domains = layers.domains[-1]
    return int(room[domains == domains[node]].sum())


def _up(number: int, size: int) -> int:
    """Return the next multiple of a size."""
    return -(-number // size) * size
