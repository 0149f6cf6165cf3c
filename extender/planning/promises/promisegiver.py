"""When a gang starts that waits for room, and on which nodes.

::

    what goes for it alone ──► else what goes at all ──► else all that is expected to end
                                                                          │
    a later start without a reason     earliest start ◄── first end with quota
    keeps the former promise ◄──────────────┘

The API server tells of an end some seconds after it. So a promise stands for ``slack_seconds``
beyond its start while a gang that it waits for holds room. A later start would let others take
that room meanwhile.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from extender.engine import Engine
from extender.planning.promises.futurequotas import FutureQuotas
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBasis, PromiseBook, nodes_of
from extender.planning.promises.promiseclaims import has_lost_nodes
from extender.planning.promises.promisetries import PromiseTries
from extender.timeslice import Pace
from muster.cluster.snapshot import Snapshot
from muster.cluster.specs.podconstraints import GRACE_S
from muster.decisions.answer import decide
from muster.decisions.earlieststart import EarliestStart, earliest_start, names_of
from muster.placement.question import Question
from muster.queueing.backfill.expectedends import ExpectedEnd, Going
from muster.queueing.backfill.promise import Freed, Promise, StartClaim

FreedBy = Mapping[ExpectedEnd, Sequence[Freed]]
"""What each end gives back to queues, the first end first."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Whose start is looked for, and in which state."""

    claim: StartClaim
    questions: Sequence[Question]
    snapshot: Snapshot
    #: Who gives way at the snapshot's moment: they may be gone soon.
    going: Going
    #: Seconds since the epoch.
    now: float
    #: The nodes on which its room was made.
    room: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Found:
    """The start of a gang."""

    start: EarliestStart
    question: Question
    #: The ends that were counted on, whether it waits for them or not.
    freed: FreedBy
    #: Whether others give way to it, and their room alone is its.
    is_given: bool = False

    def is_soon(self, now: float) -> bool:
        """Return whether it waits for pods that end, as others give way to it, or for seconds."""
        return self.is_given or self.start.at <= now + GRACE_S


