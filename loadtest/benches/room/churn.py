"""The same gangs in turn, each making room for itself, to see whether anybody comes back.

::

    all that wait, the highest priority first ─► fits: it starts
                                              ─► room is made: victims wait, it starts
                                              ─► neither: the next one
    until nobody gets a place; a set of running gangs that recurs is a cycle

Nobody arrives or ends, time stands still, and no gang is spared for being young: every circle of
evictions would go on for ever and is found.
"""

from dataclasses import dataclass
from typing import Final

from loadtest.benches.room.cases import NOW, Asked, RoomCase
from loadtest.benches.room.score import asked_events, key_of, running, state_of
from muster.cluster.events import GangUpserted, PodGone, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.resumable import run
from muster.decisions.roomplan import RoomPlan, RoomQuestion, WhyNoRoom, room_for
from muster.decisions.tenancy import GangTerms
from muster.kube.names import PLAN_GATE
from muster.placement.decision import Plan
from muster.placement.gang import plan_now
from muster.placement.question import Question

MOST_STEPS: Final = 60
"""Decisions in a run."""


@dataclass(frozen=True, slots=True)
class Churned:
    """What came of one run."""

    evictions: int
    #: Sets of running gangs that recurred.
    cycles: int
    #: Gangs that were left with fewer members than their minimum.
    partial: int
    is_settled: bool


def churned(case: RoomCase, more: tuple[Asked, ...]) -> Churned:
    """Let the gang of a case and ``more`` ask for room, and whoever is evicted."""
    return _Run(case, more).run()


class _Run:
    def __init__(self, case: RoomCase, more: tuple[Asked, ...]) -> None:
        self._state = state_of(case)
        self._terms = {key_of(job.name): GangTerms(job.checkpointed) for job in case.jobs}
        self._pods: dict[PodUid, PodUpserted] = {}
        self._waiting = [key_of("asked")]
        self._evictions = self._partial = 0
        events = [event for job in case.jobs for event in running(job)]
        events += asked_events(case.asked, "asked")
        for number, asked in enumerate(more):
            late = asked_events(asked, f"more-{number}")
            self._waiting.append(key_of(f"more-{number}"))
            for event in late:
                self._state.apply(event, now=NOW)
            events += late
        for event in events:
            if not isinstance(event, GangUpserted):
                self._pods[event.uid] = event

    def run(self) -> Churned:
        """Ask in turn until nobody gets a place."""
        seen = {self._running()}
        for _ in range(MOST_STEPS):
            evicted = self._evictions
            if not self._one():
                return Churned(self._evictions, 0, self._partial, is_settled=True)
            if self._evictions > evicted and self._running() in seen:
                return Churned(self._evictions, 1, self._partial, is_settled=False)
            seen.add(self._running())
        return Churned(self._evictions, 0, self._partial, is_settled=False)

    def _running(self) -> frozenset[tuple[GangKey, int]]:
        snapshot = self._state.snapshot()
        views = [snapshot.gang(key) for key in snapshot.gangs()]
        return frozenset((view.key, len(view.bound)) for view in views if view and len(view.bound))

    def _one(self) -> bool:
        """Let the first gang that can get a place have it; returns whether one could."""
        snapshot = self._state.snapshot()
        views = [view for view in map(snapshot.gang, self._waiting) if view is not None]
        for view in sorted(views, key=lambda v: (-v.priority, v.submitted_at, v.key)):
            asked = RoomQuestion(Question(view.key, now=NOW), terms=self._terms)
            answer = run(room_for(snapshot, self._state.charges, asked))
            if isinstance(answer, RoomPlan):
                self._evict(answer)
                self._start(view.key, answer.plan)
                return True
            if answer.reason is WhyNoRoom.FITS_NOW:
                plan = plan_now(snapshot, Question(view.key, now=NOW))
                if isinstance(plan, Plan):
                    self._start(view.key, plan)
                    return True
        return False

    def _start(self, gang: GangKey, plan: Plan) -> None:
        snapshot = self._state.snapshot()
        pairs = zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True)
        placed = [(snapshot.pods.uid(row), snapshot.nodes.name(node)) for row, node in pairs]
        for uid, node in placed:
            self._put(uid, node)
        self._waiting.remove(gang)

    def _evict(self, answer: RoomPlan) -> None:
        """End the victims; a gang that ended waits again, a smaller one goes on as it is."""
        snapshot = self._state.snapshot()
        for victim in answer.victims:
            self._evictions += 1
            uids = [snapshot.pods.uid(row) for row in victim.rows]
            for uid in uids:
                self._state.apply(PodGone(uid), now=NOW)
            for uid in uids if victim.is_whole else ():
                self._put(uid, None)
            if victim.is_whole:
                self._waiting.append(victim.gang)
            left = self._state.snapshot().gang(victim.gang)
            if left is not None and left.spec is not None:
                self._partial += 0 < len(left.bound) < left.spec.min_count
        self._state.validate()

    def _put(self, uid: PodUid, node: str | None) -> None:
        pod = self._pods[uid]
        gates = frozenset({PLAN_GATE}) if node is None else frozenset[str]()
        started = NOW if node else 0.0
        moved = PodUpserted(
            pod.uid, pod.namespace, pod.name, pod.pod_class, pod.labels,
            node=node, gates=gates, gang=pod.gang, rank=pod.rank, priority=pod.priority,
            managed=True, owned=True, created=pod.created, started=started,
        )  # fmt: skip
        self._state.apply(moved, now=NOW)
