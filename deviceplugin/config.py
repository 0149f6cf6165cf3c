"""The device plugin's configuration file; everything has a default that suits a DaemonSet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec

from deviceplugin.allocation import settings as allocationsettings
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.backends.simulated import machine as simulatedmachine
from deviceplugin.exporter import config as exporterconfig
from deviceplugin.exporter.config import ExporterConfig
from deviceplugin.health import config as healthconfig
from deviceplugin.health.config import HealthConfig
from deviceplugin.publication.nodecontent import PublicationSettings
from deviceplugin.resources import settings
from deviceplugin.resources.settings import ResourceSettings
from muster.observability import configfile
from muster.observability.configfile import ConfigError

KUBELET: Final = Path("/var/lib/kubelet")
TOKEN: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


class KubeletSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where the kubelet is, and how it learns of resources."""

    #: the kubelet's --root-dir
    root: Path = KUBELET
    #: how the kubelet learns of a resource: "kubelet-sock" by a call, which every kubelet
    #: understands; "plugins-registry" by finding the socket itself. Never both for one resource.
    registration: Literal["kubelet-sock", "plugins-registry"] = "kubelet-sock"

    @property
    def device_plugins(self) -> Path:
        """Folder of kubelet.sock, and of our sockets beside it."""
        return self.root / "device-plugins"

    @property
    def plugins_registry(self) -> Path:
        """Folder that the kubelet's plugin watcher looks at."""
        return self.root / "plugins_registry"

    @property
    def pod_resources(self) -> Path:
        """The socket of the API that lists which pod has which device."""
        return self.root / "pod-resources" / "kubelet.sock"


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A simulated machine in place of real devices."""

    #: a name ("dgx-h100", "dgx-h100/all-balanced") or a file; empty: none
    machine: str = ""
    #: the rack of this node; nodes of one rack share an NVLink cluster
    rack: str = ""
    #: a file that switches faults on and off while the plugin runs
    faults: Path | None = None


class DeviceSources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where devices are found."""

    #: NVIDIA's GPUs by NVML; "auto": where the machine has such a GPU
    nvml: Literal["auto", "always", "never"] = "auto"
    #: the folder of libnvidia-ml.so.1; None: the loader finds it
    nvml_library: Path | None = None
    #: whether RDMA devices are looked for
    rdma: bool = True
    #: whether AMD's GPUs are looked for
    amd: bool = True
    #: folder in which /sys, /proc and /dev of the host are
    root: Path = Path("/")


class PodFeedSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Who shows the plugin the pods of its node (``deviceplugin.cluster.podfeed``)."""

    #: URL of the extender that shows the node's pods; empty: the API server does
    extender: str = ""
    #: authority of the extender's certificate; null: those of the system
    ca_file: Path | None = None
    #: the token to show it, which the kubelet makes for this pod and renews
    token_file: Path = TOKEN


class NodeConfigs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """NVIDIA's configuration files, of which a node's label chooses one (``nodeconfig``)."""

    #: a mounted ConfigMap; None: every node uses ``resources``
    folder: Path | None = None
    #: name of the file for nodes without the label
    default: str = ""


class MigSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Whether and how GPUs are cut by the node label nvidia.com/mig.config."""

    #: whether the plugin cuts GPUs; false leaves the label to another program
    reconfigure: bool = True
    #: a file in mig-parted's format with layouts beside the built-in ones
    layouts: Path | None = None


class DevicePluginConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The whole configuration file."""

    api_version: Literal["muster.dev/v1alpha1"] = msgspec.field(
        default="muster.dev/v1alpha1", name="apiVersion"
    )
    kind: Literal["DevicePluginConfiguration"] = "DevicePluginConfiguration"
    kubelet: KubeletSettings = KubeletSettings()
    sources: DeviceSources = DeviceSources()
    simulation: Simulation = Simulation()
    resources: ResourceSettings = ResourceSettings()
    #: who shows the pods of this node
    pods: PodFeedSettings = PodFeedSettings()
    node_configs: NodeConfigs = NodeConfigs()
    mig: MigSettings = MigSettings()
    allocation: AllocationSettings = AllocationSettings()
    health: HealthConfig = HealthConfig()
    exporter: ExporterConfig = ExporterConfig()
    publication: PublicationSettings = PublicationSettings()
    #: seconds between two measurements of all devices
    reading_seconds: float = 5.0
    #: seconds between two readings of the inventory while no backend reports a change
    rescan_seconds: float = 60.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"


def load(path: Path) -> DevicePluginConfig:
    """Read ``path``; raises ``ConfigError``, which names what to correct."""
    return configfile.load(path, DevicePluginConfig, _problems)


def check(config: DevicePluginConfig) -> DevicePluginConfig:
    """Return ``config``; raises ``ConfigError`` where arguments contradict it."""
    found = list(_problems(config))
    if found:
        raise ConfigError("\n".join(found))
    return config


def _problems(config: DevicePluginConfig) -> Iterator[str]:
    yield from configfile.out_of_range(
        (
            ("readingSeconds", config.reading_seconds, 0.1, 300),
            ("rescanSeconds", config.rescan_seconds, 1, 3600),
        )
    )
    for field, path in (
        ("kubelet.root", config.kubelet.root),
        ("simulation.faults", config.simulation.faults),
        ("sources.nvmlLibrary", config.sources.nvml_library),
        ("sources.root", config.sources.root),
        ("nodeConfigs.folder", config.node_configs.folder),
        ("mig.layouts", config.mig.layouts),
        ("publication.topologyFile", config.publication.topology_file),
        ("pods.caFile", config.pods.ca_file),
        ("pods.tokenFile", config.pods.token_file),
    ):
        if path is not None and not path.is_absolute():
            yield f"{field}: {path} is no absolute path; write it from the root"
    if config.simulation.machine:
        try:
            simulatedmachine.load(config.simulation.machine)
        except ConfigError as error:
            yield f"simulation.machine: {error}"
    if config.pods.extender and not config.pods.extender.startswith("https://"):
        yield (
            f"pods.extender: {config.pods.extender!r} does not begin with https://; a token is "
            "sent over TLS alone"
        )
    yield from (f"resources.{problem}" for problem in settings.problems(config.resources))
    yield from (f"allocation.{each}" for each in allocationsettings.problems(config.allocation))
    yield from healthconfig.problems(config.health)
    yield from exporterconfig.problems(config.exporter)
