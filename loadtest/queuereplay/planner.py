"""A planner of the extender without an extender: no HTTP, no API server, nobody who writes.

Its collaborators are the real ones. What they report (Events, metrics, log lines) goes nowhere.
"""

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.planning.bindtimes import BindTimes
from extender.planning.closednodes import ClosedNodes
from extender.planning.holding import PlanHolder
from extender.planning.planner import Planner, Release, Restrictions
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.planning.worklist import WorkList
from extender.readapi.dumprequests import DumpRequests
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.kube.writing.events import EventRecorder
from muster.queueing.backfill.runtimes import RunTimes

UNRESTRICTED = Restrictions(lambda _key: (), lambda _key: (), lambda _key: "", ClosedNodes())
RoomsOf = Callable[[DecisionReporter, Pace, QueueTurns], RoomMaker | None]
"""Builds what has gangs give way to others, ``None``: nobody may be made to."""


def no_rooms(_reporter: DecisionReporter, _pace: Pace, _turns: QueueTurns) -> None:
    """Return that no gang gives way."""


class _NoClient:
    """Events are recorded and never written: nothing runs the recorder."""


@dataclass(frozen=True, slots=True)
class LonePlanner:
    """A planner and those of its collaborators that somebody looks at."""

    planner: Planner
    worklist: WorkList
    holding: PlanHolder
    metrics: ExtenderMetrics
    dumps: DumpRequests
    run_times: RunTimes

    @classmethod
    def of(
        cls,
        engine: Engine,
        config: ExtenderConfig,
        release: Release,
        monotonic: Callable[[], float],
        rooms: RoomsOf = no_rooms,
    ) -> "LonePlanner":
        """Build one. ``release`` gets the pods of each plan, ``monotonic`` is the clock of slices.

        With a clock that stands still no slice ever ends, so ``settle`` never waits.
        """
        metrics = ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(_NoClient(), controller="test", instance="test")  # type: ignore[arg-type]
        dumps = DumpRequests(config.dump.directory, "test", "extender-0", engine.clock)
        reporter = DecisionReporter(
            engine.state, PendingPods(), recorder, metrics, DueEvents(), dumps.fault
        )
        run_times = RunTimes(config.backfill.quantile)
        holding, worklist, pace = PlanHolder(engine), WorkList(engine), Pace(monotonic)
        turns = QueueTurns(engine)
        planner = Planner(
            engine,
            config,
            worklist,
            holding,
            restrictions=UNRESTRICTED,
            release=release,
            bind_times=BindTimes(engine, metrics.gang_bound, reporter.bound),
            reporter=reporter,
            metrics=metrics,
            pace=pace,
            rooms=rooms(reporter, pace, turns),
            queues=turns,
            run_times=run_times,
        )
        return cls(planner, worklist, holding, metrics, dumps, run_times)
