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


class KubeletSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """``root``: the kubelet's --root-dir.

    ``registration``: how it learns of a resource. "kubelet-sock" is what every kubelet knows;
    "plugins-registry" has it look for the sockets itself. Never both for one resource.
    """

    root: Path = KUBELET
    registration: Literal["kubelet-sock", "plugins-registry"] = "kubelet-sock"

    @property
    def device_plugins(self) -> Path:
        """Folder of kubelet.sock, and of our sockets beside it."""
        return self.root / "device-plugins"

    @property
    def plugins_registry(self) -> Path:
        """Folder that the plugin watcher looks at."""
        return self.root / "plugins_registry"

    @property
    def pod_resources(self) -> Path:
        """The socket that tells which pod has which device."""
        return self.root / "pod-resources" / "kubelet.sock"


class Simulation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Devices that are not there.

    ``machine``: a name ("dgx-h100", "dgx-h100/all-balanced") or a file; empty: none. ``faults``: a
    file that switches faults while it runs.
    """

    machine: str = ""
    rack: str = ""
    faults: Path | None = None


class DeviceSources(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Where devices are found.

    ``nvml``: NVIDIA's GPUs; "auto" where the driver is there. ``nvml_library``: the folder of
    libnvidia-ml.so.1, where the loader does not find it by itself. ``root``: of /sys, /proc, /dev.
    """

    nvml: Literal["auto", "always", "never"] = "auto"
    nvml_library: Path | None = None
    rdma: bool = True
    amd: bool = True
    root: Path = Path("/")


class NodeConfigs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """NVIDIA's configuration files, of which a node's label chooses one (``nodeconfig``).

    ``folder``: a mounted ConfigMap; None: ``resources`` counts everywhere. ``default``: the name
    for nodes without the label.
    """

    folder: Path | None = None
    default: str = ""


class MigSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Cutting GPUs as the node label nvidia.com/mig.config says.

    ``reconfigure``: false leaves the label to others. ``layouts``: a file of mig-parted's form,
    beside the layouts that need none.
    """

    reconfigure: bool = True
    layouts: Path | None = None


class DevicePluginConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The whole file.

    ``reading_seconds``: between measurements; ``rescan_seconds``: between looks at what there is,
    when no backend says that it has changed.
    """

    api_version: Literal["muster.dev/v1alpha1"] = msgspec.field(
        default="muster.dev/v1alpha1", name="apiVersion"
    )
    kind: Literal["DevicePluginConfiguration"] = "DevicePluginConfiguration"
    kubelet: KubeletSettings = KubeletSettings()
    sources: DeviceSources = DeviceSources()
    simulation: Simulation = Simulation()
    resources: ResourceSettings = ResourceSettings()
    node_configs: NodeConfigs = NodeConfigs()
    mig: MigSettings = MigSettings()
    allocation: AllocationSettings = AllocationSettings()
    health: HealthConfig = HealthConfig()
    exporter: ExporterConfig = ExporterConfig()
    publication: PublicationSettings = PublicationSettings()
    reading_seconds: float = 5.0
    rescan_seconds: float = 60.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"


def load(path: Path) -> DevicePluginConfig:
    """Read ``path``; raises ``ConfigError`` whose text says what to mend."""
    return configfile.load(path, DevicePluginConfig, _problems)


def check(config: DevicePluginConfig) -> DevicePluginConfig:
    """Return ``config``; raises ``ConfigError`` where arguments have made it senseless."""
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
    ):
        if path is not None and not path.is_absolute():
            yield f"{field}: {path} is no absolute path; write it from the root"
    if config.simulation.machine:
        try:
            simulatedmachine.load(config.simulation.machine)
        except ConfigError as error:
            yield f"simulation.machine: {error}"
    yield from (f"resources.{problem}" for problem in settings.problems(config.resources))
    yield from (f"allocation.{each}" for each in allocationsettings.problems(config.allocation))
    yield from healthconfig.problems(config.health)
    yield from exporterconfig.problems(config.exporter)
