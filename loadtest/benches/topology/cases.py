"""Random clusters with one gang each: trees of any shape, loaded, up to 64 hosts.

::

    levels     zone block rack host · block rack host · block nvlink host · five levels
    shape      every domain has its own number of children; some hosts lack a label
    load       every host has something between nothing and all of it free
    gang       equal pods, or two or three kinds; required, preferred, slices, or none

Everything here is plain Python: the oracle and the restated rules read it, and share no
line with the planner. A host without a level's label is a domain of its own there, since its
place is not known.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LEVELS: Final = (
    ("block", "rack", "host"),
    ("zone", "block", "rack", "host"),
    ("block", "nvlink", "host"),
    ("zone", "block", "rack", "nvlink", "host"),
)
HOST_GPUS: Final = 8
HOST_MILLICPU: Final = 64_000
NVLINK_HOSTS: Final = 18  # hosts of one NVLink domain of 72 GPUs, four each
NVLINK_GPUS: Final = 4
LARGEST: Final = 64  # hosts of a case
_UNLABELLED_CASES: Final = 0.2  # share of cases in which some hosts lack labels
_SLICED_CASES: Final = 0.3  # share of cases with slices, and of these with slices of slices


@dataclass(frozen=True, slots=True)
class Host:
    """One host of a case."""

    name: str
    #: One per level above the host, ``None`` where it has none.
    labels: tuple[str | None, ...]
    gpus: int
    free_gpus: int
    free_millicpu: int

    def fits(self, counts: tuple[int, ...], kinds: tuple["Kind", ...]) -> bool:
        """Return whether these many pods of each kind fit side by side."""
        gpus = sum(n * kind.gpus for n, kind in zip(counts, kinds, strict=True))
        cpu = sum(n * kind.millicpu for n, kind in zip(counts, kinds, strict=True))
        return gpus <= self.free_gpus and cpu <= self.free_millicpu

    def room(self, kind: "Kind") -> int:
        """Return how many pods of one kind fit alone."""
        room = self.free_millicpu // kind.millicpu
        return min(room, self.free_gpus // kind.gpus) if kind.gpus else room


@dataclass(frozen=True, slots=True)
class Kind:
    """``count`` equal pods of a gang; ranks go through the kinds in order."""

    gpus: int
    millicpu: int
    count: int


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster and a gang. Levels by number, widest first, ``None`` for no wish."""

    number: int
    levels: tuple[str, ...]
    hosts: tuple[Host, ...]
    kinds: tuple[Kind, ...]
    required: int | None
    preferred: int | None
    #: (level, members) of every layer of slices, widest first.
    slices: tuple[tuple[int, int], ...] = ()

    @property
    def members(self) -> int:
        """Pods of the whole gang."""
        return sum(kind.count for kind in self.kinds)

    def order(self) -> tuple[int, ...]:
        """Return the levels in the order in which their domains count."""
        levels = tuple(range(len(self.levels)))
        return levels if self.preferred is None else (self.preferred, *levels)

    def eligible(self, host: Host) -> bool:
        """Return whether a host has the labels that the gang requires."""
        needed = {level for level, _ in self.slices}
        needed |= set() if self.required is None else {self.required}
        return all(host.labels[level] is not None for level in needed)

    def domains(self) -> tuple[tuple[str, ...], ...]:
        """Return, per level, the identity of the domain of every host."""
        return tuple(
            tuple(_identity(host, level) for host in self.hosts)
            for level in range(len(self.levels))
        )


