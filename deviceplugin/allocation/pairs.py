"""How near any two devices of a node are: one matrix for each kind, made once per inventory.

A pair's score is what NVIDIA's go-gpuallocator gives it (gpuallocator/device.go), so that
choices can be compared; the PCIe part is read off the two paths::

    10  other CPU                     path A: pci0000:15 │ 0000:15:01.0 │ 0000:17:00.0
    20  same NUMA node                path B: pci0000:15 │ 0000:15:01.0 │ 0000:17:01.0
    30  same host bridge                      ╰─────── in common ──────╯
    40  several switches between      + 100 for each NVLink (at most 18), also through NVSwitches,
    50  one switch between              which go-gpuallocator does not count
    60  same bridge right above

Devices that are as near to all others are *equivalent* (the GPUs of one switch, usually): a choice
depends on how many of each class of equivalent devices are taken, never on which. That is what
makes exact search cheap on real machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from deviceplugin.model.inventory import UNKNOWN_NUMA, Inventory, PciPlace

CROSS_CPU: Final = 10
SAME_CPU: Final = 20
HOST_BRIDGE: Final = 30
SWITCHES: Final = 40
ONE_SWITCH: Final = 50
ONE_BRIDGE: Final = 60
PER_LINK: Final = 100
MOST_LINKS: Final = 18  # go-gpuallocator knows links by number up to this one


def path_score(one: PciPlace, other: PciPlace) -> int:
    """Return how near two devices are over PCIe, 10 to 60."""
    common = _in_common(one.path, other.path)
    if common == 0:
        same = one.numa == other.numa and one.numa != UNKNOWN_NUMA
        return SAME_CPU if same else CROSS_CPU
    if common == 1 and (len(one.path) > 1 or len(other.path) > 1):
        return HOST_BRIDGE
    below = max(len(one.path), len(other.path)) - common
    return (ONE_BRIDGE, ONE_SWITCH)[below] if below <= 1 else SWITCHES


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    common = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        common += 1
    return common


@dataclass(frozen=True, slots=True)
class Pairs:
    """Devices of one kind by index: ``rows[i][j]`` is the score of a pair, 0 where i = j."""

    names: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    index: dict[str, int] = field(init=False, repr=False, compare=False)
    classes: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)
    """Equivalent devices, each class by index, the classes by their first member."""

    def __post_init__(self) -> None:
        """Look up what every choice needs."""
        object.__setattr__(self, "index", {name: i for i, name in enumerate(self.names)})
        object.__setattr__(self, "classes", _equivalent(self.rows))


def _equivalent(rows: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    classes: list[list[int]] = []
    for device in range(len(rows)):
        for members in classes:
            if _are_equivalent(rows, members[0], device):
                members.append(device)
                break
        else:
            classes.append([device])
    return tuple(map(tuple, classes))


def _are_equivalent(rows: tuple[tuple[int, ...], ...], one: int, other: int) -> bool:
    return all(
        mine == theirs
        for third, (mine, theirs) in enumerate(zip(rows[one], rows[other], strict=True))
        if third not in (one, other)
    )


@dataclass(frozen=True, slots=True)
class PairScores:
    """What choices are made by. ``between``: (NIC, GPU) → PCIe score."""

    gpus: Pairs
    nics: Pairs
    between: dict[tuple[str, str], int]

    @classmethod
    def of(cls, inventory: Inventory) -> "PairScores":
        """Return the topology of a node; about n² steps."""
        return cls(
            _gpu_pairs(inventory),
            _nic_pairs(inventory),
            {
                (nic.name, gpu.uuid): path_score(nic.place, gpu.place)
                for nic in inventory.nics
                for gpu in inventory.gpus
            },
        )


EMPTY: Final = PairScores(Pairs((), ()), Pairs((), ()), {})


def _gpu_pairs(inventory: Inventory) -> Pairs:
    gpus, joining = inventory.gpus, inventory.links.joining
    rows = tuple(
        tuple(
            0
            if one is other
            else path_score(one.place, other.place)
            + PER_LINK * min(joining(one.uuid, other.uuid), MOST_LINKS)
            for other in gpus
        )
        for one in gpus
    )
    return Pairs(tuple(gpu.uuid for gpu in gpus), rows)


def _nic_pairs(inventory: Inventory) -> Pairs:
    nics = inventory.nics
    rows = tuple(
        tuple(0 if one is other else path_score(one.place, other.place) for other in nics)
        for one in nics
    )
    return Pairs(tuple(nic.name for nic in nics), rows)
