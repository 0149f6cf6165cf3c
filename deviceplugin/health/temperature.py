"""Temperature against the limit, with hysteresis.

::

    cool ──limit reached──► hot ──for a while, or at the GPU's own slowdown──► overheated
      ▲                      │                                                    │
      └──────────────────────┴───────── hysteresis below the limit ◄──────────────┘
"""

from dataclasses import dataclass

from deviceplugin.health.causes import HealthCause, Reason
from deviceplugin.health.config import TemperatureLimits


@dataclass(slots=True)
class Heat:
    """The temperature of one GPU."""

    rules: TemperatureLimits
    #: whether the hottest spot (junction) is measured
    junction: bool = False
    _hot_since: float | None = None
    _overheated: bool = False
    #: what was measured when it became hot or overheated
    _figure: str = ""

    def read(self, celsius: int | None, slowdown_at: int | None, now: float) -> None:
        """Take in a temperature; None (the driver reports none) counts as cool."""
        limit = self._limit(slowdown_at)
        if celsius is None or limit is None or celsius <= limit - self.rules.hysteresis_celsius:
            self._hot_since, self._overheated = None, False
        elif celsius >= limit or self._hot_since is not None:
            self._warm(celsius, limit, slowdown_at, now)

    def cause(self) -> HealthCause | None:
        """Return what is wrong."""
        if self._hot_since is None:
            return None
        return HealthCause(Reason.OVERHEATED if self._overheated else Reason.HOT, self._figure)

    def _limit(self, slowdown_at: int | None) -> int | None:
        rules = self.rules
        given = rules.junction_limit_celsius if self.junction else rules.limit_celsius
        own = None if slowdown_at is None else slowdown_at - rules.margin_celsius
        limits = [limit for limit in (given, own) if limit is not None]
        return min(limits, default=None)

    def _warm(self, celsius: int, limit: int, slowdown_at: int | None, now: float) -> None:
        if self._hot_since is None:
            self._hot_since, self._figure = now, f"{celsius} C, limit {limit} C"
        slowed = slowdown_at is not None and celsius >= slowdown_at
        long = now - self._hot_since >= self.rules.sustained_seconds
        if (slowed or long) and not self._overheated:
            self._overheated, self._figure = True, f"{celsius} C, limit {limit} C"
