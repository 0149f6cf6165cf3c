"""What slices consist of: the layers of slices for the exact search.

Members in rank order, ``size`` at a time, are a slice; slices alike are one make-up::

    ranks     0 1 2 3   4 5 6 7   8 9 10 11     kinds  A B B B   B B B B   B B B B
    slices    A+3B      4B        4B            make-ups (1, 3) once, (0, 4) twice

A wider layer does the same with the slices inside it for members. A member that is in no
slice (its role has none) is a slice of its own, on every layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.placement.exact.cheapest import Layer
from muster.placement.exact.treeprogram import Units
from muster.placement.tree import Flags, Ints

LOOSE_STEP: Final = 1 << 20
"""Distance of the numbers of members in no slice: more than slices of a layer in a wider one."""


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
    slices: Sequence[tuple[int, int]], numbers: Sequence[Ints], kinds: Ints, count: int
) -> Packing | None:
    """Return the layers of (level, size) slices, widest first.

    ``numbers``: per layer int64[members], the slice of each member in rank order; ``kinds``:
    int64[members], of ``count`` kinds. ``None``: a slice is in two of the slices around it.
    """
    layers: list[Layer] = []
    inside: list[list[Ints]] = []
    types: list[Ints] = []
    units, firsts = kinds, np.arange(len(kinds))
    unit_of = firsts  # of every member
    for (level, _), of_member in zip(reversed(slices), reversed(numbers), strict=True):
        if (of_member != of_member[firsts][unit_of]).any():
            return None
        _, order, owner = np.unique(of_member[firsts], return_index=True, return_inverse=True)
        in_order = np.argsort(np.argsort(order))[owner]  # slices by their first member
        unit_of = in_order[unit_of]
        ends = np.cumsum(np.bincount(in_order))[:-1]
        groups = np.split(np.argsort(in_order, kind="stable"), ends)
        vectors = [tuple(np.bincount(units[g], minlength=count).tolist()) for g in groups]
        layers.append(_layer(level, vectors))
        inside.append(groups)
        kind_of = {vector: i for i, (vector, _) in enumerate(layers[-1].makeups)}
        units = np.array([kind_of[vector] for vector in vectors], dtype=np.int64)
        firsts = np.array([firsts[g[0]] for g in groups], dtype=np.int64)
        types.append(units)
        count = len(kind_of)
    return Packing(tuple(layers[::-1]), tuple(inside[::-1]), tuple(types[::-1]), kinds)


def _layer(level: int, vectors: Sequence[Units]) -> Layer:
    found: dict[Units, int] = {}
    for vector in vectors:
        found[vector] = found.get(vector, 0) + 1
    return Layer(level, tuple(found.items()))
