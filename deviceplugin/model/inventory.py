"""What a node has, as its backends find it: GPUs, MIG instances, NICs, and what links them.

Values only; a backend makes a new ``Inventory`` whenever it looks. Two that are equal mean that
nothing has changed. Names that leave the node (device ids, CDI names, the plan) are UUIDs, for
NICs the name of the verbs device, and never an index, which may change at the next boot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

UNKNOWN_NUMA: Final = -1  # as the kernel says it in numa_node


class Vendor(StrEnum):
    """Whose GPU it is."""

    NVIDIA = "nvidia"
    AMD = "amd"


class FabricState(IntEnum):
    """NVLink fabric of an NVSwitch machine, as nvml.h numbers it (nvmlGpuFabricState_t)."""

    NOT_SUPPORTED = 0
    NOT_STARTED = 1
    IN_PROGRESS = 2
    COMPLETED = 3


@dataclass(frozen=True, slots=True)
class PciPlace:
    """Where a device sits.

    ``address``: domain:bus:device.function in lower case, four digits of domain
    ("0000:1b:00.0"). ``path``: what lies above it, the host bridge first
    ("pci0000:15", "0000:15:01.0"); two devices are as near as their paths have in common.
    """

    address: str
    numa: int = UNKNOWN_NUMA
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuMigProfile:
    """A profile that a GPU can be cut into: ``starts`` are memory slices, ``size`` how many.

    ``starts`` is empty where the driver tells the places only once MIG is on.
    """

    name: str
    starts: tuple[int, ...]
    size: int
    memory_mib: int = 0
    most: int = 0
    """How many can stand at once, as the driver says; 0: as many as there is room for."""


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG instance that stands on a GPU. ``start`` and ``size`` in memory slices."""

    uuid: str
    profile: str
    start: int
    size: int
    gpu_instance: int
    compute_instance: int = 0
    memory_mib: int = 0
    multiprocessors: int = 0
    compute_slices: int = 0
    engines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Of "copy", "decoder", "encoder", "jpeg" and "ofa", as GFD labels name them."""
    files: tuple[str, ...] = ()
    """Device files that open it, beside its GPU's ("/dev/nvidia-caps/nvidia-cap21")."""


@dataclass(frozen=True, slots=True)
class GpuMig:
    """How a GPU that can be cut is cut. ``profiles``: what it could be cut into."""

    enabled: bool = False
    pending: bool = False
    """The mode after the next reset; differs from ``enabled`` while one is due."""
    profiles: tuple[GpuMigProfile, ...] = ()
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class NvlinkFabric:
    """A GPU's membership in an NVLink fabric (nvmlGpuFabricInfoV_t)."""

    state: FabricState = FabricState.NOT_SUPPORTED
    healthy: bool = True
    cluster: str = ""
    """UUID of the NVLink cluster; empty or all zeros where there is none."""
    clique: int = 0


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. ``index``: the driver's, of this boot; ``minor``: of its device file."""

    uuid: str
    model: str
    """Product name as the driver says it ("NVIDIA H100 80GB HBM3")."""
    memory_mib: int
    place: PciPlace
    index: int
    minor: int = -1
    vendor: Vendor = Vendor.NVIDIA
    compute: tuple[int, int] = (0, 0)
    """CUDA compute capability; (0, 0) where there is none."""
    mig: GpuMig | None = None
    """None where it cannot be cut."""
    fabric: NvlinkFabric = NvlinkFabric()
    pci_class: str = ""
    """As sysfs writes it: "0x030200" for a 3D controller, "0x030000" with a display."""
    files: tuple[str, ...] = ()
    """Its own device files ("/dev/nvidia0"); those that all share are the inventory's."""
    device_id: str = ""
    """PCI device and vendor, as mig-parted's device-filter writes them ("0x233010DE")."""
    partition: str = ""
    """Compute and memory partition of an AMD GPU ("spx_nps1", "cpx_nps4"); empty: not told."""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a NIC. ``link_layer``: "InfiniBand" or "Ethernet", as sysfs says it."""

    number: int
    active: bool
    link_layer: str = ""
    rate_gbps: int = 0


@dataclass(frozen=True, slots=True)
class Nic:
    """An RDMA device: ``name`` of its verbs device ("mlx5_0")."""

    name: str
    place: PciPlace
    guid: str = ""
    model: str = ""
    """hca_type ("MT4129")."""
    firmware: str = ""
    ports: tuple[Port, ...] = ()
    interfaces: tuple[str, ...] = ()
    """Its network interfaces ("ib0", "ens1f0np0")."""
    files: tuple[str, ...] = ()
    """Its own char devices ("/dev/infiniband/uverbs0", "/dev/infiniband/umad0")."""
    virtual_of: str = ""
    """PCI address of the physical function, for a virtual one."""
    vendor_id: str = ""
    """PCI vendor, four lower-case hex digits ("15b3"), as pools of RDMA devices select them."""
    device_id: str = ""
    """PCI device ("1021")."""
    driver: str = ""
    """The kernel's driver ("mlx5_core")."""


@dataclass(frozen=True, slots=True)
class NvLinks:
    """NVLink (or XGMI) links. ``between``: links of a pair, keyed (lesser uuid, greater uuid)."""

    between: Mapping[tuple[str, str], int] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    to_switches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    """Links of a GPU that end at an NVSwitch: any two such GPUs reach each other."""

    def joining(self, one: str, other: str) -> int:
        """Return how many links join two GPUs, through switches as many as both have."""
        key = (one, other) if one < other else (other, one)
        direct = self.between.get(key, 0)
        return direct + min(self.to_switches.get(one, 0), self.to_switches.get(other, 0))


@dataclass(frozen=True, slots=True)
class Driver:
    """Versions of the GPU driver; empty where there is none."""

    version: str = ""
    cuda: str = ""
    """CUDA version that the driver speaks ("12.8")."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All of a node's devices, in the order of their indices and names."""

    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    links: NvLinks = NvLinks()
    driver: Driver = Driver()
    machine: str = ""
    """Product name of the machine (DMI)."""
    gpu_files: tuple[str, ...] = ()
    """Device files that every container with a GPU needs ("/dev/nvidiactl")."""
    rdma_files: tuple[str, ...] = ()
    """Likewise with a NIC ("/dev/infiniband/rdma_cm")."""
