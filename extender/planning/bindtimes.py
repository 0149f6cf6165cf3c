"""From a gang's submission until it is bound whole: what users call scheduling latency.

::

    first plan held ──► so many bindings are awaited ──► none left, and the gang is whole ──► told
                                    ▲                                │
                                    └── re-planned, left over: as many as there still are

The count is a hint, so that a binding costs a subtraction; only when it runs out is the gang
looked at. Once per gang: what later happens to a member is repair. After a restart gangs that
were already planned are not measured.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Histogram

from extender.engine import Engine
from muster.cluster.effects import Effect, PodConfirmed
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView

Told = Callable[[GangKey, float, int], None]


@dataclass(slots=True)
class _Span:
    """The time of one gang from its submission on."""

    #: seconds since the epoch
    submitted_at: float
    #: bindings still to come, a hint
    left: int


class BindTimes:
    """The gangs between their first plan and their last binding."""

    def __init__(self, engine: Engine, seconds: Histogram, told: Told) -> None:
        """``told`` is told of each gang, of the seconds, and of how many members are bound."""
        self._told = told
        self._engine = engine
        self._seconds = seconds
        self._spans: dict[GangKey, _Span] = {}
        engine.listen(self.notice, PodConfirmed)

    def planned(self, gang: GangView, pods: int) -> None:
        """Begin with a gang whose first plan for ``pods`` members has just been held."""
        if not len(gang.bound) and not len(gang.finished):
            self._spans.setdefault(gang.key, _Span(gang.submitted_at, pods))

    def notice(self, effect: Effect) -> None:
        """Count a binding; called by the engine."""
        if not isinstance(effect, PodConfirmed) or not self._spans:
            return
        key = self._engine.state.gang_of(effect.uid)
        span = None if key is None else self._spans.get(key)
        if key is None or span is None:
            return
        span.left -= 1
        if span.left <= 0:
            self._look_at(key, span)

    def _look_at(self, key: GangKey, span: _Span) -> None:
        gang = self._engine.state.gang(key)
        if gang is None or gang.spec is None:
            del self._spans[key]
            return
        span.left = len(gang.assumed) + len(gang.released)
        if not span.left and len(gang.bound) + gang.succeeded >= gang.spec.min_count:
            del self._spans[key]
            seconds = max(0.0, self._engine.clock() - span.submitted_at)
            self._seconds.observe(seconds)
            self._told(key, seconds, len(gang.bound))

    def review(self) -> None:
        """Look at every span: of gangs that are gone, and of those whose hint was too high."""
        for key, span in list(self._spans.items()):
            self._look_at(key, span)
