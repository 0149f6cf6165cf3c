"""How the parts of the device plugin are put together, by its configuration.

::

    backend ─► plugin ─► servers ─► kubelet           exporter ◄─ board
                 │ state ◄─ handshake ◄─ pod-resources
                 └─► in the cluster: the Node, its pods, Events, MIG, settings by label

What is built first is a constructor argument of what is built later: ``NodeObject`` and
``NodeSettings`` (with an API server only), ``Holders``, ``Handshake``, ``NodeState``, ``Servers``,
``Plugin``, and last what needs the plugin: ``Recutting`` and ``InCluster``.

Who listens to what, in the order in which they are called::

    Servers.calls                metrics, Holders.nudge
    Holders                      MetricsBoard.hold, Plugin.have, Recutting.released
    Plugin.health_changes        NodeEvents.health_changed
    Plugin.device_changes        InCluster.publish
    Handshake.new_deviations     NodeEvents.deviated
    Handshake.given_changes      InCluster.publish
    NodeObject                   NodePublisher, InCluster, Recutting, NodeSettings (node_changed)
    NodeSettings.choices         Handshake.answer_by, NodeState.refresh, Plugin.advertise
    NodeSettings.ignored_xids    Monitor.ignore
    NodeSettings.problems        NodeEvents.configuration_problem
    Recutting.progress_changes   InCluster.publish, NodeEvents.layout_changed
"""

import logging
import os
import time
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from deviceplugin.allocation.settings import AllocationSettings, without_effect
from deviceplugin.backends.backend import Backend
from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.cluster import podfeed
from deviceplugin.cluster.allocationsnote import AllocationsNote
from deviceplugin.cluster.incluster import InCluster
from deviceplugin.cluster.nodeconfig import NodeConfig
from deviceplugin.cluster.nodeevents import NodeEvents
from deviceplugin.cluster.nodeobject import NodeObject
from deviceplugin.cluster.nodesettings import NodeSettings
from deviceplugin.cluster.position import LLDP, Position
from deviceplugin.cluster.publisher import NodePublisher
from deviceplugin.config import DevicePluginConfig
from deviceplugin.containers import containers
from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.handshake.handshake import Handshake
from deviceplugin.handshake.holders import Holders
from deviceplugin.handshake.podresources import PodResources
from deviceplugin.health.alerts import Alerts
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.mig.layouts import LayoutError
from deviceplugin.mig.reconfiguration import CuttingBackend
from deviceplugin.model.holdings import holders
from deviceplugin.node import NodeState
from deviceplugin.plugin import Plugin
from deviceplugin.recutting import Recutting
from deviceplugin.resources import settings as resourcesettings
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.serving import sockets
from deviceplugin.serving.resource import SocketPlace
from deviceplugin.serving.servers import Calls, Servers
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.watching.listwatch import ListWatch
from muster.kube.writing.events import EventRecorder

log = logging.getLogger(__name__)

CONTROLLER: Final = "muster.dev/device-plugin"


@dataclass(frozen=True, slots=True)
class NodeBasis:
    """What every builder needs."""

    config: DevicePluginConfig
    backend: Backend
    #: name of the Node
    node: str
    metrics: DevicePluginMetrics


@dataclass(frozen=True, slots=True)
class ClusterBasis:
    """What is built before the plugin where there is an API server."""

    client: KubeClient
    node: NodeObject
    #: the pods of the node
    pods: ListWatch[wire.Pod]
    #: None where no label chooses the settings
    settings: NodeSettings | None


@dataclass(frozen=True, slots=True)
class NodeParts:
    """The parts at work on a node."""

    plugin: Plugin
    holders: Holders
    state: NodeState
    handshake: Handshake
    #: None where the plugin runs without an API server
    cluster: InCluster | None = None


def parts(
    it: NodeBasis, client: KubeClient | None, extender: KubeClient | None = None
) -> NodeParts:
    """Build and connect all parts; nothing runs yet.

    ``client``: None for no API server. ``extender``: the one that shows the node's pods, if any.
    """
    if client is None:
        return _on_node(it, None)
    client.observe(it.metrics.api_calls.note)
    watched = ClusterBasis(
        client,
        NodeObject(client, it.node, it.config.publication.take_over),
        podfeed.feed(client, it.node, extender),
        _settings(it.config),
    )
    made = _on_node(it, watched)
    return replace(made, cluster=_in_cluster(it, made, watched))


# What works without an API server


def _on_node(it: NodeBasis, watched: ClusterBasis | None) -> NodeParts:
    config, metrics = it.config, it.metrics
    for field, text in without_effect(config.allocation):
        log.warning("allocation.%s: %s", field, text)
    for field, text in resourcesettings.without_effect(config.resources):
        log.warning("resources.%s: %s", field, text)
    kubelet = PodResources(config.kubelet.pod_resources)
    handshake = Handshake(
        it.node,
        containers(config.allocation, config.sources.root),
        kubelet,
        follows=watched is not None,
        shares=config.allocation.shares,
    )
    asked = Holders(kubelet, metrics.pod_resources_failures.inc, handshake.lives)
    state = NodeState(config.resources, config.health, handshake)
    plugin = _plugin(it, state, asked, watched)
    asked.listen(plugin.board.hold)
    asked.listen(plugin.have)
    return NodeParts(plugin, asked, state, handshake)


