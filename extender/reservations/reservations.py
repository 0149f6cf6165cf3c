"""Room for gangs whose pods are about to be made, so that they are made with their plan in them.

A release costs the API server a PATCH for each pod. Pods whose plan is known when they are made
need none. So the webhook asks here, once for a gang, with its first pod; that pod stands for all
members, which enter the state as rows without pods and are planned as any gang is::

    webhook asks ──► rows for all members ──► planned? ──► places, room held ──► given to pods
                                                │ no: waits for room, or longer than PATIENCE_S
                                                ▼
                                    rows struck out, pods are gated

    a member's pod comes, by the watch ──► its row is struck out, its own event takes the room
    nothing came for KEPT_S, and all ────► what is left is struck out, the gang is not asked for
    that is stored was seen                again: what comes of it is gated (docs/adr/0033)

A gang that would run in part for long, as its members come slowly
(``extender.reservations.arrivalrate``), gets no places: it is gated, and starts when enough of it
is there (docs/adr/0046).

Nothing of it is written anywhere. Pods with a plan in them are released pods to whoever starts
anew, and members without are planned near them before any other gang.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

import msgspec
import numpy as np

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
from extender.timeslice import Pace
from muster.apiwire.reservation import Reserved, ReservedPlace, place
from muster.cluster.columns.uids import Uids
from muster.cluster.events import PodGone, PodReleased, PodUpserted
from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.specs.podconstraints import PodClass
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView, Rows
from muster.cluster.tables.pods import PodState
from muster.kube.errors import KubeError
from muster.kube.wire import Pod
from muster.workloads.registry import PodMembership
from muster.workloads.registry import place as placed_by

log = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0  # with the planner; the API server waits for the webhook meanwhile
GIVEN_S: Final = 5.0  # for which the webhook may give places away; nodes change meanwhile
KEPT_S: Final = 20.0  # after the last question or pod: what was given last must have arrived
PERIOD_S: Final = 1.0  # between looks at who is late
LOOK_S: Final = 0.05  # between looks whether the planner has set the gang aside
LATE_S: Final = 600.0  # for which the pods of a gang are gated that was reserved for in vain
_NONCE_BYTES: Final = 12


@dataclass(slots=True, eq=False)
class _Reservation:
    """The reservation of one gang."""

    key: GangKey
    pod_class: PodClass
    #: the row that stands for what the gang is, for as long as no pod does
    first: PodUid
    #: the rows of members that have not come, by number
    open: dict[int, PodUid]
    #: when members that are left are late
    until: float
    #: open rows without room yet
    unplanned: set[PodUid]
    #: set once there are none
    planned: asyncio.Event = field(default_factory=asyncio.Event)
    #: where members go, by number
    places: dict[int, ReservedPlace] = field(default_factory=dict)


@dataclass(slots=True)
class ExpectedRows:
    """The rows in the state of pods that are expected, which no list of pods has."""

    #: the reservation of each
    reserved: dict[PodUid, _Reservation] = field(default_factory=dict)

    def uids(self) -> Uids:
        """Return what stands in the state for the UIDs of the pods."""
        return Uids.of(self.reserved)


def seen_pods(state: ClusterState, expected: ExpectedRows) -> Uids:
    """Return the UIDs of all pods in the state, which a list has unless they are gone.

    Those that are only expected, and seats kept for hot spares, are no pods.
    """
    pods = state.snapshot().pods
    states = pods.state.array()
    there = (states != PodState.FREE) & (states != PodState.STANDBY)
    rows = state.pod_rows(expected.uids())
    there[rows[rows != NO_ROW]] = False
    return pods.uids.at(np.flatnonzero(there))


@dataclass(frozen=True, slots=True)
class ReservationParts:
    """What reservations ask other parts."""

    #: takes planned pods that are there, to release them
    release: Callable[[list[PodUid]], None]
    #: returns why the planner left a gang waiting, ``None`` where it did not
    set_aside: Callable[[GangKey], str | None]
    #: returns whether a gang has a network of its own, which pods get when they are released
    is_isolated: Callable[[GangView], bool]
    #: returns when every pod that is stored by now was seen; raises ``KubeError``
    caught_up: Callable[[], Awaitable[None]]
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
        """``rows``: shared with the watch of pods; ``feed``: calls ``came`` for new members."""
        self._engine, self._feed, self._metrics, self._pace = engine, feed, metrics, pace
        self._parts = parts
        self._arrivals = Arrivals()
        self._open: dict[GangKey, _Reservation] = {}
        self._expected, self._rows = rows, rows.reserved
        self._late: dict[GangKey, float] = {}  # until when they are not asked for again
        feed.listen(self.came)

    def uids(self) -> Uids:
        """Return what stands in the state for the UIDs of pods that are expected."""
        return self._expected.uids()

    def __len__(self) -> int:
        """Return how many pods are expected."""
        return len(self._rows)

    async def reserve(self, pod: Pod) -> Reserved:
        """Return a place for each member of the gang whose first pod ``pod`` will be."""
        found = await self._found(pod)
        reserved = Reserved(why=found) if isinstance(found, str) else await self._answer(found)
        self._metrics.reservations.labels("refused" if reserved.why else "granted").inc()
        return reserved

    async def _found(self, pod: Pod) -> _Reservation | str:
        """Return the reservation of a pod's gang, a new one if there is none, or why not."""
        pod = self._made_now(pod)
        placed = placed_by(pod)
        if placed is None or not self._feed.is_managed(pod):
            return "the pod is in no gang of Muster's"
        problem = pod_problem(pod, placed)
        if problem:
            return problem
        found = self._open.get(placed.member.key)
        if found is None:
            return await self._begin(pod, placed)
        if self._feed.class_of(pod) == found.pod_class:
            return found
        self._give_up(found)
        return "members of the gang ask for different things"

    def _made_now(self, pod: Pod) -> Pod:
        """Return a pod with the time by which its gang's turn is judged."""
        now = datetime.fromtimestamp(self._engine.clock(), UTC)
        meta = msgspec.structs.replace(pod.metadata, creation_timestamp=now)
        return msgspec.structs.replace(pod, metadata=meta)

    async def _answer(self, found: _Reservation) -> Reserved:
        """Wait until a gang is planned, not for long, and say where its pods go."""
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
        if not places:
            return Reserved(why="the gang is not expected any more")
        found.until = self._engine.clock() + KEPT_S
        return Reserved(places, GIVEN_S)

    async def _give(self, found: _Reservation) -> None:
        """Keep the room for as long as pods are expected; holds of planned ones run out."""
        for number, uid in list(found.open.items()):
            hold = self._engine.state.hold(uid)
            if hold is not None and number not in found.places:
                found.places[number] = place(number, hold.note())
                self._engine.apply(PodReleased(uid))
            await self._pace.breathe()

    # -- rows without pods ---------------------------------------------------------------

    async def _begin(self, pod: Pod, placed: PodMembership) -> _Reservation | str:
        """Have all members of a gang planned, or return why not."""
        key = placed.member.key
        if self._late.get(key, 0.0) > self._engine.clock():
            return "the gang was expected before, and did not come as it was expected"
        if _has_members(self._engine.state.gang(key)):
            return "members of the gang are there"
        nonce = secrets.token_bytes(_NONCE_BYTES)
        first = _row(nonce, placed.member.rank)
        meta = msgspec.structs.replace(pod.metadata, uid=str(UUID(bytes=first)))
        event = self._feed.expect(first, msgspec.structs.replace(pod, metadata=meta), placed)
        self._engine.apply(event)
        view = self._engine.state.gang(key)
        if view is not None and view.spec is not None:
            self._arrivals.expect(key, member_count(view.spec), self._engine.clock())
        problem = self._problem(view, key, event)
        if problem or view is None or view.spec is None:
            self._engine.apply(PodGone(first))
            self._feed.expect_no_more(first, key)
            return problem
        return await self._entered(key, numbers(view.spec), nonce, event)

    def _problem(self, view: GangView | None, key: GangKey, event: PodUpserted) -> str:
        if view is None or event.gang != key:
            return "the gang is a part of another one"
        if suffers_from_pin(event.pod_class):
            return "a pin could make the plan of such pods fail"
        if self._parts.is_isolated(view):
            return "the gang has a network of its own"
        return (
            gang_problem(view.spec, event.rank)
            or numbering_problem(view.spec, self._feed.jobs_of(view.key))
            or self._arrivals.slowness(view.spec, self._parts.partial_s)
        )

    async def _entered(
        self, key: GangKey, members: list[int], nonce: bytes, event: PodUpserted
    ) -> _Reservation:
        """Enter the other members, which are like the first."""
        rows = {number: _row(nonce, number) for number in members}
        until = self._engine.clock() + KEPT_S
        found = _Reservation(key, event.pod_class, event.uid, rows, until, set(rows.values()))
        self._open[key] = found
        for number, uid in list(rows.items()):
            if number not in found.open:
                continue  # it came meanwhile
            self._rows[uid] = found
            if uid != event.uid:
                self._engine.apply(replace(event, uid=uid, rank=number))
            await self._pace.breathe()
        return found

    # -- what becomes of them ------------------------------------------------------------

    def planned(self, uids: list[PodUid]) -> None:
        """Take pods that were planned: those that are there are released."""
        there = [uid for uid in uids if uid not in self._rows]
        for uid in uids:
            found = self._rows.get(uid)
            if found is not None:
                _done(found, uid)
        if there:
            self._parts.release(there)

    def came(self, gang: GangKey, ranks: Sequence[int]) -> None:
        """Make room for members that the watch shows for the first time."""
        self._arrivals.came(gang, len(ranks), self._engine.clock())
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
        found.until = self._engine.clock() + KEPT_S
        if not found.open:
            self._open.pop(found.key, None)

    async def run(self) -> None:
        """Give up for ever what has not come in time."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    async def look(self) -> None:
        """Give up what is late: not what was made, and the watch is behind with.

        Pods are made with a pin. What their room is given to before they are seen, they will
        never leave again, and nobody else may have their place.
        """
        now = self._engine.clock()
        if any(each.until <= now for each in self._open.values()):
            try:
                await self._parts.caught_up()
            except KubeError as error:
                log.warning("room is kept for pods that are late", extra={"problem": str(error)})
                return
        self.tidy(now)

    def tidy(self, now: float) -> None:
        """Give up what was to come by ``now``; such gangs are gated for a while."""
        for found in [each for each in self._open.values() if each.until <= now]:
            self._metrics.reservations.labels("late").inc()
            self._give_up(found)
        self._late = {key: until for key, until in self._late.items() if until > now}
        self._arrivals.tidy(now)

    def _give_up(self, found: _Reservation) -> None:
        """End a reservation that was in vain; the gang's next pods are gated for a while."""
        self._end(found)
        self._late[found.key] = self._engine.clock() + LATE_S

    def _end(self, found: _Reservation) -> None:
        """Strike out who has not come; whoever waits for places gets none."""
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
        _done(found, uid)
        if uid == found.first:
            self._feed.expect_no_more(uid, found.key)


def _done(found: _Reservation, uid: PodUid) -> None:
    found.unplanned.discard(uid)
    if not found.unplanned:
        found.planned.set()


def _has_members(view: GangView | None) -> bool:
    return view is not None and any(map(len, _members(view)))


def _members(view: GangView) -> Iterable[Rows]:
    unbound = view.waiting, view.blocked, view.assumed, view.released
    return *unbound, view.bound, view.leaving, view.finished


def _row(nonce: bytes, number: int) -> PodUid:
    """Return the uid of a row without a pod; no pod has it, nor any other reservation's row."""
    return PodUid(nonce + number.to_bytes(16 - len(nonce)))


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
