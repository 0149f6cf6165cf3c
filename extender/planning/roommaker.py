"""Makes room for gangs that wait: others give way to them.

::

    gang waits for room ──► its turn? ──► who gives way? (muster.decisions.roomplan)
                                              │ somebody           │ nobody
                                              ▼                    ▼
                     ordered, the room is promised to it      why, for explain

The gangs that give way count as ended from the order on. So the promise that follows is on their
nodes, and keeps others off them until the gang has started or its promise ends.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from extender.engine import Engine
from extender.pendingpods import PendingPods
from extender.planning.evictionorders import EvictedGang, EvictionOrder
from extender.planning.promises.departures import Departures
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.decisions import roomtext
from muster.decisions.budgetconsent import BudgetsByNamespace, breaks_budget
from muster.decisions.roomplan import (
    NoRoom,
    RoomAnswer,
    RoomPlan,
    RoomQuestion,
    RoomVictim,
    WhyNoRoom,
    room_for,
)
from muster.decisions.tenancy import NO_TERMS, GangTerms
from muster.placement.decision import Plan
from muster.placement.question import Question
from muster.queueing.backfill.promise import Promise
from muster.queueing.preemption.dividedshares import DividedShares
from muster.queueing.preemption.policies import PreemptionPolicies


class CheckpointTimes(Protocol):
    """Knows when gangs wrote checkpoints."""

    def latest(self) -> Mapping[GangKey, float]:
        """Return the latest of each gang that wrote one, seconds since the epoch."""


class Evictions(Departures, Protocol):
    """Carries orders out."""

    def order(self, order: EvictionOrder) -> bool:
        """Have gangs give way, all or none; returns whether they will."""

    def is_served(self, preemptor: GangKey) -> bool:
        """Return whether gangs give way to a gang now."""

    def protected(self) -> Iterator[GangKey]:
        """Yield gangs whose eviction was refused lately."""


class DisruptionBudgets(Protocol):
    """Knows disruption budgets, as far as they were read lately."""

    def known(self) -> BudgetsByNamespace:
        """Return what is known."""

    async def learn(self, namespaces: Collection[str]) -> bool:
        """Read the budgets of namespaces; returns whether any were not known."""

    async def learn_all(self) -> bool:
        """Read the budgets of all namespaces; returns whether any were not known."""


class FirmClasses(Protocol):
    """Knows which priorities never give way, as their PriorityClasses say (YuniKorn)."""

    async def refresh(self) -> None:
        """Read the classes again, if that was a while ago."""

    def firm(self) -> frozenset[int]:
        """Return those priorities."""


class DividedQueues(Protocol):
    """Knows the fair shares of the queues."""

    def shares(self) -> DividedShares | None:
        """Return what each queue gets, ``None``: that is not known yet."""


class Nominating(Protocol):
    """Says on pods that wait for which node others give way."""

    def note(self, gang: GangKey, places: Mapping[PodUid, str]) -> None:
        """Have the members of a gang nominated to the nodes that others leave for it."""


class MovablePromises(Protocol):
    """The promises that a plan must not break."""

    async def moved_by(
        self, view: GangView, plan: Plan, snapshot: Snapshot, pace: Pace
    ) -> tuple[Promise, ...] | None:
        """Return promises as they are beside a plan, ``None``: one would be broken."""

    def admit(self, view: GangView, rows: Iterable[int], snapshot: Snapshot) -> bool:
        """Return whether its queue admits a gang beside them, once pods have ended."""

    def move(self, moved: Iterable[Promise]) -> None:
        """Put promises in the places of the same gangs' former ones."""


