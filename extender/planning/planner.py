"""The planner: whole gangs, one after the other, in the order that ``queueing`` computes.

::

    effects ──► WorkList ──debounce──► order ──► assembled? ──► plan ──► held ──► release
                   ▲                                │             │        │
                   │                          not before: timer   │      stale: plan again
                   └──────── parked, until room is freed ◄── does not fit

Planning runs on a snapshot, in slices. Between two slices the extender reads watches and answers
``filter``. If the cluster changed in the meantime so that a plan no longer fits, holding the plan
fails and the gang is planned again.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.planning import waitcauses
from extender.planning.bindtimes import BindTimes
from extender.planning.closednodes import ClosedNodes
from extender.planning.holding import PlanHolder
from extender.planning.hotspares import SpareKeeper
from extender.planning.orderguard import OrderGuard
from extender.planning.promises.promisebook import PromiseBook, nodes_of
from extender.planning.promises.promiseguard import Beside
from extender.planning.promises.promisekeeper import PromiseKeeper, PromiseParts
from extender.planning.promises.promisereports import PromiseReports
from extender.planning.queueturns import Allowance, QueueTurns
from extender.planning.requeue import again_at
from extender.planning.roommaker import RoomMaker
from extender.planning.worklist import WorkList
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.events import GangSkipped, PlanHeld, PricesLearned
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import REMEDY, Deferred, Planned, decide, standing
from muster.decisions.assign import assignments
from muster.decisions.history import AnsweredQuestion, History
from muster.decisions.record import AnswerKind
from muster.decisions.recording import LastDecision, Note
from muster.placement.decision import (
    Decision,
    Plan,
    Reject,
    Wait,
    WaitReason,
    repeats,
)
from muster.placement.question import Question
from muster.placement.reasons.errors import described
from muster.placement.scoring.profiles import Profile
from muster.placement.scoring.view import learned_of
from muster.queueing.admission.refusal import promised_first
from muster.queueing.assembly import Idle, Incomplete, NotBefore, Ready
from muster.queueing.backfill.promise import Promise
from muster.queueing.backfill.runtimes import RunTimes
from muster.queueing.order import order
from muster.queueing.totals import FreeTotals

log = logging.getLogger(__name__)

PLAN_ATTEMPTS: Final = 3  # in a row; if all plans were stale, the gang waits for STALE_RETRY_S
STALE_RETRY_S: Final = 0.5
PLAN_ID_BYTES: Final = 6

Release = Callable[[list[PodUid]], None]
NodesOf = Callable[[GangKey], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Restrictions:
    """What other parts know about a gang and the model does not. Each is called once per plan."""

    #: returns the nodes that kube-scheduler refused for members of a gang
    refused: NodesOf
    #: returns the nodes that are kept free for lost members of other gangs
    kept: NodesOf
    #: returns why a gang cannot have its isolated network now, "" if it can or needs none
    network: Callable[[GangKey], str]
    #: the nodes that are closed to all gangs
    closed: ClosedNodes


@dataclass(slots=True)
class Cycle:
    """What one planning cycle shares between the gangs that it plans."""

    #: when the cycle ends and the gangs are ordered again, in seconds of the planner's clock
    until: float
    #: gangs that were ready when the cycle began, as they were then
    ready: dict[GangKey, GangView]
    _totals: FreeTotals | None = None  # of a snapshot since the last hold, if needed

    def may_fit(self, view: GangView, state: ClusterState) -> bool:
        """Return whether the total free resources suffice for a gang's waiting members."""
        if self._totals is None:
            self._totals = FreeTotals(state.snapshot())
        return self._totals.may_fit(view)

    def held(self) -> None:
        """Note that room was taken."""
        self._totals = None