@dataclass(frozen=True, slots=True)
class PromiseGiver:
    """Computes promises."""

    engine: Engine
    book: PromiseBook
    ends: GangEnds
    quotas: FutureQuotas
    tries: PromiseTries

    async def give(
        self,
        claim: StartClaim,
        questions: Sequence[Question],
        snapshot: Snapshot,
        pace: Pace,
        room: Collection[str] = (),
    ) -> Promise | None:
        """Compute a gang's promise and return it; ``None`` if no start is known.

        ``room``: the nodes on which others were just made to give way to it.
        """
        now, before = self.engine.clock(), self.book.of(claim.gang)
        if before is not None and self._is_shared(before, now):
            return self._again(before, now)
        going = self.ends.departures.going()
        self.ends.learn_nothing_of(going)
        asked = _Asked(claim, questions, snapshot, going, now, _room(before, room))
        found = await self._found_on_given(asked, pace) or await self._found_on_any(asked, pace)
        if found is None or (self.book.is_further(claim) and not found.is_soon(now)):
            self.book.drop(claim.gang)
            return None
        self.tries.given(claim)
        made = self._made(claim, found, snapshot, before)
        if before is not None and not found.is_given and self._stands(before, made, now):
            made = before
        counted_on = tuple(gang for gang in found.start.waits_for if gang in going)
        made = replace(made, computed_at=now)
        self.book.put(made, PromiseBasis(found.question, counted_on))
        return made

    def _again(self, promise: Promise, now: float) -> Promise:
        """Give a promise again as it is."""
        self.tries.given(promise.claim)
        again = replace(promise, computed_at=now)
        self.book.put(again, self.book.basis(promise.gang))
        return again

    def _is_shared(self, promise: Promise, now: float) -> bool:
        """Return whether room for another gang is being made on a promise's nodes, beside it.

        Its start was computed with that room. On its other nodes alone it would be later, or none.
        """
        if promise.is_made or self.ends.departures.giving_to(promise.gang):
            return False
        if not self._may_stand(promise, now):
            return False
        others = (one for one in self.book if one.is_made and one.gang != promise.gang)
        return not set(promise.nodes).isdisjoint(nodes_of(others))

    async def _found_on_given(self, asked: _Asked, pace: Pace) -> _Found | None:
        """Return the earliest start on room that is given to a gang, if others give way to it.

        First on what goes for it alone: thousands of pods may go for others. Its room may be on
        nodes that are promised to others: these start in time beside it, or it was not made there.
        """
        gang = asked.claim.gang
        given = self.ends.given(asked.snapshot, asked.going, asked.now, gang)
        own, freed = self.ends.own(given, gang), self._freed(given, asked.snapshot)
        others = self.book.nodes_of_others(asked.claim)
        closed = tuple(sorted({*others} - asked.room - _nodes(own, asked.snapshot)))
        for ends in (own, given) if len(own) < len(given) else (given,):
            found = await self._earliest(asked, {end: freed[end] for end in ends}, closed, pace)
            if found is not None:
                return replace(found, freed=freed, is_given=True)
        return None

    async def _found_on_any(self, asked: _Asked, pace: Pace) -> _Found | None:
        """Return the earliest start on what is expected to end."""
        ends = self.ends.expected(asked.snapshot, asked.going, asked.now)
        freed = self._freed(await pace.drive(ends), asked.snapshot)
        return await self._earliest(asked, freed, self.book.nodes_of_others(asked.claim), pace)

    def _freed(self, ends: Iterable[ExpectedEnd], snapshot: Snapshot) -> FreedBy:
        return {end: self.quotas.freed(end, snapshot) for end in ends}

    async def _earliest(
        self, asked: _Asked, freed: FreedBy, closed: tuple[str, ...], pace: Pace
    ) -> _Found | None:
        """Return the earliest start by any question, off ``closed`` nodes."""
        found: _Found | None = None
        ends, claim = list(freed), asked.claim
        first = self.quotas.first_admitted(claim, freed.values())
        for question in asked.questions if ends and first is not None else ():
            alone = replace(question, quota="", promised=closed)
            steps = earliest_start(asked.snapshot, alone, ends, decide, first or 0)
            start = await pace.drive(steps)
            if start is not None and (found is None or start.at < found.start.at):
                found = _Found(start, alone, freed)
        return found

    def _made(
        self, claim: StartClaim, found: _Found, snapshot: Snapshot, before: Promise | None
    ) -> Promise:
        start = found.start
        returned = _by(start.at, found.freed)
        overrun = {end.gang for end in found.freed if end.is_overrun}
        return Promise(
            self.quotas.claim_at_start(claim, returned, before),
            start=start.at,
            first_start=start.at if before is None else before.first_start,
            nodes=names_of(snapshot, start.plan),
            waits_for=start.waits_for,
            overruns=tuple(gang for gang in start.waits_for if gang in overrun),
            extra=start.extra,
            freed=returned,
            is_made=claim.gang in self.ends.departures.coming(),
        )

    def _stands(self, before: Promise, made: Promise, now: float) -> bool:
        """Return whether a former promise stands: a later one has no reason.

        Before its start the search missed it. After it, ends have not been seen yet.
        """
        if made.start <= before.start or made.overruns:
            return False
        return self._may_stand(before, now)

    def _may_stand(self, promise: Promise, now: float) -> bool:
        """Return whether a start may still come, or come a moment late, on nodes that are there."""
        if has_lost_nodes(self.engine, promise):
            return False
        return promise.start > now or self._awaits_ends(promise, now)

    def _awaits_ends(self, promise: Promise, now: float) -> bool:
        """Return whether gangs hold room whose ends may be seen late."""
        holds_room = self.engine.state.holds_room
        return now < self.ends.latest_end(promise) and any(map(holds_room, promise.waits_for))


def _room(before: Promise | None, room: Collection[str]) -> frozenset[str]:
    """Return the nodes of the room that was made for a gang, now or before."""
    return frozenset(room or (before.nodes if before is not None and before.is_made else ()))


def _nodes(ends: Iterable[ExpectedEnd], snapshot: Snapshot) -> set[str]:
    """Return the nodes that gangs leave; pods that are being deleted leave them for anybody."""
    rows = [row for end in ends if end.gang is not None for row in end.rows.tolist()]
    return {snapshot.nodes.name(int(node)) for node in snapshot.pods.node.array()[rows]}


def _by(time: float, freed: FreedBy) -> tuple[Freed, ...]:
    """Return what is given back by a time."""
    return tuple(one for end, given in freed.items() if end.at <= time for one in given)
