"""Released pods that cannot bind where they were sent.

A spare is taken without anybody's help: the state moves the hold, and ``filter`` returns
the spare. What is left has no node it may go to::

    nominated only ──► its annotation is taken away, then it is planned again, near its siblings
    pinned in its spec (cannot be undone)
        ├─ its node is gone, and it has a controller ──► evicted now
        ├─ unfit or filled, and it has a controller ───► evicted after evictAfterSeconds
        └─ no controller ──────────────────────────────► waits; nobody would replace it

Eviction is the last resort: a deleted pending pod counts as failed for its Job unless
the Job has a podFailurePolicy that ignores DisruptionTarget.
"""

import asyncio
import logging
from typing import Final

from cluster.effects import Effect, PlanBroken
from cluster.events import PodForgotten
from cluster.holds import Hold
from cluster.ids import PodUid
from extender.config import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pending import PendingPod, PendingPods
from extender.report import Reporter
from kube.client import MERGE, KubeClient
from kube.errors import APIError, KubeError
from kube.names import PLAN
from kube.resources import PODS

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
NODE_GONE: Final = "node gone"  # cluster.model: nothing brings this node back for this pod


class Repairer:
    """Looks at broken plans every second until they are mended, evicted or gone."""

    def __init__(
        self,
        engine: Engine,
        pods: PendingPods,
        client: KubeClient,
        config: ExtenderConfig,
        metrics: ExtenderMetrics,
        reporter: Reporter,
    ) -> None:
        self._engine = engine
        self._pods = pods
        self._client = client
        self._config = config
        self._metrics = metrics
        self._reporter = reporter
        self._since: dict[PodUid, float] = {}
        self._told: set[PodUid] = set()
        engine.listen(self.notice)

    def notice(self, effect: Effect) -> None:
        """Take note of a broken plan; called by the engine."""
        if isinstance(effect, PlanBroken):
            self._since.setdefault(effect.uid, self._engine.clock())

    async def run(self) -> None:
        """Repair for ever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    def forget_mended(self) -> None:
        """Drop plans that are not broken any more, without acting on the others (a standby)."""
        for uid in list(self._since):
            hold = self._engine.state.hold(uid)
            if hold is None or not hold.broken:
                self._drop(uid)

    async def look(self) -> None:
        """Look at every broken plan once."""
        for uid in list(self._since):
            hold, pod = self._engine.state.hold(uid), self._pods.get(uid)
            if hold is None or pod is None or not hold.broken:
                self._drop(uid)
            elif not pod.pinned:
                await self._plan_again(uid, pod, hold)
            elif pod.owned and self._is_time(uid, hold):
                await self._evict(uid, pod, hold)
            elif uid not in self._told:
                self._told.add(uid)
                self._reporter.broken(uid, hold.broken, "waiting")

    def _is_time(self, uid: PodUid, hold: Hold) -> bool:
        waited_s = self._engine.clock() - self._since[uid]
        return hold.broken == NODE_GONE or waited_s >= self._config.evict_after_seconds

    async def _plan_again(self, uid: PodUid, pod: PendingPod, hold: Hold) -> None:
        """Take the plan back where it is written, so that no event tells of it any more."""
        metadata = {"uid": pod.ref.uid, "annotations": {PLAN: None}}
        body = {"metadata": metadata}
        ref = pod.ref
        try:
            await self._client.patch(
                PODS, ref.name, body, namespace=ref.namespace, content_type=MERGE
            )
        except KubeError as error:
            log.warning("plan stays", extra={"pod": str(ref), "error": str(error)})
            return
        self._reporter.broken(uid, hold.broken, "replanned")
        self._drop(uid)
        self._engine.apply(PodForgotten(uid, hold.broken, nominated=True))

    async def _evict(self, uid: PodUid, pod: PendingPod, hold: Hold) -> None:
        """Have the controller make the pod anew; a refusal is tried again next time."""
        try:
            await self._client.evict_pod(pod.ref)
        except KubeError as error:
            outcome = "refused" if isinstance(error, APIError) else "failed"
            self._metrics.evictions.labels(outcome).inc()
            log.warning("eviction failed", extra={"pod": str(pod.ref), "error": str(error)})
            return
        self._metrics.evictions.labels("evicted").inc()
        self._reporter.broken(uid, hold.broken, "evicted")
        self._drop(uid)

    def _drop(self, uid: PodUid) -> None:
        self._since.pop(uid, None)
        self._told.discard(uid)
