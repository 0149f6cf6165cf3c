"""From NVML's facts to an inventory. Pure: where devices sit on PCI is passed in."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

import msgspec

from deviceplugin.backends.nvml.profiles import instance_name, profile_name
from deviceplugin.backends.nvml.wire import FabricFacts, GpuFacts, InstanceFacts, Looked, MigFacts
from deviceplugin.model.inventory import (
    Driver,
    FabricState,
    Gpu,
    GpuMig,
    GpuMigProfile,
    Inventory,
    MigInstance,
    NvlinkFabric,
    NvLinks,
    PciPlace,
    VgpuHost,
)

_MIB: Final = 1024**2
_TO_GPU: Final = 0  # NVML_NVLINK_DEVICE_TYPE_…
_TO_SWITCH: Final = 2
_SUCCESS: Final = 0
_SUMMARY_UNHEALTHY: Final = 2
_YES: Final = 1  # of the two-bit fields of the health mask: 0 is "not supported", 2 is "no"
# Shifts of the fields that stop jobs. Degraded bandwidth (0) and a route under repair (2) do not.
_ROUTE_UNHEALTHY: Final = 4
_ACCESS_TIMEOUT: Final = 6
_CONFIGURATION: Final = 8  # four bits: 0 not supported, 1 right, from 2 on some way of being wrong


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the operating system tells beside NVML."""

    place: Callable[[str], PciPlace]
    """From a PCI address to the place."""
    pci_class: Callable[[str], str]
    """Likewise to the class that sysfs tells."""
    mig_files: Callable[[int, int, int], tuple[str, ...]]
    """From GPU minor, GPU instance and compute instance to the device files of the MIG device."""
    machine: str = ""
    gpu_files: tuple[str, ...] = ()
    vgpu: Callable[[str], VgpuHost | None] | None = None
    """From a PCI address to the host of the vGPU there; ``None``: the machine cannot tell."""


def with_known(
    now: Sequence[GpuFacts], known: Mapping[str, GpuFacts]
) -> tuple[tuple[GpuFacts, ...], tuple[GpuFacts, ...]]:
    """Return the GPUs, those that do not answer filled in from what was known of them.

    A lost GPU tells nothing, not even its UUID: it is the one of those known that is missing,
    the one of its index if there is such. Those that were never known are returned apart.
    """
    answering = {gpu.uuid for gpu in now if not gpu.lost}
    missing = {gpu.index: gpu for uuid, gpu in known.items() if uuid not in answering}
    was = {gpu.index: missing.pop(gpu.index) for gpu in now if gpu.lost and gpu.index in missing}
    # The driver may number its GPUs anew when it is reloaded.
    rest = (gpu for gpu in now if gpu.lost and gpu.index not in was)
    was |= {gpu.index: other for gpu, other in zip(rest, missing.values(), strict=False)}
    named = (_named(gpu, was) for gpu in now if not gpu.lost or gpu.index in was)
    return tuple(named), tuple(gpu for gpu in now if gpu.lost and gpu.index not in was)


def _named(gpu: GpuFacts, was: Mapping[int, GpuFacts]) -> GpuFacts:
    if not gpu.lost:
        return gpu
    return msgspec.structs.replace(was[gpu.index], index=gpu.index, lost=gpu.lost)


def inventory_of(looked: Looked, gpus: Sequence[GpuFacts], around: Surroundings) -> Inventory:
    """Return the inventory of these GPUs, lost ones (filled in) among them."""
    return Inventory(
        gpus=tuple(_gpu(gpu, around) for gpu in sorted(gpus, key=lambda gpu: gpu.index)),
        links=links_of(gpus),
        driver=Driver(version=looked.driver, cuda=_cuda(looked.cuda)),
        machine=around.machine,
        gpu_files=around.gpu_files if gpus else (),
    )


def _cuda(number: int) -> str:
    """12040 is 12.4 (nvmlSystemGetCudaDriverVersion)."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def _gpu(gpu: GpuFacts, around: Surroundings) -> Gpu:
    return Gpu(
        uuid=gpu.uuid,
        model=gpu.name,
        memory_mib=gpu.memory_bytes // _MIB,
        place=around.place(pci_address(gpu.pci)),
        pci_class=around.pci_class(pci_address(gpu.pci)),
        vgpu=None if around.vgpu is None else around.vgpu(pci_address(gpu.pci)),
        index=gpu.index,
        minor=gpu.minor,
        compute=gpu.compute,
        mig=None if gpu.mig is None else _mig(gpu, gpu.mig, around),
        fabric=NvlinkFabric() if gpu.fabric is None else _fabric(gpu.fabric),
        files=(f"/dev/nvidia{gpu.minor}",) if gpu.minor >= 0 else (),
        device_id=f"0x{gpu.device_id:08X}" if gpu.device_id else "",
    )


def pci_address(told: str) -> str:
    """Return the kernel's form of a PCI address: NVML writes eight digits of domain."""
    domain, _, rest = told.lower().partition(":")
    return f"{domain[-4:]}:{rest}" if rest else told.lower()


