"""Promised starts: the first gang of each tree of queues that does not fit knows when it will.

::

    gang waits for room ──► first of its tree? ──► when have enough ended? ──► PROMISED
                                                                                │ ▲
    another gang ──► gone by then? ──► planned anywhere                         │ │
                  ├► planned beside the promised nodes  ◄───────────────────────┘ │
                  └► planned anywhere, if the first one fits elsewhere then: ─────┘ moved

Ends are those of ``muster.queueing.backfill``; ``muster.decisions.earlieststart`` finds starts on
the cluster as it will be. A promise is computed anew when its time has come and its gang still
waits, when one of its nodes went, and every ``refresh_seconds`` to find an earlier start. A further
gang of a tree is promised a start, too, while others give way to it.
"""

import math
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from extender.config.backfill import BackfillConfig
from extender.engine import Engine
from extender.planning.promisetries import PromiseTries
from extender.planning.queueturns import QueueTurns
from extender.timeslice import Pace
from muster.cluster.ids import NO_ROW, GangKey
from muster.cluster.quota.availability import borrows, lack, never_fits
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.quota.tree import closed_at
from muster.cluster.resumable import Steps
from muster.cluster.snapshot import Snapshot
from muster.cluster.tables.gangview import GangView
from muster.decisions.answer import decide
from muster.decisions.earlieststart import (
    EarliestStart,
    earliest_start,
    requests,
    still_starts,
)
from muster.placement.decision import Decision, Plan
from muster.placement.question import Question
from muster.queueing.admission.memberrequests import requests_of
from muster.queueing.backfill.expectedends import (
    LEAVING_S,
    NOBODY,
    ExpectedEnd,
    Going,
    expected_ends,
)
from muster.queueing.backfill.promise import Freed, Promise, StartClaim
from muster.queueing.backfill.runtimes import RunTimes
from muster.queueing.order import begun

_UNKNOWN: Final = 1e18  # goes behind every area that is known
Decided = Callable[[Question, Snapshot], Awaitable[Decision]]
"""Plans a gang, in slices."""


class Departures(Protocol):
    """Gangs that give way to others."""

    def going(self) -> Going:
        """Return those that do so now, with the members that end."""

    def coming(self) -> Collection[GangKey]:
        """Return the gangs that get their room."""

    def giving_to(self, gang: GangKey) -> Collection[GangKey]:
        """Return those that give way to a gang."""


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """A plan on promised nodes whose gangs fit elsewhere in time."""

    question: Question
    plan: Plan
    #: The promises as they are once the plan is held.
    moved: tuple[Promise, ...]


