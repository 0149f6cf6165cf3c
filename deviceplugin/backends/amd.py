"""AMD GPUs: which exist by the KFD topology, and their properties by their PCI devices.

::

    KFD node ─── location_id ──► /sys/bus/pci/devices/0000:05:00.0 ─┬─ mem_info_vram_total
        │                                                           ├─ product_name, numa_node
        └─ drm_render_minor ──► /dev/dri/renderD128, cardN          ├─ current_*_partition
                                                                    ├─ hwmon/hwmon*/temp2_input …
                                                                    └─ ras/umc_err_count

Source: Linux Documentation/gpu/amdgpu (driver-misc, thermal, ras) and ROCm/k8s-device-plugin's
description of the files (internal/pkg/amdgpu). Health is judged by readings alone: sysfs has no
event like an Xid.
"""

import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from deviceplugin.backends import kfd, pci
from deviceplugin.backends.kfd import KfdNode
from deviceplugin.backends.sysfs import Look, Sysfs
from deviceplugin.model.inventory import Driver, Gpu, Inventory, NvLinks, PciPlace, Vendor
from deviceplugin.model.signals import GpuReading

NAME: Final = "amd"
_MIB: Final = 1024 * 1024
_MILLI: Final = 1000  # hwmon has thousandths of °C
_MICRO: Final = 1_000_000  # and millionths of W; Hz as MHz
_UNCORRECTED: Final = re.compile(r"ue:\s*(\d+)")
_CORRECTED: Final = re.compile(r"ce:\s*(\d+)")
_SHARED: Final = ("/dev/kfd",)
_PRODUCTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "738c": "AMD Instinct MI100",
        "7408": "AMD Instinct MI250X",
        "740c": "AMD Instinct MI250X/MI250",
        "740f": "AMD Instinct MI210",
        "74a0": "AMD Instinct MI300A",
        "74a1": "AMD Instinct MI300X",
        "74a2": "AMD Instinct MI308X",
        "74a5": "AMD Instinct MI325X",
        "75a0": "AMD Instinct MI350X",
        "75a3": "AMD Instinct MI355X",
    }
)
"""By PCI device, where the card has no product name (pci.ids; AMD's topology mapping)."""


def backend(root: Path = Path("/sys"), **timing: float) -> Sysfs:
    """Return a backend for the AMD GPUs below ``root``; ``timing`` as of ``Sysfs``."""
    return Sysfs(AmdReader(root), **timing)


@dataclass(frozen=True, slots=True)
class _Found:
    """A KFD node with its PCI device."""

    #: its number among the KFD's GPUs
    index: int
    node: KfdNode
    uuid: str
    folder: Path
    place: PciPlace


@dataclass(frozen=True, slots=True)
class AmdReader:
    """A ``SysfsReader`` of AMD GPUs."""

    root: Path

    @property
    def name(self) -> str:
        """Return "amd"."""
        return NAME

    def look(self) -> Look:
        """Read all GPUs. One that cannot be read does not hide the others."""
        found, broken = self._found()
        if not found:
            return Look(Inventory(), broken)
        inventory = Inventory(
            gpus=tuple(map(self._gpu, found)),
            links=_links(found),
            driver=Driver(pci.text(self.root / "module" / "amdgpu" / "version")),
            machine=pci.text(self.root / "class" / "dmi" / "id" / "product_name"),
            gpu_files=_SHARED,
        )
        return Look(inventory, broken)

    def measure(self) -> tuple[GpuReading, ...]:
        """Read sensors and counters of all GPUs."""
        found, _ = self._found()
        return tuple(_reading(each) for each in found)

    def pulse(self) -> Hashable:
        """Read the topology's generation and which devices the driver has.

        The kernel raises the generation whenever nodes come, go or are partitioned again.
        """
        bound = self.root / "bus" / "pci" / "drivers" / "amdgpu"
        return (
            pci.text(self.root / "class" / "kfd" / "kfd" / "topology" / "generation_id"),
            tuple((name, pci.mark(bound / name)) for name in pci.entries(bound)),
        )

    def _found(self) -> tuple[list[_Found], Mapping[str, str]]:
        nodes = kfd.nodes(self.root)
        found: list[_Found] = []
        broken: dict[str, str] = {}
        for index, (node, uuid) in enumerate(zip(nodes, _uuids(nodes), strict=True)):
            folder = self._device(node.address)
            place = pci.place(folder)
            if place is None:
                broken[uuid] = f"its PCI device {node.address} cannot be found in sysfs"
            else:
                found.append(_Found(index, node, uuid, folder, place))
        return found, MappingProxyType(broken)

    def _device(self, address: str) -> Path:
        """Return the PCI device; partitions count up the function, which only the first has."""
        devices = self.root / "bus" / "pci" / "devices"
        own = devices / address
        return own if pci.real(own) is not None else devices / f"{address[:-1]}0"

    def _gpu(self, each: _Found) -> Gpu:
        total = each.node.memory or pci.number(each.folder / "mem_info_vram_total") or 0
        return Gpu(
            uuid=each.uuid,
            model=_model(each.folder),
            memory_mib=total // _MIB,
            place=each.place,
            index=each.index,
            minor=each.node.minor,
            vendor=Vendor.AMD,
            pci_class=pci.text(each.folder / "class"),
            device_id=_device_id(each.folder),
            files=self._files(each.node.minor),
            partition=_partition(each.folder),
        )

    def _files(self, minor: int) -> tuple[str, ...]:
        beside = pci.entries(self.root / "class" / "drm" / f"renderD{minor}" / "device" / "drm")
        cards = [name for name in beside if name.startswith("card")]
        return tuple(f"/dev/dri/{name}" for name in (*cards, f"renderD{minor}"))


