"""Whether a ratio is within its bound. Pure.

::

    measured ──► within ───────────────────────────► held
        │ over
        ▼
    again ─────► within ──► held (the machine was busy, or the regression is small)
        │ over
        ▼
    again ─────► within ──► held
        │ over
        ▼
      FAILED: three of three; the least of them is the figure

A ratio that is within its bound once in three has not doubled. One that grew by less than the
bound leaves room for is not found; that is what the seen range beside the bound is for.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from loadtest.gate.bounds import Bound

TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """Both sides of a ratio, in the bound's unit. Raises ``ValueError`` where there is none."""

    above: float
    below: float

    def __post_init__(self) -> None:
        """Refuse what nothing could be said of: an empty measurement would pass every bound."""
        for side, value in (("above", self.above), ("below", self.below)):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{side} the line {value} was measured: must be more than 0")

    @property
    def ratio(self) -> float:
        """One divided by the other."""
        return self.above / self.below


@dataclass(frozen=True, slots=True)
class Standing:
    """One bound and what was measured for it so far, oldest first."""

    bound: Bound
    tries: tuple[Measured, ...] = ()

    def tried(self, measured: Measured) -> "Standing":
        """Return this with one more measurement."""
        return replace(self, tries=(*self.tries, measured))

    @property
    def held(self) -> bool:
        """Whether a measurement was within the bound."""
        return any(each.ratio <= self.bound.bound for each in self.tries)

    @property
    def failed(self) -> bool:
        """Whether all measurements that are allowed for were over the bound."""
        return not self.held and len(self.tries) >= TRIES

    @property
    def settled(self) -> bool:
        """Whether no further measurement can change the answer."""
        return self.held or self.failed

    @property
    def best(self) -> Measured:
        """The measurement with the least ratio; raises ``ValueError`` where there is none."""
        return min(self.tries, key=lambda each: each.ratio)

    @property
    def loose(self) -> bool:
        """Whether Muster got so much better that a ratio twice as high would be within."""
        return self.held and 2 * self.best.ratio <= self.bound.bound
