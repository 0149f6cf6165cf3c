"""The time from a gang's submission until all of it is bound: the scheduling latency users see.

::

    first plan held ──► count of bindings to come ──► 0, and the gang is whole ──► reported
                                    ▲                        │
                                    └── members are not bound yet: counted again

The count is a hint: a binding costs one subtraction, and the gang's members are counted only when
it reaches 0. Each gang is measured once; a member that is bound later is a repair. Gangs that were
planned before a restart are not measured.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import Histogram

from extender.engine import Engine
from muster.cluster.effects import Effect, PodConfirmed
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView

Report = Callable[[GangKey, float, int], None]
"""Gets a gang, its seconds from submission to binding, and its number of bound members."""


@dataclass(slots=True)
class _Span:
    """The time of one gang from its submission on."""

    #: seconds since the epoch
    submitted_at: float
    #: bindings still to come; a hint, since a member may be planned again or deleted
    left: int


class BindTimes:
    """The gangs between their first plan and their last binding."""

    def __init__(self, engine: Engine, seconds: Histogram, report: Report) -> None:
        """``seconds`` observes the time of each gang, ``report`` is called with it."""
        self._report = report
        self._engine = engine
        self._seconds = seconds
        self._spans: dict[GangKey, _Span] = {}
        engine.listen(self.notice, PodConfirmed)

    def planned(self, gang: GangView, pods: int) -> None:
        """Start the measurement of a gang: its first plan, for ``pods`` members, was just held."""
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
            self._report(key, seconds, len(gang.bound))

    def review(self) -> None:
        """Check every gang: some are gone, and the hint of some was too high."""
        for key, span in list(self._spans.items()):
            self._look_at(key, span)
