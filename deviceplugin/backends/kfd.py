"""The KFD topology: AMD's GPUs and their XGMI links, as ROCm's kernel driver shows them.

::

    /sys/class/kfd/kfd/topology/nodes/2 ─┬─ gpu_id           0 for CPUs
                                         ├─ properties       a "name value" per line
                                         ├─ mem_banks/0/properties   size_in_bytes
                                         └─ io_links/0/properties    type, node_from, node_to

Source: Linux include/uapi/linux/kfd_sysfs.h (names and types of links); drivers/gpu/drm/amd/
amdkfd/kfd_topology.c. A GPU in partitions (CPX, DPX …) is a node for each of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from deviceplugin.backends import pci

_XGMI: Final = 11  # CRAT_IOLINK_TYPE_XGMI; PCI Express is 2
_LINKS: Final = ("io_links", "p2p_links")


@dataclass(frozen=True, slots=True)
class KfdNode:
    """A GPU, or a partition of one."""

    #: number of the node in the topology
    number: int
    #: number of /dev/dri/renderD…
    minor: int
    #: the serial number that ROCm names the GPU by
    unique_id: int
    #: PCI address
    address: str
    #: other nodes that an XGMI link leads to
    links: tuple[int, ...] = ()
    #: bytes of the GPU, or of the partition's part; 0: not known
    memory: int = 0

    @property
    def uuid(self) -> str:
        """Return its name in ROCm, as in ROCR_VISIBLE_DEVICES."""
        return f"GPU-{self.unique_id:016x}"


def nodes(root: Path) -> list[KfdNode]:
    """Return the GPUs below ``root``, by number; none where there is no KFD."""
    folder = root / "class" / "kfd" / "kfd" / "topology" / "nodes"
    numbers = sorted(int(name) for name in pci.entries(folder) if name.isdecimal())
    found = (_node(folder / str(number), number) for number in numbers)
    return [node for node in found if node is not None]


def _node(folder: Path, number: int) -> KfdNode | None:
    """Return a GPU; ``None`` for a CPU, and for a node with too few properties."""
    values = properties(folder / "properties")
    minor, unique = values.get("drm_render_minor", 0), values.get("unique_id", 0)
    if not pci.number(folder / "gpu_id") or minor <= 0 or not unique:
        return None
    links = tuple(sorted({other for other in _xgmi(folder) if other != number}))
    return KfdNode(number, minor, unique, _address(values), links, _memory(folder))


def properties(path: Path) -> dict[str, int]:
    """Return the values of a properties file; lines that are not "name number" are skipped."""
    found: dict[str, int] = {}
    for line in pci.text(path).splitlines():
        name, _, value = line.partition(" ")
        try:
            found[name] = int(value)
        except ValueError:
            continue
    return found


def _address(values: Mapping[str, int]) -> str:
    """Return the PCI address: ``location_id`` is bus, device and function in 16 bits."""
    location = values.get("location_id", 0)
    bus, device, function = location >> 8 & 0xFF, location >> 3 & 0x1F, location & 0x7
    return f"{values.get('domain', 0):04x}:{bus:02x}:{device:02x}.{function}"


def _memory(folder: Path) -> int:
    banks = (
        properties(folder / "mem_banks" / entry / "properties")
        for entry in pci.entries(folder / "mem_banks")
    )
    return sum(bank.get("size_in_bytes", 0) for bank in banks)


def _xgmi(folder: Path) -> Iterator[int]:
    for kind in _LINKS:
        for entry in pci.entries(folder / kind):
            link = properties(folder / kind / entry / "properties")
            if link.get("type") == _XGMI and "node_to" in link:
                yield link["node_to"]
