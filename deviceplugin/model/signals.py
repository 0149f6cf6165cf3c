"""What backends tell between two inventories: readings are asked for, signals come.

Nothing here judges: ``deviceplugin.health`` decides what a signal means for a device.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceReading:
    """Memory of a MIG instance in MiB; the driver tells no more of one."""

    uuid: str
    memory_used: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What was measured on a GPU; ``None`` where the driver does not tell.

    Temperatures in °C, clocks in MHz, memory in MiB, power in W, utilisation in per cent.
    Counters of ECC errors are aggregates over the life of the GPU unless they say otherwise.
    """

    uuid: str
    temperature: int | None = None
    slowdown_at: int | None = None
    """The temperature at which it slows itself down."""
    utilisation: int | None = None
    memory_used: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None
    power: float | None = None
    power_limit: float | None = None
    sm_clock: int | None = None
    ecc_corrected: int | None = None
    ecc_uncorrected: int | None = None
    """Since the driver was loaded (volatile)."""
    rows_remapped_uncorrectable: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    links_down: int | None = None
    """NVLinks that should be up and are not."""
    recovery_action: int | None = None
    """nvmlDeviceGetFieldValues 230: 0 none, 1 reset the GPU, 2 reboot the node …"""
    instances: tuple[InstanceReading, ...] = ()


@dataclass(frozen=True, slots=True)
class NicReading:
    """Whether the ports of a NIC are up: (port number, is active)."""

    name: str
    ports: tuple[tuple[int, bool], ...] = ()


Reading = GpuReading | NicReading


@dataclass(frozen=True, slots=True)
class Xid:
    """The driver reported an error of a GPU, of one MIG instance if both numbers are told."""

    uuid: str
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A GPU or NIC does not answer any more. ``device``: UUID or verbs name."""

    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class InventoryChanged:
    """Devices came, went, or were cut anew: look again."""

    reason: str


@dataclass(frozen=True, slots=True)
class BackendDown:
    """A backend hangs or has ended: nothing is known of its devices until ``BackendUp``."""

    backend: str
    reason: str


@dataclass(frozen=True, slots=True)
class BackendUp:
    """The backend answers again."""

    backend: str


Signal = Xid | DeviceLost | InventoryChanged | BackendDown | BackendUp
