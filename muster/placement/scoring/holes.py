"""What a partly used device is worth, and what it will still cost in CPU to use it up.

Fractional requests of a known mix are packed into devices; a device is cut into ``GRID``
units. Let ``v[h]`` be the worth of a hole of ``h`` units, 0 for nothing and 1 for a whole
device. A request of ``k`` units put into a hole ``h`` costs ``v[h] - v[h-k]``, and the
cheapest hole sets its price ``y[k]``. The worths are right when no hole is sold below what
the requests still to come will pay for it: the dual of the packing problem, in arc-flow form
(a request is an arc from ``h`` to ``h-k``, a packing is a flow)::

    maximise   sum_k demand[k] * y[k]  -  sum_h supply[h] * v[h]
    where      y[k] = min_h v[h] - v[h-k],   v[0] = 0,  v[GRID] = 1

The minimum is smoothed (temperature ``SMOOTHING``) and ``v`` is kept rising by a logarithmic
barrier (of a larger hole a part may be left unused). That makes the worths unique and
continuous in mix and supply, and lets Newton's method find them in a few steps from the last
ones. It also keeps apart what the exact dual calls equal: the smoothed price of a hole falls
as more of its kind lie open, which is what sum-of-squares packing (Csirik et al., J. ACM 53,
2006) does by counting.

Everything here is numbers: no nodes, no pods.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

GRID: Final = 100
"""Units per device. Requests are rounded up and holes down, so a fit on the grid is a fit."""
SMOOTHING: Final = 0.01
"""Temperature of the smoothed minimum, in devices: differences of a hundredth of a device
are noise beside the spread of the mix itself."""
CHOICE: Final = 0.2
"""Temperature of the guess which request will come into a hole, in devices."""
_NOTHING: Final = 0.3
"""Weight of leaving a unit unused beside the requests that fit, whose shares add up to 1."""
_BARRIER: Final = 1e-4
"""Weight of the barrier, in devices per request of the demand."""
_BLOCK: Final = 11
"""Unknowns that are eliminated together: few calls over arrays of a hundred numbers."""
_STEPS: Final = 40
_TOLERANCE: Final = 3e-2
"""Newton stops with the step whose predicted gain is below this, in devices per request."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Fractional requests still to come, by size."""

    #: int64[k], ascending, 1..GRID.
    units: Ints
    #: float64[k], how many are expected.
    count: Floats
    #: float64[k], mean of the CPU that they ask for, milli.
    cpu: Floats
    #: float64[k], its variance.
    cpu_var: Floats


def linear() -> Floats:
    """Return the worths while nothing is known: a hole is worth its size. float64[GRID+1]."""
    return np.arange(GRID + 1) / GRID


def worths(demand: Demand, supply: Floats, start: Floats) -> Steps[Floats]:
    """Return ``v``, float64[GRID+1], rising, for a demand and ``supply[h]`` open holes.

    ``start``: worths to begin with, such as the last ones; any rising float64[GRID+1].
    """
    if not demand.count.sum():
        return linear()
    scale = demand.count.sum()
    problem = _Dual(demand.units, demand.count / scale, supply / scale)
    v = start + 1e-3 * linear()
    v /= v[GRID]
    value = problem.value(v)
    for _ in range(_STEPS):
        gradient, hessian = problem.derivatives(v)
        step = _solve(hessian, gradient)
        gain = float(gradient @ step)
        v, value = _line_search(problem, v, value, step, gain)
        yield
        if gain < _TOLERANCE:
            break
    return v


def _solve(matrix: Floats, right: Floats) -> Floats:
    """Solve a positive definite system by elimination, ``_BLOCK`` unknowns at a time.

    Not by LAPACK: for so few rows its threads cost more than they bring on a busy machine,
    and its rounding depends on the build, which would let two replicas choose differently.
    """
    rest = np.column_stack([matrix, right])
    solved = []
    for start in range(0, len(right), _BLOCK):
        size = min(_BLOCK, len(right) - start)
        block = _eliminate(rest[:size])
        solved.append((start, block))
        rest = rest[size:, size:] - np.einsum("ik,kj->ij", rest[size:, :size], block)
    found = np.zeros(len(right))
    for start, block in reversed(solved):
        end = start + len(block)
        found[start:end] = block[:, -1] - (block[:, :-1] * found[end:]).sum(axis=1)
    return found


def _eliminate(rows: Floats) -> Floats:
    """Return what is right of the square when it is made the unit matrix (Gauss and Jordan)."""
    rows = rows.copy()
    for number in range(len(rows)):
        row = rows[number]
        row /= row[number]
        factors = rows[:, number].copy()
        factors[number] = 0.0
        rows -= factors[:, None] * row
    found: Floats = rows[:, len(rows) :]
    return found


def _line_search(
    problem: "_Dual", v: Floats, value: float, step: Floats, gain: float
) -> tuple[Floats, float]:
    """Halve the step until it stays inside and gains at least a tenth of what it promised."""
    length = 1.0
    for _ in range(30):
        tried = v.copy()
        tried[1:GRID] += length * step
        if np.diff(tried).min() > 0:
            found = problem.value(tried)
            if found >= value + 0.1 * length * gain:
                return tried, found
        length /= 2
    return v, value