def _plugin(
    it: NodeBasis, state: NodeState, asked: Holders, watched: ClusterBasis | None
) -> Plugin:
    config, metrics = it.config, it.metrics
    allocatable = None if watched is None else watched.node.allocatable
    settings = None if watched is None else watched.settings
    return Plugin(
        it.backend,
        state,
        Servers(place(config), allocatable, _calls(metrics, asked)),
        MetricsBoard(it.node, config.exporter.stale_seconds),
        metrics,
        Alerts(config.health.alerts),
        config.reading_seconds,
        config.rescan_seconds,
        held=lambda: holders(asked.last or ()),
        settings_known=None if settings is None else settings.known,
    )


def _calls(metrics: DevicePluginMetrics, asked: Holders) -> Calls:
    """Return a listener that counts each call and, after an allocation, has the kubelet asked."""

    def called(resource: str, method: str, outcome: str) -> None:
        if method == "Register":
            metrics.registrations.labels(resource, outcome).inc()
        else:
            metrics.calls.labels(method, outcome).inc()
        if method in ("Allocate", "PreStartContainer"):
            asked.nudge()

    return called


# What needs an API server


def _in_cluster(it: NodeBasis, made: NodeParts, watched: ClusterBasis) -> InCluster:
    publication = it.config.publication
    position = Position(it.node, publication.topology_file, LLDP if publication.lldp else None)
    cluster = InCluster(
        watched.client,
        watched.node,
        made.state,
        made.handshake,
        NodePublisher(watched.node, position, publication),
        AllocationsNote(made.handshake),
        EventRecorder(watched.client, controller=CONTROLLER, instance=it.node),
        watched.pods,
        _recutting(it.config, made),
        watched.settings,
    )
    _connect(it, made, cluster)
    return cluster


def _connect(it: NodeBasis, made: NodeParts, cluster: InCluster) -> None:
    """Add the listeners that need both the plugin and the cluster's side."""
    events = NodeEvents(cluster.recorder, it.node, it.metrics)
    made.plugin.health_changes.listen(events.health_changed)
    made.plugin.device_changes.listen(cluster.publish)
    made.handshake.new_deviations.listen(events.deviated)
    made.handshake.given_changes.listen(cluster.publish)
    cluster.node.listen(cluster.publisher.node_changed)
    cluster.node.listen(cluster.node_changed)
    if cluster.recutting is not None:
        _connect_recutting(made, cluster, cluster.recutting, events)
    if cluster.settings is not None:
        _connect_settings(it.config, made, cluster, cluster.settings, events)


def _connect_recutting(
    made: NodeParts, cluster: InCluster, recutting: Recutting, events: NodeEvents
) -> None:
    made.holders.listen(recutting.released)
    cluster.node.listen(recutting.node_changed)
    recutting.progress_changes.listen(lambda _progress: cluster.publish())
    recutting.progress_changes.listen(events.layout_changed)


def _connect_settings(
    config: DevicePluginConfig,
    made: NodeParts,
    cluster: InCluster,
    settings: NodeSettings,
    events: NodeEvents,
) -> None:
    def apply(resources: ResourceSettings, allocation: AllocationSettings) -> None:
        answers = containers(allocation, config.sources.root)
        made.handshake.answer_by(answers, allocation.shares)
        made.state.refresh()
        made.plugin.advertise(resources)

    cluster.node.listen(settings.node_changed)
    settings.choices.listen(apply)
    settings.ignored_xids.listen(made.state.monitor.ignore)
    settings.problems.listen(events.configuration_problem)


@dataclass(frozen=True, slots=True)
class KubeletUsage:
    """A ``DeviceUsage``: what the kubelet lists, and what it was given since."""

    asked: Holders
    handshake: Handshake

    async def refresh(self) -> None:
        """Ask the kubelet again."""
        await self.asked.look()
        await self.handshake.ask_kubelet()

    def ids(self) -> Collection[str]:
        """Return the ids that containers have. Raises ``LayoutError`` where they are unknown."""
        if self.asked.last is None:
            raise LayoutError(
                f"not known which containers have which devices: {self.asked.problem}"
            )
        return self.handshake.table.ids_in_use() | holders(self.asked.last).keys()


def _recutting(config: DevicePluginConfig, made: NodeParts) -> Recutting | None:
    """Return what cuts GPUs, None where no label may.

    Where no backend can cut GPUs, a layout fails, and that is its reason.
    """
    if not config.mig.reconfigure:
        return None
    only = made.plugin.backend
    return Recutting(
        only if isinstance(only, CuttingBackend) else JointBackend([only]),
        KubeletUsage(made.holders, made.handshake),
        made.plugin.withhold,
        file=config.mig.layouts,
        take_over=config.publication.take_over,
    )


def _settings(config: DevicePluginConfig) -> NodeSettings | None:
    """Return what chooses settings by the Node's label, None where no folder holds any."""
    folder = config.node_configs.folder
    if folder is None:
        return None
    chosen = NodeConfig(folder, config.resources, config.node_configs.default)
    return NodeSettings(chosen, config.allocation)


# Sockets


def place(config: DevicePluginConfig) -> SocketPlace:
    """Return where this process's sockets are; those of processes that died are removed."""
    kubelet = config.kubelet
    registry = kubelet.plugins_registry if kubelet.registration == "plugins-registry" else None
    for folder in (kubelet.device_plugins, kubelet.plugins_registry):
        for left in sockets.remove_dead(folder):
            log.info("removed what a dead instance left", extra={"socket": str(left)})
    return SocketPlace(kubelet.device_plugins, start_id(), registry)


def start_id() -> str:
    """Return an id that no other process of this node has or had.

    The pid is not enough: in a container it is always the same.
    """
    return f"{time.time_ns() // 1_000_000:x}p{os.getpid():x}"
