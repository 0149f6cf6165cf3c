"""Released pods that cannot bind where they were sent.

A spare is taken without anybody's help: the state moves the hold, and ``filter`` returns
the spare; kube-scheduler tries the spares in a pin by itself. What is left has no node it
may go to, either because a node has changed (*broken*: the model sees it) or because
kube-scheduler turns the pod away by a filter the model does not know (*refused*: told by
the condition ``PodScheduled``, and believed after ``refusedAfterSeconds``)::

    nominated only ──► its annotation is taken away, then it is planned again, near its
    │                  siblings and, if refused, off the nodes that refused it
    pinned in its spec (cannot be undone)
        ├─ its node is gone, and it has a controller ──► evicted now
        ├─ its device is ill or taken, others are not ► waits: the kubelet gives it one of those
        ├─ unfit, filled or refused, with a controller ► evicted after evictAfterSeconds
        └─ no controller ──────────────────────────────► waits; nothing would replace it

Eviction is the last resort: a deleted pending pod counts as failed for its Job unless
the Job has a podFailurePolicy that ignores DisruptionTarget. Its successor is a waiting
member again and is planned near its siblings. What becomes of a gang that cannot be
completed is in ``extender.releases.partialgangs``.
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Final

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPod, PendingPods
from extender.planning.refusednodes import Refusals
from extender.releases.eviction import evict
from extender.reporting.reporter import DecisionReporter
from muster.cluster.effects import Effect, PlanBroken
from muster.cluster.events import PodForgotten
from muster.cluster.handlers.devicetroubles import REPLACEABLE
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.tables.holds import Hold, HoldState
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import KubeError
from muster.kube.names import PLAN
from muster.kube.resources import PODS

log = logging.getLogger(__name__)

PERIOD_S: Final = 1.0
NODE_GONE: Final = "node gone"  # muster.cluster.model: nothing brings this node back for this pod
REFUSED: Final = "refused by kube-scheduler"


@dataclass(slots=True)
class _Trouble:
    """A plan that does not come true."""

    plan_id: str
    #: epoch seconds of the engine's clock
    since: float
    #: whether a refusal has lasted long enough
    believed: bool = False
    #: whether an Event has been recorded
    told: bool = False


class Repairer:
    """Looks at plans in trouble every second until they are mended, evicted or gone."""

    def __init__(
        self,
        engine: Engine,
        pods: PendingPods,
        client: KubeClient,
        config: ExtenderConfig,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
    ) -> None:
        self._engine = engine
        self._pods = pods
        self._client = client
        self._config = config
        self._metrics = metrics
        self._reporter = reporter
        self._troubles: dict[PodUid, _Trouble] = {}
        self._refusals = Refusals()
        engine.listen(self.notice, PlanBroken)

    def refused(self, gang: GangKey) -> tuple[str, ...]:
        """Return the nodes that plans for a gang leave out."""
        return self._refusals.of(gang, self._engine.clock()) if self._refusals.nodes else ()

    def trouble(self, uid: PodUid) -> str:
        """Return why a released pod cannot bind, "" when nothing keeps it from it."""
        hold, pod = self._engine.state.hold(uid), self._pods.get(uid)
        return "" if hold is None or pod is None else _why(hold, pod)

    def node_changed(self, node: str) -> None:
        """Forget that a node was refused: it was another one, as far as anybody knows."""
        self._refusals.forget_node(node)

    def notice(self, effect: Effect) -> None:
        """Take note of a broken plan; called by the engine."""
        if isinstance(effect, PlanBroken):
            self._watch(effect.uid)

    async def run(self) -> None:
        """Repair for ever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    def forget_mended(self) -> None:
        """Drop plans that are not broken any more, without acting on the others (a standby)."""
        self._note_refused()
        for uid in list(self._troubles):
            if not self._is_same(uid):
                self._drop(uid)

    async def look(self) -> None:
        """Look at every plan in trouble once."""
        self._note_refused()
        for uid in list(self._troubles):
            hold, pod = self._engine.state.hold(uid), self._pods.get(uid)
            if hold is None or pod is None or not self._is_same(uid):
                self._drop(uid)
            else:
                await self._mend(uid, pod, hold, self.trouble(uid))

    def _note_refused(self) -> None:
        for uid in self._pods.refused - self._troubles.keys():
            self._watch(uid)

    def _is_same(self, uid: PodUid) -> bool:
        """Whether a plan is still in the trouble that was noted."""
        hold = self._engine.state.hold(uid)
        same = hold is not None and hold.plan_id == self._troubles[uid].plan_id
        return same and bool(self.trouble(uid))

    def _watch(self, uid: PodUid) -> None:
        """Begin to count the time, once; a released pod alone can be in trouble."""
        hold = self._engine.state.hold(uid)
        if hold is not None and hold.state is HoldState.RELEASED:
            self._troubles.setdefault(uid, _Trouble(hold.plan_id, self._engine.clock()))

    async def _mend(self, uid: PodUid, pod: PendingPod, hold: Hold, why: str) -> None:
        trouble = self._troubles[uid]
        waited_s = self._engine.clock() - trouble.since
        if why == REFUSED:
            if waited_s < self._config.refused_after_seconds:
                return
            self._keep_off(hold, trouble)
        if not pod.pinned:
            await self._plan_again(uid, pod, why)
        elif pod.owned and self._is_hopeless(why, waited_s):
            await self._evict(uid, pod, why)
        elif not trouble.told:
            trouble.told = True
            self._reporter.broken(uid, why, "waiting")

    def _is_hopeless(self, why: str, waited_s: float) -> bool:
        """Whether only another pod can help; a pod that lost a device may get one beside it."""
        if why in REPLACEABLE:
            return False
        return why == NODE_GONE or waited_s >= self._config.evict_after_seconds

    def _keep_off(self, hold: Hold, trouble: _Trouble) -> None:
        """Have the gang's plans leave out every node that this pod was allowed."""
        if hold.gang is None:
            return
        if not trouble.believed:
            trouble.believed = True
            self._refusals.forget_others(self._engine.state.gangs())
        self._refusals.note(hold.gang, hold.pins or (hold.node,), self._engine.clock())

    async def _plan_again(self, uid: PodUid, pod: PendingPod, why: str) -> None:
        """Take the plan back where it is written, so that no event shows it any more.

        Only from the pod as it was just read: bound in this moment, it keeps its devices.
        """
        ref = pod.ref
        try:
            found = await self._client.get_pod(ref.namespace, ref.name)
            if found.metadata.uid != ref.uid or found.spec.node_name:
                return  # the watch will show it
            version = found.metadata.resource_version
            metadata = {"uid": ref.uid, "resourceVersion": version, "annotations": {PLAN: None}}
            await self._client.patch(
                PODS,
                ref.name,
                {"metadata": metadata},
                namespace=ref.namespace,
                content_type=MERGE,
            )
        except KubeError as error:
            log.warning("plan stays", extra={"pod": str(ref), "error": str(error)})
            return
        self._reporter.broken(uid, why, "replanned")
        self._drop(uid)
        self._engine.apply(PodForgotten(uid, why, nominated=True))

    async def _evict(self, uid: PodUid, pod: PendingPod, why: str) -> None:
        """Have the controller make the pod anew; a refusal is tried again next time.

        A pod that is bound by now runs beside its siblings: the watch will show it.
        """
        if await evict(self._client, pod.ref, self._metrics, unbound=True):
            self._reporter.broken(uid, why, "evicted")
            engine = self._engine
            engine.story.evicted(uid, engine.state.gang_of(uid), why, engine.clock())
            self._drop(uid)

    def _drop(self, uid: PodUid) -> None:
        self._troubles.pop(uid, None)


def _why(hold: Hold, pod: PendingPod) -> str:
    """Return what keeps a pod from binding, "" when nothing does any more."""
    if hold.broken:
        return hold.broken
    return REFUSED if pod.refused and hold.state is HoldState.RELEASED else ""