class Promises:
    """The promises of one cluster, iterable: one for each tree of queues.

    Further gangs of a tree have one only for the seconds in which others give way to them.
    """

    def __init__(self, engine: Engine, queues: QueueTurns, settings: BackfillConfig) -> None:
        self._engine = engine
        self._queues = queues
        self._settings = settings
        self._by_root: dict[QueueName | None, Promise] = {}
        #: what was asked when each promise was given
        self._asked: dict[GangKey, Question] = {}
        #: those of further gangs of a tree, to which others give way
        self._further: dict[GangKey, Promise] = {}
        #: which gangs are looked at
        self.tries = PromiseTries(engine.clock, settings.refresh_seconds)
        #: how long gangs run
        self.run_times = RunTimes(settings.quantile)
        self._evictions: Departures | None = None
        #: gangs whose pods may never come: they are promised nothing
        self._expected: Container[GangKey] = ()
        #: by gang with a promise, those that it waits for and that gave way then
        self._counted_on: dict[GangKey, tuple[GangKey, ...]] = {}
        #: when each running gang got its room (seconds since the epoch), with its view then
        self._running: dict[GangKey, tuple[GangView, float]] = {}

    def __iter__(self) -> Iterator[Promise]:
        """Yield every promise, of each tree the one that was given first first."""
        return iter([*self._by_root.values(), *self._further.values()])

    def __len__(self) -> int:
        """Return the number of promises."""
        return len(self._by_root) + len(self._further)

    def of(self, key: GangKey) -> Promise | None:
        """Return a gang's promise, ``None``: it has none."""
        return next((one for one in self if one.gang == key), None)

    def make_room(self, evictions: Departures, expected: Container[GangKey]) -> None:
        """Know that others may be made to give way, and to whom they are not: ``expected``."""
        self._evictions, self.tries.in_turn = evictions, True
        self._expected = expected

    def _going(self) -> Going:
        """Return the gangs that give way to others now."""
        return NOBODY if self._evictions is None else self._evictions.going()

    # --- run times --------------------------------------------------------------------------

    def held(self, view: GangView, moved: Sequence[Promise] = ()) -> Promise | None:
        """Take note that a gang got its room, and that others' promises ``moved`` for it.

        Returns its own promise, which is kept by that.
        """
        self.move(moved)
        if self._settings.enabled:
            self._running.setdefault(view.key, (view, self._engine.clock()))
        return self.drop(view.key)

    def drop(self, key: GangKey) -> Promise | None:
        """Forget a gang's promise; returns it."""
        self._asked.pop(key, None)
        self._counted_on.pop(key, None)
        promise = self.of(key)
        if promise is not None and self._further.pop(key, None) is None:
            del self._by_root[promise.claim.root]
        return promise

    def looked_at(self, key: GangKey) -> None:
        """Learn the run time of a gang that holds no room any more."""
        began = self._running.get(key)
        if began is not None and not self._engine.state.holds_room(key):
            del self._running[key]
            if self._settings.learn:
                self.run_times.learn(began[0], self._engine.clock() - began[1])

    def since(self, view: GangView, root: QueueName, share: float) -> float:
        """Return by what a gang is ordered among those of its queue that have its priority.

        Without a promise in its tree the time of its submission. Otherwise the area that it takes,
        ``share`` of the cluster times run time: the smallest goes first (Carastan-Santos et al.,
        "One can only gain by replacing EASY Backfilling", CCGrid 2019). Age is not lost by that:
        the oldest has the promise.
        """
        promise = self._by_root.get(root)
        if promise is None:
            return view.submitted_at
        if promise.gang == view.key:
            return -math.inf
        run_time = self.run_times.of(view)
        return _UNKNOWN + view.submitted_at if run_time is None else share * run_time

    # --- who keeps off what -----------------------------------------------------------------

    def binding(self, view: GangView) -> list[Promise]:
        """Return the promises that a gang must not delay: it neither leaves in time nor outranks.

        None for one that was begun: its members hold room that is useless until it is whole.
        """
        if not len(self) or begun(view):
            return []
        now, run_time = self._engine.clock(), self.run_times.of(view)
        others = [
            one
            for one in self
            if one.gang != view.key
            and not one.leaves_in_time(now, run_time, self._settings.slack_seconds)
        ]
        claim = self._queues.claim(view) if others else None
        return [one for one in others if claim is None or not one.yields(claim)]

    @contextmanager
    def at_start(self, promises: Sequence[Promise]) -> Iterator[None]:
        """Have queues use for a moment what they will use at the start of promises."""
        tree, claims = self._engine.state.charges.tree, [one.claim for one in promises]
        every = {one[:2] + one[3:]: one for promise in promises for one in promise.freed}
        holding = self._engine.state.holding
        freed = [one._replace(amounts=one.left(holding(one.gang))) for one in every.values()]
        taken = [
            (claim.queue, claim.request)
            for claim in claims
            if claim.queue is not None and tree.find(claim.queue) is not None
        ]
        with self._given_back(freed):
            for queue, request in taken:
                tree.charge(queue, request)
            try:
                yield
            finally:
                for queue, request in taken:
                    tree.give_back(queue, request)

    @contextmanager
    def _given_back(self, freed: Iterable[Freed]) -> Iterator[None]:
        """Give back for a moment what gangs are charged; queues that are gone are left out."""
        tree = self._engine.state.charges.tree
        there = [one for one in freed if tree.find(one.queue) is not None]
        for one in there:
            tree.give_back(one.queue, one.amounts)
        try:
            yield
        finally:
            for one in there:
                tree.charge(one.queue, one.amounts)

    async def beside(
        self, questions: Sequence[Question], snapshot: Snapshot, decided: Decided, pace: Pace
    ) -> Beside | None:
        """Return a plan on promised nodes after which their gangs still start in time, if any."""
        view = snapshot.gang(questions[0].gang)
        binding = [] if view is None else self.binding(view)
        if view is None or not all(_leaves_enough(snapshot, view, one) for one in binding):
            return None
        for question in questions:
            free = replace(question, promised=())
            decision = None if question.quota else await decided(free, snapshot)
            if isinstance(decision, Plan):
                moved = await self._moved(decision, binding, snapshot, pace)
                if moved is not None:
                    return Beside(free, decision, moved)
        return None

    async def _moved(
        self, plan: Plan, binding: Sequence[Promise], snapshot: Snapshot, pace: Pace
    ) -> tuple[Promise, ...] | None:
        """Return promises as they are after a plan, ``None``: one of them would be broken."""
        ends = await pace.drive(self._ends(snapshot, self._going()))
        taken = list(zip(plan.pods.tolist(), plan.nodes.tolist(), strict=True))
        moved = []
        for one in binding:
            given = self._given(ends, one.gang) or ends
            by_then = [end for end in given if end.at <= one.start]
            asked = replace(self._asked[one.gang], now=one.start, promised=self._others(one.claim))
            again = await pace.drive(still_starts(snapshot, asked, by_then, taken, decide))
            if again is None:
                return None
            extra = _less(one.extra, requests(snapshot, plan.pods))
            moved.append(replace(one, nodes=names_of(snapshot, again), extra=extra))
        return tuple(moved)

    async def moved_by(
        self, view: GangView, plan: Plan, snapshot: Snapshot, pace: Pace
    ) -> tuple[Promise, ...] | None:
        """Return others' promises as they are beside a plan, ``None``: one would be broken."""
        return await self._moved(plan, self.binding(view), snapshot, pace)

    def admit(self, view: GangView, rows: Iterable[int], snapshot: Snapshot) -> bool:
        """Return whether its queue admits a gang beside others' promises, once pods have ended."""
        claim, binding = self._queues.claim(view), self.binding(view)
        node = None if claim is None else self._node(claim)
        if claim is None or node is None or not binding:
            return True
        known = {one.gang for promise in binding for one in promise.freed}
        end = ExpectedEnd(self._engine.clock(), np.array(list(rows), dtype=np.int32))
        gone = [one for one in self._freed(end, snapshot) if one.gang not in known]
        with self.at_start(binding), self._given_back(gone):
            return lack(node, claim.request) is None

    def move(self, moved: Iterable[Promise]) -> None:
        """Put promises in the places of the same gangs' former ones."""
        for promise in moved:
            if promise.gang in self._further:
                self._further[promise.gang] = promise
            else:
                self._by_root[promise.claim.root] = promise

    def _others(self, claim: StartClaim) -> tuple[str, ...]:
        """Return the nodes that are promised to others, but for one whose promise it would get."""
        first = self._by_root.get(claim.root)
        return nodes_of(
            one
            for one in self
            if one.gang != claim.gang and not (one is first and one.yields(claim))
        )

    # --- giving -----------------------------------------------------------------------------

    def lacks(self, root: QueueName) -> bool:
        """Return whether nobody below a root has a promise, and one may be tried."""
        return self._settings.enabled and root not in self._by_root and not self.tries.is_full(root)

    def wants(self, view: GangView, *, lacks_quota: bool) -> StartClaim | None:
        """Return the claim of a gang that is to have a promise, or to have it computed anew.

        ``lacks_quota``: its queue does not admit it now.
        """
        may_claim = self._settings.enabled and view.key not in self._expected
        claim = self._queues.claim(view) if may_claim else None
        if claim is None or (claim.queue is None and not self._settings.without_queues):
            return None
        if lacks_quota and not self._is_short(claim):
            return None
        if self._queues.is_behind(view.key, claim.queue):
            return None
        there, own = self._by_root.get(claim.root), self.of(view.key)
        if own is not None:
            return claim if self._is_due(own) else None
        if there is not None and there.yields(claim):
            return claim
        if there is not None and not self._may_be_further(claim):
            return None
        return claim if self.tries.may(claim.root, view.key) else None

    def _may_be_further(self, claim: StartClaim) -> bool:
        """Return whether others may give way to a gang though another one has the promise.

        Its queue takes back what it is entitled to, and keeps off the promised nodes. Otherwise a
        gang that waits for hours would keep all others from what their queues are entitled to.
        """
        return self.tries.in_turn and claim.is_entitled

    def is_void(self, view: GangView) -> bool:
        """Return whether a gang has a promise, and its queue refuses it whatever ends."""
        if self.of(view.key) is None or not self._queues.allowances(view.key)[0].refusal:
            return False
        claim = self._queues.claim(view)
        return claim is None or not self._is_short(claim)

    def _is_short(self, claim: StartClaim) -> bool:
        """Return whether a queue would admit a gang if others gave back what they use."""
        node = self._node(claim)
        if node is None or closed_at(node) is not None or node.children:
            return False
        return never_fits(node, claim.request) is None and lack(node, claim.request) is not None

    def _node(self, claim: StartClaim) -> QueueNode | None:
        charges = self._engine.state.charges
        return None if claim.queue is None else charges.tree.find(claim.queue)

    def _is_due(self, promise: Promise) -> bool:
        now = self._engine.clock()
        is_old = now - promise.computed_at >= self._settings.refresh_seconds
        is_over = is_old or now >= promise.start
        is_vain = self._stays(promise) or self._was_taken(promise)
        return is_over or is_vain or self._has_lost_nodes(promise)

    def _was_taken(self, promise: Promise) -> bool:
        """Return whether all have given way who were to, and the gang waits all the same.

        Gangs that go before it have taken the room: it is asked about at once.
        """
        given = () if self._evictions is None else self._evictions.giving_to(promise.gang)
        return promise.is_made and not given

    def _stays(self, promise: Promise) -> bool:
        """Return whether a gang stays that gave way when a promise was computed."""
        going = self._going()
        return any(
            gang not in going and self._engine.state.holds_room(gang)
            for gang in self._counted_on.get(promise.gang, ())
        )

    def _has_lost_nodes(self, promise: Promise) -> bool:
        nodes = self._engine.state.snapshot().nodes
        rows = [nodes.row(name) for name in promise.nodes]
        return any(row is None or not nodes.alive[row] or not nodes.ready[row] for row in rows)

    async def give(
        self, claim: StartClaim, questions: Sequence[Question], snapshot: Snapshot, pace: Pace
    ) -> Promise | None:
        """Compute a gang's promise and return it, ``None``: nobody knows when it starts."""
        now, before = self._engine.clock(), self.of(claim.gang)
        going = self._going()  # of this moment, as the snapshot: they may be gone soon
        ends = await pace.drive(self._ends(snapshot, going))
        freed = {end: self._freed(end, snapshot) for end in ends}
        self._learn_nothing_of(going)
        given = self._given(ends, claim.gang)
        found = await self._earliest(
            claim, questions, snapshot, {end: freed[end] for end in given}, pace
        )
        is_given = found is not None
        if found is None:
            found = await self._earliest(claim, questions, snapshot, freed, pace)
        if found is None or (self._is_further(claim) and found[0].at > now + LEAVING_S):
            self.drop(claim.gang)
            return None
        self.tries.given(claim.root)
        start, self._asked[claim.gang] = found
        self._counted_on[claim.gang] = tuple(gang for gang in start.waits_for if gang in going)
        returned = _by(start.at, freed)
        claim = self._at_start(claim, returned, before)
        overrun = {end.gang for end in ends if end.is_overrun}
        late = tuple(gang for gang in start.waits_for if gang in overrun)
        made = Promise(
            claim,
            start=start.at,
            first_start=start.at if before is None else before.first_start,
            nodes=names_of(snapshot, start.plan),
            waits_for=start.waits_for,
            overruns=late,
            extra=start.extra,
            freed=returned,
            computed_at=now,
            is_made=self._evictions is not None and claim.gang in self._evictions.coming(),
        )
        if before is not None and not is_given and self._is_worse(made, before, now):
            made = replace(before, computed_at=now)
        self._put(made)
        return made

    async def _earliest(
        self,
        claim: StartClaim,
        questions: Sequence[Question],
        snapshot: Snapshot,
        freed: Mapping[ExpectedEnd, Sequence[Freed]],
        pace: Pace,
    ) -> tuple[EarliestStart, Question] | None:
        """Return the earliest start by any question, with it.

        ``freed``: what each end gives back to queues, the first end first.
        """
        found: tuple[EarliestStart, Question] | None = None
        ends, first = list(freed), self._first_admitted(claim, freed.values())
        for question in questions if ends and first is not None else ():
            asked = replace(question, quota="", promised=self._others(claim))
            start = await pace.drive(earliest_start(snapshot, asked, ends, decide, first or 0))
            if start is not None and (found is None or start.at < found[0].at):
                found = start, asked
        return found

    def _given(self, ends: Sequence[ExpectedEnd], gang: GangKey) -> list[ExpectedEnd]:
        """Return what goes now, if others give way to a gang: it gets that room, and no other.

        An end that is expected sooner is a guess: with a promise elsewhere that room would be free
        for all. What goes for others counts, too, beside the nodes that are promised to them: who
        ends was chosen so.
        """
        if self._evictions is None or not self._evictions.giving_to(gang):
            return []
        return [end for end in ends if end.is_certain]

    def _learn_nothing_of(self, going: Going) -> None:
        """Forget when gangs began that are made to end: that is no run time."""
        for gang, members in going.items():
            if not members:
                self._running.pop(gang, None)

    def _at_start(
        self, claim: StartClaim, returned: Sequence[Freed], before: Promise | None
    ) -> StartClaim:
        """Return a claim with the entitlement that its queue has at its start.

        A promise that was firm stays firm.
        """
        node = self._node(claim)
        if node is None:
            return claim
        if before is not None and before.is_firm:
            return replace(claim, is_entitled=True)
        with self._given_back(returned):
            return replace(claim, is_entitled=not borrows(node, claim.request))

    def _ends(self, snapshot: Snapshot, going: Going) -> Steps[list[ExpectedEnd]]:
        now, slack = self._engine.clock(), self._settings.slack_seconds
        return expected_ends(snapshot, now, self.run_times.of, going, slack)

    def _freed(self, end: ExpectedEnd, snapshot: Snapshot) -> list[Freed]:
        """Return what an end gives back to queues."""
        state, rows = self._engine.state, dict[GangKey, list[int]]()
        for row in end.rows.tolist():
            gang = int(snapshot.pods.gang[row])
            if gang != NO_ROW:
                rows.setdefault(snapshot.gang_at(gang), []).append(row)
        return [
            Freed(gang, queue, amounts, len(mine), max(state.holding(gang) - len(mine), 0))
            for gang, mine in rows.items()
            for queue, amounts in state.charged(mine).items()
        ]

    def _first_admitted(self, claim: StartClaim, freed: Iterable[Sequence[Freed]]) -> int | None:
        """Return the place of the first end after which a queue admits a gang, ``None``: none."""
        node = self._node(claim)
        if node is None or lack(node, claim.request) is None:
            return 0
        with ExitStack() as given:
            for place, end in enumerate(freed):
                given.enter_context(self._given_back(end))
                if lack(node, claim.request) is None:
                    return place
        return None

    def _is_worse(self, made: Promise, before: Promise, now: float) -> bool:
        """Return whether a later start has no reason: the search missed the former one."""
        is_later = made.start > before.start > now and not made.overruns
        return is_later and not self._has_lost_nodes(before)

    def _put(self, promise: Promise) -> None:
        outranked = self._by_root.get(promise.claim.root)
        if self._is_further(promise.claim):
            self._further[promise.gang] = promise
            return
        self._further.pop(promise.gang, None)
        if outranked is not None and outranked.gang != promise.gang:
            self.drop(outranked.gang)
        self._by_root[promise.claim.root] = promise

    def _is_further(self, claim: StartClaim) -> bool:
        """Return whether another gang of its tree has the promise, and keeps it."""
        first = self._by_root.get(claim.root)
        return first is not None and first.gang != claim.gang and not first.yields(claim)


