"""What others may do beside promises: go in time, keep off the nodes, or move a promise.

::

    another gang ──► gone by then, or outranks ──► not bound by the promise
                  ├► planned beside the promised nodes
                  └► on them, if the promised gang still starts in time elsewhere: moved
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from extender.config.backfill import BackfillConfig
from extender.engine import Engine
from extender.planning.promises.futurequotas import FutureQuotas
from extender.planning.promises.gangends import GangEnds
from extender.planning.promises.promisebook import PromiseBook
from extender.planning.queueturns import QueueTurns
from extender.timeslice import Pace
from muster.cluster.ids import GangKey
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import decide
from muster.decisions.earlieststart import names_of, requests, still_starts
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question
from muster.queueing.admission.memberrequests import requests_of
from muster.queueing.backfill.expectedends import ExpectedEnd
from muster.queueing.backfill.promise import Promise
from muster.queueing.order import begun

Decided = Callable[[Question, Snapshot], Awaitable[Decision]]
"""Plans a gang, in slices."""


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A plan on promised nodes whose gangs fit elsewhere in time."""

    question: Question
    plan: Plan
    #: The promises as they are once the plan is held.
    moved: tuple[Promise, ...]


@dataclass(frozen=True, slots=True)
class PromiseGuard:
    """Keeps gangs off what is promised to others."""

    engine: Engine
    queues: QueueTurns
    settings: BackfillConfig
    book: PromiseBook
    ends: GangEnds
    quotas: FutureQuotas

    def binding(self, view: GangView) -> list[Promise]:
        """Return the promises that a gang must not delay: it neither leaves in time nor outranks.

        None for one that was begun: its members hold room that is useless until it is whole.
        """
        if not len(self.book) or begun(view):
            return []
        now, run_time = self.engine.clock(), self.ends.run_times.of(view)
        others = [
            one
            for one in self.book
            if one.gang != view.key
            and not one.leaves_in_time(now, run_time, self.settings.slack_seconds)
        ]
        claim = self.queues.claim(view) if others else None
        return [one for one in others if claim is None or not one.yields(claim)]

    async def beside(
        self, questions: Sequence[Question], snapshot: Snapshot, decided: Decided, pace: Pace
    ) -> Beside | None:
        """Return a plan on promised nodes after which their gangs still start in time, if any."""
        view = snapshot.gang(questions[0].gang)
        binding = [] if view is None else self.binding(view)
        if view is None:
            return None
        is_counted = self._has_room(view.key)
        if not is_counted and not all(_leaves_enough(snapshot, view, one) for one in binding):
            return None
        for question in questions:
            free = replace(question, promised=())
            decision = None if question.quota else await decided(free, snapshot)
            if isinstance(decision, Plan):
                moved = await self._moved(decision, binding, snapshot, pace)
                if moved is not None:
                    return Beside(free, decision, moved)
        return None

    async def moved_by(
        self, view: GangView, plan: Plan, snapshot: Snapshot, pace: Pace
    ) -> tuple[Promise, ...] | None:
        """Return others' promises as they are beside a plan, ``None``: one would be broken."""
        return await self._moved(plan, self.binding(view), snapshot, pace)

    async def _moved(
        self, plan: Plan, binding: Sequence[Promise], snapshot: Snapshot, pace: Pace
    ) -> tuple[Promise, ...] | None:
        """Return others' promises as they are beside a plan, ``None``: one would be broken.

        The planned gang needs its own promise no more, so another one may be moved there; but not
        that of a gang for which room was made: the two would swap their rooms. Such a gang counts
        on what gives way to it, or is free already, and on no end that is expected.
        """
        now, going = self.engine.clock(), self.ends.departures.going()
        expected: list[ExpectedEnd] | None = None
        taken = list(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True))
        moved = []
        for one in binding:
            if one.is_made:
                ends = self.ends.given(snapshot, going, now, one.gang)
            else:
                if expected is None:
                    expected = await pace.drive(self.ends.expected(snapshot, going, now))
                ends = expected
            by_then = [end for end in ends if end.at <= one.start]
            others = self.book.nodes_of_others(one.claim, None if one.is_made else plan.gang)
            asked = replace(self.book.basis(one.gang).question, now=one.start, promised=others)
            again = await pace.drive(still_starts(snapshot, asked, by_then, taken, decide))
            if again is None:
                return None
            extra = one.extra
            if not self._has_room(plan.gang):
                extra = _less(extra, requests(snapshot, plan.pods))
            moved.append(replace(one, nodes=names_of(snapshot, again), extra=extra))
        return tuple(moved)

    def _has_room(self, gang: GangKey) -> bool:
        """Return whether room was made for a gang: others' promises were moved for it then."""
        promise = self.book.of(gang)
        return promise is not None and promise.is_made

    def admit(self, view: GangView, rows: Iterable[int], snapshot: Snapshot) -> bool:
        """Return whether its queue admits a gang beside others' promises, once pods have ended."""
        claim, binding = self.queues.claim(view), self.binding(view)
        if claim is None or not binding:
            return True
        known = {one.gang for promise in binding for one in promise.freed}
        end = ExpectedEnd(self.engine.clock(), np.array(list(rows), dtype=np.int32))
        gone = [one for one in self.quotas.freed(end, snapshot) if one.gang not in known]
        with self.quotas.at_start(binding), self.quotas.given_back(gone):
            return self.quotas.admits(claim)

    def move(self, moved: Iterable[Promise]) -> None:
        """Put promises in the places of the same gangs' former ones."""
        self.book.move(moved)


def _leaves_enough(snapshot: Snapshot, view: GangView, promise: Promise) -> bool:
    """Return whether the sum of what is free at a promise's start suffices beside it."""
    asked = requests_of(view, snapshot)
    least = asked.of_first(max(asked.minimum, 1))
    extra = promise.extra
    return all(name not in extra or amount <= extra[name] for name, amount in least.items())


def _less(extra: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, int]:
    return {name: amount - taken.get(name, 0) for name, amount in extra.items()}
