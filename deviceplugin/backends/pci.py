"""PCI devices as sysfs shows them: small files that may be missing, empty or broken.

Every device below /sys/devices is a folder inside that of its parent, so the path is the
topology::

    /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:02.0/0000:1b:00.0
                 host bridge  root port    switch, above and below   the device

Source: Linux Documentation/filesystems/sysfs.rst, Documentation/ABI/testing/sysfs-bus-pci.
"""

import re
from pathlib import Path
from typing import Final

from deviceplugin.model.inventory import UNKNOWN_NUMA, PciPlace

_ADDRESS: Final = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_BRIDGE: Final = re.compile(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}")


def text(path: Path) -> str:
    """Return a file's text, without white space around it; empty where it cannot be read."""
    try:
        return path.read_text("utf-8").strip()
    except (OSError, ValueError):  # gone meanwhile, an I/O error of the driver, not text at all
        return ""


def number(path: Path) -> int | None:
    """Return the number in a file, decimal or 0x…; ``None`` where there is none."""
    try:
        return int(text(path), 0)
    except ValueError:
        return None


def entries(folder: Path) -> list[str]:
    """Return the names in a folder, sorted; none where it cannot be read."""
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def real(path: Path) -> Path | None:
    """Return where links lead; ``None`` where they lead nowhere."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: links in a circle
        return None


def mark(path: Path) -> int | None:
    """Return a number that changes with the target of a link; ``None`` without a target.

    It takes one system call, where ``real`` takes one per folder, so it can be read every second.
    """
    try:
        return path.stat().st_ino
    except OSError:
        return None


def place(device: Path) -> PciPlace | None:
    """Return where a device sits, given its folder or a link to it; ``None`` if not on PCI.

    A device below a PCI device (a sub-function on the auxiliary bus) sits where that one does.
    """
    folder = real(device)
    if folder is None:
        return None
    steps = [folder, *folder.parents]
    while steps and not _ADDRESS.fullmatch(steps[0].name):
        steps.pop(0)
    if not steps:
        return None
    above = [step.name for step in steps[1:] if _is_step(step.name)]
    return PciPlace(steps[0].name, _numa(steps[0]), tuple(reversed(above)))


def _is_step(name: str) -> bool:
    return _ADDRESS.fullmatch(name) is not None or _BRIDGE.fullmatch(name) is not None


def _numa(device: Path) -> int:
    found = number(device / "numa_node")
    return found if found is not None and found >= 0 else UNKNOWN_NUMA


def identity(path: Path) -> str:
    """Return a PCI id ("0x15b3") as four hex digits ("15b3"); empty where there is none."""
    found = number(path)
    return f"{found:04x}" if found is not None else ""


def driver(device: Path) -> str:
    """Return the name of the driver that a device is bound to."""
    folder = real(device / "driver")
    return folder.name if folder is not None else ""
