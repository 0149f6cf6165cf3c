"""The planner's door to promises: an error about them is logged and does not end planning.

::

    gang does not fit ──► give: room is made for it, or a start is promised
    gang is planned   ──► binding: what it keeps off;  beside: where it delays nobody
    gang got its room ──► held;  its members are gone ──► void

The planner asks only where there are queues, or where starts are promised without them, too.
"""

import logging
from collections.abc import Callable, Collection, Container, Sequence
from dataclasses import dataclass
from typing import Final

from extender.config.backfill import BackfillConfig
from extender.engine import Engine
from extender.planning.promises.departures import NO_DEPARTURES
from extender.planning.promises.futurequotas import FutureQuotas
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBook
from extender.planning.promises.promiseclaims import PromiseClaims
from extender.planning.promises.promisegiver import PromiseGiver
from extender.planning.promises.promiseguard import Beside, Decided, PromiseGuard
from extender.planning.promises.promisereports import PromiseReports
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.planning.worklist import WorkList
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.placement.decision import ROOM, Decision, Wait, WaitReason
from muster.placement.question import Question
from muster.queueing.backfill.promise import Promise
from muster.queueing.backfill.runtimes import RunTimes

log = logging.getLogger(__name__)

NOT_PROMISED: Final = "start not promised"
ENDS_HELP: Final = ROOM | {WaitReason.OVER_QUOTA}
Questions = Callable[[GangKey], list[Question]]
"""Returns the questions about a gang now, in the order of trying."""


@dataclass(frozen=True, slots=True)
class PromiseParts:
    """What promises are made with."""

    settings: BackfillConfig
    book: PromiseBook
    ends: GangEnds
    quotas: FutureQuotas
    claims: PromiseClaims
    guard: PromiseGuard
    giver: PromiseGiver

    @classmethod
    def of(
        cls,
        engine: Engine,
        queues: QueueTurns,
        settings: BackfillConfig,
        rooms: RoomMaker | None,
        run_times: RunTimes | None = None,
    ) -> "PromiseParts":
        """Build them. Without ``rooms`` nobody may be made to give way."""
        expected: Container[GangKey] | None = None if rooms is None else rooms.expected
        departures = NO_DEPARTURES if rooms is None else rooms.evictions
        book, quotas = PromiseBook(), FutureQuotas(engine)
        ends = GangEnds(engine, settings, departures, run_times)
        claims = PromiseClaims(engine, queues, settings, book, ends, quotas, expected)
        return cls(
            settings,
            book,
            ends,
            quotas,
            claims,
            PromiseGuard(engine, queues, settings, book, ends, quotas),
            PromiseGiver(engine, book, ends, quotas, claims.tries),
        )


@dataclass(frozen=True, slots=True)
class _Guarded:
    """Has an error end a gang's own promise, and nothing else."""

    reports: PromiseReports
    gang: GangKey

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _at: object
    ) -> bool:
        if not isinstance(error, Exception):
            return False
        log.error(NOT_PROMISED, exc_info=error, extra={"gang": self.gang})
        self.reports.failed(self.gang)
        return True


@dataclass(frozen=True, slots=True)
class PromiseKeeper:
    """Promises starts, keeps others off them, and has others give way where they may be made to."""

    engine: Engine
    parts: PromiseParts
    reports: PromiseReports
    worklist: WorkList
    pace: Pace
    #: makes other gangs give way to gangs that wait, ``None``: it is off
    rooms: RoomMaker | None = None

    def binding(self, key: GangKey, view: GangView | None) -> list[Promise]:
        """Return the promises that a gang must not delay; after an error, none."""
        with _Guarded(self.reports, key):
            return [] if view is None else self.parts.guard.binding(view)
        return []

    async def beside(
        self,
        questions: Sequence[Question],
        decision: Decision,
        snapshot: Snapshot,
        decided: Decided,
    ) -> Beside | None:
        """Return a plan on promised nodes, where the gang finds no others and delays nobody.

        Asked only where nodes are promised.
        """
        if not isinstance(decision, Wait) or decision.reason not in ROOM:
            return None
        with _Guarded(self.reports, questions[0].gang):
            return await self.parts.guard.beside(questions, snapshot, decided, self.pace)
        return None

    async def give(
        self, view: GangView | None, said: Decision | None, questions: Questions
    ) -> bool:
        """Promise a gang that waits for room a start; returns whether it had none before.

        ``said``: the last decision about it.
        """
        if view is None or self.parts.claims.tries.is_barred(view.key):
            return False
        if not isinstance(said, Wait) or said.reason not in ENDS_HELP:
            self.reports.waits_no_turn(view.key)
            return False
        with _Guarded(self.reports, view.key):
            return await self._give(view, said.reason, questions)
        return False

    async def _give(self, view: GangView, reason: WaitReason, questions: Questions) -> bool:
        parts, key = self.parts, view.key
        claim = parts.claims.wants(view, lacks_quota=reason is WaitReason.OVER_QUOTA)
        if claim is None:
            if parts.claims.is_void(view):
                self.reports.void(key)
            self.reports.look_later(key)
            return False
        asked, before = questions(key), parts.book.of(key)
        snapshot = self.engine.state.snapshot()
        room: Collection[str] = ()
        if self.rooms is not None:
            room = await self.rooms.make(view, asked[0], snapshot, parts.guard)
        after = await parts.giver.give(claim, asked, snapshot, self.pace, room)
        if self.rooms is not None:
            self.worklist.look_within(key, parts.settings.refresh_seconds)
        self.reports.changed(view, before, after)
        return before is None and after is not None

    def list_turns(self) -> None:
        """Have those looked at in time that wait for a turn to be given a promise."""
        self.reports.list_turns()

    def held(self, view: GangView, moved: Sequence[Promise]) -> None:
        """Take note that a gang got its room; ``moved``: promises as they are beside its plan."""
        self.reports.held(view, moved)

    def void(self, key: GangKey) -> None:
        """Forget what a gang was promised that is gone, or has nothing to be planned any more."""
        self.reports.void(key)