def _uuids(nodes: Sequence[KfdNode]) -> Iterator[str]:
    """Yield a name for each node; partitions of one GPU, which have its id, are numbered."""
    counts = Counter(node.uuid for node in nodes)
    seen: Counter[str] = Counter()
    for node in nodes:
        yield f"{node.uuid}-p{seen[node.uuid]}" if counts[node.uuid] > 1 else node.uuid
        seen[node.uuid] += 1


def _links(found: Sequence[_Found]) -> NvLinks:
    by_number = {each.node.number: each.uuid for each in found}
    pairs = {
        (min(each.uuid, by_number[other]), max(each.uuid, by_number[other]))
        for each in found
        for other in each.node.links
        if other in by_number
    }
    return NvLinks(MappingProxyType(dict.fromkeys(sorted(pairs), 1)))


def _model(folder: Path) -> str:
    device = pci.identity(folder / "device")
    return pci.text(folder / "product_name") or _PRODUCTS.get(device, f"AMD GPU {device}".strip())


def _device_id(folder: Path) -> str:
    device, vendor = (pci.identity(folder / name) for name in ("device", "vendor"))
    return f"0x{device}{vendor}".upper().replace("X", "x", 1) if device and vendor else ""


def _partition(folder: Path) -> str:
    compute = pci.text(folder / "current_compute_partition").lower()
    memory = pci.text(folder / "current_memory_partition").lower()
    return f"{compute}_{memory}" if compute and memory else ""


# --- readings -----------------------------------------------------------------------------


def _reading(each: _Found) -> GpuReading:
    folder, sensors = each.folder, _sensors(each.folder)
    total = pci.number(folder / "mem_info_vram_total")
    used = pci.number(folder / "mem_info_vram_used")
    errors = pci.text(folder / "ras" / "umc_err_count")
    return GpuReading(
        uuid=each.uuid,
        temperature=_scaled(sensors, "temp2_input", "temp1_input", by=_MILLI),
        slowdown_at=_scaled(sensors, "temp2_crit", "temp1_crit", by=_MILLI),
        utilisation=pci.number(folder / "gpu_busy_percent"),
        memory_used=used // _MIB if used is not None else None,
        memory_free=(total - used) // _MIB if total is not None and used is not None else None,
        power=_watts(sensors, "power1_average", "power1_input"),
        power_limit=_watts(sensors, "power1_cap"),
        sm_clock=_scaled(sensors, "freq1_input", by=_MICRO),
        ecc_corrected=_count(_CORRECTED, errors),
        ecc_uncorrected=_count(_UNCORRECTED, errors),
    )


def _sensors(folder: Path) -> Path:
    """Return the folder of the GPU's sensors. temp1 is the edge, temp2 the junction."""
    names = pci.entries(folder / "hwmon")
    return folder / "hwmon" / (names[0] if names else "none")


def _first(folder: Path, names: Sequence[str]) -> int | None:
    values = (pci.number(folder / name) for name in names)
    return next((value for value in values if value is not None), None)


def _scaled(folder: Path, *names: str, by: int) -> int | None:
    value = _first(folder, names)
    return value // by if value is not None else None


def _watts(folder: Path, *names: str) -> float | None:
    value = _first(folder, names)
    return value / _MICRO if value is not None else None


def _count(pattern: re.Pattern[str], values: str) -> int | None:
    match = pattern.search(values)
    return int(match[1]) if match else None
