"""One domain while units are added and dropped, to see whether the gang fits by amounts.

Only shared nodes are counted anew: a step costs the pods of a unit that stand beside other units,
and not the domain.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.placement.tree import Ints
from muster.placement.victims.freedtable import FreedTable
from muster.placement.victims.ground import Freed, Ground, RoomKind
from muster.placement.victims.units import GivingUnit


@dataclass(slots=True, eq=False)
class DomainTrial:
    """A domain with what is free there without the units that were added.

    Units are those of the table; others cannot be added.
    """

    ground: Ground
    low: int
    high: int
    #: Members that fit, by kind.
    fits: list[int]
    #: Whether a node has several units.
    has_shared: bool
    _gains: dict[GivingUnit, int]
    #: Members that fit more once a unit has gone, by kind, on nodes where it is the only one.
    _alone: dict[GivingUnit, tuple[int, ...]]
    #: Who stands on nodes beside others.
    _sharing: frozenset[GivingUnit]
    _free: dict[int, list[int]] = field(default_factory=dict)
    _freed: dict[GivingUnit, Freed] = field(default_factory=dict)
    _shared: dict[GivingUnit, Freed] = field(default_factory=dict)
    _took: dict[int, list[int]] = field(default_factory=dict)
    _beside: frozenset[int] = frozenset()

    @classmethod
    def of(cls, table: FreedTable, domain: int) -> "DomainTrial":
        """Return a domain as it is now."""
        ground, size = table.ground, len(table.units)
        low, high = ground.tree.span(ground.level, domain)
        here = table.within(low, high)
        owner, at, shared = table.owner[here], table.at[here], table.shared[here]
        able = ground.able[at]
        shared = shared & able
        gains = np.bincount(owner[able], table.amounts[ground.scarce, here][able], size)
        alone = able & ~shared
        more = [np.bincount(owner[alone], kind[here][alone], size) for kind in table.more]
        known = np.unique(owner)
        units = [table.units[number] for number in known.tolist()]
        by_kind: Ints = np.array([each[known] for each in more]).astype(np.int64)
        return cls(
            ground,
            low,
            high,
            [int(takes[low:high].sum()) for takes in ground.takes_now()],
            bool(shared.any()),
            dict(zip(units, gains[known].astype(np.int64).tolist(), strict=True)),
            dict(zip(units, map(tuple, by_kind.T.tolist()), strict=True)),
            frozenset(table.units[number] for number in np.unique(owner[shared]).tolist()),
            _beside=frozenset(at[shared].tolist()),
        )

    @property
    def is_enough(self) -> bool:
        """Whether all members fit by amounts."""
        return all(
            fits >= kind.need for fits, kind in zip(self.fits, self.ground.kinds, strict=True)
        )

    def add(self, unit: GivingUnit) -> None:
        """Let a unit go."""
        self._change(unit, 1)

    def drop(self, unit: GivingUnit) -> None:
        """Let it stay."""
        self._change(unit, -1)

    def freed(self, unit: GivingUnit) -> Freed:
        """Return what a unit frees on nodes of the domain where members could go."""
        found = self._freed.get(unit)
        if found is None:
            able = self.ground.able
            found = self._freed[unit] = tuple(
                (at, amounts)
                for at, amounts in self.ground.freed(unit)
                if self.low <= at < self.high and able[at]
            )
        return found

    def gain(self, unit: GivingUnit) -> int:
        """Return what a unit frees of the scarce resource where members could go."""
        return self._gains.get(unit, 0)

    def bundle(self, at: int, here: Sequence[GivingUnit]) -> list[GivingUnit]:
        """Return the first units on a node after which it takes one member more; none: it never."""
        free = self._free_at(at)[:]
        kinds = self.ground.kinds
        before = sum(_takes(kind, free, at) for kind in kinds)
        found = []
        for unit in here:
            found.append(unit)
            amounts = next(amounts for place, amounts in self.freed(unit) if place == at)
            for resource, amount in enumerate(amounts):
                free[resource] += amount
            if sum(_takes(kind, free, at) for kind in kinds) > before:
                return found
        return []

    def lack(self) -> int:
        """Return how much of the scarce resource is missing, if no fragment were in the way."""
        scarce, free = self.ground.scarce, self.ground.free
        able = self.ground.able
        here = free[scarce, self.low : self.high][able[self.low : self.high]]
        return self.ground.demand - int(np.maximum(here, 0).sum())

    def _free_at(self, at: int) -> list[int]:
        found = self._free.get(at)
        if found is None:
            found = self._free[at] = self.ground.free[:, at].tolist()
            self._took[at] = [_takes(kind, found, at) for kind in self.ground.kinds]
        return found

    def _change(self, unit: GivingUnit, sign: int) -> None:
        fits = self.fits
        for number, more in enumerate(self._alone.get(unit, ())):
            fits[number] += sign * more
        if unit in self._sharing:
            self._change_shared(unit, sign)

    def _beside_others(self, unit: GivingUnit) -> Freed:
        found = self._shared.get(unit)
        if found is None:
            found = tuple(one for one in self.freed(unit) if one[0] in self._beside)
            self._shared[unit] = found
        return found

    def _change_shared(self, unit: GivingUnit, sign: int) -> None:
        kinds, fits, all_free, all_took = self.ground.kinds, self.fits, self._free, self._took
        for at, amounts in self._beside_others(unit):
            free = all_free.get(at) or self._free_at(at)
            took = all_took[at]
            for resource, amount in enumerate(amounts):
                free[resource] += sign * amount
            for number, kind in enumerate(kinds):
                takes = kind.need if kind.able[at] else 0
                for resource, asked in kind.asks:
                    room = free[resource] // asked
                    takes = min(takes, room)
                takes = max(takes, 0)
                fits[number] += takes - took[number]
                took[number] = takes


def _takes(kind: RoomKind, free: list[int], at: int) -> int:
    """Return how many members of a kind a node takes."""
    if not kind.able[at]:
        return 0
    room = kind.need
    for resource, amount in kind.asks:
        room = min(room, free[resource] // amount)
    return max(room, 0)
