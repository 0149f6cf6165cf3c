"""RDMA devices, as sysfs shows them.

::

    /sys/class/infiniband/mlx5_0 ─┬─ hca_type, fw_ver, node_guid
                                  ├─ ports/1/{state, rate, link_layer, pkeys/0}
                                  └─ device ─► the PCI device ─┬─ vendor, device, driver, numa_node
                                                               ├─ acpi_index
                                                               ├─ net/ib0 …
                                                               └─ physfn (a virtual function has it)
    /sys/class/infiniband_verbs/uverbs0/ibdev: mlx5_0    ► /dev/infiniband/uverbs0
    /sys/class/infiniband_mad/umad0/ibdev: mlx5_0        ► /dev/infiniband/umad0

Source: Linux Documentation/ABI/stable/sysfs-class-infiniband and sysfs-bus-pci. Devices that are
software only (rxe, siw) have no PCI device and are left out.
"""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from deviceplugin.backends import pci, vdpa
from deviceplugin.backends.sysfs import Look, Sysfs, by_name
from deviceplugin.model.inventory import Inventory, Nic, PciPlace, Port, Vdpa
from deviceplugin.model.signals import NicReading

NAME: Final = "rdma"
_ACTIVE: Final = "4:"  # ib_port_state IB_PORT_ACTIVE, "4: ACTIVE"
_RATE: Final = re.compile(r"([0-9.]+) Gb/sec")
_DEV: Final = Path("/dev/infiniband")
_CHAR_CLASSES: Final = ("infiniband_verbs", "infiniband_mad")
_VIRTUAL: Final = "virtfn"
_MANAGEMENT: Final = "issm"  # lets the holder manage the subnet: never given to containers


def backend(root: Path = Path("/sys"), **timing: float) -> Sysfs:
    """Return a backend for the RDMA devices below ``root``; ``timing`` as of ``Sysfs``."""
    return Sysfs(RdmaReader(root), **timing)


@dataclass(frozen=True, slots=True)
class RdmaReader:
    """A ``SysfsReader`` of RDMA devices."""

    root: Path

    @property
    def name(self) -> str:
        """Return "rdma"."""
        return NAME

    def look(self) -> Look:
        """Read all NICs. One that cannot be read does not hide the others."""
        files = self._files()
        vdpas = vdpa.by_address(self.root)
        found: list[Nic] = []
        broken: dict[str, str] = {}
        for name in self._names():
            folder = self._folder(name)
            place = pci.place(folder / "device")
            if place is not None:
                at = vdpas.get(place.address)
                found.append(_nic(name, folder, place, files.get(name, ()), at))
            elif not _is_software(folder):
                broken[name] = "its PCI device cannot be found in sysfs"
        shared = (str(_DEV / "rdma_cm"),) if found else ()
        nics = tuple(sorted(found, key=by_name))
        vhost = vdpa.vhost_files(self.root) if found else ()
        inventory = Inventory(nics=nics, rdma_files=shared, vhost_files=vhost)
        return Look(inventory, MappingProxyType(broken))

    def measure(self) -> tuple[NicReading, ...]:
        """Read the ports of all NICs."""
        readings = (
            NicReading(name, tuple((port.number, port.active) for port in _ports(folder)))
            for name in self._names()
            for folder in (self._folder(name),)
            if pci.place(folder / "device") is not None
        )
        return tuple(readings)

    def pulse(self) -> Hashable:
        """Read which NICs exist, their PCI and vDPA devices, and their ports' states."""
        nics = tuple(
            (name, pci.mark(folder / "device"), tuple(_states(folder)))
            for name in self._names()
            for folder in (self._folder(name),)
        )
        return nics, vdpa.pulse(self.root)

    def _folder(self, name: str) -> Path:
        return self.root / "class" / "infiniband" / name

    def _names(self) -> list[str]:
        """Return the verbs devices; none where the kernel has no RDMA. Raises ``OSError``."""
        folder = self.root / "class" / "infiniband"
        try:
            return sorted(entry.name for entry in folder.iterdir())
        except FileNotFoundError:
            return []

    def _files(self) -> Mapping[str, tuple[str, ...]]:
        """Return the char devices of each verbs device."""
        found: dict[str, list[str]] = {}
        for kind in _CHAR_CLASSES:
            folder = self.root / "class" / kind
            for entry in pci.entries(folder):
                owner = pci.text(folder / entry / "ibdev")
                if owner and not entry.startswith(_MANAGEMENT):
                    found.setdefault(owner, []).append(str(_DEV / entry))
        return {name: tuple(files) for name, files in found.items()}


def _nic(
    name: str, folder: Path, place: PciPlace, files: tuple[str, ...], virtio: Vdpa | None
) -> Nic:
    device = folder / "device"
    physical = pci.real(device / "physfn")
    return Nic(
        name=name,
        place=place,
        guid=pci.text(folder / "node_guid"),
        model=pci.text(folder / "hca_type"),
        firmware=pci.text(folder / "fw_ver"),
        ports=_ports(folder),
        interfaces=tuple(pci.entries(device / "net")),
        files=files,
        virtual_of=physical.name if physical is not None else "",
        virtual_number=_virtual_number(device, physical),
        root_interface=next(iter(pci.entries(device / "physfn" / "net")), ""),
        vendor_id=pci.identity(device / "vendor"),
        device_id=pci.identity(device / "device"),
        driver=pci.driver(device),
        acpi_index=pci.text(device / "acpi_index"),
        vdpa=virtio,
    )


def _virtual_number(device: Path, physical: Path | None) -> int:
    """Return N of the link ``virtfnN`` of the physical function to this one; -1 without it."""
    if physical is None:
        return -1
    own = pci.real(device)
    numbers = (
        (entry.removeprefix(_VIRTUAL), entry)
        for entry in pci.entries(physical)
        if entry.startswith(_VIRTUAL)
    )
    found = (
        int(number)
        for number, entry in numbers
        if number.isdecimal() and pci.real(physical / entry) == own
    )
    return next(found, -1)


def _is_software(folder: Path) -> bool:
    """Return whether a verbs device is software only: it has no PCI device."""
    return not (folder / "device").is_symlink()


# --- ports --------------------------------------------------------------------------------


def _ports(folder: Path) -> tuple[Port, ...]:
    return tuple(
        Port(
            number,
            active=pci.text(port / "state").startswith(_ACTIVE),
            link_layer=pci.text(port / "link_layer"),
            rate_gbps=_rate(pci.text(port / "rate")),
            partition_key=pci.text(port / "pkeys" / "0"),
        )
        for number, port in _port_folders(folder)
    )


def _states(folder: Path) -> Iterator[str]:
    for _, port in _port_folders(folder):
        yield pci.text(port / "state")


def _port_folders(folder: Path) -> list[tuple[int, Path]]:
    names = [name for name in pci.entries(folder / "ports") if name.isdecimal()]
    return sorted((int(name), folder / "ports" / name) for name in names)


def _rate(text: str) -> int:
    """Return "400 Gb/sec (4X NDR)" as 400; 0 without a rate."""
    match = _RATE.match(text)
    try:
        return int(float(match[1])) if match else 0
    except ValueError:
        return 0
