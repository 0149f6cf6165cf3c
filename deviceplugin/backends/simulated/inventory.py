"""A machine, a node's name and what is wrong with it, as inventory and readings.

UUIDs are name-based (RFC 4122, version 5) over node and place, so two nodes with the same
machine differ and a restart changes nothing. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import Final
from uuid import UUID, uuid5

from deviceplugin.backends.simulated import mig as simulatedmig
from deviceplugin.backends.simulated.faults import Faults, GpuFault
from deviceplugin.backends.simulated.machine import At, Cutting, Machine, NicAt
from deviceplugin.backends.simulated.mig import Slot
from deviceplugin.model.inventory import (
    Driver,
    FabricState,
    Gpu,
    GpuMig,
    GpuMigProfile,
    Inventory,
    MigInstance,
    Nic,
    NvlinkFabric,
    NvLinks,
    PciPlace,
    Port,
    Vendor,
)
from deviceplugin.model.signals import GpuReading, NicReading, Reading

_NAMESPACE: Final = UUID("6d757374-6572-5000-8000-646576696365")  # "muster", "device": ours alone
_NO_CLUSTER: Final = str(UUID(int=0))
_FIRST_RENDER_NODE: Final = 128  # the kernel's: DRM render minors begin there
_NVIDIA_FILES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
_AMD_FILES: Final = ("/dev/kfd",)
_RDMA_FILES: Final = ("/dev/infiniband/rdma_cm",)
_STATES: Final = {
    "not-supported": FabricState.NOT_SUPPORTED,
    "not-started": FabricState.NOT_STARTED,
    "in-progress": FabricState.IN_PROGRESS,
    "completed": FabricState.COMPLETED,
}
_RESERVED_SHARE: Final = 100  # a hundredth of the memory is the driver's own


@dataclass(frozen=True, slots=True)
class Cut:
    """How a GPU is cut."""

    #: whether MIG is on
    enabled: bool = False
    #: the mode after a reset
    pending: bool = False
    #: the instances: profile and first memory slice
    slots: tuple[Slot, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A machine on a certain node."""

    machine: Machine
    #: name of the node, from which UUIDs are derived
    node: str
    #: nodes of one rack share an NVLink cluster
    rack: str = ""
    #: whether devices name device files, which do not exist
    files: bool = False
    #: profiles that the machine's GPUs can be cut into
    profiles: tuple[GpuMigProfile, ...] = ()
    #: UUID of a GPU → index
    uuids: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


def site(machine: Machine, node: str, rack: str = "", *, files: bool = False) -> Site:
    """Return the machine on a node, with UUIDs derived from the node's name."""
    profiles: tuple[GpuMigProfile, ...] = ()
    if machine.gpu.mig is not None:
        known = simulatedmig.profiles(machine.gpu.model, machine.gpu.memory_mib)
        profiles = tuple(_measured(profile, machine.gpu.mig) for profile in known)
    bare = Site(machine, node, rack or node, files, profiles)
    uuids = {_gpu_uuid(bare, at): index for index, at in enumerate(machine.gpus)}
    return replace(bare, uuids=MappingProxyType(uuids))


def _measured(profile: GpuMigProfile, cutting: Cutting) -> GpuMigProfile:
    """Return a profile with the memory that a real GPU reports, where that is known."""
    measured = cutting.measured.get(profile.name)
    return profile if measured is None else replace(profile, memory_mib=measured.memory_mib)


def _derived(here: Site, *names: str) -> UUID:
    return uuid5(_NAMESPACE, "/".join((here.machine.name, here.node, *names)))


def _gpu_uuid(here: Site, at: At) -> str:
    made = _derived(here, at.address)
    return f"GPU-{made}" if here.machine.vendor == "nvidia" else f"GPU-{made.hex[:16]}"


# --- inventory ----------------------------------------------------------------------------


def inventory(here: Site, cuts: Sequence[Cut], faults: Faults) -> Inventory:
    """Return what the node has. ``cuts``: by the GPUs' indices."""
    machine = here.machine
    gpus = [_gpu(here, index, cuts[index], faults) for index in range(len(machine.gpus))]
    nics = [_nic(here, index, faults) for index in range(len(machine.nics))]
    there = tuple(gpu for gpu in gpus if not faults.of_gpu(gpu).absent)
    shared = _NVIDIA_FILES if machine.vendor == "nvidia" else _AMD_FILES
    return Inventory(
        gpus=there,
        nics=tuple(nic for nic in nics if not faults.of_nic(nic).absent),
        links=_links(machine, [gpu.uuid for gpu in there]),
        driver=Driver(machine.driver.version, machine.driver.cuda),
        machine=machine.product,
        gpu_files=shared if here.files else (),
        rdma_files=_RDMA_FILES if here.files else (),
    )


def _gpu(here: Site, index: int, cut: Cut, faults: Faults) -> Gpu:
    kind, at = here.machine.gpu, here.machine.gpus[index]
    uuid = _gpu_uuid(here, at)
    mig = _mig(here, kind.mig, uuid, cut) if kind.mig is not None else None
    gpu = Gpu(
        uuid=uuid,
        model=kind.model,
        memory_mib=kind.memory_mib,
        place=_place(at),
        index=index,
        minor=index,
        vendor=Vendor(here.machine.vendor),
        compute=kind.compute,
        mig=mig,
        pci_class=kind.pci_class,
        device_id=kind.device_id,
        files=_gpu_files(here, index),
        partition=kind.partition,
    )
    return replace(gpu, fabric=_fabric(here, faults.of_gpu(gpu)))


