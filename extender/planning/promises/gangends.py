"""When gangs end that run: their run times, written or learned, and those that give way.

::

    gets its room ──► runs ──► holds none any more ──► a run time of its kind is learned
                        └────► made to end ──────────► nothing is learned
"""

from collections.abc import Sequence

from extender.config.backfill import BackfillConfig
from extender.engine import Engine
from extender.planning.promises.departures import NO_DEPARTURES, Departures
from muster.cluster.ids import GangKey
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.queueing.backfill.expectedends import ExpectedEnd, Going, certain_ends, expected_ends
from muster.queueing.backfill.promise import Promise
from muster.queueing.backfill.runtimes import RunTimes


class GangEnds:
    """The ends of one cluster's gangs."""

    def __init__(
        self,
        engine: Engine,
        settings: BackfillConfig,
        departures: Departures = NO_DEPARTURES,
        run_times: RunTimes | None = None,
    ) -> None:
        self._engine = engine
        self._settings = settings
        #: gangs that give way to others
        self.departures = departures
        #: how long gangs run
        self.run_times = run_times or RunTimes(settings.quantile)
        #: when each running gang got its room (seconds since the epoch), with its view then
        self._running: dict[GangKey, tuple[GangView, float]] = {}

    def held(self, view: GangView) -> None:
        """Take note that a gang got its room."""
        if self._settings.enabled:
            self._running.setdefault(view.key, (view, self._engine.clock()))

    def looked_at(self, key: GangKey) -> None:
        """Learn the run time of a gang that holds no room any more."""
        began = self._running.get(key)
        if began is not None and not self._engine.state.holds_room(key):
            del self._running[key]
            if self._settings.learn:
                self._learn(*began)

    def _learn(self, view: GangView, began: float) -> None:
        now, state = self._engine.clock(), self._engine.state
        queue = state.charges.queue_of(state.queue_user(view))
        self.run_times.learn(view, now - began, now, queue)

    def learn_nothing_of(self, going: Going) -> None:
        """Forget when gangs began that are made to end: that is no run time."""
        for gang, members in going.items():
            if not members:
                self._running.pop(gang, None)

    def expected(self, snapshot: Snapshot, going: Going, now: float) -> Steps[list[ExpectedEnd]]:
        """Return the ends that are expected, the first one first.

        ``going``: who gives way. ``now``: the moment that the caller compares ends with (seconds
        since the epoch). The clock goes on while a search waits for its turn.
        """
        return expected_ends(snapshot, now, self.run_times.of, going, self._settings.slack_seconds)

    def latest_end(self, promise: Promise) -> float:
        """Return until when the ends before a promise may be seen (seconds since the epoch)."""
        return promise.start + self._settings.slack_seconds

    def given(
        self, snapshot: Snapshot, going: Going, now: float, gang: GangKey
    ) -> list[ExpectedEnd]:
        """Return what goes now, if others give way to a gang: it gets that room, and no other.

        Arguments as in ``expected``, which reads each gang that runs; this does not. An end that is
        expected sooner is a guess: with a promise elsewhere that room would be free for all. What
        goes for others counts, too, beside the nodes that are promised to them: who ends was chosen
        so.
        """
        if not self.departures.giving_to(gang):
            return []
        return certain_ends(snapshot, now, going, self._settings.slack_seconds)

    def own(self, given: Sequence[ExpectedEnd], gang: GangKey) -> list[ExpectedEnd]:
        """Return what goes for a gang alone, or is being deleted, of what is ``given``."""
        giving = self.departures.giving_to(gang)
        return [end for end in given if end.gang is None or end.gang in giving]
