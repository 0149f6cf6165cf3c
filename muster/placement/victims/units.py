"""What can end: a whole gang, or one member above its gang's minimum.

::

    gang of 4, minimum 2     units   {0 1 2 3} whole   {1} {2} {3} at most two of them
                                      the first in rank order stays: it often leads the others

Half a gang is no unit, so that no search can come to one. Nor is a member whose eviction counts as
a failure of the whole (a Job with its ``backoffLimit``).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.placement.moves.movablepods import MovePrices
from muster.placement.victims.costs import VictimCost

_MILLI = 1000


@dataclass(frozen=True, slots=True, eq=False)
class GivingUnit:
    """Pods that end together."""

    #: Whose they are.
    gang: GangKey
    #: The row of the gang.
    gang_row: int
    #: Rows of the pods, and of hot spares that end with them.
    rows: tuple[int, ...]
    #: Whether the gang ends.
    is_whole: bool
    cost: VictimCost
    #: Units that are alike: of one gang, on one node, with equal pods.
    kind: tuple[int, ...] = ()

    @property
    def name(self) -> tuple[GangKey, bool, tuple[int, ...]]:
        """What puts units into an order where all else is equal."""
        return (self.gang, self.is_whole, self.rows)


def units_of(prices: MovePrices, view: GangView, at_risk_s: float) -> list[GivingUnit]:
    """Return what can end of a gang: nothing where it holds no room.

    ``at_risk_s``: seconds of work that are lost with it.
    """
    snapshot = prices.snapshot
    row = snapshot.gang_columns.keys.find(view.key)
    pods = np.concatenate([view.bound, view.released, view.assumed])
    if row is None or not len(pods):
        return []
    whole = _whole(prices, view, row, at_risk_s)
    return [whole, *_members(prices, view, row, at_risk_s)]


def at_risk(view: GangView, now: float, saved_at: float | None = None) -> float:
    """Return seconds of work that end with a gang: since its last checkpoint, else its start.

    ``now``, ``saved_at``: seconds since the epoch. One before the start counts for nothing. What
    serves requests has no work to lose.
    """
    if view.spec is not None and view.spec.serves:
        return 0.0
    began = view.first_bound_at
    if began is None or not math.isfinite(now):
        return 0.0
    return max(now - (began if saved_at is None else max(began, saved_at)), 0.0)


def _whole(prices: MovePrices, view: GangView, row: int, at_risk_s: float) -> GivingUnit:
    rows = view.in_room.tolist()
    devices = prices.crew(row).devices
    pods = len(rows) - len(view.standby)
    cost = VictimCost(view.priority, int(devices * at_risk_s) // _MILLI, 1, pods)
    return GivingUnit(view.key, row, tuple(rows), is_whole=True, cost=cost)


def _members(
    prices: MovePrices, view: GangView, row: int, at_risk_s: float
) -> Iterator[GivingUnit]:
    """Yield the members above the minimum, those that come last in rank order first."""
    pods = prices.snapshot.pods
    spec = view.spec
    if spec is None or spec.slice_size or spec.ends_whole or spec.counts_evictions:
        return
    if prices.crew(row).stops([-1]):
        return
    for member in reversed(view.bound[1:].tolist()):
        if prices.stops(row, [member]):
            continue
        lost = int(prices.devices(member) * at_risk_s) // _MILLI
        cost = VictimCost(int(pods.priority[member]), lost, 0, 1)
        kind = (row, int(pods.node[member]), int(pods.pod_class[member]), int(pods.role[member]))
        yield GivingUnit(view.key, row, (member,), is_whole=False, cost=cost, kind=kind)


@dataclass(slots=True)
class UnitSet:
    """Units chosen so far, such that every gang is whole, keeps its minimum, or ends."""

    prices: MovePrices
    chosen: list[GivingUnit] = field(default_factory=list)
    _members: dict[int, list[int]] = field(default_factory=dict)
    _whole: set[int] = field(default_factory=set)

    def allows(self, unit: GivingUnit) -> bool:
        """Return whether a unit can be added."""
        if unit.gang_row in self._whole:
            return False
        before = self._members.get(unit.gang_row, [])
        if unit.is_whole:
            return not before
        return not self.prices.stops(unit.gang_row, [*before, *unit.rows])

    def add(self, unit: GivingUnit) -> None:
        """Add a unit."""
        self.chosen.append(unit)
        if unit.is_whole:
            self._whole.add(unit.gang_row)
        else:
            self._members.setdefault(unit.gang_row, []).extend(unit.rows)

    def drop(self, unit: GivingUnit) -> None:
        """Take a unit out again."""
        self.chosen.remove(unit)
        if unit.is_whole:
            self._whole.discard(unit.gang_row)
        else:
            self._members[unit.gang_row].remove(unit.rows[0])

    @property
    def cost(self) -> VictimCost:
        """What the set costs."""
        total = VictimCost()
        for unit in self.chosen:
            total = total.plus(unit.cost)
        return total


def rows_of(units: "list[GivingUnit] | tuple[GivingUnit, ...]") -> list[int]:
    """Return the rows of all pods of some units, ascending."""
    return sorted(row for unit in units for row in unit.rows)


def holding_gangs(snapshot: Snapshot) -> list[int]:
    """Return the rows of the gangs that hold room, ascending."""
    node, gang = snapshot.pods.node.array(), snapshot.pods.gang.array()
    holds = np.bincount(gang[(node >= 0) & (gang >= 0)])
    found: list[int] = np.flatnonzero(holds).tolist()
    return found
