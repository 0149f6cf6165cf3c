"""What backends report between two inventories: readings when asked, signals by themselves.

``deviceplugin.health`` decides what they mean for a device.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceReading:
    """Memory of a MIG instance in MiB; the driver reports nothing else of one."""

    uuid: str
    memory_used: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """What was measured on a GPU; ``None`` where the driver does not report it.

    Temperatures in °C, clocks in MHz, memory in MiB, power in W, utilisation in per cent.
    Counters of ECC errors count over the life of the GPU, except where noted.
    """

    uuid: str
    temperature: int | None = None
    #: the temperature at which it slows itself down
    slowdown_at: int | None = None
    utilisation: int | None = None
    memory_used: int | None = None
    memory_free: int | None = None
    memory_reserved: int | None = None
    power: float | None = None
    power_limit: float | None = None
    sm_clock: int | None = None
    ecc_corrected: int | None = None
    #: counted since the driver was loaded (volatile)
    ecc_uncorrected: int | None = None
    #: rows of memory that were remapped after uncorrectable errors
    rows_remapped_uncorrectable: int | None = None
    #: whether rows are remapped at the next reset
    remap_pending: bool | None = None
    #: whether rows could not be remapped
    remap_failed: bool | None = None
    #: NVLinks that should be up and are not
    links_down: int | None = None
    #: nvmlDeviceGpuRecoveryAction_t (field 230): 0 none, 1 reset the GPU, 2 reboot the node …
    recovery_action: int | None = None
    #: memory of its MIG instances
    instances: tuple[InstanceReading, ...] = ()


@dataclass(frozen=True, slots=True)
class NicReading:
    """Whether the ports of a NIC are up: (port number, is active)."""

    #: of the verbs device
    name: str
    #: (port number, whether it is up)
    ports: tuple[tuple[int, bool], ...] = ()


Reading = GpuReading | NicReading


@dataclass(frozen=True, slots=True)
class Xid:
    """The driver reported an error of a GPU; of one MIG instance where both numbers are set."""

    #: of the GPU
    uuid: str
    #: the driver's number of the error
    code: int
    gpu_instance: int | None = None
    compute_instance: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """A GPU or NIC no longer answers."""

    #: UUID, or name of the verbs device
    device: str
    reason: str


@dataclass(frozen=True, slots=True)
class InventoryChanged:
    """Devices came, went, or were cut again: the inventory has to be read again."""

    reason: str


@dataclass(frozen=True, slots=True)
class BackendDown:
    """A backend hangs or has ended; nothing is known of its devices until ``BackendUp``."""

    backend: str
    reason: str


@dataclass(frozen=True, slots=True)
class BackendUp:
    """The backend answers again."""

    backend: str


Signal = Xid | DeviceLost | InventoryChanged | BackendDown | BackendUp