def _place(at: At) -> PciPlace:
    return PciPlace(at.address, at.numa, tuple(at.above.split("/")))


def _gpu_files(here: Site, index: int) -> tuple[str, ...]:
    if not here.files:
        return ()
    if here.machine.vendor == "nvidia":
        return (f"/dev/nvidia{index}",)
    return (f"/dev/dri/card{index}", f"/dev/dri/renderD{_FIRST_RENDER_NODE + index}")


def _fabric(here: Site, fault: GpuFault) -> NvlinkFabric:
    kind = here.machine.fabric
    if kind is None:
        return NvlinkFabric()
    state = _STATES[fault.fabric or kind.state]
    cluster = _NO_CLUSTER
    if kind.across == "rack" and state is FabricState.COMPLETED:
        cluster = str(uuid5(_NAMESPACE, f"rack/{here.rack}"))
    return NvlinkFabric(state, fault.fabric_healthy, cluster, kind.clique)


def _mig(here: Site, cutting: Cutting, gpu: str, cut: Cut) -> GpuMig:
    by_name = {profile.name: profile for profile in here.profiles}
    slots = simulatedmig.in_order(cut.slots)
    made = [_instance(here, cutting, gpu, by_name[name], start) for name, start in slots]
    return GpuMig(cut.enabled, cut.pending, here.profiles, tuple(made))


def _instance(
    here: Site, cutting: Cutting, gpu: str, profile: GpuMigProfile, start: int
) -> MigInstance:
    slices = simulatedmig.compute_slices(profile.name)
    engines = simulatedmig.shape(profile.name, cutting.engines)
    measured = cutting.measured.get(profile.name)
    share = slices * cutting.multiprocessors
    return MigInstance(
        uuid=f"MIG-{_derived(here, gpu, profile.name, str(start))}",
        profile=profile.name,
        start=start,
        size=profile.size,
        gpu_instance=simulatedmig.gpu_instance(
            profile, start, simulatedmig.slices_of(here.profiles)
        ),
        memory_mib=profile.memory_mib,
        multiprocessors=share if measured is None else measured.multiprocessors,
        compute_slices=slices,
        engines=MappingProxyType(dict(engines)),
    )


def _nic(here: Site, index: int, faults: Faults) -> Nic:
    at: NicAt = here.machine.nics[index]
    kind = here.machine.nic_kinds[at.kind]
    guid = _derived(here, at.name).hex[:16]
    nic = Nic(
        name=at.name,
        place=_place(at),
        guid=":".join(guid[part : part + 4] for part in range(0, 16, 4)),
        model=kind.model,
        firmware=kind.firmware,
        interfaces=(at.interface,) if at.interface else (),
        files=_nic_files(index) if here.files else (),
        vendor_id=kind.vendor_id,
        device_id=kind.device_id,
        driver=kind.driver,
    )
    active = 1 not in faults.of_nic(nic).down
    port = Port(1, active, kind.link_layer, kind.rate_gbps)
    return replace(nic, ports=(port,))


def _nic_files(index: int) -> tuple[str, ...]:
    return (f"/dev/infiniband/uverbs{index}", f"/dev/infiniband/umad{index}")


def _links(machine: Machine, uuids: Sequence[str]) -> NvLinks:
    each, pairs = machine.links.to_switches, machine.links.between_all
    switched = dict.fromkeys(uuids, each) if each else {}
    direct = dict.fromkeys(combinations(sorted(uuids), 2), pairs) if pairs else {}
    return NvLinks(MappingProxyType(direct), MappingProxyType(switched))


# --- readings -----------------------------------------------------------------------------


def readings(here: Site, found: Inventory, faults: Faults) -> tuple[Reading, ...]:
    """Return the readings of the devices; a lost device has none."""
    gpus = [_gpu_reading(here, gpu, faults.of_gpu(gpu)) for gpu in found.gpus]
    nics = [
        NicReading(nic.name, tuple((port.number, port.active) for port in nic.ports))
        for nic in found.nics
        if not faults.of_nic(nic).lost
    ]
    return (*gpus, *nics)


def _gpu_reading(here: Site, gpu: Gpu, fault: GpuFault) -> GpuReading:
    if fault.lost:
        return GpuReading(gpu.uuid)
    kind = here.machine.gpu
    reserved = kind.memory_mib // _RESERVED_SHARE
    used = _or(fault.memory_used, 0)
    cut = gpu.mig is not None and gpu.mig.enabled
    return GpuReading(
        uuid=gpu.uuid,
        temperature=_or(fault.temperature, kind.temperature.idle),
        slowdown_at=kind.temperature.slowdown,
        # NVML does not report the utilisation of a GPU that is cut.
        utilisation=None if cut else _or(fault.utilisation, 0),
        memory_used=used,
        memory_free=max(kind.memory_mib - reserved - used, 0),
        memory_reserved=reserved,
        power=float(kind.power.idle if fault.power is None else fault.power),
        power_limit=float(kind.power.limit if fault.power_limit is None else fault.power_limit),
        sm_clock=_or(fault.sm_clock, kind.sm_clock),
        ecc_corrected=_or(fault.ecc_corrected, 0),
        ecc_uncorrected=_or(fault.ecc_uncorrected, 0),
        rows_remapped_uncorrectable=_or(fault.rows_remapped_uncorrectable, 0),
        remap_pending=bool(fault.remap_pending),
        remap_failed=bool(fault.remap_failed),
        links_down=_or(fault.links_down, 0),
        recovery_action=_or(fault.recovery_action, 0),
    )


def _or(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given
