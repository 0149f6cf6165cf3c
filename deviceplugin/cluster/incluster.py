"""The plugin's dealings with the API server; without them it serves the kubelet all the same.

::

    reads    its Node (labels, allocatable, what it said before) · the pods of its node
    writes   its Node (publisher) · Events about its Node and its pods
"""

import logging
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from deviceplugin.allocation.values import Deviation
from deviceplugin.cluster.nodeobject import NodeObject
from deviceplugin.cluster.nodesettings import NodeSettings
from deviceplugin.cluster.position import LLDP, Position
from deviceplugin.cluster.publisher import NodePublisher
from deviceplugin.handshake.handshake import Handshake
from deviceplugin.health.reports import Change, event
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.mig.reconfiguration import LayoutState
from deviceplugin.node import NodeState
from deviceplugin.publication.nodecontent import PublicationSettings
from deviceplugin.recutting import Recutting
from muster.kube import quantity, wire
from muster.kube.client import KubeClient
from muster.kube.names import NODE_ALLOCATIONS
from muster.kube.resources import PODS
from muster.kube.translation import allocationsannotation
from muster.kube.watching.listwatch import ListWatch, WatchConsumer, WatchScope
from muster.kube.writing.events import EventRecorder, Regarding

log = logging.getLogger(__name__)

CONTROLLER: Final = "muster.dev/device-plugin"


@dataclass(slots=True)
class InCluster:
    """One node's. ``attach`` before anything runs."""

    client: KubeClient
    node: str
    state: NodeState
    handshake: Handshake
    metrics: DevicePluginMetrics
    publication: PublicationSettings
    recutting: Recutting | None = None
    settings: NodeSettings | None = None
    watched: NodeObject = field(init=False)
    publisher: NodePublisher = field(init=False)
    recorder: EventRecorder = field(init=False)
    _generation: int = 0
    _given: Sequence[tuple[str, Mapping[str, tuple[str, ...]]]] | None = None
    _allocations: str = ""
    _recalled: bool = False

    def attach(self) -> None:
        """Make the parts, and have the handshake tell of itself."""
        told = self.publication
        self.watched = NodeObject(self.client, self.node, told.take_over)
        position = Position(self.node, told.topology_file, LLDP if told.lldp else None)
        self.publisher = NodePublisher(self.watched, position, told)
        self.recorder = EventRecorder(self.client, controller=CONTROLLER, instance=self.node)
        self.handshake.told, self.handshake.changed = self._deviated, self.publish
        self.watched.listen(self._recall)
        if self.recutting is not None:
            self.recutting.changed = self._cut
            self.watched.listen(self.recutting.heard)
        if self.settings is not None:
            self.settings.tell = self._kept
            self.watched.listen(self.settings.node_changed)

    def work(self) -> list[Coroutine[object, object, object]]:
        """Return what is to run until the end."""
        pods = ListWatch(
            self.client,
            PODS,
            scope=WatchScope(selectors={"fieldSelector": f"spec.nodeName={self.node}"}),
            consumer=WatchConsumer(
                on_problem=lambda text: log.warning("pods", extra={"problem": text})
            ),
        )
        parts = (self.recutting, self.settings)
        chosen = [part.run() for part in parts if part is not None]
        return [
            *chosen,
            self.watched.run(),
            self.publisher.run(),
            self.recorder.run(),
            self.handshake.run(),
            pods.run(self.handshake.pods_changed),
        ]

    def problem(self) -> str | None:
        """Return why the Node does not say what it should, None when it does."""
        return self.watched.problem

    def allocatable(self) -> Mapping[str, int] | None:
        """Return what the Node shows of extended resources; None while it is not known."""
        if self.watched.node is None:
            return None
        found = self.watched.node.status.allocatable.items()
        return {name: quantity.to_units(value) for name, value in found if "/" in name}

    def publish(self) -> None:
        """Have the Node say how devices are now, and who has them."""
        if self.state.looked and self._recalled:
            progress = None if self.recutting is None else self.recutting.progress
            self.publisher.tell(replace(self.state.known(self._said()), progress=progress))

    def changes(self, changes: Sequence[Change]) -> None:
        """Write an Event about the Node for each."""
        for change in changes:
            told = event(change)
            action = f"Watch{change.device}"[:128]  # a series of its own for each device
            self._event(told.reason, told.note, action, warning=told.warning)

    def _event(self, reason: str, note: str, action: str, *, warning: bool) -> None:
        """Write an Event about the Node."""
        # As the kubelet's own: `kubectl describe node` looks for the name in the place of the UID.
        node = Regarding("v1", "Node", "", self.node, self.node)
        self.recorder.record(node, reason, note, action=action, warning=warning)

    def _cut(self) -> None:
        """Tell how far MIG's layout is; the label alone cannot say why it failed."""
        self.publish()
        progress = None if self.recutting is None else self.recutting.progress
        if progress is None or progress.state is LayoutState.PENDING:
            return
        failed = progress.state is LayoutState.FAILED
        note = f"{progress.layout}: {progress.reason if failed else 'GPUs are cut so'}"
        reason = "MigConfigFailed" if failed else "MigConfigApplied"
        self._event(reason, note, "CutGpus", warning=failed)

    def _kept(self, problem: str) -> None:
        """Tell what of the configuration that the Node's label chooses does not count."""
        self._event("ConfigurationProblem", problem, "ChooseConfiguration", warning=True)

    def _said(self) -> str:
        """Return the annotation's text; its generation grows when what was given changes.

        As long as not all is known it stays what it was before this process.
        """
        if not self.handshake.ready:
            return self._allocations
        given = self.handshake.given()
        if given != self._given or not self._generation:
            self._generation += 1
            self._given, self._allocations = (
                given,
                allocationsannotation.encode(self._generation, given),
            )
        return self._allocations

    def _recall(self, node: wire.Node) -> None:
        """Take over, once, what this node's plugin said before it was started anew."""
        if self._recalled:
            return
        self._recalled = True
        text = node.metadata.annotations.get(NODE_ALLOCATIONS, "")
        if text:
            try:
                said = allocationsannotation.decode(text)
            except allocationsannotation.AllocationsError as error:
                log.warning(
                    "what the node said was given cannot be read", extra={"error": str(error)}
                )
            else:
                self._generation, self._allocations = said.generation, text
                self.handshake.recall(said.pods)
        self.publish()

    def _deviated(self, deviation: Deviation) -> None:
        self.metrics.deviations.labels("reported").inc()
        pod = Regarding.pod(deviation.namespace, deviation.pod, deviation.uid)
        note = _note(deviation)
        log.warning(note, extra={"pod": f"{deviation.namespace}/{deviation.pod}"})
        self.recorder.record(
            pod, "DevicesDiffer", note, action="GiveDevices", warning=deviation.sure
        )


def _note(deviation: Deviation) -> str:
    """Say what differs."""
    about = f"{deviation.resource}: " if deviation.resource else ""
    detail = f" ({deviation.detail})" if deviation.detail else ""
    planned = ", ".join(deviation.expected) or "nothing"
    given = ", ".join(deviation.given) or "nothing"
    return f"{about}{deviation.why}{detail}: planned {planned}; given {given}"