class _Dual:
    """The smoothed dual; all arcs in one array, grouped by request size."""

    def __init__(self, units: Ints, demand: Floats, supply: Floats) -> None:
        self.demand = demand
        self.supply = supply[1:GRID]
        sizes = GRID + 1 - units
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.group = np.repeat(np.arange(len(units)), sizes)
        offset = np.arange(sizes.sum()) - self.starts[self.group]
        self.high = units[self.group] + offset
        self.low = offset

    def _prices(self, v: Floats) -> tuple[Floats, Floats]:
        """Return (y[k], share of each arc among the arcs of its size)."""
        cost = v[self.high] - v[self.low]
        least = np.minimum.reduceat(cost, self.starts)
        weight = np.exp((least[self.group] - cost) / SMOOTHING)
        total = np.add.reduceat(weight, self.starts)
        return least - SMOOTHING * np.log(total), weight / total[self.group]

    def value(self, v: Floats) -> float:
        y, _ = self._prices(v)
        barrier = _BARRIER * np.log(np.diff(v)).sum()
        return float(self.demand @ y - self.supply @ v[1:GRID] + barrier)

    def derivatives(self, v: Floats) -> tuple[Floats, Floats]:
        """Return the gradient, float64[GRID-1], and the negated Hessian, square."""
        _, share = self._prices(v)
        flow = self.demand[self.group] * share
        out = np.bincount(self.high, flow, minlength=GRID + 1)
        into = np.bincount(self.low, flow, minlength=GRID + 1)
        slope = _BARRIER / np.diff(v)
        gradient = (out - into)[1:GRID] - self.supply + slope[:-1] - slope[1:]
        hessian = self._curvature(share, flow, (out + into).astype(np.float64))
        bend = slope * slope / _BARRIER
        inner = np.arange(GRID - 1)
        hessian[inner, inner] += bend[:-1] + bend[1:]
        hessian[inner[1:], inner[:-1]] -= bend[1:-1]
        hessian[inner[:-1], inner[1:]] -= bend[1:-1]
        return gradient, hessian

    def _curvature(self, share: Floats, flow: Floats, degree: Floats) -> Floats:
        """Return the negated second derivative of the smoothed prices."""
        size = GRID + 1
        square = np.bincount(self.high * size + self.low, flow, minlength=size * size)
        square = square.reshape(size, size)
        means = np.zeros((len(self.demand), size))
        np.add.at(means, (self.group, self.high), share)
        np.subtract.at(means, (self.group, self.low), share)
        full = (
            np.diag(degree)
            - square
            - square.T
            - np.einsum("ki,kj->ij", means, self.demand[:, None] * means)
        )
        found: Floats = full[1:GRID, 1:GRID] / SMOOTHING
        return found


def prices(demand: Demand, v: Floats) -> Floats:
    """Return y, float64[k]: what a request of each size must pay, at least, in devices."""
    return np.array([np.min(v[k:] - v[: GRID + 1 - k]) for k in demand.units.tolist()])


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """What using up a hole will take of CPU."""

    #: float64[GRID+1], milli.
    mean: Floats
    #: float64[GRID+1].
    var: Floats


def needs(demand: Demand, v: Floats) -> Needs:
    """Return the CPU that the requests still to come will ask for inside a hole.

    Which request comes next into a hole of ``h`` units is uncertain: the likelier the more
    often it is asked and the better it pays, ``y[k] + v[h-k]``, at the temperature
    ``CHOICE``; or nothing pays and a unit is lost. What follows goes into the rest, so both
    moments follow by recursion over the sizes of holes.
    """
    if not demand.count.sum():
        return Needs(np.zeros(GRID + 1), np.zeros(GRID + 1))
    chance = _chances(demand, v)
    cpu = np.append(demand.cpu, 0.0)
    square = np.append(demand.cpu_var, 0.0) + cpu * cpu
    first, second = (chance * cpu).sum(axis=1), (chance * square).sum(axis=1)
    mean, moment = np.zeros(GRID + 1), np.zeros(GRID + 1)
    mean[:], moment[:] = _recursion(demand, chance, first, second)
    return Needs(mean, np.maximum(moment - mean * mean, 0.0))


def _recursion(
    demand: Demand, chance: Floats, first: Floats, second: Floats
) -> tuple[list[float], list[float]]:
    """Return both moments by hole. In numbers, not arrays: each hole needs the smaller ones.

    ``first``, ``second``: float64[GRID+1], the moments of the next request alone.
    """
    units = demand.units.tolist()
    requests = list(zip(units, (2.0 * demand.cpu).tolist(), strict=True))
    mean, moment = first.tolist(), second.tolist()
    for hole, row in enumerate(chance.tolist()[1:], start=1):
        weight = row[-1]  # of leaving a unit unused
        one, two = mean[hole] + weight * mean[hole - 1], moment[hole] + weight * moment[hole - 1]
        for weight, (unit, twice) in zip(row, requests[: bisect_right(units, hole)], strict=False):
            onward = mean[hole - unit]
            one += weight * onward
            two += weight * (twice * onward + moment[hole - unit])
        mean[hole], moment[hole] = one, two
    return mean, moment


def _chances(demand: Demand, v: Floats) -> Floats:
    """Return the chance of each request (last: none) for each hole, float64[GRID+1, k+1]."""
    hole = np.arange(GRID + 1)[:, None]
    rest = hole - np.append(demand.units, 1)
    worth = np.append(prices(demand, v), 0.0) + v[rest]  # negative rests wrap: masked below
    worth[rest < 0] = -np.inf
    worth -= np.maximum(worth.max(axis=1, keepdims=True), -1.0)
    weight = np.append(demand.count / demand.count.sum(), _NOTHING) * np.exp(worth / CHOICE)
    total = weight.sum(axis=1, keepdims=True)
    total[0] = 1.0  # an empty hole: every chance is 0
    found: Floats = weight / total
    return found