def nodes_of(promises: Iterable[Promise]) -> tuple[str, ...]:
    """Return the names of the nodes that are promised, sorted."""
    return tuple(sorted({node for one in promises for node in one.nodes}))


def is_wider(before: Promise | None, after: Promise | None) -> bool:
    """Return whether a change of a promise lets gangs go that it held back."""
    if before is None:
        return False
    if after is None:
        return True
    return after.start > before.start or not set(before.nodes) <= set(after.nodes)


def names_of(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return the names of a plan's nodes, sorted."""
    return tuple(sorted({snapshot.nodes.name(int(row)) for row in plan.nodes}))


def _leaves_enough(snapshot: Snapshot, view: GangView, promise: Promise) -> bool:
    """Return whether the sum of what is free at a promise's start suffices beside it."""
    asked = requests_of(view, snapshot)
    least = asked.of_first(max(asked.minimum, 1))
    return all(least.get(name, 0) <= amount for name, amount in promise.extra.items())


def _by(time: float, freed: Mapping[ExpectedEnd, Sequence[Freed]]) -> tuple[Freed, ...]:
    """Return what is given back by a time."""
    return tuple(one for end, given in freed.items() if end.at <= time for one in given)


def _less(extra: Mapping[str, int], taken: Mapping[str, int]) -> dict[str, int]:
    return {name: amount - taken.get(name, 0) for name, amount in extra.items()}