def _mig(gpu: GpuFacts, mig: MigFacts, around: Surroundings) -> GpuMig:
    names = _names(gpu, mig)
    profiles = (
        GpuMigProfile(names[p.id], p.starts, p.size, memory_mib=p.memory_mib, most=p.most)
        for p in mig.profiles
    )
    return GpuMig(
        enabled=mig.enabled,
        pending=mig.pending,
        profiles=tuple(profiles),
        instances=tuple(_instance(i, names, gpu, around) for i in mig.instances),
    )


def _names(gpu: GpuFacts, mig: MigFacts) -> dict[int, str]:
    return {
        p.id: profile_name(p.kind, p.compute_slices, p.memory_mib, gpu.memory_bytes, p.name)
        for p in mig.profiles
    }


def profile_ids(gpu: GpuFacts) -> dict[str, tuple[int, int]]:
    """Return (the GPU's id of it, size in memory slices) of each profile, by name."""
    if gpu.mig is None:
        return {}
    names = _names(gpu, gpu.mig)
    return {names[p.id]: (p.id, p.size) for p in gpu.mig.profiles}


def _instance(
    told: InstanceFacts, names: Mapping[int, str], gpu: GpuFacts, around: Surroundings
) -> MigInstance:
    by_size = profile_name(0, told.gpu_slices, told.memory_mib, gpu.memory_bytes, "")
    profile = names.get(told.profile, by_size)
    return MigInstance(
        uuid=told.uuid,
        profile=instance_name(profile, told.gpu_slices, told.compute_slices),
        start=told.start,
        size=told.size,
        gpu_instance=told.gpu_instance,
        compute_instance=told.compute_instance,
        memory_mib=told.memory_mib,
        multiprocessors=told.multiprocessors,
        compute_slices=told.compute_slices,
        engines=MappingProxyType(dict(told.engines)),
        files=around.mig_files(gpu.minor, told.gpu_instance, told.compute_instance),
    )


def _fabric(told: FabricFacts) -> NvlinkFabric:
    known = told.state in FabricState.__members__.values()
    state = FabricState(told.state) if known else FabricState.NOT_SUPPORTED
    return NvlinkFabric(
        state=state,
        healthy=_fabric_healthy(told, state),
        cluster=_uuid(told.cluster),
        clique=told.clique,
    )


def _fabric_healthy(told: FabricFacts, state: FabricState) -> bool:
    """Return whether jobs can use the fabric as far as it says: its mask, summary and status."""
    wrong = (
        told.mask >> _ROUTE_UNHEALTHY & 3 == _YES
        or told.mask >> _ACCESS_TIMEOUT & 3 == _YES
        or told.mask >> _CONFIGURATION & 15 > _YES
        or told.summary == _SUMMARY_UNHEALTHY
    )
    return not wrong and (state is not FabricState.COMPLETED or told.status == _SUCCESS)


def _uuid(digits: str) -> str:
    """Return a cluster's UUID in its usual form, empty if it is all zeros."""
    if not digits.strip("0"):
        return ""
    cuts = (0, 8, 12, 16, 20, 32)
    return "-".join(digits[a:b] for a, b in pairwise(cuts))


def links_of(gpus: Sequence[GpuFacts]) -> NvLinks:
    """Return the links that work from both ends: each pair has the fewer of what its ends tell."""
    by_address = {pci_address(gpu.pci): gpu.uuid for gpu in gpus}
    told: Counter[tuple[str, str]] = Counter()
    switches: Counter[str] = Counter()
    for gpu in gpus:
        for link in gpu.links:
            other = by_address.get(pci_address(link.pci))
            if not link.active:
                continue
            if other is not None and link.remote != _TO_SWITCH:
                told[gpu.uuid, other] += 1
            elif link.remote == _TO_SWITCH or (link.remote != _TO_GPU and link.pci):
                switches[gpu.uuid] += 1
    between = {(a, b): min(n, told[b, a]) for (a, b), n in told.items() if a < b and told[b, a]}
    return NvLinks(MappingProxyType(between), MappingProxyType(dict(switches)))
