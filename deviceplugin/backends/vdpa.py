"""vDPA devices, and the kernel's side of virtio, as sysfs shows them.

::

    /sys/bus/vdpa/devices/vdpa0 ─► …/0000:3b:00.2/vdpa0 ─┬─ driver ─► vhost_vdpa or virtio_vdpa
                                                         └─ vhost-vdpa-0    ► /dev/vhost-vdpa-0
    /sys/class/misc/{vhost-net, tun}                                        ► /dev/vhost-net, …

Source: Linux drivers/vdpa/vdpa.c, drivers/vhost/vdpa.c, drivers/vhost/net.c, drivers/net/tun.c.
"""

from collections.abc import Hashable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from deviceplugin.backends import pci
from deviceplugin.model.inventory import Vdpa

_KINDS: Final = MappingProxyType({"vhost_vdpa": "vhost", "virtio_vdpa": "virtio"})
_CHAR: Final = "vhost-vdpa-"
_VHOST_NET: Final = MappingProxyType({"vhost-net": "/dev/vhost-net", "tun": "/dev/net/tun"})


def by_address(root: Path) -> Mapping[str, Vdpa]:
    """Return the first vDPA device of each PCI function, by address."""
    folder = root / "bus" / "vdpa" / "devices"
    found: dict[str, Vdpa] = {}
    for name in pci.entries(folder):
        place = pci.place(folder / name)
        if place is not None:
            found.setdefault(place.address, _device(folder / name))
    return found


def pulse(root: Path) -> Hashable:
    """Return what changes when a vDPA device appears, goes, or is bound to another driver."""
    folder = root / "bus" / "vdpa" / "devices"
    return tuple((name, pci.mark(folder / name / "driver")) for name in pci.entries(folder))


def vhost_files(root: Path) -> tuple[str, ...]:
    """Return /dev/vhost-net and /dev/net/tun, or none where one of the two is missing."""
    there = (root / "class" / "misc" / name for name in _VHOST_NET)
    return tuple(_VHOST_NET.values()) if all(map(Path.exists, there)) else ()


def _device(folder: Path) -> Vdpa:
    chars = [entry for entry in pci.entries(folder) if entry.startswith(_CHAR)]
    kind = _KINDS.get(pci.driver(folder), "")
    file = f"/dev/{chars[0]}" if chars and kind == "vhost" else ""
    return Vdpa(folder.name, kind, file)
