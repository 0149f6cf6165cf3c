"""What follows from a promise: gangs that are looked at again, Events and metrics.

::

    given, moved ──► its gang is looked at again at its start, or in a minute
    wider, ended ──► gangs that it held back are looked at again
    kept         ──► its slip is observed
"""

from collections.abc import Sequence
from typing import Final

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBook, is_wider
from extender.planning.promises.promisetries import PromiseTries
from extender.planning.worklist import WorkList
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey
from muster.cluster.tables.gangview import GangView
from muster.queueing.backfill.promise import Promise

AGAIN_S: Final = 1.0  # at least until the next look
CHECK_S: Final = 60.0  # until a promise is looked at again though nothing ended


class PromiseReports:
    """Acts on every change of a promise."""

    def __init__(
        self,
        engine: Engine,
        book: PromiseBook,
        ends: GangEnds,
        tries: PromiseTries,
        worklist: WorkList,
        reporter: DecisionReporter,
        metrics: ExtenderMetrics,
    ) -> None:
        self._engine = engine
        self._book = book
        self._ends = ends
        self._tries = tries
        self._list = worklist
        self._reporter = reporter
        self._metrics = metrics

    def changed(self, view: GangView, before: Promise | None, after: Promise | None) -> None:
        """Report a promise that was given, moved or taken back."""
        self.look_later(view.key)
        if is_wider(before, after):
            self._list.freed()
        self._reporter.promised(view, before, after)

    def look_later(self, key: GangKey) -> None:
        """Have a gang with a promise looked at again at its start: no event may come.

        After its start, once the ends that it waits for are overruns.
        """
        now, promise = self._engine.clock(), self._book.of(key)
        if promise is not None:
            due = promise.start if now < promise.start else self._ends.latest_end(promise)
            self._list_at(key, max(min(due, now + CHECK_S), now + AGAIN_S))

    def list_turns(self) -> None:
        """Have those looked at that wait for a turn to be given a promise: no event may come.

        The planner asks for it whenever it rests. A gang that was to be looked at may have been so
        before, with others, or have gone.
        """
        now = self._engine.clock()
        for gang, again in self._tries.turns():
            self._list_at(gang, max(again, now + AGAIN_S))

    def waits_no_turn(self, key: GangKey) -> None:
        """Forget that a gang waits to be looked at for a promise."""
        self._tries.forget(key)

    def _list_at(self, gang: GangKey, at: float) -> None:
        """List a gang at a time, or before; never now, so that the planner comes to rest."""
        self._list.not_before[gang] = min(at, self._list.not_before.get(gang, at))

    def held(self, view: GangView, moved: Sequence[Promise]) -> None:
        """Take note that a gang got its room, and that others' promises moved for it."""
        self._book.move(moved)
        self._ends.held(view)
        self._tries.forget(view.key)
        kept = self._book.drop(view.key)
        if kept is None and len(self._book):
            self._metrics.backfilled.inc()
        if kept is not None:
            self._metrics.promise_slip.observe(max(self._engine.clock() - kept.first_start, 0.0))
            self._list.freed()

    def failed(self, key: GangKey) -> None:
        """Count an error while a gang was promised a start or kept off one.

        Its own promise ends, so that the same error does not hold others back. For a minute it gets
        none: all that wait are looked at again when a promise ends, and the same error would come
        again and again.
        """
        self._metrics.faults.labels("promise").inc()
        self.void(key)
        self._tries.bar(key, self._engine.clock() + CHECK_S)

    def void(self, key: GangKey) -> None:
        """Forget what a gang was promised that is gone, or has nothing to be planned any more."""
        self._ends.looked_at(key)
        self._tries.forget(key)
        if self._book.drop(key) is not None:
            self._list.freed()
