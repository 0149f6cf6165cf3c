"""Reserves room for gangs before their pods exist, so that pods are created with their plan.

A release costs the API server a PATCH for each pod. A pod that is created with its plan needs none.
So the webhook asks here once per gang, with the gang's first pod. That pod stands for all members.
They enter the state as rows without pods and are planned like any gang::

    webhook asks ──► rows for all members ──► planned? ──► places, room held ──► for the pods
                                                │ no: waits for room, or longer than PATIENCE_S
                                                ▼
                                    rows removed, pods are gated

    the watch shows a member's pod ────────► its row is removed, its own event takes the room
    its term is up, and every stored ──────► the other rows are removed, no new reservation in its
    pod was seen                             namespace for a while: pods are gated (docs/adr/0033)

Terms are those of ``muster.queueing.reservationterms``: only a stored pod renews one.

If the members of a gang arrive slowly (``extender.reservations.arrivalrate``), it would run in part
for long. Then it gets no places: it is gated, and starts when enough members exist (docs/adr/0046).

Reservations are not stored in the API server. After a restart, pods with a plan count as released
pods, and the other members are planned near them before any other gang.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec

from extender.engine import Engine
from extender.intake.objects import Feed
from extender.metrics import ExtenderMetrics
from extender.pendingpods import suffers_from_pin
from extender.reservations.arrivalrate import Arrivals
from extender.reservations.eligibility import (
    gang_problem,
    member_count,
    numbering_problem,
    numbers,
    pod_problem,
)
from extender.reservations.expectedrows import AwaitedMembers, ExpectedRows
from extender.timeslice import Pace
from muster.apiwire.reservation import Reserved, ReservedPlace, annotation
from muster.cluster.columns.uids import Uids
from muster.cluster.events import PodGone, PodReleased, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.tables.gangview import GangView, Rows
from muster.cluster.tables.holds import Hold
from muster.kube.errors import KubeError
from muster.kube.translation.planannotation import plan_wire, unsealed
from muster.kube.translation.planseal import ExpectedMember, PlanKeys, sealed_place
from muster.kube.wire import Pod
from muster.queueing.reservationterms import KEEP_S, Payers, ReservationTerms, Term, payers
from muster.workloads.registry import PodMembership
from muster.workloads.registry import place as placed_by

log = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0  # wait for the planner; the API server waits for the webhook meanwhile
GIVEN_S: Final = 5.0  # how long the webhook may use the places; nodes change meanwhile
STORE_S: Final = 5.0  # how long a pod with a place takes to be stored at most
PERIOD_S: Final = 1.0  # between checks for late pods
LOOK_S: Final = 0.05  # between checks whether the planner has parked the gang
LATE_S: Final = 600.0  # how long a gang's pods are gated after a reservation in vain
_NONCE_BYTES: Final = 12


@dataclass(slots=True, eq=False)
class _Reservation(AwaitedMembers):
    """The reservation of one gang."""

    key: GangKey
    pod_class: PodClass
    #: the row that carries the gang's spec until a pod does
    first: PodUid
    #: the rows of members that have not arrived, by number
    open: dict[int, PodUid]
    #: until when the remaining members are waited for (seconds of the engine's clock)
    term: Term
    #: open rows without room yet
    unplanned: set[PodUid]
    #: set once ``unplanned`` is empty
    planned: asyncio.Event = field(default_factory=asyncio.Event)
    #: the plans of members, by number
    places: dict[int, ReservedPlace] = field(default_factory=dict)

    def got_room(self, uid: PodUid) -> None:
        """Note that a row has room, or is waited for no more."""
        self.unplanned.discard(uid)
        if not self.unplanned:
            self.planned.set()


@dataclass(frozen=True, slots=True)
class ReservationParts:
    """What reservations need from other parts."""

    #: releases planned pods that exist
    release: Callable[[list[PodUid]], None]
    #: returns why the planner parked a gang, ``None`` if it did not
    set_aside: Callable[[GangKey], str | None]
    #: returns whether a gang has an isolated network, which a release writes into its pods
    is_isolated: Callable[[GangView], bool]
    #: waits until the pods of a namespace that are stored by now with one of these plans (without
    #: seals) were applied; raises ``KubeError``
    caught_up: Callable[[str, AbstractSet[str]], Awaitable[None]]
    #: what plans are sealed with
    keys: PlanKeys
    #: for how long a gang may run in part, in seconds: ``partialAfterSeconds``
    partial_s: float = 60.0


class Reservations:
    """All reservations of one cluster."""

    def __init__(
        self,
        engine: Engine,
        feed: Feed,
        metrics: ExtenderMetrics,
        pace: Pace,
        rows: ExpectedRows,
        parts: ReservationParts,
    ) -> None:
        """Share ``rows`` with the watch of pods; ``feed`` calls ``arrived`` with new members."""
        self._engine, self._feed, self._metrics, self._pace = engine, feed, metrics, pace
        self._parts = parts
        self._arrivals = Arrivals()
        self._open: dict[GangKey, _Reservation] = {}
        self._expected, self._rows = rows, rows.reserved
        self._late: dict[GangKey, float] = {}  # until when they get no reservation
        self._terms = ReservationTerms(KEEP_S + parts.partial_s)
        feed.listen(self.arrived)

    def uids(self) -> Uids:
        """Return the UIDs of the rows of expected pods."""
        return self._expected.uids()

    def __len__(self) -> int:
        """Return the number of expected pods."""
        return len(self._rows)

    def __contains__(self, gang: object) -> bool:
        """Return whether pods of a gang are expected."""
        return gang in self._open

    async def reserve(self, pod: Pod, user: str = "") -> Reserved:
        """Return a place for each member of the gang of ``pod``, which will be its first pod.

        ``user``: who asks the API server to create the pod, "" where not known.
        """
        found = await self._reservation_of(pod, payers(pod.metadata.namespace, user))
        reserved = Reserved(why=found) if isinstance(found, str) else await self._answer(found)
        self._metrics.reservations.labels("refused" if reserved.why else "granted").inc()
        return reserved

    async def _reservation_of(self, pod: Pod, whose: Payers) -> _Reservation | str:
        """Return the reservation of a pod's gang, a new one if there is none, or why not."""
        pod = self._created_now(pod)
        placed = placed_by(pod)
        if placed is None or not self._feed.is_managed(pod):
            return "the pod is in no gang of Muster's"
        problem = pod_problem(pod, placed)
        if problem:
            return problem
        found = self._open.get(placed.member.key)
        if found is None:
            return await self._begin(pod, placed, whose)
        if self._feed.class_of(pod) == found.pod_class:
            return found
        self._give_up(found)
        return "members of the gang ask for different things"

    def _created_now(self, pod: Pod) -> Pod:
        """Return a pod with the present time as creation time; it decides about the gang's turn."""
        now = datetime.fromtimestamp(self._engine.clock(), UTC)
        meta = msgspec.structs.replace(pod.metadata, creation_timestamp=now)
        return msgspec.structs.replace(pod, metadata=meta)

    async def _answer(self, found: _Reservation) -> Reserved:
        """Return the places of a gang once it is planned; wait ``PATIENCE_S`` at most."""
        until = self._pace.clock() + PATIENCE_S
        while not found.planned.is_set():
            why = self._parts.set_aside(found.key)
            if why is None and self._pace.clock() >= until:
                why = "the planner is busy"
            if why is not None:
                self._end(found)
                return Reserved(why=why)
            await _within(found.planned, LOOK_S)
        await self._give(found)
        places = tuple(found.places[number] for number in found.open if number in found.places)
        left = found.term.until - self._engine.clock() - STORE_S
        if not places or left <= 0:
            return Reserved(why="the gang is not expected any more")
        return Reserved(places, min(GIVEN_S, left))

    async def _give(self, found: _Reservation) -> None:
        """Mark the planned rows as released, so that their holds do not expire."""
        for number, uid in list(found.open.items()):
            hold = self._engine.state.hold(uid)
            if hold is not None and number not in found.places:
                found.places[number] = self._place(found, number, hold)
                self._engine.apply(PodReleased(uid))
            await self._pace.breathe()

    def _place(self, found: _Reservation, number: int, hold: Hold) -> ReservedPlace:
        """Return a member's place, which counts for a pod that is created while it is expected."""
        until = found.term.end + GIVEN_S + STORE_S
        member = ExpectedMember(found.term.namespace, found.key, number, until)
        plan = sealed_place(plan_wire(hold.note()), member, self._parts.keys)
        return ReservedPlace(number, plan)

    # -- rows without pods ---------------------------------------------------------------

    async def _begin(self, pod: Pod, placed: PodMembership, whose: Payers) -> _Reservation | str:
        """Enter all members of a gang to be planned, or return why not."""
        key = placed.member.key
        if self._late.get(key, 0.0) > self._engine.clock():
            return "the gang was expected before, and did not come as it was expected"
        if _has_members(self._engine.state.gang(key)):
            return "members of the gang are there"
        why = self._terms.problem(whose, 1, self._engine.clock())
        if why:
            return why
        nonce = secrets.token_bytes(_NONCE_BYTES)
        first = _row(nonce, placed.member.rank)
        meta = msgspec.structs.replace(pod.metadata, uid=str(UUID(bytes=first)))
        event = self._feed.expect(first, msgspec.structs.replace(pod, metadata=meta), placed)
        self._engine.apply(event)
        view = self._engine.state.gang(key)
        if view is not None and view.spec is not None:
            self._arrivals.expect(key, member_count(view.spec), self._engine.clock())
        problem = self._problem(view, key, event, whose)
        if problem or view is None or view.spec is None:
            self._engine.apply(PodGone(first))
            self._feed.drop_expected(first, key)
            return problem
        members = numbers(view.spec)
        term = self._terms.begin(whose, len(members), self._engine.clock())
        return await self._enter(key, term, {each: _row(nonce, each) for each in members}, event)

    def _problem(
        self, view: GangView | None, key: GangKey, event: PodUpserted, whose: Payers
    ) -> str:
        if view is None or event.gang != key:
            return "the gang is a part of another one"
        if suffers_from_pin(event.pod_class):
            return "a pin could make the plan of such pods fail"
        if self._parts.is_isolated(view):
            return "the gang has a network of its own"
        if view.spec is None:
            return gang_problem(None, event.rank)
        return (
            gang_problem(view.spec, event.rank)
            or numbering_problem(view.spec, self._feed.jobs_of(view.key))
            or self._arrivals.slowness(view.spec, self._parts.partial_s)
            or self._terms.problem(whose, member_count(view.spec), self._engine.clock())
        )

    async def _enter(
        self, key: GangKey, term: Term, rows: dict[int, PodUid], event: PodUpserted
    ) -> _Reservation:
        """Enter the other members as copies of the first."""
        found = _Reservation(key, event.pod_class, event.uid, rows, term, set(rows.values()))
        self._open[key] = found
        for number, uid in list(rows.items()):
            if number not in found.open:
                continue  # its pod arrived in the meantime
            self._rows[uid] = found
            if uid != event.uid:
                self._engine.apply(replace(event, uid=uid, rank=number))
            await self._pace.breathe()
        return found

    # -- rows and pods afterwards --------------------------------------------------------

    def planned(self, uids: list[PodUid]) -> None:
        """Handle planned pods: those that exist are released."""
        there = [uid for uid in uids if uid not in self._rows]
        for uid in uids:
            found = self._rows.get(uid)
            if found is not None:
                found.got_room(uid)
        if there:
            self._parts.release(there)

    def arrived(self, gang: GangKey, ranks: Sequence[int]) -> None:
        """Free the reserved room for members that the watch shows for the first time."""
        self._arrivals.arrived(gang, len(ranks), self._engine.clock())
        found = self._open.get(gang)
        if found is None:
            return
        for rank in ranks:
            uid = found.open.pop(rank, None)
            if uid is not None:
                self._make_way(found, uid)

    def _make_way(self, found: _Reservation, uid: PodUid) -> None:
        self._engine.make_way(PodGone(uid))
        self._forget(found, uid)
        found.term.stored(self._engine.clock())
        if not found.open:
            self._terms.close(found.term)
            self._open.pop(found.key, None)

    async def run(self) -> None:
        """Give up reservations of late pods, forever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    async def look(self) -> None:
        """Give up reservations of late pods, once the watch has caught up.

        A pod may exist that the watch has not shown yet. It is pinned to its nodes, so another gang
        must not get its room.
        """
        now = self._engine.clock()
        unsure: set[str] = set()
        for namespace, plans in self._due(now).items():
            try:
                await self._parts.caught_up(namespace, plans)
            except KubeError as error:
                log.warning("room is held for pods that are late", extra={"problem": str(error)})
                unsure.add(namespace)
        self.tidy(now, unsure)

    def _due(self, now: float) -> dict[str, set[str]]:
        """Return the plans of members that are late, by namespace, without seals."""
        due: dict[str, set[str]] = {}
        for found in self._open.values():
            if found.term.until <= now:
                late = (found.places[number] for number in found.open if number in found.places)
                texts = due.setdefault(found.term.namespace, set())
                texts.update(unsealed(annotation(place)) for place in late)
        return due

    def tidy(self, now: float, unsure: AbstractSet[str] = frozenset()) -> None:
        """Give up reservations that ended by ``now``; such namespaces are gated for a while.

        ``unsure``: namespaces of which it is not known whether the watch has shown all pods.
        """
        ended = [each for each in self._open.values() if each.term.until <= now]
        for found in [each for each in ended if each.term.namespace not in unsure]:
            self._metrics.reservations.labels("late").inc()
            self._give_up(found)
        self._terms.tidy(now)
        self._late = {key: until for key, until in self._late.items() if until > now}
        self._arrivals.tidy(now)

    def _give_up(self, found: _Reservation) -> None:
        """End a reservation of which pods did not arrive; later pods are gated for a while."""
        self._terms.came_short(found.term, self._engine.clock())
        self._end(found)
        self._late[found.key] = self._engine.clock() + LATE_S

    def _end(self, found: _Reservation) -> None:
        """Remove the rows of pods that have not arrived; requests that still wait get no places."""
        self._terms.close(found.term)
        if self._open.get(found.key) is found:
            del self._open[found.key]
        left = list(found.open.values())
        found.open.clear()
        found.places.clear()
        for uid in left:
            self._engine.apply(PodGone(uid))
            self._forget(found, uid)
        found.planned.set()

    def _forget(self, found: _Reservation, uid: PodUid) -> None:
        self._rows.pop(uid, None)
        found.got_room(uid)
        if uid == found.first:
            self._feed.drop_expected(uid, found.key)


def _has_members(view: GangView | None) -> bool:
    return view is not None and any(map(len, _members(view)))


def _members(view: GangView) -> Iterable[Rows]:
    unbound = view.waiting, view.blocked, view.assumed, view.released
    return *unbound, view.bound, view.leaving, view.finished


def _row(nonce: bytes, number: int) -> PodUid:
    """Return the UID of a row without a pod; no pod and no other row has it."""
    return PodUid(nonce + number.to_bytes(16 - len(nonce)))


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
