"""When a gang starts that waits for room, and on which nodes.

::

    expected ends ──► those that go for it alone, else all ──► first with quota ──► earliest start
                                                                                       │
       a later start without a reason keeps the former promise ◄───────────────────────┘
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from extender.engine import Engine
from extender.planning.promises.futurequotas import FutureQuotas
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBasis, PromiseBook
from extender.planning.promises.promiseclaims import has_lost_nodes
from extender.planning.promises.promisetries import PromiseTries
from extender.timeslice import Pace
from muster.cluster.snapshot import Snapshot
from muster.decisions.answer import decide
from muster.decisions.earlieststart import EarliestStart, earliest_start, names_of
from muster.placement.question import Question
from muster.queueing.backfill.expectedends import LEAVING_S, ExpectedEnd
from muster.queueing.backfill.promise import Freed, Promise, StartClaim


@dataclass(frozen=True, slots=True)
class _Found:
    """The start of a gang."""

    start: EarliestStart
    question: Question
    #: Whether others give way to it, and their room alone is its.
    is_given: bool


@dataclass(frozen=True, slots=True)
class PromiseGiver:
    """Computes promises."""

    engine: Engine
    book: PromiseBook
    ends: GangEnds
    quotas: FutureQuotas
    tries: PromiseTries

    async def give(
        self, claim: StartClaim, questions: Sequence[Question], snapshot: Snapshot, pace: Pace
    ) -> Promise | None:
        """Compute a gang's promise and return it, ``None``: nobody knows when it starts."""
        now, before = self.engine.clock(), self.book.of(claim.gang)
        going = self.ends.departures.going()  # of the snapshot's moment: they may be gone soon
        ends = await pace.drive(self.ends.expected(snapshot, going, now))
        freed = {end: self.quotas.freed(end, snapshot) for end in ends}
        self.ends.learn_nothing_of(going)
        found = await self._found(claim, questions, snapshot, freed, pace)
        if found is None or (self.book.is_further(claim) and found.start.at > now + LEAVING_S):
            self.book.drop(claim.gang)
            return None
        self.tries.given(claim)
        made = self._made(claim, found.start, freed, snapshot, before)
        if before is not None and not found.is_given and self._is_worse(made, before, now):
            made = before
        counted_on = tuple(gang for gang in found.start.waits_for if gang in going)
        made = replace(made, computed_at=now)
        self.book.put(made, PromiseBasis(found.question, counted_on))
        return made

    async def _found(
        self,
        claim: StartClaim,
        questions: Sequence[Question],
        snapshot: Snapshot,
        freed: Mapping[ExpectedEnd, Sequence[Freed]],
        pace: Pace,
    ) -> _Found | None:
        """Return the earliest start on room that is given to a gang, else on any.

        First on what goes for it alone: thousands of pods may go for others.
        """
        given = self.ends.given(list(freed), claim.gang)
        own = self.ends.own(given, claim.gang)
        for ends in (own, given) if len(own) < len(given) else (given,):
            of = {end: freed[end] for end in ends}
            found = await self._earliest(claim, questions, snapshot, of, pace)
            if found is not None:
                return replace(found, is_given=True)
        return await self._earliest(claim, questions, snapshot, freed, pace)

    async def _earliest(
        self,
        claim: StartClaim,
        questions: Sequence[Question],
        snapshot: Snapshot,
        freed: Mapping[ExpectedEnd, Sequence[Freed]],
        pace: Pace,
    ) -> _Found | None:
        """Return the earliest start by any question.

        ``freed``: what each end gives back to queues, the first end first.
        """
        found: _Found | None = None
        ends, first = list(freed), self.quotas.first_admitted(claim, freed.values())
        for question in questions if ends and first is not None else ():
            others = self.book.nodes_of_others(claim)
            asked = replace(question, quota="", promised=others)
            start = await pace.drive(earliest_start(snapshot, asked, ends, decide, first or 0))
            if start is not None and (found is None or start.at < found.start.at):
                found = _Found(start, asked, is_given=False)
        return found

    def _made(
        self,
        claim: StartClaim,
        start: EarliestStart,
        freed: Mapping[ExpectedEnd, Sequence[Freed]],
        snapshot: Snapshot,
        before: Promise | None,
    ) -> Promise:
        returned = _by(start.at, freed)
        overrun = {end.gang for end in freed if end.is_overrun}
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

    def _is_worse(self, made: Promise, before: Promise, now: float) -> bool:
        """Return whether a later start has no reason: the search missed the former one."""
        is_later = made.start > before.start > now and not made.overruns
        return is_later and not has_lost_nodes(self.engine, before)


def _by(time: float, freed: Mapping[ExpectedEnd, Sequence[Freed]]) -> tuple[Freed, ...]:
    """Return what is given back by a time."""
    return tuple(one for end, given in freed.items() if end.at <= time for one in given)
