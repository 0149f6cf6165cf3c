"""What slices consist of: the layers of slices for the exact search.

Members in rank order, ``size`` at a time, are a slice; slices alike are one make-up::

    ranks     0 1 2 3   4 5 6 7   8 9 10 11     kinds  A B B B   B B B B   B B B B
    slices    A+3B      4B        4B            make-ups (1, 3) once, (0, 4) twice

A wider layer does the same with the slices inside it for members.
"""

from collections.abc import Sequence

import numpy as np

from placement.exact import Layer
from placement.sweep import Units
from placement.tree import Ints


def layers_of(
    slices: Sequence[tuple[int, int]], kinds: Ints, count: int
) -> tuple[Layer, ...] | None:
    """Return the layers of (level, size) slices, widest first.

    ``kinds``: int64[members], the kind of each member in rank order, of ``count`` kinds.
    ``None``: a size is no multiple of the size of the slices inside.
    """
    layers: list[Layer] = []
    units, inner = kinds, 1
    for level, size in reversed(slices):
        if size % inner:
            return None
        layer, units = _layer(level, units, count, size // inner)
        layers.append(layer)
        count, inner = len(layer.makeups), size
    return tuple(reversed(layers))


def types(units: Ints, layer: Layer, ratio: int) -> Ints:
    """Return the make-up, by number, of every ``ratio`` units in rank order."""
    numbers = {vector: i for i, (vector, _) in enumerate(layer.makeups)}
    count = len(layer.makeups[0][0])
    return np.array([numbers[v] for v in _vectors(units, count, ratio)], dtype=np.int64)


def _layer(level: int, units: Ints, count: int, ratio: int) -> tuple[Layer, Ints]:
    found: dict[Units, int] = {}
    for vector in _vectors(units, count, ratio):
        found[vector] = found.get(vector, 0) + 1
    layer = Layer(level, tuple(found.items()))
    return layer, types(units, layer, ratio)


def _vectors(units: Ints, count: int, ratio: int) -> list[Units]:
    firsts = range(0, len(units), ratio)
    parts = (units[first : first + ratio] for first in firsts)
    return [tuple(np.bincount(part, minlength=count).tolist()) for part in parts]
