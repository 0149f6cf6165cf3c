"""Why a gang waits, written where users look: its pods' condition and its group's status.

A gated pod has ``PodScheduled=False, SchedulingGated`` from the API server, whose message says
that it is gated and no more. Muster replaces that message, once per cause (docs/adr/0013)::

    waits, same cause afterSeconds ───► its turn ──► first member: all numbers    group: status
                    ▲                                     │                    (groupstatuses)
                    │ numbers differ after REFRESH_S ◄────┤
                    │ another cause, or more members      └──► the other members, one by one:
                    └───────────────────────────────────────── the cause, and where the numbers are

Nothing has to be taken back from a pod: the binding itself makes ``PodScheduled`` True. Gangs
are shown by the census every few seconds, so nothing is added to the path of an event, and what
is sent is ``patchesPerSecond`` at most, however many pods wait: first members go before all others.
What a pod says already is read from the pod, so a restart repeats nothing.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from extender.config.settings import ConditionsConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPod, PendingPods, headline_digest
from extender.planning import waitcauses
from extender.reporting.reporter import DecisionReporter
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.errors import Conflict, Invalid, KubeError, NotFound
from muster.kube.resources import PODS
from muster.kube.writing.podbodies import waits_body
from muster.placement.decision import Decision
from muster.placement.reasons import explanation as explain
from muster.workloads.status import Waits

log = logging.getLogger(__name__)

REFRESH_S: Final = 300.0  # the numbers of a wait of hours; the cause is never that old
GROUPS_PER_S: Final = 10  # where pods are not told
FORGET_EVERY_S: Final = 60
PAUSE_S: Final = 30.0  # after a failure: an API server in trouble has more important things to do
LOOKS_PER_S: Final = 1000  # at members, most of whom may know it already: a millisecond
MESSAGE_LIMIT: Final = 1024  # characters, as kube-scheduler's Events are cut


@dataclass(slots=True)
class _Wait:
    """A gang that waits. Times in epoch seconds of the engine's clock."""

    cause: str
    since: float
    #: what its members were last told
    waits: Waits | None = None
    #: when that was, 0 before
    told_at: float = 0.0
    #: when its last member had come by then
    grown_at: float = 0.0
    #: of the text without numbers
    digest: int = 0
    #: members that are still to be told
    rest: deque[PodUid] = field(default_factory=deque)


