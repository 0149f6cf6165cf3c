"""What slices consist of: the layers of slices for the exact search.

Members in rank order, ``size`` at a time, are a slice; slices alike are one make-up::

    ranks     0 1 2 3   4 5 6 7   8 9 10 11     kinds  A B B B   B B B B   B B B B
    slices    A+3B      4B        4B            make-ups (1, 3) once, (0, 4) twice

A wider layer does the same with the slices inside it for members. A member that is in no
slice (its role has none) is a slice of its own, on every layer.

A slice with members that have a place already has a *home*, the domain that they are in. Slices
are alike only with the same home, and no other domain takes one that has a home.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from muster.placement.exact.cheapest import ANYWHERE, Layer
from muster.placement.exact.treeprogram import Units
from muster.placement.tree import Flags, Ints

LOOSE_STEP: Final = 1 << 20
"""Distance of the numbers of members in no slice: more than slices of a layer in a wider one."""


Homes: TypeAlias = Mapping[int, int]
"""By slice, the domain of the layer's level that some of its members are in already."""


class _Look(NamedTuple):
    """What tells slices apart."""

    units: Units
    home: int


@dataclass(frozen=True, slots=True, eq=False)
class Packing:
    """What the slices of a gang consist of."""

    #: Widest first.
    layers: tuple[Layer, ...]
    #: Per layer and slice, the units that it consists of.
    inside: tuple[list[Ints], ...]
    #: Per layer and slice, its make-up by number.
    types: tuple[Ints, ...]
    #: int64[members], the kind of each member.
    kinds: Ints


def in_turn(slices: Sequence[tuple[int, int]], places: Ints) -> list[Ints]:
    """Return, per layer of (level, size), the slice of every member: ``size`` at a time."""
    return [places // size for _, size in slices]


def loose(numbers: Ints, flags: Flags, places: Ints) -> Ints:
    """Return slice numbers where the members of ``flags`` are in no slice: all different."""
    return np.where(flags, -(places + 1) * LOOSE_STEP, numbers)


def pack(
    slices: Sequence[tuple[int, int]],
    numbers: Sequence[Ints],
    kinds: Ints,
    count: int,
    homes: Sequence[Homes] = (),
) -> Packing | None:
    """Return the layers of (level, size) slices, widest first.

    ``numbers``: per layer int64[members], the slice of each member in rank order; ``kinds``:
    int64[members], of ``count`` kinds. ``homes``: per layer, of the slices that have one.
    ``None``: a slice is in two of the slices around it.
    """
    homes = homes or [{}] * len(slices)
    layers: list[Layer] = []
    inside: list[list[Ints]] = []
    types: list[Ints] = []
    units, firsts = kinds, np.arange(len(kinds))
    unit_of = firsts  # of every member
    each_layer = zip(reversed(slices), reversed(numbers), reversed(homes), strict=True)
    for (level, _), of_member, home in each_layer:
        if (of_member != of_member[firsts][unit_of]).any():
            return None
        _, order, owner = np.unique(of_member[firsts], return_index=True, return_inverse=True)
        in_order = np.argsort(np.argsort(order))[owner]  # slices by their first member
        unit_of = in_order[unit_of]
        ends = np.cumsum(np.bincount(in_order))[:-1]
        groups = np.split(np.argsort(in_order, kind="stable"), ends)
        looks = [
            _Look(
                tuple(np.bincount(units[g], minlength=count).tolist()),
                home.get(int(of_member[firsts[g[0]]]), ANYWHERE),
            )
            for g in groups
        ]
        kind_of = {look: i for i, look in enumerate(dict.fromkeys(looks))}
        layers.append(_layer(level, looks))
        inside.append(groups)
        units = np.array([kind_of[look] for look in looks], dtype=np.int64)
        firsts = np.array([firsts[g[0]] for g in groups], dtype=np.int64)
        types.append(units)
        count = len(kind_of)
    return Packing(tuple(layers[::-1]), tuple(inside[::-1]), tuple(types[::-1]), kinds)


def _layer(level: int, looks: Sequence[_Look]) -> Layer:
    found = Counter(looks)  # in the order of the first of each
    makeups = tuple((look.units, number) for look, number in found.items())
    homes = tuple(look.home for look in found)
    return Layer(level, makeups, homes if set(homes) != {ANYWHERE} else ())
