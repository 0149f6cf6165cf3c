"""The loop of one candidate: sends what ``leading.election`` decides, one request at a time.

::

    decide ──► Rest ──────────────► until its time, or until the watch tells of another version
       ▲  ├──► Read ──────────────► GET: always the present state, whatever the watch has shown
       │  ├──► Create, Take, Renew ► POST or PATCH at the version that was seen
       └──┘
          └──► Lost ──────────────► campaign() returns the reason

A watch only decides *when* to read; the state comes from a GET, because events may be old. The
watch makes a take-over prompt: without it a holder's last renewal, or its release, would be seen
up to ``retry_s`` late. While the watch is broken the candidate reads every ``retry_s``.

The elector's requests must not queue behind the releases of a gang: it has a client of its
own, without retries and without a fence.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from muster.kube.changes import Change, Upserted
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import Conflict, KubeError, NotFound
from muster.kube.http.fence import monotonic
from muster.kube.leading import election, lease
from muster.kube.leading.election import (
    Candidate,
    Create,
    Decision,
    ElectionTimes,
    LeaseRecord,
    Lost,
    Read,
    Renew,
    Rest,
    Take,
)
from muster.kube.leading.lease import LEASES, Lease, LeaseRef
from muster.kube.watching.listwatch import ListWatch, Runtime, Timing, WatchConsumer, WatchScope

log = logging.getLogger(__name__)

JITTER: Final = 1.2  # client-go's JitterFactor: a candidate's wait is this much longer at most


class Observer(Protocol):
    """Receives what happens in an election."""

    def renewed(self, until: float) -> None:
        """Note that a renewal was acknowledged; ``until``: the new end of the leader's time."""
        ...

    def requested(self, *, ok: bool) -> None:
        """Note that a request was answered (``ok``), or that it failed."""
        ...


