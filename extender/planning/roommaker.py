"""Makes room for the first gang of a tree that waits: others give way to it.

::

    gang waits for room ──► first of its tree? ──► who gives way? (muster.decisions.roomplan)
                                                       │ somebody           │ nobody
                                                       ▼                    ▼
                              ordered, the room is promised to it      why, for explain

The gangs that give way count as ended from the order on. So the promise that follows is on their
nodes, and keeps others off them until the gang has started or its promise ends.
"""

from collections.abc import Collection, Container, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from extender.engine import Engine
from extender.pendingpods import PendingPods
from extender.planning.evictionorders import EvictedGang, EvictionOrder
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.decisions import roomtext
from muster.decisions.roomplan import (
    NoRoom,
    RoomAnswer,
    RoomQuestion,
    RoomVictim,
    room_for,
)
from muster.decisions.tenancy import GangTerms
from muster.placement.question import Question
from muster.queueing.preemption.policies import OwnQueuePolicies


class Evictions(Collection[GangKey], Protocol):
    """Carries orders out; contains the gangs that give way now."""

    def order(self, order: EvictionOrder) -> bool:
        """Have gangs give way, all or none; returns whether they will."""

    def is_served(self, preemptor: GangKey) -> bool:
        """Return whether gangs give way to a gang now."""

    def protected(self) -> Iterator[GangKey]:
        """Yield gangs whose eviction was refused lately."""


@dataclass(frozen=True, slots=True)
class RoomMaker:
    """Asks who gives way, and orders it."""

    engine: Engine
    pods: PendingPods
    evictions: Evictions
    reporter: DecisionReporter
    pace: Pace
    #: Gangs for which room is reserved, and whose pods may never come: they are not asked about.
    expected: Container[GangKey] = ()
    #: The last answer about each gang that waits.
    answers: dict[GangKey, RoomAnswer] = field(default_factory=dict)

    async def make(self, view: GangView, question: Question, snapshot: Snapshot) -> None:
        """Have others give way to a gang, if anybody may be made to."""
        if self.evictions.is_served(view.key):
            return
        charges = self.engine.state.charges
        asked = RoomQuestion(question, policies=OwnQueuePolicies(), terms=self._terms(view))
        answer = await self.pace.drive(
            room_for(snapshot, charges if charges.is_used else None, asked)
        )
        if isinstance(answer, NoRoom):
            before = self.answers.get(view.key)
            self._note(answer)
            self.reporter.makes_no_room(
                view, roomtext.why_nobody(answer), is_new=_differ(answer, before)
            )
            return
        order = EvictionOrder(view.key, tuple(_evicted(one, snapshot) for one in answer.victims))
        if self.evictions.order(order):
            self._note(answer)
            self.reporter.makes_room(view, roomtext.makes_room(answer))

    def _note(self, answer: RoomAnswer) -> None:
        """Keep the answer for explain, and forget those about gangs that wait no more."""
        for key in [key for key in self.answers if not self._waits(key)]:
            del self.answers[key]
        self.answers[answer.gang] = answer

    def _waits(self, key: GangKey) -> bool:
        view = self.engine.state.gang(key)
        return view is not None and len(view.waiting) > 0

    def _terms(self, view: GangView) -> dict[GangKey, GangTerms]:
        found = {key: GangTerms(is_protected=True) for key in self.evictions.protected()}
        found[view.key] = GangTerms(preempts=self._preempts(view))
        return found

    def _preempts(self, view: GangView) -> bool:
        """Return whether its first member does not forbid it (``preemptionPolicy: Never``)."""
        if not len(view.waiting):
            return True
        pod = self.pods.get(self.engine.state.pod_uid(int(view.waiting[0])))
        return pod is None or pod.preempts


def _differ(answer: NoRoom, before: RoomAnswer | None) -> bool:
    return not isinstance(before, NoRoom) or before.reason is not answer.reason


def _evicted(victim: RoomVictim, snapshot: Snapshot) -> EvictedGang:
    members = () if victim.is_whole else tuple(snapshot.pods.uid(row) for row in victim.rows)
    return EvictedGang(victim.gang, victim.right.value, members, float(victim.cost.lost))
