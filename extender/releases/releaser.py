"""Releasing planned pods: one PATCH each, many in flight, every outcome handled.

::

    Released, or released before by this plan ──► PodReleased
    vanished ───────────────────────────────────► the pod is forgotten, the watch may be late
    released before by another plan ────────────► forgotten; the watch shows that plan, and
                                                  until then the gang is not planned
    changed since it was read ──► read again ───► tried again
    no answer ──────────────────► tried again, later: a repeated PATCH is harmless
    refused ────────────────────────────────────► forgotten, reported in an Event; the gang is
                                                  not planned for a time that grows
    not done by the deadline ───────────────────► the hold expires by itself

A gang with some released and some waiting members is *begun*: it is planned before all other gangs,
and the rest is placed near the released members.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, assert_never

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPod, PendingPods
from extender.planning.worklist import WorkList
from extender.reporting.reporter import DecisionReporter
from extender.timeslice import Pace
from muster.cluster.events import PodForgotten, PodReleased
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.tables.holds import Hold, HoldState
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.translation.planseal import PlanKeys
from muster.kube.wire import Pod
from muster.kube.writing.podbodies import ReleaseExtra
from muster.kube.writing.podwrites import (
    AlreadyReleased,
    Conflicted,
    PinKind,
    PodVanished,
    Released,
    ReleaseOutcome,
    Unclear,
    WriteRefused,
    release_pod,
)

log = logging.getLogger(__name__)

ATTEMPTS: Final = 6
RETRY_BASE_S: Final = 0.2  # doubles; six attempts take six seconds
GANG_BACKOFF_S: Final = 1.0  # after a refusal; doubles with each further refusal
GANG_BACKOFF_LIMIT_S: Final = 60.0

Extras = Callable[[PodUid, PendingPod, Hold], ReleaseExtra]
Vanished = Callable[[PodUid], None]
ReadAgain = Callable[[Pod], None]


@dataclass(frozen=True, slots=True)
class ReleaseParts:
    """What the releaser needs from other parts."""

    #: defers a gang after a refusal
    worklist: WorkList
    #: applies a pod that was read again
    read_again: ReadAgain
    #: called with a deleted pod before a watch shows that; else it would be planned again
    vanished: Vanished
    #: returns what a release writes beside the plan; raises ``ValueError`` if the pod cannot be
    #: released
    addition: Extras
    #: what plans are sealed with
    keys: PlanKeys


class Releaser:
    """Workers on a queue of planned pods."""

    def __init__(
        self,
        engine: Engine,
        pods: PendingPods,
        client: KubeClient,
        config: ExtenderConfig,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        pace: Pace,
        parts: ReleaseParts,
    ) -> None:
        self._engine = engine
        self._pods = pods
        self._client = client
        self._config = config
        self._metrics = metrics
        self._reporter = reporter
        self._pace = pace
        self._queue: asyncio.Queue[PodUid] = asyncio.Queue()
        self._open = 0  # submitted and not settled
        self._failures: dict[GangKey, tuple[int, float]] = {}  # refusals, deferred until
        self._parts = parts

    def submit(self, uids: list[PodUid]) -> None:
        """Queue pods whose plan has just been held."""
        self._open += len(uids)
        for uid in uids:
            self._queue.put_nowait(uid)

    @property
    def is_idle(self) -> bool:
        """Whether every submitted release is settled."""
        return self._open == 0

    async def run(self) -> None:
        """Release forever, ``releaseConcurrency`` pods at a time."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._config.release_concurrency):
                group.create_task(self._work(), name=f"release-{number}")

    async def drain(self) -> None:
        """Wait until the queue is done, ``drainSeconds`` at most."""
        try:
            async with asyncio.timeout(self._config.drain_seconds):
                await self._queue.join()
        except TimeoutError:
            log.warning("stopping with releases undone", extra={"left": self._queue.qsize()})

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            try:
                await self._pace.breathe()
                await self._release(uid)
            finally:
                self._open -= 1
                self._queue.task_done()

    async def _release(self, uid: PodUid) -> None:
        hold = self._assumed(uid)
        if hold is None:
            return
        for attempt in range(ATTEMPTS):
            pod = self._pods.get(uid)
            if pod is None:
                self._forget(uid, "vanished")
                return
            outcome = await self._send(uid, pod, hold)
            now = self._assumed(uid)
            if now is None or now.plan_id != hold.plan_id:
                return  # expired, or the watch was faster than the reply
            if await self._settled(uid, hold, pod, outcome, attempt):
                return
        self._refused(uid, hold, self._pods.get(uid), "no answer from the API server")

    async def _send(self, uid: PodUid, pod: PendingPod, hold: Hold) -> ReleaseOutcome:
        note, pin = hold.note(), pod.pin(self._config.pin)
        try:
            extra = replace(self._parts.addition(uid, pod, hold), key=self._parts.keys.own)
            return await release_pod(
                self._client, pod.ref, note, pin=pin, seen=pod.seen, extra=extra
            )
        except ValueError as error:
            return WriteRefused(str(error))

    async def _settled(
        self, uid: PodUid, hold: Hold, pod: PendingPod, outcome: ReleaseOutcome, attempt: int
    ) -> bool:
        """Act on an outcome; return whether the release is settled."""
        match outcome:
            case Released(version):
                self._released(uid, hold)
                if pod.pin(self._config.pin) is PinKind.AFFINITY:
                    self._pods.released(uid, version)
            case AlreadyReleased(note, _) if note is not None and note.plan_id == hold.plan_id:
                self._released(uid, hold)
            case AlreadyReleased():
                if hold.gang is not None:
                    self._back_off(hold.gang)
                self._forget(uid, "conflict")
            case PodVanished():
                self._forget(uid, "vanished")
                self._parts.vanished(uid)
            case Conflicted():
                self._count("conflict")
                return await self._fetch(pod)
            case Unclear():
                self._count("retried")
                await asyncio.sleep(RETRY_BASE_S * (1 << attempt))
                return False
            case WriteRefused(message):
                self._refused(uid, hold, pod, message)
            case _ as unreachable:
                assert_never(unreachable)
        return True

    async def _fetch(self, pod: PendingPod) -> bool:
        """Read a pod again and apply it; return True if that failed, so that the hold expires."""
        try:
            self._parts.read_again(await self._client.get_pod(pod.ref.namespace, pod.ref.name))
        except KubeError as error:
            log.warning("pod cannot be read", extra={"pod": str(pod.ref), "error": str(error)})
            return True
        return False

    def _assumed(self, uid: PodUid) -> Hold | None:
        hold = self._engine.state.hold(uid)
        return hold if hold is not None and hold.state is HoldState.ASSUMED else None

    def _released(self, uid: PodUid, hold: Hold) -> None:
        self._count("released")
        if hold.gang is not None:
            self._failures.pop(hold.gang, None)
        self._engine.apply(PodReleased(uid))

    def _forget(self, uid: PodUid, outcome: str) -> None:
        self._count(outcome)
        self._engine.apply(PodForgotten(uid, outcome))

    def _refused(self, uid: PodUid, hold: Hold, pod: PendingPod | None, message: str) -> None:
        if hold.gang is not None:
            self._back_off(hold.gang)
        if pod is not None:
            self._reporter.refused(pod, message)
        self._forget(uid, "refused")

    def _back_off(self, gang: GangKey) -> None:
        """Defer a gang, twice as long each time.

        Further refusals while the gang is deferred do not count again: an API server that has just
        started rejects all members of a gang within a second.
        """
        now = self._engine.clock()
        failures, until = self._failures.get(gang, (0, now))
        if now < until:
            return
        wait_s = min(GANG_BACKOFF_LIMIT_S, GANG_BACKOFF_S * (1 << min(failures, 16)))
        self._failures[gang] = (failures + 1, now + wait_s)
        self._parts.worklist.defer(gang, wait_s)

    def _count(self, outcome: str) -> None:
        self._metrics.releases.labels(outcome).inc()
