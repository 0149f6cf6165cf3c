"""Repairs released pods that cannot bind to their planned nodes.

A change to a spare node needs no repair: the state moves the hold and ``filter`` returns the spare;
with a pin kube-scheduler tries the spares by itself. The pods that need repair have no node left.
Either a node has changed (*broken*: the model shows it), or kube-scheduler rejects the pod by a
filter that is not in the model (*refused*: the condition ``PodScheduled`` shows it, and it counts
after ``refusedAfterSeconds``)::

    nominated only ──► its annotation is removed, then it is planned again, near its siblings
    │                  and, if refused, not on the nodes that were refused
    pinned in its spec (cannot be undone)
        ├─ its node is gone, and it has a controller ──► evicted now
        ├─ its device is ill or taken, others are not ► waits: the kubelet assigns another one
        ├─ unfit, filled or refused, with a controller ► evicted after evictAfterSeconds
        └─ no controller ──────────────────────────────► waits; nothing would replace it

Eviction is the last resort: a deleted pending pod counts as failed for its Job unless the Job has a
podFailurePolicy that ignores DisruptionTarget. The replacement pod is a waiting member again and is
planned near its siblings. For gangs that cannot be completed see
``extender.releases.partialgangs``.
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
    """A plan that cannot be carried out."""

    plan_id: str
    #: epoch seconds of the engine's clock
    since: float
    #: whether the refused nodes were noted, after ``refusedAfterSeconds``
    noted: bool = False
    #: whether an Event has been recorded
    reported: bool = False


class Repairer:
    """Looks at troubled plans every second until the pods are repaired, evicted or deleted."""

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
        """Return the nodes that kube-scheduler refused; plans for the gang leave them out."""
        return self._refusals.of(gang, self._engine.clock()) if self._refusals.nodes else ()

    def trouble(self, uid: PodUid) -> str:
        """Return why a released pod cannot bind, "" if it can."""
        hold, pod = self._engine.state.hold(uid), self._pods.get(uid)
        return "" if hold is None or pod is None else _why(hold, pod)

    def node_changed(self, node: str) -> None:
        """Forget the refusals of a changed node: it may be accepted now."""
        self._refusals.forget_node(node)

    def notice(self, effect: Effect) -> None:
        """Note a broken plan; called by the engine."""
        if isinstance(effect, PlanBroken):
            self._watch(effect.uid)

    async def run(self) -> None:
        """Repair forever."""
        while True:
            await asyncio.sleep(PERIOD_S)
            await self.look()

    def forget_mended(self) -> None:
        """Drop plans that are not broken any more, and do not act on the others; for a standby."""
        self._note_refused()
        for uid in list(self._troubles):
            if not self._is_same(uid):
                self._drop(uid)

    async def look(self) -> None:
        """Look at every troubled plan once."""
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
        """Return whether the plan that was noted is still in trouble."""
        hold = self._engine.state.hold(uid)
        same = hold is not None and hold.plan_id == self._troubles[uid].plan_id
        return same and bool(self.trouble(uid))

    def _watch(self, uid: PodUid) -> None:
        """Note since when a plan is in trouble; only a released pod can be."""
        hold = self._engine.state.hold(uid)
        if hold is not None and hold.state is HoldState.RELEASED:
            self._troubles.setdefault(uid, _Trouble(hold.plan_id, self._engine.clock()))

    async def _mend(self, uid: PodUid, pod: PendingPod, hold: Hold, why: str) -> None:
        trouble = self._troubles[uid]
        waited_s = self._engine.clock() - trouble.since
        if why == REFUSED:
            if waited_s < self._config.refused_after_seconds:
                return
            self._note_refusal(hold, trouble)
        if not pod.pinned:
            await self._plan_again(uid, pod, why)
        elif pod.owned and self._is_hopeless(why, waited_s):
            await self._evict(uid, pod, why)
        elif not trouble.reported:
            trouble.reported = True
            self._reporter.broken(uid, why, "waiting")

    def _is_hopeless(self, why: str, waited_s: float) -> bool:
        """Return whether only a new pod can help; after a device failure another device may do."""
        if why in REPLACEABLE:
            return False
        return why == NODE_GONE or waited_s >= self._config.evict_after_seconds

    def _note_refusal(self, hold: Hold, trouble: _Trouble) -> None:
        """Have the gang's plans leave out every node that this pod was allowed."""
        if hold.gang is None:
            return
        if not trouble.noted:
            trouble.noted = True
            self._refusals.forget_others(self._engine.state.gangs())
        self._refusals.note(hold.gang, hold.pins or (hold.node,), self._engine.clock())

    async def _plan_again(self, uid: PodUid, pod: PendingPod, why: str) -> None:
        """Remove the plan's annotation from the pod, so that no event shows it any more.

        The PATCH has the version that was just read as precondition: if the pod is bound in the
        meantime, it keeps its plan and its devices.
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
        """Evict a pod, so that its controller creates it again; tried again if refused.

        A pod that was bound in the meantime stays; the watch will show the binding.
        """
        if await evict(self._client, pod.ref, self._metrics, unbound=True):
            self._reporter.broken(uid, why, "evicted")
            engine = self._engine
            engine.story.evicted(uid, engine.state.gang_of(uid), why, engine.clock())
            self._drop(uid)

    def _drop(self, uid: PodUid) -> None:
        self._troubles.pop(uid, None)


def _why(hold: Hold, pod: PendingPod) -> str:
    """Return why a pod cannot bind, "" if it can."""
    if hold.broken:
        return hold.broken
    return REFUSED if pod.refused and hold.state is HoldState.RELEASED else ""
