"""Writes why a gang waits into the condition of its pods and the status of its group.

A gated pod has ``PodScheduled=False, SchedulingGated`` from the API server. The message of that
condition says only that the pod is gated. Muster replaces it, once per cause (docs/adr/0013)::

    waits, same cause afterSeconds ───► its turn ──► first member: all numbers    group: status
                    ▲                                     │                    (groupstatuses)
                    │ numbers differ after REFRESH_S ◄────┤
                    │ another cause, or more members      └──► the other members, one by one:
                    └───────────────────────────────────────── the cause, and where the numbers are

No message has to be removed: the binding makes ``PodScheduled`` True. The census shows every gang
every few seconds, so events cost nothing more. However many pods wait, at most ``patchesPerSecond``
PATCHes are sent, to the first members of all gangs before the others. The present message is read
from the pod, so a restart repeats nothing.
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

REFRESH_S: Final = 300.0  # the numbers are written again; a new cause is written at once
GROUPS_PER_S: Final = 10  # groups whose status is due, where no conditions are written to pods
FORGET_EVERY_S: Final = 60
PAUSE_S: Final = 30.0  # after a failure, to leave an API server in trouble alone
LOOKS_PER_S: Final = 1000  # at members, most of which may have the message already: a millisecond
MESSAGE_LIMIT: Final = 1024  # characters, as kube-scheduler cuts the text of its Events


@dataclass(slots=True)
class _Wait:
    """A gang that waits. Times in epoch seconds of the engine's clock."""

    cause: str
    since: float
    #: what was last written to its members
    waits: Waits | None = None
    #: when that was, 0 before
    written_at: float = 0.0
    #: when its last member had arrived at that time
    grown_at: float = 0.0
    #: digest of the message without numbers
    digest: int = 0
    #: members whose condition is still to be written
    rest: deque[PodUid] = field(default_factory=deque)


class Conditions:
    """All gangs that wait, and the conditions that are still to be written."""

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
        """Read in ``decisions`` the last decision about each gang that waits for room."""
        self._config = config
        self._engine = engine
        self._pods = pods
        self._client = client
        self._metrics = metrics
        self._reporter = reporter
        self._decisions = decisions
        self._waits: dict[GangKey, _Wait] = {}
        self._first: dict[GangKey, None] = {}  # gangs whose first member is due, in order
        self._rest: dict[GangKey, None] = {}  # gangs whose other members are due, in order
        self._listeners: list[Callable[[GangKey], None]] = []

    def listen(self, listener: Callable[[GangKey], None]) -> None:
        """Have ``listener`` called with a gang when the result of ``of`` for it has changed."""
        self._listeners.append(listener)

    def of(self, key: GangKey) -> Waits | None:
        """Return why a gang waits, as it was reported to users; None if it was not reported."""
        found = self._waits.get(key)
        return None if found is None else found.waits

    def notice(self, gang: GangView) -> None:
        """Note the state of a gang; called by the census."""
        now, cause = self._engine.clock(), waitcauses.cause(gang, self._decisions.get(gang.key))
        if cause is None or cause == waitcauses.TO_BE_PLANNED:
            self._end(gang.key)
            return
        wait = self._waits.get(gang.key)
        if wait is None or wait.cause != cause:
            before = None if wait is None else wait.waits
            wait = self._waits[gang.key] = _Wait(cause, now, before)
        elif now - wait.since >= self._config.after_seconds and self._has_news(wait, gang, now):
            self._first[gang.key] = None

    def _has_news(self, wait: _Wait, gang: GangView, now: float) -> bool:
        age_s = now - wait.written_at
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
        """Drop deleted gangs; the census does not show them any more."""
        for key in self._waits.keys() - set(self._engine.state.gangs()):
            self._end(key)

    async def run(self) -> None:
        """Write what is due every second, forever."""
        for second in itertools.count():
            await asyncio.sleep(1.0)
            if second % FORGET_EVERY_S == 0:
                self.forget_gone()
            try:
                await self.write_due(self._config.patches_per_second or GROUPS_PER_S)
            except KubeError as error:
                log.warning("conditions not written", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)

    async def write_due(self, patches: int) -> int:
        """Write to at most ``patches`` groups and pods; return how many. Raises ``KubeError``."""
        sent = 0
        for _ in range(LOOKS_PER_S):
            if sent >= patches or not (self._first or self._rest):
                break
            key = next(iter(self._first or self._rest))
            step = self._write_first if key in self._first else self._write_next
            sent += await step(key)
        return sent

    async def _write_first(self, key: GangKey) -> bool:
        """Write to the group and the first member; return whether there was anything new."""
        del self._first[key]
        gang, wait = self._engine.state.gang(key), self._waits.get(key)
        decision = self._decisions.get(key)
        if gang is None or wait is None or waitcauses.cause(gang, decision) != wait.cause:
            return False  # the census will show the gang again
        head, text = _texts(gang, decision)
        before, wait.waits = wait.waits, Waits(wait.cause, text, wait.since)
        wait.written_at, wait.digest = self._engine.clock(), headline_digest(head)
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
        is_written = pod is not None and pod.condition_digest == wait.digest
        if pod is None or (is_written and (before is None or not is_new)):
            return is_new
        return await self._patch(wait, pod, text) or is_new

    async def _write_next(self, key: GangKey) -> bool:
        """Write to one more member; return whether that took a PATCH."""
        wait = self._waits.get(key)
        if wait is None or wait.waits is None or not wait.rest:
            del self._rest[key]
            return False
        pod = self._pods.get(wait.rest.popleft())
        if pod is None or pod.condition_digest == wait.digest:
            return False
        head = wait.waits.message.partition(";")[0]
        where = f"kubectl muster explain -n {pod.ref.namespace} {pod.ref.name}"
        return await self._patch(wait, pod, f"{head}; in numbers: {where}")

    async def _patch(self, wait: _Wait, pod: PendingPod, message: str) -> bool:
        """Write one message. If the pod has changed since, it is due with the gang's next turn."""
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
    """Return the line without numbers, and a text of all details that begins with that line."""
    head = waitcauses.headline(gang, decision)
    facts = [line for line in waitcauses.lines(gang, decision) if line != head]
    return head, explain.in_one_line([head, *facts])[:MESSAGE_LIMIT]
