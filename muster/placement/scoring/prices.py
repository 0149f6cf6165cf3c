"""From the learned mix and the free stock to the tables that the potential reads.

The horizon: requests like those seen so far keep coming until the free devices are full.
With a mean request of m milli-GPU and F milli-GPU free these are R = F / m arrivals; never
fewer than ``FEWEST``, because some pod always comes. Of these R arrivals

- the fractional ones are the demand on holes (``holes.worths``), the holes now open their
  supply;
- whole-device requests and the fractional ones that open a device use up free devices; from
  what they ask of CPU comes the CPU that a free device will need;
- requests for k devices at once want nodes that still have k free. The price of such a slot
  is the gain of serving the request times the chance that its demand, a Poisson number,
  exceeds the slots there are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from muster.cluster.resumable import Steps, run
from muster.cluster.specs.learnedprices import Learned
from muster.placement.scoring import holes
from muster.placement.scoring.holes import GRID, Demand, Floats
from muster.placement.scoring.mix import RequestMix
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

Asked = tuple[Shape, int]
"""A shape, and how often it was asked for."""

FEWEST: Final = 300
"""Arrivals that are always expected. Only matters when the fleet is full, where any number
of this order gives holes the worth that late small requests still pay."""
_UNIT: Final = DEVICE // GRID
_SLOT: Final = 0.1
"""Worth of serving a request for several devices, per device, beyond its GPUs themselves:
other requests would leave this much idle in the holes they make. Any value from 0.03 to 1
gives the same placements on the traces tried: what matters is when the chance turns 1."""
_TOGETHER: Final = 1e-3
"""Worth of a pair of devices being free on one node, whether or not anybody has asked for
several yet. Breaks ties towards nodes already in use."""


@dataclass(frozen=True, slots=True, eq=False)
class RoomPrices:
    """Tables by what is left of a device, float64[1001] (milli-GPU), and by node."""

    #: In devices.
    worth: Floats
    #: Mean of the CPU that using it up will take, milli.
    cpu: Floats
    #: Its variance.
    cpu_var: Floats
    #: float64[d+1], worth of this many devices free on one node, beside their own.
    slots: Floats
    #: Devices lost per milli-CPU that is missing.
    stranding: float
    #: ``worth`` on the grid, where the next search for it begins.
    per_unit: Floats


def untrained(width: int) -> RoomPrices:
    """Return the prices before anything has arrived: a hole is worth its size."""
    nothing = np.zeros(DEVICE + 1)
    grid = holes.linear()
    together = _TOGETHER * np.square(np.arange(width + 1, dtype=np.float64))
    return RoomPrices(_by_milli(grid), nothing, nothing, together, 0.0, grid)


def learn(mix: RequestMix, stock: NodeStock, last: RoomPrices) -> RoomPrices:
    """Return the prices of a mix for what is free now; ``last``: where the search begins."""
    return run(learn_steps(mix, stock, last))


def learn_steps(mix: RequestMix, stock: NodeStock, last: RoomPrices) -> Steps[RoomPrices]:
    """As ``learn``, in slices of some milliseconds."""
    if not mix.milli:
        return last
    expected = max(int(stock.holes.sum()) / (mix.milli / mix.arrivals), FEWEST) / mix.arrivals
    asked = list(mix)
    demand = _demand(asked, expected)
    worth = yield from holes.worths(demand, _supply(stock), last.per_unit)
    need = holes.needs(demand, worth)
    _needs_of_a_free_device(asked, demand, worth, need, expected)
    return RoomPrices(
        worth=_by_milli(worth),
        cpu=_by_milli(need.mean),
        cpu_var=_by_milli(need.var),
        slots=_slot_worths(asked, stock, expected),
        stranding=1.0 / max(float(need.mean[GRID]), 1.0),
        per_unit=worth,
    )


def as_learned(prices: RoomPrices, *, generation: int, free: int) -> Learned:
    """Return prices as they are kept with the model."""
    return Learned(
        worth=tuple(prices.per_unit.tolist()),
        cpu=tuple(prices.cpu[::_UNIT].tolist()),
        cpu_var=tuple(prices.cpu_var[::_UNIT].tolist()),
        slots=tuple(prices.slots.tolist()),
        stranding=prices.stranding,
        generation=generation,
        free=free,
    )


def recalled(learned: Learned) -> RoomPrices:
    """Return the prices that ``as_learned`` described, to the last bit."""
    worth = np.array(learned.worth)
    return RoomPrices(
        worth=_by_milli(worth),
        cpu=_by_milli(np.array(learned.cpu)),
        cpu_var=_by_milli(np.array(learned.cpu_var)),
        slots=np.array(learned.slots),
        stranding=learned.stranding,
        per_unit=worth,
    )


def _by_milli(grid: Floats) -> Floats:
    """Return a table by milli-GPU; a hole is rounded down to the grid."""
    return grid[np.arange(DEVICE + 1) // _UNIT]


def _supply(stock: NodeStock) -> Floats:
    """Return float64[GRID+1]: open holes by size; free devices are no holes."""
    found = np.bincount((stock.holes // _UNIT).ravel(), minlength=GRID + 1).astype(np.float64)
    found[0] = found[GRID] = 0.0
    return found


def _demand(asked: Sequence[Asked], expected: float) -> Demand:
    parts = [(shape, count) for shape, count in asked if shape.fractional]
    if not parts:
        empty = np.zeros(0)
        return Demand(np.zeros(0, dtype=np.int64), empty, empty, empty)
    milli = np.array([shape.milli for shape, _ in parts])
    units, group = np.unique(-(-milli // _UNIT), return_inverse=True)
    count = np.array([count for _, count in parts], dtype=np.float64)
    cpu = np.array([shape.cpu for shape, _ in parts], dtype=np.float64)
    total: Floats = np.bincount(group, count).astype(np.float64)
    mean = np.bincount(group, count * cpu) / total
    var = np.bincount(group, count * cpu * cpu) / total - mean * mean
    return Demand(units, total * expected, mean, np.maximum(var, 0.0))


def _needs_of_a_free_device(
    asked: Sequence[Asked], demand: Demand, worth: Floats, need: holes.Needs, expected: float
) -> None:
    """Set ``need`` of a free device: whole requests and opened holes, as often as they come."""
    whole = [(s, count * expected) for s, count in asked if s.devices and not s.fractional]
    weight = np.array([count * shape.devices for shape, count in whole])
    each = np.array([shape.cpu / shape.devices for shape, _ in whole])
    opened = float(demand.count @ holes.prices(demand, worth)) if len(demand.units) else 0.0
    weight = np.append(weight, opened)
    each = np.append(each, need.mean[GRID])
    inside = np.append(np.zeros(len(whole)), need.var[GRID])
    weight /= weight.sum()
    mean = float(weight @ each)
    need.mean[GRID] = mean
    need.var[GRID] = max(float(weight @ (inside + each * each)) - mean * mean, 0.0)


def _slot_worths(asked: Sequence[Asked], stock: NodeStock, expected: float) -> Floats:
    width = stock.holes.shape[1]
    free = np.arange(width + 1, dtype=np.float64)
    worths = _TOGETHER * free * free
    for devices, count in sorted(_several(asked).items()):
        slots = int((stock.whole // devices).sum())
        chance = _exceeds(count * expected, slots)
        worths += _SLOT * devices * chance * (free // devices)
    return worths


def _several(asked: Sequence[Asked]) -> dict[int, int]:
    """Return arrivals by number of devices, where more than one was asked for."""
    found: dict[int, int] = {}
    for shape, count in asked:
        if shape.devices > 1:
            found[shape.devices] = found.get(shape.devices, 0) + count
    return found


def _exceeds(mean: float, slots: int) -> float:
    """Return the chance that a Poisson number exceeds ``slots`` (normal approximation)."""
    return 0.5 * (1.0 + math.erf((mean - slots) / math.sqrt(2.0 * mean)))
