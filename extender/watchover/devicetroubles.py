"""Which device of which gang member is bad: noticed, kept, and told where users look.

::

    DevicesDisturbed ──► node is due ──► what is wrong there (ClusterState.device_troubles)
                                             │ as it was told ──► nothing
    pod arrives that says ──► node is due    └ otherwise ──► LIST of the node's pods ──► pod: PATCH
    its device is bad                                        of its condition; pod and controller:
                                                             Event; log; gauge

Nobody is evicted for a bad device: the pod is told of it by the condition
``muster.dev/DevicesHealthy`` (False, with the device and what its node says of it), and it becomes
True when the device is well again. Names of bound pods are not in the model, so the pods of a node
are listed when there is something to say of one of them; what a pod says already is read from it,
so that a restart and a new leader repeat nothing. Plans that name what another pod was given, and
pods that were given something else than planned, are logged, counted and shown by ``explain``: the
next allocation that the node publishes mends them.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.reporting.boundgangs import LISTS_PER_S, pods_on, tell_for_ever
from extender.reporting.reporter import DecisionReporter
from muster.cluster.effects import DevicesDisturbed, Effect
from muster.cluster.handlers.devicetroubles import DeviceTrouble, TroubleKind
from muster.cluster.ids import GangKey, PodUid
from muster.kube.client import KubeClient
from muster.kube.errors import Conflict, Invalid, KubeError, NotFound
from muster.kube.names import DEVICES_HEALTHY
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.kube.wire import Condition, Pod
from muster.kube.writing.podbodies import devices_body
from muster.kube.writing.podwrites import PodRef

log = logging.getLogger(__name__)

_NOTHING: Final[Mapping[PodUid, str]] = {}


class DeviceWatch:
    """What is wrong with the devices of all nodes. ``run`` is the leader's; reading is everybody's.

    ``writes``: whether conditions are written at all; Events are in any case.
    """

    def __init__(
        self,
        engine: Engine,
        client: KubeClient,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        *,
        writes: bool,
    ) -> None:
        self._engine = engine
        self._client = client
        self._metrics = metrics
        self._reporter = reporter
        self._writes = writes
        self._stale: set[str] = set()
        self._now: dict[str, tuple[DeviceTrouble, ...]] = {}
        self._sick: dict[GangKey, set[PodUid]] = {}
        self._due: dict[str, None] = {}  # in order
        self._said: dict[str, Mapping[PodUid, str]] = {}  # by node, since this process looks
        self._logged: dict[str, tuple[DeviceTrouble, ...]] = {}
        self._count()
        engine.listen(self.notice, DevicesDisturbed)

    def notice(self, effect: Effect) -> None:
        """Take note of a node to look at; called by the engine."""
        if isinstance(effect, DevicesDisturbed):
            self._stale.add(effect.node)
            self._due[effect.node] = None

    def arrived(self, pod: Pod) -> None:
        """Take note of a pod at first sight: it may say what is not so any more."""
        if pod.spec.node_name and _says_bad(_condition(pod)):
            self._said.pop(pod.spec.node_name, None)
            self._due[pod.spec.node_name] = None

    def unhealthy(self, gang: GangKey) -> int:
        """Return how many bound members of a gang have an unhealthy device."""
        return len(self.gangs().get(gang, ()))

    def gangs(self) -> Mapping[GangKey, set[PodUid]]:
        """Return the bound members with an unhealthy device, by gang."""
        self._look()
        return self._sick

    async def run(self) -> None:
        """Tell for ever."""
        await tell_for_ever(self.tell, "devices not told")

    async def tell(self) -> int:
        """Tell what is new, of some nodes at most; return the PATCHes. Raises ``KubeError``."""
        sent = lists = 0
        while self._due and lists < LISTS_PER_S:
            node = next(iter(self._due))
            del self._due[node]
            self._look()
            self._log(node)
            wanted = _messages(self._now.get(node, ()))
            if self._said.get(node) == wanted:
                continue
            lists += 1
            try:
                sent += await self._say(node, wanted)
            except KubeError:
                self._due[node] = None
                raise
            self._said[node] = wanted or _NOTHING
        return sent

    def _look(self) -> None:
        """Look again at the nodes where something happened."""
        if not self._stale:
            return
        for node in self._stale:
            found = tuple(self._engine.state.device_troubles(node))
            if found:
                self._now[node] = found
            else:
                self._now.pop(node, None)
        self._stale.clear()
        self._count()

    def _count(self) -> None:
        """Sum up what is wrong anywhere: few, of however many nodes."""
        troubles = [trouble for found in self._now.values() for trouble in found]
        counts = Counter(trouble.kind for trouble in troubles)
        for kind in TroubleKind:
            self._metrics.device_troubles.labels(kind.name.lower()).set(counts[kind])
        self._sick = {}
        for trouble in troubles:
            if _is_told(trouble) and trouble.gang is not None:
                self._sick.setdefault(trouble.gang, set()).add(trouble.uid)

    def _log(self, node: str) -> None:
        now, before = self._now.get(node, ()), self._logged.pop(node, ())
        for trouble in now:
            if trouble not in before:
                log.warning(
                    "device trouble",
                    extra={
                        "node": node,
                        "device": trouble.device,
                        "kind": trouble.kind.value,
                        "why": trouble.reason,
                        "gang": trouble.gang,
                        "pod_uid": trouble.uid.hex(),
                    },
                )
        if now:
            self._logged[node] = now

    async def _say(self, node: str, wanted: Mapping[PodUid, str]) -> int:
        """Bring the conditions of a node's pods up to date; return how many were written."""
        pods = await pods_on(self._client, node)
        written = 0
        for pod in pods:
            message, said = wanted.get(pod_uid(pod.metadata.uid), ""), _condition(pod)
            if message and not (_says_bad(said) and said is not None and said.message == message):
                self._reporter.device_unhealthy(pod, message)
                written += await self._write(pod, message)
            elif not message and _says_bad(said):
                self._reporter.devices_healthy(pod, node)
                written += await self._write(pod, "")
        return written

    async def _write(self, pod: Pod, message: str) -> bool:
        if not self._writes:
            return False
        ref = PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        changed = _says_bad(_condition(pod)) is not bool(message)
        at = datetime.fromtimestamp(self._engine.clock(), UTC) if changed else None
        body, outcome = devices_body(ref.uid, message, at), "failed"
        try:
            await self._client.patch(
                PODS, ref.name, body, namespace=ref.namespace, subresource="status"
            )
            outcome = "written"
        except (Conflict, Invalid, NotFound):
            outcome = "conflict"  # gone, or another pod of that name: nothing is left to say
        finally:
            self._metrics.conditions.labels(outcome).inc()
        return outcome == "written"


def _is_told(trouble: DeviceTrouble) -> bool:
    return trouble.kind is TroubleKind.UNHEALTHY and trouble.bound


def _messages(troubles: Iterable[DeviceTrouble]) -> dict[PodUid, str]:
    """Return what to tell the members of gangs, by pod: its bad devices and why they are."""
    found: dict[PodUid, str] = {}
    for trouble in troubles:
        if _is_told(trouble) and trouble.gang is not None:
            why = f": {trouble.reason}" if trouble.reason else ""
            text = f"device {trouble.device} of node {trouble.node} is unhealthy{why}"
            found[trouble.uid] = "; ".join(filter(None, (found.get(trouble.uid), text)))
    return found


def _condition(pod: Pod) -> Condition | None:
    return next((c for c in pod.status.conditions if c.type == DEVICES_HEALTHY), None)


def _says_bad(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "False"
