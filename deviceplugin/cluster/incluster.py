"""The parts of the plugin that need an API server; without one it serves the kubelet alone.

::

    reads    its Node (labels, allocatable, earlier annotations) · the pods of its node (podfeed)
    writes   its Node (publisher) · Events about its Node and its pods (nodeevents)
"""

from collections.abc import Coroutine
from dataclasses import dataclass, replace

from deviceplugin.cluster.allocationsnote import AllocationsNote
from deviceplugin.cluster.nodeobject import NodeObject
from deviceplugin.cluster.nodesettings import NodeSettings
from deviceplugin.cluster.publisher import NodePublisher
from deviceplugin.handshake.handshake import Handshake
from deviceplugin.node import NodeState
from deviceplugin.recutting import Recutting
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.watching.listwatch import ListWatch
from muster.kube.writing.events import EventRecorder


@dataclass(frozen=True, slots=True)
class InCluster:
    """The cluster's side of one node's plugin."""

    client: KubeClient
    node: NodeObject
    state: NodeState
    handshake: Handshake
    publisher: NodePublisher
    allocations: AllocationsNote
    recorder: EventRecorder
    #: the pods of its node
    pods: ListWatch[wire.Pod]
    #: None where no label may cut GPUs
    recutting: Recutting | None
    #: None where no label chooses the settings
    settings: NodeSettings | None

    def work(self) -> list[Coroutine[object, object, object]]:
        """Return what runs until the process ends."""
        optional = [part.run() for part in (self.recutting, self.settings) if part is not None]
        return [
            *optional,
            self.node.run(),
            self.publisher.run(),
            self.recorder.run(),
            self.handshake.run(),
            self.pods.run(self.handshake.pods_changed),
        ]

    def problem(self) -> str | None:
        """Return why the Node is not up to date, None when it is."""
        return self.node.problem

    def node_changed(self, node: wire.Node) -> None:
        """Take over what an earlier process wrote to the Node, the first time it is read."""
        if not self.allocations.recalled:
            self.allocations.recall(node)
            self.publish()

    def publish(self) -> None:
        """Write to the Node how devices are now, and which pods have them.

        Nothing is written before the devices are known and the Node has been read.
        """
        if self.state.looked and self.allocations.recalled:
            known = self.state.known(self.allocations.text())
            progress = None if self.recutting is None else self.recutting.progress
            self.publisher.publish(replace(known, progress=progress))
