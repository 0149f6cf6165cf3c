"""Which backends a node has, by its configuration."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from deviceplugin.backends import amd, rdma
from deviceplugin.backends.backend import Backend
from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.simulated import machine as simulatedmachine
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.config import DevicePluginConfig, DeviceSources
from muster.observability.configfile import ConfigError

_PCI: Final = Path("bus/pci/devices")
_NVIDIA: Final = "0x10de"
_DISPLAY: Final = "0x03"  # PCI class of VGA and 3D controllers


def backend(config: DevicePluginConfig, node: str) -> Backend:
    """Return the backend for the devices of ``node``. Raises ``ConfigError`` where all are off."""
    simulation = config.simulation
    if simulation.machine:
        machine = simulatedmachine.load(simulation.machine)
        return Simulated(machine, node=node, rack=simulation.rack, control=simulation.faults)
    found = [make() for wanted, make in _real(config.sources) if wanted]
    if not found:
        raise ConfigError("sources: nvml, rdma and amd are all switched off; leave one on")
    return found[0] if len(found) == 1 else JointBackend(found)


def _real(sources: DeviceSources) -> list[tuple[bool, Callable[[], Backend]]]:
    sys = sources.root / "sys"
    # By the hardware: the driver may be loaded minutes after this process starts.
    nvidia = sources.nvml == "always" or (sources.nvml == "auto" and _has_nvidia(sys / _PCI))
    return [
        (nvidia, lambda: NvmlBackend(library=sources.nvml_library, root=sources.root)),
        (sources.rdma, lambda: rdma.backend(sys)),
        (sources.amd, lambda: amd.backend(sys)),
    ]


def _has_nvidia(devices: Path) -> bool:
    for device in devices.glob("*"):
        with suppress(OSError):
            vendor, kind = ((device / name).read_text().strip() for name in ("vendor", "class"))
            if vendor == _NVIDIA and kind.startswith(_DISPLAY):
                return True
    return False
