"""Puts the device plugin together, by its configuration.

::

    backend ─► plugin ─► servers ─► kubelet           exporter ◄─ board
                 │ state ◄─ handshake ◄─ pod-resources
                 └─► in the cluster: the Node, its pods, Events, MIG, settings by label
"""

import logging
import os
import time
from dataclasses import dataclass

from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.backends.backend import Backend
from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.cluster.incluster import InCluster
from deviceplugin.cluster.nodeconfig import NodeConfig
from deviceplugin.cluster.nodesettings import NodeSettings
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
from deviceplugin.resources.settings import ResourceSettings
from deviceplugin.serving import sockets
from deviceplugin.serving.resource import SocketPlace
from deviceplugin.serving.servers import Servers
from muster.kube.client import KubeClient

log = logging.getLogger(__name__)


@dataclass(slots=True)
class NodeParts:
    """What is at work on a node."""

    plugin: Plugin
    holders: Holders
    state: NodeState
    handshake: Handshake


def parts(
    config: DevicePluginConfig,
    backend: Backend,
    node: str,
    metrics: DevicePluginMetrics,
    *,
    follows: bool,
) -> NodeParts:
    """Make all that works without an API server."""
    board = MetricsBoard(node, config.exporter.stale_seconds)
    kubelet = PodResources(config.kubelet.pod_resources)
    asked = Holders(kubelet, metrics.pod_resources_failures.inc)
    asked.listen(board.hold)
    answers = containers(config.allocation, config.sources.root)
    packed = config.allocation.shares == "packed"
    handshake = Handshake(node, answers, kubelet, follows, packed=packed)
    state = NodeState(config.resources, config.health, handshake)

    def called(resource: str, method: str, outcome: str) -> None:
        if method == "Register":
            metrics.registrations.labels(resource, outcome).inc()
        else:
            metrics.calls.labels(method, outcome).inc()
        if method in ("Allocate", "PreStartContainer"):
            asked.nudge()

    plugin = Plugin(
        backend,
        state,
        Servers(place(config), calls=called),
        board,
        metrics,
        Alerts(config.health.alerts),
        config.reading_seconds,
        config.rescan_seconds,
        held=lambda: holders(asked.last or ()),
    )
    asked.listen(plugin.have)
    return NodeParts(plugin, asked, state, handshake)


def in_cluster(
    config: DevicePluginConfig,
    client: KubeClient,
    node: str,
    made: NodeParts,
    metrics: DevicePluginMetrics,
) -> InCluster:
    """Make the cluster's side, and tie it to the rest."""
    client.observe(metrics.api_calls.note)
    cluster = InCluster(
        client,
        node,
        made.state,
        made.handshake,
        metrics,
        config.publication,
        recutting=_recutting(config, made),
        settings=_settings(config, made),
    )
    cluster.attach()
    made.plugin.changed, made.plugin.told = cluster.publish, cluster.changes
    made.plugin.servers.allocatable = cluster.allocatable
    return cluster


def _recutting(config: DevicePluginConfig, made: NodeParts) -> Recutting | None:
    """Return what cuts GPUs, None where that is not wanted.

    Where no backend can cut any, a label fails with that as its reason.
    """
    if not config.mig.reconfigure:
        return None
    plugin, only = made.plugin, made.plugin.backend
    backend = only if isinstance(only, CuttingBackend) else JointBackend([only])

    async def ask() -> None:
        """Have the kubelet say who has what now: a pod may have ended since it was asked last."""
        await made.holders.look()
        await made.handshake.hear()

    def in_use() -> frozenset[str]:
        """Return what the kubelet lists, and what it was given since."""
        if made.holders.last is None:
            raise LayoutError(f"not known who has which devices: {made.holders.problem}")
        return made.handshake.table.ids_in_use() | holders(made.holders.last).keys()

    async def hold(uuids: frozenset[str]) -> None:
        if not uuids:
            await plugin.surely_look()  # before what is gone would be shown as usable again
        made.state.hold(uuids)
        plugin.servers.changed()
        plugin.changed()

    file, take_over = config.mig.layouts, config.publication.take_over
    recutting = Recutting(backend, in_use, hold, ask=ask, file=file, take_over=take_over)
    made.holders.listen(recutting.released)
    return recutting


def _settings(config: DevicePluginConfig, made: NodeParts) -> NodeSettings | None:
    folder = config.node_configs.folder
    if folder is None:
        return None

    def apply(resources: ResourceSettings, allocation: AllocationSettings) -> None:
        answers = containers(allocation, config.sources.root)
        made.handshake.answer_by(answers, packed=allocation.shares == "packed")
        made.state.refresh()
        made.plugin.advertise(resources)

    chosen = NodeConfig(folder, config.resources, config.node_configs.default)
    settings = NodeSettings(chosen, config.allocation, apply)
    made.plugin.ready = settings.known
    return settings


def place(config: DevicePluginConfig) -> SocketPlace:
    """Return where this process's sockets are; those of dead ones are removed."""
    kubelet = config.kubelet
    registry = kubelet.plugins_registry if kubelet.registration == "plugins-registry" else None
    for folder in (kubelet.device_plugins, kubelet.plugins_registry):
        for left in sockets.remove_dead(folder):
            log.info("removed what a dead instance left", extra={"socket": str(left)})
    return SocketPlace(kubelet.device_plugins, start_id(), registry)


def start_id() -> str:
    """Return what tells this process from every other on its node, of all times.

    The pid alone would not: in a container it is always the same.
    """
    return f"{time.time_ns() // 1_000_000:x}p{os.getpid():x}"
