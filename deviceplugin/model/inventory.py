"""What a node has, as its backends find it: GPUs, MIG instances, NICs, and what links them.

Values only. A backend makes a new ``Inventory`` whenever it looks; equal ones mean that nothing has
changed. Names that leave the node (device ids, CDI names, the plan) are UUIDs, and names of verbs
devices for NICs. They are never an index, which may change at the next boot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final

UNKNOWN_NUMA: Final = -1  # the kernel's value in numa_node


class Vendor(StrEnum):
    """The maker of a GPU."""

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
    """Where a device sits on PCI."""

    #: domain:bus:device.function in lower case, with four digits of domain ("0000:1b:00.0")
    address: str
    #: NUMA node; -1: not known
    numa: int = UNKNOWN_NUMA
    #: the bridges above it, the host bridge first ("pci0000:15", "0000:15:01.0"); the more of it
    #: two devices have in common, the nearer they are
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuMigProfile:
    """A profile that a GPU can be cut into."""

    name: str
    #: memory slices at which an instance may start; empty where the driver reports them only once
    #: MIG is on
    starts: tuple[int, ...]
    #: in memory slices
    size: int
    memory_mib: int = 0
    #: how many can exist at once by the driver; 0: as many as there is room for
    most: int = 0


@dataclass(frozen=True, slots=True)
class MigInstance:
    """A MIG instance on a GPU."""

    uuid: str
    profile: str
    #: in memory slices
    start: int
    #: in memory slices
    size: int
    #: the driver's number of the GPU instance
    gpu_instance: int
    #: the driver's number of the compute instance in it
    compute_instance: int = 0
    memory_mib: int = 0
    multiprocessors: int = 0
    compute_slices: int = 0
    #: "copy", "decoder", "encoder", "jpeg" and "ofa" (GFD's names) → how many it has
    engines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    #: device files that open it, beside its GPU's ("/dev/nvidia-caps/nvidia-cap21")
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuMig:
    """How a GPU that can be cut is cut."""

    #: whether MIG is on now
    enabled: bool = False
    #: the mode after the next reset; differs from ``enabled`` while a reset is due
    pending: bool = False
    #: the profiles that it can be cut into
    profiles: tuple[GpuMigProfile, ...] = ()
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True, slots=True)
class NvlinkFabric:
    """A GPU's membership in an NVLink fabric (nvmlGpuFabricInfoV_t)."""

    state: FabricState = FabricState.NOT_SUPPORTED
    #: false where the fabric manager reports a problem
    healthy: bool = True
    #: UUID of the NVLink cluster; empty or all zeros where there is none
    cluster: str = ""
    #: number of the part of the cluster in which GPUs reach each other
    clique: int = 0


@dataclass(frozen=True, slots=True)
class VgpuHost:
    """The driver of the hypervisor that a vGPU is of; empty where it is not known."""

    version: str = ""
    branch: str = ""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of the node."""

    #: the driver's UUID, with its prefix "GPU-"
    uuid: str
    #: the driver's product name ("NVIDIA H100 80GB HBM3")
    model: str
    memory_mib: int
    place: PciPlace
    #: the driver's number, valid for this boot
    index: int
    #: number of its device file; -1 where it is not known
    minor: int = -1
    vendor: Vendor = Vendor.NVIDIA
    #: CUDA compute capability; (0, 0) where there is none
    compute: tuple[int, int] = (0, 0)
    #: None where it cannot be cut
    mig: GpuMig | None = None
    fabric: NvlinkFabric = NvlinkFabric()
    #: as sysfs writes it: "0x030200" for a 3D controller, "0x030000" with a display
    pci_class: str = ""
    #: its own device files ("/dev/nvidia0"); those that all share are the inventory's
    files: tuple[str, ...] = ()
    #: PCI device and vendor, as mig-parted's device-filter writes them ("0x233010DE")
    device_id: str = ""
    #: None where it is no vGPU
    vgpu: VgpuHost | None = None
    #: compute and memory partition of an AMD GPU ("spx_nps1", "cpx_nps4"); empty: not known
    partition: str = ""


@dataclass(frozen=True, slots=True)
class Port:
    """One port of a NIC."""

    number: int
    #: whether the port is up
    active: bool
    #: "InfiniBand" or "Ethernet", as in sysfs
    link_layer: str = ""
    rate_gbps: int = 0
    #: the first key of its InfiniBand partition table ("0x8001"); empty where it has none
    partition_key: str = ""


@dataclass(frozen=True, slots=True)
class Vdpa:
    """A vDPA device: a virtio device that a function's hardware serves."""

    #: on the kernel's vDPA bus ("vdpa0")
    name: str
    #: what it is bound to: "vhost" is for programs, "virtio" for the kernel; else empty
    kind: str = ""
    #: its char device ("/dev/vhost-vdpa-0"), for "vhost"
    file: str = ""


@dataclass(frozen=True, slots=True)
class Nic:
    """An RDMA device."""

    #: of its verbs device ("mlx5_0")
    name: str
    place: PciPlace
    #: node GUID, as in sysfs
    guid: str = ""
    #: hca_type ("MT4129")
    model: str = ""
    firmware: str = ""
    ports: tuple[Port, ...] = ()
    #: its network interfaces ("ib0", "ens1f0np0")
    interfaces: tuple[str, ...] = ()
    #: its own char devices ("/dev/infiniband/uverbs0", "/dev/infiniband/umad0")
    files: tuple[str, ...] = ()
    #: PCI address of the physical function, for a virtual one
    virtual_of: str = ""
    #: its number among the virtual functions of the physical one; -1: it is not virtual
    virtual_number: int = -1
    #: network interface of the physical function, for a virtual one
    root_interface: str = ""
    #: PCI vendor, four lower-case hex digits ("15b3"), as pools of RDMA devices select them
    vendor_id: str = ""
    #: PCI device ("1021")
    device_id: str = ""
    #: the kernel's driver ("mlx5_core")
    driver: str = ""
    #: what the firmware calls it (``acpi_index``); empty where it has no name for it
    acpi_index: str = ""
    vdpa: Vdpa | None = None


@dataclass(frozen=True, slots=True)
class NvLinks:
    """NVLink (or XGMI) links."""

    #: links of a pair, keyed (lesser uuid, greater uuid)
    between: Mapping[tuple[str, str], int] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    #: links of a GPU that end at an NVSwitch: any two such GPUs reach each other
    to_switches: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def joining(self, one: str, other: str) -> int:
        """Return how many links join two GPUs, through switches as many as both have."""
        key = (one, other) if one < other else (other, one)
        direct = self.between.get(key, 0)
        return direct + min(self.to_switches.get(one, 0), self.to_switches.get(other, 0))


@dataclass(frozen=True, slots=True)
class Driver:
    """Versions of the GPU driver; empty where there is none."""

    version: str = ""
    #: CUDA version that the driver supports ("12.8")
    cuda: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """All of a node's devices, in the order of their indices and names."""

    gpus: tuple[Gpu, ...] = ()
    nics: tuple[Nic, ...] = ()
    links: NvLinks = NvLinks()
    driver: Driver = Driver()
    #: product name of the machine (DMI)
    machine: str = ""
    #: device files that every container with a GPU needs ("/dev/nvidiactl")
    gpu_files: tuple[str, ...] = ()
    #: device files that every container with a NIC needs ("/dev/infiniband/rdma_cm")
    rdma_files: tuple[str, ...] = ()
    #: device files for virtio through the kernel; empty unless the node has both
    vhost_files: tuple[str, ...] = ()
