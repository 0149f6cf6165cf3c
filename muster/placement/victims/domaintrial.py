"""One domain while units are added and dropped, to see whether the gang fits by amounts.

Only the nodes that a unit stands on are counted anew, so that a step costs its pods and not the
domain.
"""

from dataclasses import dataclass, field

import numpy as np

from muster.placement.victims.ground import Ground, RoomKind
from muster.placement.victims.units import GivingUnit


@dataclass(slots=True, eq=False)
class DomainTrial:
    """A domain with what is free there without the units that were added."""

    ground: Ground
    low: int
    high: int
    #: Members that fit, by kind.
    fits: list[int]
    _free: dict[int, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, ground: Ground, domain: int) -> "DomainTrial":
        """Return a domain as it is now."""
        low, high = ground.tree.span(ground.level, domain)
        fits = [int(takes[low:high].sum()) for takes in ground.takes(ground.free)]
        return cls(ground, low, high, fits)

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

    def gain(self, unit: GivingUnit) -> int:
        """Return what a unit frees of the scarce resource where members could go."""
        kinds, scarce = self.ground.kinds, self.ground.scarce
        return sum(
            amounts[scarce]
            for at, amounts in self.ground.freed(unit)
            if self.low <= at < self.high and any(kind.able[at] for kind in kinds)
        )

    def lack(self) -> int:
        """Return how much of the scarce resource is missing, if no fragment were in the way."""
        scarce, free = self.ground.scarce, self.ground.free
        able = self.ground.kinds[0].able
        for kind in self.ground.kinds[1:]:
            able = able | kind.able
        here = free[scarce, self.low : self.high][able[self.low : self.high]]
        return self.ground.demand - int(np.maximum(here, 0).sum())

    def _change(self, unit: GivingUnit, sign: int) -> None:
        for at, amounts in self.ground.freed(unit):
            if not self.low <= at < self.high:
                continue
            free = self._free.get(at)
            if free is None:
                free = self._free[at] = self.ground.free[:, at].tolist()
            for number, kind in enumerate(self.ground.kinds):
                self.fits[number] -= _takes(kind, free, at)
            for resource, amount in enumerate(amounts):
                free[resource] += sign * amount
            for number, kind in enumerate(self.ground.kinds):
                self.fits[number] += _takes(kind, free, at)


def _takes(kind: RoomKind, free: list[int], at: int) -> int:
    if not kind.able[at]:
        return 0
    return max(min(kind.need, *(free[resource] // n for resource, n in kind.asks)), 0)