@dataclass(slots=True)
class Elector:
    """One candidate."""

    client: KubeClient
    ref: LeaseRef
    #: Its name as a holder of the Lease.
    identity: str
    rules: ElectionTimes
    observer: Observer
    #: Returns whether it could lead at once; call ``poke`` when that changes.
    eligible: Callable[[], bool]
    #: Seconds, only ever growing, also while the machine sleeps.
    clock: Callable[[], float] = monotonic
    #: Seconds since the epoch, for the times in the Lease, which only people read.
    wall: Callable[[], float] = time.time
    #: Returns a random number in [0, 1).
    jitter: Callable[[], float] = random.random
    #: Set as soon as it leads.
    acquired: asyncio.Event = field(default_factory=asyncio.Event)
    #: What it knows, for ``election`` to decide on.
    me: Candidate = field(init=False)
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _hinted: bool = False

    def __post_init__(self) -> None:
        """Begin without any knowledge of the Lease."""
        self.me = Candidate(self.identity, self.rules)

    @property
    def record(self) -> LeaseRecord | None:
        """The Lease as last seen."""
        return None if self.me.sight is None else self.me.sight.record

    def poke(self) -> None:
        """Decide again now."""
        self._woken.set()

    async def run(self) -> str:
        """Stand by, lead, and return why it is over; never returns while standing by."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch(), name="watch lease")
            reason = await self.campaign()
            watching.cancel()
        return reason

    async def campaign(self) -> str:
        """Stand by and lead without a watch."""
        while True:
            if self._hinted:
                self._hinted, self.me = False, election.hinted(self.me)
            decision = election.decide(self.me, self.clock(), eligible=self.eligible())
            match decision:
                case Lost(reason):
                    return reason
                case Rest(until):
                    await self._rest(until)
                case Read() | Create() | Take() | Renew():
                    await self._attempt(decision)
                case _ as unreachable:
                    assert_never(unreachable)

    async def release(self) -> bool:
        """Give the Lease up, if it is still ours. The caller must have stopped writing before."""
        if self.clock() >= self.me.leads_until:
            return False
        try:
            async with asyncio.timeout(self._limit_s()):
                await self._release()
        except (KubeError, TimeoutError) as error:
            log.warning("lease not released", extra=self._names() | {"error": _text(error)})
            return False
        return True

    async def _release(self) -> None:
        """Release at the present version: a renewal without an answer may have changed it."""
        record = await self._read()
        if record is not None and record.holder == self.identity:
            await self._patch(lease.release_body(record.version, self.wall()))
            log.info("lease released", extra=self._names())

    # -- requests --------------------------------------------------------------------------------

    async def _attempt(self, decision: Read | Create | Take | Renew) -> None:
        """Send one request and note its result in ``me``."""
        try:
            async with asyncio.timeout(self._limit_s()):
                await self._send(decision)
        except (Conflict, NotFound) as error:  # these are answers, too
            log.info("lease changed meanwhile", extra=self._names() | {"error": _text(error)})
            self.observer.requested(ok=True)
            self.me = election.outrun(self.me)
        except (KubeError, TimeoutError) as error:
            self.observer.requested(ok=False)
            self._failed(decision, error)
        else:
            self.observer.requested(ok=True)

    async def _send(self, decision: Read | Create | Take | Renew) -> None:
        if isinstance(decision, Read):
            self.me = election.reading(self.me, self.clock())
            record = await self._read()
            self.me = election.seen(self.me, record, self.clock())
            return
        self.me = election.writing(self.me, self.clock())
        record = await self._write(decision)
        self.me = election.acknowledged(self.me, record, self.clock())
        if self.me.renewed_at is None:
            return
        self.observer.renewed(self.me.leads_until)
        if not self.acquired.is_set():
            log.info("lease acquired", extra=self._names())
            self.acquired.set()

    async def _read(self) -> LeaseRecord | None:
        try:
            found = await self.client.get(LEASES, self.ref.name, namespace=self.ref.namespace)
        except NotFound:
            return None
        return lease.record_of(found)

    async def _write(self, decision: Create | Take | Renew) -> LeaseRecord:
        """Write the Lease and return it as it is now. ``NotFound``: it was deleted meanwhile."""
        now, lease_s = self.wall(), round(self.rules.lease_s)
        match decision:
            case Create():
                body = lease.create_body(self.ref, self.identity, lease_s, now)
                made = await self.client.create(LEASES, body, namespace=self.ref.namespace)
                return lease.record_of(made)
            case Take(version, transitions):
                body = lease.take_body(version, self.identity, lease_s, transitions, now)
                return self._ours(await self._patch(body), transitions)
            case Renew(version):
                transitions = 0 if self.record is None else self.record.transitions
                body = lease.renew_body(version, self.identity, lease_s, now)
                return self._ours(await self._patch(body), transitions)
            case _ as unreachable:
                assert_never(unreachable)

    def _ours(self, version: str, transitions: int) -> LeaseRecord:
        return LeaseRecord(version, self.identity, self.rules.lease_s, transitions)

    async def _patch(self, body: Mapping[str, object]) -> str:
        name, namespace = self.ref.name, self.ref.namespace
        answer = await self.client.patch(
            LEASES, name, body, namespace=namespace, content_type=MERGE
        )
        return answer.metadata.resource_version

    def _limit_s(self) -> float:
        """Return a request's time-out: client-go's half deadline, and within a leader's time."""
        half = self.rules.deadline_s / 2
        if self.me.renewed_at is None:
            return half
        return max(0.0, min(half, self.me.leads_until - self.clock()))

    def _failed(self, decision: Decision, error: Exception) -> None:
        leads = self.me.renewed_at is not None
        spread = 1.0 if leads else 1.0 + (JITTER - 1.0) * self.jitter()
        self.me = election.failed(self.me, self.clock(), self.rules.retry_s * spread)
        log.warning(
            "election request failed",
            extra=self._names() | {"request": type(decision).__name__, "error": _text(error)},
        )

    def _names(self) -> dict[str, object]:
        return {"lease": str(self.ref), "identity": self.identity}

    # -- waiting ---------------------------------------------------------------------------------

    async def _rest(self, until: float) -> None:
        self._woken.clear()
        try:
            async with asyncio.timeout(max(0.0, until - self.clock())):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _watch(self) -> None:
        """Cause a read for every change of the Lease that we did not write ourselves."""
        watch = ListWatch(
            self.client,
            LEASES,
            scope=WatchScope(
                namespace=self.ref.namespace,
                selectors={"fieldSelector": f"metadata.name={self.ref.name}"},
            ),
            consumer=WatchConsumer(on_problem=self._watch_failed),
            timing=Timing(back_off_s=(0.25, self.rules.retry_s)),
            runtime=Runtime(clock=self.clock, jitter=self.jitter),
        )
        await watch.run(self._changed)

    def _watch_failed(self, problem: str) -> None:
        log.info("lease watch", extra=self._names() | {"problem": problem})

    def _changed(self, changes: Sequence[Change[Lease]]) -> None:
        known = None if self.record is None else self.record.version
        for change in changes:
            if isinstance(change, Upserted) and change.object.metadata.resource_version == known:
                continue
            self._hinted = True
            self._woken.set()


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
