"""How a replica begins to lead, and how its term ends.

::

            cluster listed            Lease taken             own mark seen, inbox empty
   LISTING ─────────────► STANDBY ──────────────► CATCHING UP ───────────────► LEADING
                      (warm: watches            (writes one mark                │   │
                       and applies,              on its own pod)                │   │ SIGTERM
                       answers 503)                    │                        │   ▼
                                                       │ Lease lost,            │ STEPPING DOWN
                                                       │ or too slow            │ label off, drain,
                                                       ▼                        │ fence shut, none
                                                    DEPOSED ◄───────────────────┘ in flight, then
                                                    writes nothing, cuts its      Lease released
                                                    connections, ends

*Catching up.* All writes of the old leader were made before this replica took the Lease. The mark
is written on a pod after that, and a watch shows changes of pods in the order of the writes. So
once our own watch has shown the mark, it has shown all older changes, too. They are applied in the
same order. (If a list is being read, the replica waits for its end: a list is in order only as a
whole.) This costs one small PATCH. Listing a million pods again would cost minutes.

*A deposed process ends*; it does not return to standby. Its memory has holds that were never
released, queues, and requests with unknown outcomes. Code that clears them one by one could easily
miss one. The supervisor starts a new process, which lists the cluster and becomes a standby.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from extender.intake.sync import Sync
from extender.leadership.candidacy import Candidacy
from extender.leadership.ownpod import OwnPod
from extender.metrics import ExtenderMetrics
from muster.kube.client import KubeClient
from muster.kube.errors import APIError, Forbidden, KubeError, NotFound
from muster.kube.leading.elector import Elector
from muster.kube.writing.podwrites import PodRef

log = logging.getLogger(__name__)

FIND_RETRY_S: Final = 1.0


@dataclass(slots=True)
class Leadership:
    """Runs the election, and opens and shuts the fence."""

    candidacy: Candidacy
    sync: Sync
    #: the client of this replica's writes
    fenced: KubeClient
    metrics: ExtenderMetrics
    #: set when this replica may write
    begun: asyncio.Event
    #: called once, with the reason, when the process must end
    end: Callable[[str], None]
    #: records an Event on this replica's pod
    report: Callable[[PodRef, str], None]
    #: what a replica does that may write and has not begun to plan
    prepare: Callable[[], Awaitable[None]]
    elector: Elector = field(init=False)
    #: this replica's pod, None before it was read
    own: OwnPod | None = None
    _ended: bool = False

    def __post_init__(self) -> None:
        """Create the elector; nothing is sent yet."""
        it = self.candidacy
        self.elector = Elector(
            it.free,
            it.lease,
            it.identity,
            it.rules,
            self,
            self._eligible,
            clock=it.clock,
            wall=it.wall,
            jitter=it.jitter,
        )

    # -- the election's observer -----------------------------------------------------------------

    def renewed(self, until: float) -> None:
        """Extend the time in which the fence lets writes pass."""
        self.candidacy.fence.extend(until)

    def requested(self, *, ok: bool) -> None:
        """Count a request for the Lease."""
        self.metrics.lease_requests.labels("ok" if ok else "failed").inc()
        record = self.elector.record
        if record is not None:
            self.metrics.lease_transitions.set(record.transitions)

    def _eligible(self) -> bool:
        return self.own is not None and self.sync.synced.is_set()

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in the election until the term ends, which ends the process."""
        async with asyncio.TaskGroup() as group:
            takeover = group.create_task(self._take_over(), name="take-over")
            reason = await self.elector.run()
            takeover.cancel()
        self._over(reason)

    def _over(self, reason: str) -> None:
        if self._ended:
            return
        self._ended = True
        self.candidacy.fence.shut()
        log.error("deposed", extra={"identity": self.candidacy.identity, "reason": reason})
        self.end(reason)

    async def _take_over(self) -> None:
        own = await self._find()
        if own is None:
            return
        self.own = own
        await self.sync.synced.wait()
        self.elector.poke()
        await self.elector.acquired.wait()
        if not await self._caught_up(own):
            return
        self.candidacy.fence.permit()
        await self.prepare()
        log.info("leading", extra={"identity": self.candidacy.identity})
        self.begun.set()
        self.report(own.ref, f"{self.candidacy.identity} became leader")
        await own.lead()

    async def _caught_up(self, own: OwnPod) -> bool:
        """Wait until all writes before our term are applied, for one lease at most."""
        mark = self.candidacy.mark
        mark.token = self.candidacy.identity  # unique: a process has a new one, and leads once
        try:
            async with asyncio.timeout(self.candidacy.rules.lease_s):
                await own.mark(mark.token)
                await mark.seen.wait()
                await self.sync.flushed()
        except TimeoutError:
            self._over("the watch of pods did not catch up within a lease")
            return False
        return True

    async def _find(self) -> OwnPod | None:
        """Read our own pod; the Service could not route to this replica without it."""
        it = self.candidacy
        while True:
            try:
                found = await it.free.get_pod(it.pod.namespace, it.pod.name)
            except (NotFound, Forbidden) as error:
                self._over(f"POD_NAMESPACE/POD_NAME {it.pod} must name this replica's pod: {error}")
                return None
            except KubeError as error:
                level = logging.WARNING if isinstance(error, APIError) else logging.INFO
                log.log(level, "own pod not read", extra={"error": str(error)})
                await asyncio.sleep(FIND_RETRY_S)
            else:
                ref = PodRef(it.pod.namespace, it.pod.name, found.metadata.uid)
                return OwnPod(ref, it.lease.name, it.free, self.fenced)

    async def step_down(self) -> None:
        """Have no further calls routed to this replica; it still finishes its work."""
        if self.own is not None and self.candidacy.fence.is_open():
            await self.own.step_down()

    async def resign(self) -> None:
        """Stop writing. Once no write is in flight, release the Lease if it is ours."""
        self.candidacy.fence.shut()
        if await self.candidacy.fence.settled():
            await self.elector.release()