class Planner:
    """Plans the gangs on its list until none is left, then sleeps until something changes."""

    def __init__(
        self,
        engine: Engine,
        config: ExtenderConfig,
        worklist: WorkList,
        holding: PlanHolder,
        *,
        restrictions: Restrictions,
        release: Release,
        bind_times: BindTimes,
        reporter: DecisionReporter,
        metrics: ExtenderMetrics,
        pace: Pace,
        rooms: RoomMaker | None = None,
        queues: QueueTurns | None = None,
        run_times: RunTimes | None = None,
    ) -> None:
        """``release`` gets the pods of each held plan; without ``rooms`` no gang gives way."""
        self._engine = engine
        self._config = config
        self._scoring = config.scoring.as_scoring()
        self._list = worklist
        self._holding = holding
        self._restrictions = restrictions
        self._release = release
        #: how long gangs take until they are bound
        self.bind_times = bind_times
        self._reporter = reporter
        self._metrics = metrics
        self._pace = pace
        self._spares = SpareKeeper(engine, metrics, reporter)
        self._queues = queues or QueueTurns(engine)
        self._order = OrderGuard(engine.clock, metrics)
        #: what starts are promised with
        self.parts = parts = PromiseParts.of(
            engine, self._queues, config.backfill, rooms, run_times
        )
        reports = PromiseReports(
            engine, parts.book, parts.ends, parts.claims.tries, worklist, reporter, metrics
        )
        self._keeper = PromiseKeeper(engine, parts, reports, worklist, pace, rooms)
        self._charges = engine.state.charges
        #: whether starts are promised where there are no queues, too
        self._always_promises = config.backfill.without_queues
        self._resting = False
        #: the last decision about each gang that waits or was refused, for ``explain``
        self.decisions = worklist.decisions
        #: the last decisions that changed something, with the snapshots they were made on
        self.history = History(config.dump.keep_decisions)

    @property
    def waiting(self) -> int:
        """Number of gangs that were looked at and wait for room."""
        return len(self._list.parked)

    @property
    def is_idle(self) -> bool:
        """Whether no gang can be planned now; timers may be running."""
        return self._resting and not self._list.wake.is_set()

    @property
    def promises(self) -> PromiseBook:
        """The starts that gangs were promised."""
        return self.parts.book

    @property
    def rooms(self) -> RoomMaker | None:
        """Makes other gangs give way to gangs that wait, ``None``: it is off."""
        return self._keeper.rooms

    def why(self, gang: GangView) -> str | None:
        """Return why a gang waits, None when it does not; see ``extender.planning.waitcauses``."""
        return waitcauses.cause(gang, self.decisions.get(gang.key))

    def forget_gone(self) -> None:
        """Drop gangs that are gone. A standby plans none, so its list would only grow."""
        self._list.keep_only(set(self._engine.state.gangs()))

    async def run(self) -> None:
        """Plan forever."""
        while True:
            self._resting = True
            await self._sleep()
            self._resting = False
            await asyncio.sleep(self._config.debounce_seconds)
            self._list.wake.clear()
            self._pace.begin()
            await self.settle()

    async def settle(self) -> None:
        """Run cycles until nothing is left that could be planned now."""
        self._list_due()
        while self._list.open_round():
            await self._cycle()
        self._list.wake.clear()  # holding the plans has set it
        if self._charges.is_used or self._always_promises:
            self._keeper.list_turns()

    async def _sleep(self) -> None:
        """Wait for an effect, or until the first gang's assembly window is over."""
        if not self._list.not_before:
            await self._list.wake.wait()
            return
        delay = min(self._list.not_before.values()) - self._engine.clock()
        try:
            async with asyncio.timeout(max(0.0, delay)):
                await self._list.wake.wait()
        except TimeoutError:
            return

    def _list_due(self) -> None:
        now = self._engine.clock()
        for key in [key for key, at in self._list.not_before.items() if at <= now]:
            self._list.changed(key)

    async def _cycle(self) -> None:
        """Plan listed gangs in order. After ``cycle_seconds`` they must be ordered again.

        Thousands of gangs take longer than that to order; then they are planned for as long as that
        took. Otherwise each cycle would plan one of them.
        """
        began = self._pace.clock()
        candidates, ready = await self._assembled()
        if not candidates:
            return  # no snapshot without need: after one, events copy the columns they write to
        await self._pace.drive(self._engine.state.prepare())
        snapshot, line = self._engine.state.snapshot(), None
        if self._charges.is_used:
            steps = self._queues.open_line(candidates, self._parked(), snapshot, self.parts.claims)
            line = await self._order.opened(steps, self._pace)
        plain = iter(() if line is not None else order(candidates, snapshot, self._engine.clock()))
        now = self._pace.clock()
        until = now + max(self._config.cycle_seconds, now - began)
        cycle = Cycle(until, ready)
        while (key := next(plain, None) if line is None else self._order.next(line)) is not None:
            self._list.todo.discard(key)
            if line is not None and line.is_refused and self._was_refused(key):
                self._list.park(key)
            else:
                await self._look_at(key, cycle)
            if line is not None:
                line.looked_at(key, waits=key in self._list.parked)
            if key in self._list.parked and await self._promise(key):
                return  # gangs go in another order now
            await self._pace.breathe()
            if self._pace.clock() > until:
                return

    async def _promise(self, key: GangKey) -> bool:
        """Promise a gang that waits for room a start; returns whether it had none before."""
        if not (self._charges.is_used or self._always_promises):
            return False
        return await self._keeper.give(self._view(key), self.decisions.get(key), self.questions)

    def _was_refused(self, key: GangKey) -> bool:
        """Return whether a gang was told that its queue does not admit it, and has not changed."""
        said = self.decisions.get(key)
        refused = isinstance(said, Wait) and said.reason is WaitReason.OVER_QUOTA
        return refused and key in self._list.searched and not self._queues.has_choice(key)

    def _parked(self) -> Iterator[GangView]:
        """Yield the gangs that wait for room."""
        return (view for key in self._list.parked if (view := self._view(key)) is not None)

    async def _assembled(self) -> tuple[list[GangView], dict[GangKey, GangView]]:
        """Return the gangs to plan, and those of them that are complete; others leave the list.

        A gang that is not complete is planned if it lacks hot spares.
        """
        found: list[GangView] = []
        ready: dict[GangKey, GangView] = {}
        for key in list(self._list.todo):
            if self._lacks_members(key) or self._engine.state.is_idle(key):
                self._unlist(key)
                continue
            view = self._view(key)
            if view is not None and self._is_ready(view):
                ready[key] = view
                found.append(view)
            elif view is not None and view.lacks_standby:
                found.append(view)
            else:
                if self._charges.is_used or self._always_promises:
                    self._keeper.void(key)
                self._list.todo.discard(key)
                self._list.views.pop(key, None)
                self._forget_if_gone(key, view)
            await self._pace.breathe()
        return found, ready

    def _lacks_members(self, key: GangKey) -> bool:
        """Return whether a gang lacks members and was never decided: each new member lists it."""
        lack = self._engine.state.lack_of_members(key)
        if lack is None or key in self.decisions or key in self._list.deferred:
            return False
        self._reporter.incomplete(key, *lack)
        return True

    def _unlist(self, key: GangKey) -> None:
        """Take a gang off the list until it changes; most have members on the way to a node."""
        if self._charges.is_used or self._always_promises:
            self._keeper.void(key)
        self._list.todo.discard(key)
        self._list.views.pop(key, None)
        self._list.not_before.pop(key, None)
        self.decisions.pop(key, None)

    def _view(self, key: GangKey) -> GangView | None:
        """Return the view of a gang; it is computed once per change of the gang."""
        view = self._list.views.get(key)
        if view is None:
            view = self._engine.state.gang(key)
            if view is not None:
                self._list.views[key] = view
        return view

    def _is_ready(self, view: GangView) -> bool:
        self._list.not_before.pop(view.key, None)
        found = standing(
            view,
            now=self._engine.clock(),
            window_s=self._config.assembly_window_seconds,
            deferred_until=self._list.deferred.get(view.key),
        )
        if isinstance(found, Deferred):
            self._list.not_before[view.key] = found.until
            return False
        self._list.deferred.pop(view.key, None)
        match found:
            case Ready():
                return True
            case NotBefore(at):
                self._list.not_before[view.key] = at
            case Incomplete(present, needed):
                self._reporter.incomplete(view.key, present, needed)
            case Idle():
                self.decisions.pop(view.key, None)
            case _ as unreachable:
                assert_never(unreachable)
        return False

    def _forget_if_gone(self, key: GangKey, view: GangView | None) -> None:
        if view is None:
            self.decisions.pop(key, None)
            self._list.not_before.pop(key, None)
            self._list.deferred.pop(key, None)
            self._list.searched.discard(key)
            self._reporter.gone(key)
            self._spares.forget(key)

    async def _look_at(self, key: GangKey, cycle: Cycle) -> None:
        """Plan one gang and hold the plan, or park it with the reason."""
        for _ in range(PLAN_ATTEMPTS):
            await self._pace.drive(self._engine.state.prepare())  # before the view: it breathes
            view = self._view(key)
            if view is None:
                return
            known = view is cycle.ready.get(key) and key not in self._list.deferred
            if not known and not self._is_ready(view):
                await self._keep_spares(view)
                return
            if key in self._list.searched and not cycle.may_fit(view, self._engine.state):
                self._list.park(key)
                return
            if len(view.waiting) == 1:
                await self._learn()
            snapshot = self._engine.state.snapshot()
            questions = self.questions(key)  # of the same moment
            if snapshot.gang(key) is None:
                continue  # the gang was deleted in the meantime
            look = self._engine.story.look(
                key, len(view.waiting), len(view.released) + len(view.bound), questions[0].now
            )
            question, decision = await self._decide_first(questions, snapshot)
            beside = await self._beside(questions, decision, snapshot)
            if beside is not None:
                question, decision = beside.question, beside.plan
            if not isinstance(decision, Plan):
                self._set_aside(
                    view, AnsweredQuestion(snapshot, question, decision), decision, look
                )
                await self._keep_spares(view)
                return
            if await self._hold(view, question, decision, snapshot, look):
                await self._finish(key, view, () if beside is None else beside.moved)
                cycle.held()
                return
            self._metrics.stale_plans.inc()
        self._list.not_before[key] = self._engine.clock() + STALE_RETRY_S

    async def _beside(
        self, questions: Sequence[Question], decision: Decision, snapshot: Snapshot
    ) -> Beside | None:
        """Return a plan on promised nodes, if the gang finds no others and delays no promise."""
        if not questions[0].promised:
            return None
        return await self._keeper.beside(questions, decision, snapshot, self._decide)

    async def _finish(self, key: GangKey, view: GangView, moved: Sequence[Promise]) -> None:
        """Finish a gang whose plan is held: take its hot spares before another gang is planned.

        ``moved``: promises as they are beside its plan.
        """
        if self._charges.is_used or self._always_promises:
            self._keeper.held(view, moved)
        self._list.views.pop(key, None)
        await self._pace.breathe()
        if self._engine.state.is_idle(key):
            self._unlist(key)
            return
        placed = self._view(key)
        if placed is not None:
            await self._keep_spares(placed)

    async def _learn(self) -> None:
        """Update the prices in the state by which a lone pod is placed (docs/placement)."""
        if self._scoring.profile is not Profile.LEAST_STRANDED:
            return
        learned = await self._pace.drive(learned_of(self._engine.state.snapshot()))
        if learned is not None:
            self._engine.apply(PricesLearned(learned))

    async def _keep_spares(self, view: GangView) -> None:
        """Take the hot spares that a gang lacks; park the gang if there is no room for all."""
        if view.lacks_standby and not await self._spares.keep(self.question(view.key), self._pace):
            self._list.todo.discard(view.key)  # its own hot spares are no reason to look again
            self._list.park(view.key)

    def question(self, key: GangKey) -> Question:
        """Return the question about a gang now; it and a snapshot determine the decision."""
        return self.questions(key)[0]

    def questions(self, key: GangKey) -> list[Question]:
        """Return one question for each flavor that a gang may have, in the order of trying."""
        plain = Question(
            gang=key,
            now=self._engine.clock(),
            window_s=self._config.assembly_window_seconds,
            spare_count=self._config.spare_count,
            deferred_until=self._list.deferred.get(key),
            refused=tuple(sorted(self._restrictions.refused(key))),
            kept=tuple(sorted((*self._restrictions.kept(key), *self._restrictions.closed.names))),
            scoring=self._scoring,
            network=self._restrictions.network(key),
        )
        if not (self._charges.is_used or self._always_promises):
            return [plain]
        binding = self._keeper.binding(key, self._view(key))
        plain = replace(plain, promised=nodes_of(binding))
        if not self._charges.is_used:
            return [plain]
        return [
            replace(plain, quota=one.refusal, most=one.most, flavors=one.flavors)
            for one in self._allowances(key, binding)
        ]

    def _allowances(self, key: GangKey, binding: Sequence[Promise]) -> list[Allowance]:
        """Return what its queue lets a gang take; if that raises an error only this gang waits."""
        try:
            found = self._queues.allowances(key)
            if not binding or found[0].refusal:
                return found
            with self.parts.quotas.at_start(binding):
                found = self._queues.allowances(key)
            return [replace(one, refusal=promised_first(one.refusal, binding)) for one in found]
        except Exception as error:
            log.exception("queue not asked", extra={"gang": key})
            self._metrics.faults.labels("queue").inc()
            return [Allowance(f"its queue cannot be asked: {described(error)}; {REMEDY}")]

    def note(self, key: GangKey) -> Note:
        """Return where the planner lists a gang, and its last decision about it."""
        listed = "to do" if key in self._list.todo else ""
        said, last = None, self.decisions.get(key)
        if isinstance(last, Wait | Reject):
            word = AnswerKind.WAIT if isinstance(last, Wait) else AnswerKind.REJECT
            said = LastDecision(word, last.reason, last.generation)
        return Note(
            listed or ("parked" if key in self._list.parked else ""),
            self._list.not_before.get(key),
            said,
        )

    async def _decide_first(
        self, questions: Sequence[Question], snapshot: Snapshot
    ) -> tuple[Question, Decision]:
        """Return the first question whose answer is a plan, else the first of all."""
        found: list[tuple[Question, Decision]] = []
        for question in questions:
            found.append((question, await self._decide(question, snapshot)))
            if isinstance(found[-1][1], Plan):
                return found[-1]
        return found[0]

    async def _decide(self, question: Question, snapshot: Snapshot) -> Decision:
        began = self._pace.clock()
        decision = await self._pace.drive(decide(snapshot, question))
        outcome = type(decision).__name__.lower()
        self._metrics.decisions.labels(outcome).observe(self._pace.clock() - began)
        return decision

    def _set_aside(
        self, view: GangView, asked: AnsweredQuestion, decision: Wait | Reject, look: int
    ) -> None:
        """Park a gang that does not fit, and count the skip; later gangs may go first."""
        changed = view.key in self._list.todo  # while it was being planned
        self._engine.apply(GangSkipped(view.key, decision.reason.value), look)
        if not changed:
            self._list.todo.discard(view.key)  # counting the skip has listed it; it need not be
        self._list.park(view.key)
        before = self.decisions.get(view.key)
        self._reporter.set_aside(view, decision, before)
        self._reporter.faulty(decision)
        if not repeats(decision, before):
            self.history.note(asked)
        self.decisions[view.key] = decision
        if not changed:
            self._list.searched.add(view.key)
        again = again_at(decision, self._engine.clock())
        if again is not None:
            self._list.not_before[view.key] = again

    async def _hold(
        self, view: GangView, question: Question, plan: Plan, snapshot: Snapshot, look: int
    ) -> bool:
        """Hold the plan and hand it to the release; False when it no longer fits."""
        chosen = await self._pace.drive(assignments(snapshot, plan))
        now = self._engine.clock()
        held = PlanHeld(
            gang=view.key,
            plan_id=secrets.token_hex(PLAN_ID_BYTES),
            assignments=chosen,
            deadline=now + self._config.hold_seconds,
            generation=plan.generation,
            displaced=tuple(snapshot.pods.uid(row) for row in plan.displaced.tolist()),
        )
        fits = look and self._engine.story.decided(view.key, len(chosen), plan.domains, now, look)
        if not await self._holding.hold(held, self._pace, fits):
            return False
        self.decisions.pop(view.key, None)
        self.history.note(AnsweredQuestion(snapshot, question, Planned(plan, chosen)))
        await self._pace.breathe()  # the history has just freed an older snapshot, which takes time
        self._reporter.planned(view, plan, held)
        if view.spec is not None and not len(view.bound):
            self._metrics.gang_wait.observe(max(0.0, now - view.submitted_at))
        self.bind_times.planned(view, len(chosen))
        self._release([assignment.uid for assignment in chosen])
        return True