@dataclass(frozen=True, slots=True)
class RoomMaker:
    """Asks who gives way, and orders it."""

    engine: Engine
    pods: PendingPods
    evictions: Evictions
    reporter: DecisionReporter
    pace: Pace
    checkpoints: CheckpointTimes
    #: Whose queues take and give.
    policies: PreemptionPolicies
    #: Gangs for which room is reserved, and whose pods may never come: they are not asked about.
    expected: Container[GangKey] = ()
    #: ``None``: nobody is nominated.
    nominations: Nominating | None = None
    #: ``None``: only who carries orders out knows them.
    budgets: DisruptionBudgets | None = None
    #: ``None``: no queue obeys them.
    classes: FirmClasses | None = None
    #: ``None``: fair shares give no right to take.
    division: DividedQueues | None = None
    #: The last answer about each gang that waits.
    answers: dict[GangKey, RoomAnswer] = field(default_factory=dict)

    async def make(
        self, view: GangView, question: Question, snapshot: Snapshot, promises: MovablePromises
    ) -> Collection[str]:
        """Have others give way to a gang, if anybody may be made to; returns its nodes then."""
        if self.evictions.is_served(view.key):
            return ()
        answer, moved = await self._answer(view, question, snapshot, promises)
        if isinstance(answer, RoomPlan) and not promises.admit(view, answer.rows, snapshot):
            answer = NoRoom(view.key, snapshot.generation, WhyNoRoom.PROMISED)
        if isinstance(answer, NoRoom):
            before = self.answers.get(view.key)
            self._note(answer)
            self.reporter.makes_no_room(
                view, roomtext.why_nobody(answer), is_new=_differ(answer, before)
            )
            return ()
        order = EvictionOrder(view.key, tuple(_evicted(one, snapshot) for one in answer.victims))
        if not self.evictions.order(order):
            return ()
        promises.move(moved)
        places = _places(answer.plan, snapshot)
        if self.nominations is not None:
            self.nominations.note(view.key, places)
        self._note(answer)
        self.reporter.makes_room(view, roomtext.makes_room(answer))
        return set(places.values())

    async def _answer(
        self, view: GangView, question: Question, snapshot: Snapshot, promises: MovablePromises
    ) -> tuple[RoomAnswer, tuple[Promise, ...]]:
        """Return who gives way, on promised nodes only where their gangs start as early elsewhere.

        With it the promises as they are then.
        """
        answer = await self.answer(view, question, snapshot)
        if not isinstance(answer, NoRoom) or not question.promised:
            return answer, ()
        other = await self.answer(view, replace(question, promised=()), snapshot)
        if isinstance(other, NoRoom):
            return answer, ()
        moved = await promises.moved_by(view, other.plan, snapshot, self.pace)
        return (answer, ()) if moved is None else (other, moved)

    async def answer(self, view: GangView, question: Question, snapshot: Snapshot) -> RoomAnswer:
        """Return who would give way to a gang of a snapshot; nothing is ordered.

        Budgets are read where they matter: those of the gangs that were found, and all of them only
        if these do not allow it. A set that those known allow is the cheapest that all allow.
        """
        budgets = self.budgets
        if budgets is None:
            return await self._asked(view, question, snapshot, {})
        found = await self._asked(view, question, snapshot, budgets.known())
        if isinstance(found, RoomPlan) and await budgets.learn(_namespaces(found, snapshot)):
            if not breaks_budget(snapshot, budgets.known(), self.evictions.going(), found.rows):
                return found
            await budgets.learn_all()
            return await self._asked(view, question, snapshot, budgets.known())
        return found

    async def _asked(
        self, view: GangView, question: Question, snapshot: Snapshot, budgets: BudgetsByNamespace
    ) -> RoomAnswer:
        charges, policies = self.engine.state.charges, self.policies
        if self.classes is not None:
            await self.classes.refresh()
            policies = replace(policies, firm_classes=self.classes.firm())
        asked = RoomQuestion(
            question,
            policies=policies,
            terms=self._terms(view, snapshot),
            going=self.evictions.going(),
            coming=self.evictions.coming(),
            budgets=budgets,
            divided=None if self.division is None else self.division.shares(),
        )
        return await self.pace.drive(
            room_for(snapshot, charges if charges.is_used else None, asked)
        )

    def _note(self, answer: RoomAnswer) -> None:
        """Keep the answer for explain, and forget those about gangs that wait no more."""
        for key in [key for key in self.answers if not self._waits(key)]:
            del self.answers[key]
        self.answers[answer.gang] = answer

    def _waits(self, key: GangKey) -> bool:
        view = self.engine.state.gang(key)
        return view is not None and len(view.waiting) > 0

    def _terms(self, view: GangView, snapshot: Snapshot) -> dict[GangKey, GangTerms]:
        found = {key: GangTerms(at) for key, at in self.checkpoints.latest().items()}
        for key in self.evictions.protected():
            found[key] = replace(found.get(key, NO_TERMS), is_protected=True)
        found[view.key] = GangTerms(preempts=self._preempts(view, snapshot))
        return found

    def _preempts(self, view: GangView, snapshot: Snapshot) -> bool:
        """Return whether its first member does not forbid it (``preemptionPolicy: Never``)."""
        if not len(view.waiting):
            return True
        pod = self.pods.get(snapshot.pods.uid(int(view.waiting[0])))
        return pod is None or pod.preempts


def _differ(answer: NoRoom, before: RoomAnswer | None) -> bool:
    return not isinstance(before, NoRoom) or before.reason is not answer.reason


def _namespaces(plan: RoomPlan, snapshot: Snapshot) -> set[str]:
    """Return the namespaces of those who end."""
    labels = snapshot.pods.labels
    return {snapshot.label_sets[int(labels[one.rows[0]])].namespace for one in plan.victims}


def _places(plan: Plan, snapshot: Snapshot) -> dict[PodUid, str]:
    """Return the node of each member."""
    pairs = zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True)
    return {snapshot.pods.uid(pod): snapshot.nodes.name(node) for pod, node in pairs}


def _evicted(victim: RoomVictim, snapshot: Snapshot) -> EvictedGang:
    members = () if victim.is_whole else tuple(snapshot.pods.uid(row) for row in victim.rows)
    return EvictedGang(victim.gang, victim.right.value, members, float(victim.cost.lost))