class Conditions:
    """All gangs that wait, and what is still to be told of them."""

    def __init__(
        self,
        engine: Engine,
        pods: PendingPods,
        client: KubeClient,
        config: ConditionsConfig,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        decisions: Mapping[GangKey, Decision],
    ) -> None:
        """``decisions``: the last one about each gang that waits for room."""
        self._config = config
        self._engine = engine
        self._pods = pods
        self._client = client
        self._metrics = metrics
        self._reporter = reporter
        self._decisions = decisions
        self._waits: dict[GangKey, _Wait] = {}
        self._first: dict[GangKey, None] = {}  # in order: whose turn is next
        self._rest: dict[GangKey, None] = {}
        self._listeners: list[Callable[[GangKey], None]] = []

    def listen(self, listener: Callable[[GangKey], None]) -> None:
        """Have ``listener`` called with each gang whose ``of`` has changed."""
        self._listeners.append(listener)

    def of(self, key: GangKey) -> Waits | None:
        """Return why a gang waits as it is told to users, None while it is not."""
        found = self._waits.get(key)
        return None if found is None else found.waits

    def notice(self, gang: GangView) -> None:
        """Take note of how a gang stands; called by the census."""
        now, cause = self._engine.clock(), waitcauses.cause(gang, self._decisions.get(gang.key))
        if cause is None or cause == waitcauses.TO_BE_PLANNED:
            self._end(gang.key)
            return
        wait = self._waits.get(gang.key)
        if wait is None or wait.cause != cause:
            told = None if wait is None else wait.waits
            wait = self._waits[gang.key] = _Wait(cause, now, told)
        elif now - wait.since >= self._config.after_seconds and self._has_news(wait, gang, now):
            self._first[gang.key] = None

    def _has_news(self, wait: _Wait, gang: GangView, now: float) -> bool:
        age_s = now - wait.told_at
        settled = age_s >= self._config.after_seconds
        return age_s >= REFRESH_S or (settled and gang.last_member_at != wait.grown_at)

    def _end(self, key: GangKey) -> None:
        self._first.pop(key, None)
        self._rest.pop(key, None)
        ended = self._waits.pop(key, None)
        if ended is not None and ended.waits is not None:
            self._has_changed(key)

    def _has_changed(self, key: GangKey) -> None:
        for listener in self._listeners:
            listener(key)

    def forget_gone(self) -> None:
        """Drop gangs that are gone: the census does not show them any more."""
        for key in self._waits.keys() - set(self._engine.state.gangs()):
            self._end(key)

    async def run(self) -> None:
        """Tell for ever."""
        for second in itertools.count():
            await asyncio.sleep(1.0)
            if second % FORGET_EVERY_S == 0:
                self.forget_gone()
            try:
                await self.tell(self._config.patches_per_second or GROUPS_PER_S)
            except KubeError as error:
                log.warning("conditions not written", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)

    async def tell(self, patches: int) -> int:
        """Tell so many groups and pods at most, return how many. Raises ``KubeError``."""
        sent = 0
        for _ in range(LOOKS_PER_S):
            if sent >= patches or not (self._first or self._rest):
                break
            key = next(iter(self._first or self._rest))
            step = self._tell_first if key in self._first else self._tell_next
            sent += await step(key)
        return sent

    async def _tell_first(self, key: GangKey) -> bool:
        """Tell the group and the first member; return whether there was anything new."""
        del self._first[key]
        gang, wait = self._engine.state.gang(key), self._waits.get(key)
        decision = self._decisions.get(key)
        if gang is None or wait is None or waitcauses.cause(gang, decision) != wait.cause:
            return False  # the census comes by again
        head, text = _texts(gang, decision)
        before, wait.waits = wait.waits, Waits(wait.cause, text, wait.since)
        wait.told_at, wait.digest = self._engine.clock(), headline_digest(head)
        first, *others = (self._engine.state.pod_uid(row) for row in gang.waiting.tolist())
        if gang.last_member_at != wait.grown_at:
            wait.grown_at, wait.rest = gang.last_member_at, deque(others)
            self._rest[key] = None
        is_new = wait.waits != before
        if is_new:
            self._has_changed(key)
        if decision is None and (before is None or before.cause != wait.cause):
            self._reporter.waits(gang, wait.cause, waitcauses.lines(gang, None))
        pod = self._pods.get(first)
        if pod is None or (pod.told == wait.digest and (before is None or not is_new)):
            return is_new
        return await self._patch(wait, pod, text) or is_new

    async def _tell_next(self, key: GangKey) -> bool:
        """Tell one more member; return whether that took a PATCH."""
        wait = self._waits.get(key)
        if wait is None or wait.waits is None or not wait.rest:
            del self._rest[key]
            return False
        pod = self._pods.get(wait.rest.popleft())
        if pod is None or pod.told == wait.digest:
            return False
        head = wait.waits.message.partition(";")[0]
        where = f"kubectl muster explain -n {pod.ref.namespace} {pod.ref.name}"
        return await self._patch(wait, pod, f"{head}; in numbers: {where}")

    async def _patch(self, wait: _Wait, pod: PendingPod, message: str) -> bool:
        """Write one message. Who has changed meanwhile is told when the gang's turn comes again."""
        if not pod.gated or not self._config.patches_per_second:
            return False
        body = waits_body(pod.ref.uid, pod.version, message)
        outcome = "failed"
        try:
            await self._client.patch(
                PODS, pod.ref.name, body, namespace=pod.ref.namespace, subresource="status"
            )
            outcome = "written"
        except (Conflict, Invalid, NotFound):
            outcome = "conflict"
            wait.grown_at = 0.0
        finally:
            self._metrics.conditions.labels(outcome).inc()
        return True


def _texts(gang: GangView, decision: Decision | None) -> tuple[str, str]:
    """Return the line without numbers, and all that is known in one text that begins with it."""
    head = waitcauses.headline(gang, decision)
    facts = [line for line in waitcauses.lines(gang, decision) if line != head]
    return head, explain.in_one_line([head, *facts])[:MESSAGE_LIMIT]
