"""The ceiling of a trace: the configuration LP over its fractional requests.

How few devices can hold them all, if patterns may be used in fractions? What those devices
leave idle is waste that no packing avoids; the requests are scaled to a demand of 100 % of
the GPUs. Column generation in Gilmore and Gomory's way: the basis is one pattern per size,
a knapsack finds a pattern that pays more than a device costs, it enters, until none does.

It is no bound for a rule that drops much: after the fleet is full, small requests still
come and fill holes.
"""

from collections import Counter
from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from loadtest.traces.openb import Trace
from muster.placement.scoring.shape import DEVICE

Floats = NDArray[np.float64]

_PAYS = 1e-9


def ceiling(trace: Trace) -> float:
    """Return the ceiling in percent of the GPUs."""
    counts = Counter(shape.milli for shape in trace.tasks if shape.fractional)
    if not counts:
        return 100.0
    sizes = sorted(counts)
    demand = sum(shape.gpu for shape in trace.tasks)
    scale = trace.capacity / demand
    need = np.array([counts[size] for size in sizes], dtype=np.float64) * scale
    waste = DEVICE * fewest_devices(sizes, need) - float(need @ np.array(sizes))
    return 100.0 * (1.0 - waste / trace.capacity)


def fewest_devices(sizes: Sequence[int], need: Floats) -> float:
    """Return the least (fractional) number of devices that hold ``need`` of each size.

    ``sizes``: milli-GPU, 1..1000, ascending and distinct; ``need``: float64, 0 or more.
    """
    basis = np.diag([float(DEVICE // size) for size in sizes])
    cost = np.ones(len(sizes))
    amount = need / np.diag(basis)
    while True:
        inverse = np.linalg.inv(basis)
        price = cost @ inverse
        column, worth = _entering(sizes, price)
        if column is None:
            return float(cost @ amount)
        step = inverse @ column
        ratio = np.where(step > _PAYS, amount / np.where(step > _PAYS, step, 1.0), np.inf)
        leaving = int(ratio.argmin())
        amount = np.maximum(amount - ratio[leaving] * step, 0.0)
        amount[leaving] = ratio[leaving]
        basis[:, leaving] = column
        cost[leaving] = worth


def _entering(sizes: Sequence[int], price: Floats) -> tuple[Floats | None, float]:
    """Return a column that pays and its cost: a surplus (0) or a pattern (1)."""
    cheapest = int(price.argmin())
    if price[cheapest] < -_PAYS:
        surplus = np.zeros(len(sizes))
        surplus[cheapest] = -1.0
        return surplus, 0.0
    pattern, worth = _knapsack(sizes, price)
    return (pattern, 1.0) if worth > 1.0 + _PAYS else (None, 0.0)


def _knapsack(sizes: Sequence[int], price: Floats) -> tuple[Floats, float]:
    """Return the pattern of one device that is worth most, and its worth."""
    unit = gcd(DEVICE, *sizes)
    steps = [size // unit for size in sizes]
    best = [0.0] * (DEVICE // unit + 1)
    last = [-1] * len(best)
    for room in range(1, len(best)):
        best[room] = best[room - 1]
        for number, step in enumerate(steps):
            if step <= room and best[room - step] + price[number] > best[room] + _PAYS:
                best[room] = best[room - step] + price[number]
                last[room] = number
    pattern = np.zeros(len(sizes))
    room = len(best) - 1
    while room > 0:
        if last[room] < 0:
            room -= 1
        else:
            pattern[last[room]] += 1
            room -= steps[last[room]]
    return pattern, best[-1]