def _identity(host: Host, level: int) -> str:
    """Name a host's domain by its path; without the label, by what lies below it."""
    if level == len(host.labels):
        return f"host {host.name}"
    if host.labels[level] is None:
        return f"alone {_identity(host, level + 1)}"
    return "/".join(label or "-" for label in host.labels[: level + 1])


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer of slices."""

    #: The level that the members of a slice share.
    level: int
    #: For each sort of slice: its units of the next inner layer, by type, and how many slices.
    makeups: tuple[tuple[tuple[int, ...], int], ...]


def layers(case: Case) -> list[Layer]:
    """Return the layers of slices, innermost first; the innermost units are pods per kind."""
    units = [i for i, kind in enumerate(case.kinds) for _ in range(kind.count)]
    count, inner, found = len(case.kinds), 1, []
    for level, size in reversed(case.slices):
        ratio = size // inner
        made: dict[tuple[int, ...], int] = {}
        types = []
        for first in range(0, len(units), ratio):
            part = units[first : first + ratio]
            vector = tuple(part.count(i) for i in range(count))
            made[vector] = made.get(vector, 0) + 1
            types.append(vector)
        found.append(Layer(level, tuple(made.items())))
        numbers = {vector: i for i, vector in enumerate(made)}
        units, count, inner = [numbers[vector] for vector in types], len(made), size
    return found


def generate(number: int, *, mixed: bool) -> Case:
    """Return case ``number``: always the same one; ``mixed``: with several kinds of pods."""
    dice = random.Random(f"topology-{number}-{mixed}")
    levels = dice.choice(LEVELS)
    hosts = tuple(_hosts(dice, levels))
    kinds = _mixed(dice, hosts) if mixed else _equal(dice, hosts)
    above = len(levels) - 1
    required = dice.choice([None, None, *range(above)])
    narrower = [n for n in range(above) if required is None or n > required]
    preferred = dice.choice([None, *narrower])
    slices = _slices(dice, kinds, levels, required) if dice.random() < _SLICED_CASES else ()
    return Case(number, levels, hosts, kinds, required, preferred, slices)


def _hosts(dice: random.Random, levels: tuple[str, ...]) -> Iterator[Host]:
    count = dice.randint(3, LARGEST)
    nvlink = "nvlink" in levels
    gpus = NVLINK_GPUS if nvlink else HOST_GPUS
    lacks = dice.uniform(0.05, 0.3) if dice.random() < _UNLABELLED_CASES else 0.0
    free_share = dice.choice((0.2, 0.5, 0.8, 1.0))
    for number, path in enumerate(_paths(dice, levels[:-1], count)):
        known = not number  # a level that no host has a label of would be no level
        labels = tuple(label if known or dice.random() >= lacks else None for label in path)
        empty = dice.random() < free_share * 0.6
        free = gpus if empty else dice.randint(0, gpus)
        cpu = HOST_MILLICPU if empty else dice.randrange(0, HOST_MILLICPU + 1, 4000)
        yield Host(f"h{number:02d}", labels, gpus, free, cpu)


def _paths(dice: random.Random, levels: tuple[str, ...], count: int) -> Iterator[tuple[str, ...]]:
    """Yield one path per host: every domain ends after a number of hosts of its own."""
    full = {level: dice.randint(1, max(2, count // 2)) for level in levels}
    if "nvlink" in full:
        full["nvlink"] = NVLINK_HOSTS
    if "rack" in full:
        full["rack"] = dice.randint(1, 16)
    numbers = [0] * len(levels)
    left = [0] * len(levels)
    for _ in range(count):
        for depth, level in enumerate(levels):
            if left[depth] <= 0:
                numbers[depth] += 1
                uneven = dice.randint(1, full[level]) if level != "nvlink" else full[level]
                left[depth:] = [uneven, *[0] * (len(levels) - depth - 1)]
        left = [each - 1 for each in left]
        yield tuple(f"{level[0]}{number}" for level, number in zip(levels, numbers, strict=True))


def _equal(dice: random.Random, hosts: tuple[Host, ...]) -> tuple[Kind, ...]:
    gpus = dice.choice((1, 1, 2, 2, 3, 4, hosts[0].gpus))
    alone = Kind(gpus, gpus * dice.choice((1000, 4000, 8000)), 1)
    return (Kind(alone.gpus, alone.millicpu, _count(dice, hosts, alone)),)


def _count(dice: random.Random, hosts: tuple[Host, ...], kind: Kind) -> int:
    room = sum(host.room(kind) for host in hosts)
    share = dice.choice((0.1, 0.3, 0.6, 1.0, 1.05))
    return min(96, max(1, round(room * dice.uniform(0.0, share))))


def _mixed(dice: random.Random, hosts: tuple[Host, ...]) -> tuple[Kind, ...]:
    """Launcher and workers, parameter servers, two sizes of workers, or three kinds."""
    gpus = dice.choice((1, 2, 4, hosts[0].gpus))
    worker = Kind(gpus, gpus * dice.choice((2000, 6000)), 1)
    count = min(32, max(1, round(_count(dice, hosts, worker) * 0.7)))
    workers = Kind(worker.gpus, worker.millicpu, count)
    launcher = Kind(0, dice.choice((1000, 8000, 20_000)), 1)
    servers = Kind(0, dice.choice((8000, 24_000)), dice.randint(2, 8))
    small = Kind(dice.choice((1, 2, 3)), 4000, dice.randint(1, 8))
    return dice.choice(
        (
            (launcher, workers),
            (servers, workers),
            (workers, small),
            (launcher, Kind(servers.gpus, servers.millicpu, 3), workers),
        )
    )


def _slices(
    dice: random.Random, kinds: tuple[Kind, ...], levels: tuple[str, ...], required: int | None
) -> tuple[tuple[int, int], ...]:
    members = sum(kind.count for kind in kinds)
    narrower = [n for n in range(len(levels) - 1) if required is None or n > required]
    if members < 2 or not narrower:
        return ()
    whole = [n for n in range(2, min(members, 16) + 1) if members % n == 0]
    sizes = whole if whole and dice.random() < 0.8 else range(2, min(members, 16) + 1)
    level, size = dice.choice(narrower), dice.choice(list(sizes))
    wider = [n for n in narrower if n < level]
    times = dice.randint(2, 3)
    if wider and size * times <= members and dice.random() < _SLICED_CASES:
        return ((dice.choice(wider), size * times), (level, size))
    return ((level, size),)
