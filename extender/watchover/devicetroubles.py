"""Bad devices of gang members: noted, and reported on the pods.

::

    DevicesDisturbed ──► node is due ──► what is wrong there (ClusterState.device_troubles)
                                             │ as reported before ──► nothing
    new pod with a bad ──► node is due       └ otherwise ──► LIST of the node's pods ──► pod: PATCH
    DevicesHealthy                                           of its condition; pod and controller:
                                                             Event; log; gauge

No pod is evicted because of a bad device. Its condition ``muster.dev/DevicesHealthy`` becomes
False, with the device and the problem in the message, and True when the device is healthy again.
The model does not have the names of bound pods, so the pods of a node are listed when one of them
needs a report. The present condition is read from the pod, so a restart and a new leader repeat
nothing. Two more troubles are only logged, counted and shown by ``explain``: a plan with a device
that another pod was given, and a pod that was given other devices than planned. The next allocation
that the node publishes corrects them.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.reporting.boundgangs import LISTS_PER_S, pods_on, record_forever
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
    """What is wrong with the devices of all nodes. Only the leader calls ``run``."""

    def __init__(
        self,
        engine: Engine,
        client: KubeClient,
        metrics: ExtenderMetrics,
        reporter: DecisionReporter,
        *,
        writes: bool,
    ) -> None:
        """Write conditions only if ``writes`` is true; Events are recorded in any case."""
        self._engine = engine
        self._client = client
        self._metrics = metrics
        self._reporter = reporter
        self._writes = writes
        self._stale: set[str] = set()
        self._now: dict[str, tuple[DeviceTrouble, ...]] = {}
        self._sick: dict[GangKey, set[PodUid]] = {}
        self._due: dict[str, None] = {}  # nodes, in order
        self._reported: dict[str, Mapping[PodUid, str]] = {}  # by node, since this process began
        self._logged: dict[str, tuple[DeviceTrouble, ...]] = {}
        self._count()
        engine.listen(self.notice, DevicesDisturbed)

    def notice(self, effect: Effect) -> None:
        """Note a node with changed devices; called by the engine."""
        if isinstance(effect, DevicesDisturbed):
            self._stale.add(effect.node)
            self._due[effect.node] = None

    def arrived(self, pod: Pod) -> None:
        """Note a new pod: its condition may be out of date."""
        if pod.spec.node_name and _is_bad(_condition(pod)):
            self._reported.pop(pod.spec.node_name, None)
            self._due[pod.spec.node_name] = None

    def unhealthy(self, gang: GangKey) -> int:
        """Return how many bound members of a gang have an unhealthy device."""
        return len(self.gangs().get(gang, ()))

    def gangs(self) -> Mapping[GangKey, set[PodUid]]:
        """Return the bound members with an unhealthy device, by gang."""
        self._look()
        return self._sick

    async def run(self) -> None:
        """Report forever."""
        await record_forever(self.report_due, "devices not reported")

    async def report_due(self) -> int:
        """Report what is new on at most ``LISTS_PER_S`` nodes. Raises ``KubeError``.

        Returns the number of PATCHes.
        """
        sent = lists = 0
        while self._due and lists < LISTS_PER_S:
            node = next(iter(self._due))
            del self._due[node]
            self._look()
            self._log(node)
            wanted = _messages(self._now.get(node, ()))
            if self._reported.get(node) == wanted:
                continue
            lists += 1
            try:
                sent += await self._report(node, wanted)
            except KubeError:
                self._due[node] = None
                raise
            self._reported[node] = wanted or _NOTHING
        return sent

    def _look(self) -> None:
        """Read the troubles again of the nodes where something happened."""
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
        """Count the troubles of all nodes; they are few, even on many nodes."""
        troubles = [trouble for found in self._now.values() for trouble in found]
        counts = Counter(trouble.kind for trouble in troubles)
        for kind in TroubleKind:
            self._metrics.device_troubles.labels(kind.name.lower()).set(counts[kind])
        self._sick = {}
        for trouble in troubles:
            if _is_reported(trouble) and trouble.gang is not None:
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

    async def _report(self, node: str, wanted: Mapping[PodUid, str]) -> int:
        """Update the conditions of a node's pods; return how many were written."""
        pods = await pods_on(self._client, node)
        written = 0
        for pod in pods:
            message, now = wanted.get(pod_uid(pod.metadata.uid), ""), _condition(pod)
            if message and not (_is_bad(now) and now is not None and now.message == message):
                self._reporter.device_unhealthy(pod, message)
                written += await self._write(pod, message)
            elif not message and _is_bad(now):
                self._reporter.devices_healthy(pod, node)
                written += await self._write(pod, "")
        return written

    async def _write(self, pod: Pod, message: str) -> bool:
        if not self._writes:
            return False
        ref = PodRef(pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
        changed = _is_bad(_condition(pod)) is not bool(message)
        at = datetime.fromtimestamp(self._engine.clock(), UTC) if changed else None
        body, outcome = devices_body(ref.uid, message, at), "failed"
        try:
            await self._client.patch(
                PODS, ref.name, body, namespace=ref.namespace, subresource="status"
            )
            outcome = "written"
        except (Conflict, Invalid, NotFound):
            outcome = "conflict"  # deleted, or another pod of that name: no report is needed
        finally:
            self._metrics.conditions.labels(outcome).inc()
        return outcome == "written"


def _is_reported(trouble: DeviceTrouble) -> bool:
    return trouble.kind is TroubleKind.UNHEALTHY and trouble.bound


def _messages(troubles: Iterable[DeviceTrouble]) -> dict[PodUid, str]:
    """Return the messages for members of gangs, by pod: the bad devices and the reasons."""
    found: dict[PodUid, str] = {}
    for trouble in troubles:
        if _is_reported(trouble) and trouble.gang is not None:
            why = f": {trouble.reason}" if trouble.reason else ""
            text = f"device {trouble.device} of node {trouble.node} is unhealthy{why}"
            found[trouble.uid] = "; ".join(filter(None, (found.get(trouble.uid), text)))
    return found


def _condition(pod: Pod) -> Condition | None:
    return next((c for c in pod.status.conditions if c.type == DEVICES_HEALTHY), None)


def _is_bad(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "False"
