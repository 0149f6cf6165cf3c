"""Random full clusters: gangs of several queues that run, and one that waits.

::

    rack r0   h0 h1 h2 h3      8 GPUs a host; gangs fill them until nothing more fits
    rack r1   h4 h5 h6 h7      queues are entitled to parts of all; some use more, some less

Checkpoints are drawn apart from starts: a gang that runs for days may have lost a minute.
"""

import random
from dataclasses import dataclass
from typing import Final

GPUS: Final = 8
NOW: Final = 1_000_000.0
PRIORITIES: Final = (0, 0, 10, 100)
MIN_RUN_S: Final = 300.0
QUEUES: Final = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Job:
    """A gang that runs."""

    name: str
    queue: str
    priority: int
    #: GPUs of a member.
    gpus: int
    #: The host of each member.
    hosts: tuple[int, ...]
    #: Members with which it goes on.
    minimum: int
    #: Seconds since the epoch.
    started: float
    checkpointed: float

    @property
    def surplus(self) -> int:
        """Members above the minimum."""
        return len(self.hosts) - self.minimum

    def lost(self, members: int | None = None) -> int:
        """Device-seconds that end with some members, by default all."""
        count = len(self.hosts) if members is None else members
        return int(self.gpus * count * (NOW - self.checkpointed))


@dataclass(frozen=True, slots=True)
class Asked:
    """The gang that waits."""

    queue: str
    priority: int
    gpus: int
    members: int
    #: Whether all of it goes into one rack.
    in_rack: bool


@dataclass(frozen=True, slots=True)
class RoomCase:
    """One cluster."""

    #: The rack of each host.
    racks: tuple[int, ...]
    jobs: tuple[Job, ...]
    asked: Asked
    #: GPUs that each queue is entitled to, and the most that it takes.
    entitled: dict[str, int]
    limits: dict[str, int]
    #: Names of gangs that a budget protects.
    protected: frozenset[str]

    def free(self, gone: frozenset[str] = frozenset()) -> list[int]:
        """Return free GPUs by host without some gangs."""
        free = [GPUS] * len(self.racks)
        for job in self.jobs:
            if job.name not in gone:
                for host in job.hosts:
                    free[host] -= job.gpus
        return free

    def used(self, queue: str) -> int:
        """Return the GPUs that a queue uses."""
        return sum(job.gpus * len(job.hosts) for job in self.jobs if job.queue == queue)

    def domains(self) -> list[list[int]]:
        """Return the hosts of each domain in which the gang may go."""
        if not self.asked.in_rack:
            return [list(range(len(self.racks)))]
        return [
            [host for host, of in enumerate(self.racks) if of == rack]
            for rack in sorted(set(self.racks))
        ]

    def fits(self, free: list[int]) -> bool:
        """Return whether the gang fits with so much free."""
        return any(
            sum(max(free[host], 0) // self.asked.gpus for host in domain) >= self.asked.members
            for domain in self.domains()
        )


def generate(seed: int, most_jobs: int = 20, racks: int = 4, hosts: int = 4) -> RoomCase:
    """Return a case; the same seed gives the same. The gang does not fit as it is."""
    draw = random.Random(seed)
    while True:
        found = _drawn(draw, most_jobs, racks, hosts)
        if not found.fits(found.free()):
            return found


def _drawn(draw: random.Random, most_jobs: int, racks: int, hosts: int) -> RoomCase:
    places = tuple(rack for rack in range(racks) for _ in range(hosts))
    free, jobs = [GPUS] * len(places), list[Job]()
    for number in range(most_jobs):
        job = _job(draw, number, free, places)
        if job is not None:
            jobs.append(job)
    total = GPUS * len(places)
    parts = [draw.randint(1, 4) for _ in QUEUES]
    entitled = {q: total * p // sum(parts) for q, p in zip(QUEUES, parts, strict=True)}
    limits = {q: total if draw.random() < 0.7 else max(total // 2, n) for q, n in entitled.items()}
    in_rack = draw.random() < 0.5
    gpus = draw.choice((1, 2, 4, 8, 8))
    most = (hosts if in_rack else len(places) // 2) * (GPUS // gpus)
    members = draw.randint(1, max(min(most, 8 * hosts), 1))
    asked = Asked(draw.choice(QUEUES), draw.choice(PRIORITIES[1:]), gpus, members, in_rack)
    protected = frozenset(job.name for job in jobs if draw.random() < 0.05)
    return RoomCase(places, tuple(jobs), asked, entitled, limits, protected)


def _job(draw: random.Random, number: int, free: list[int], racks: tuple[int, ...]) -> Job | None:
    """Put a gang on hosts that have room, near one another; ``None``: it found none."""
    gpus, size = draw.choice((1, 2, 4, 8, 8)), draw.choice((1, 1, 2, 3, 4, 6, 8))
    near = draw.randrange(len(free))
    order = sorted(range(len(free)), key=lambda h: (racks[h] != racks[near], abs(h - near)))
    chosen: list[int] = []
    for host in order:
        while len(chosen) < size and free[host] >= gpus:
            chosen.append(host)
            free[host] -= gpus
    if not chosen:
        return None
    minimum = draw.randint(1, len(chosen)) if draw.random() < 0.3 else len(chosen)
    started = NOW - draw.choice((60.0, 600.0, 3_600.0, 36_000.0, 360_000.0)) * draw.uniform(1, 5)
    checkpointed = started if draw.random() < 0.3 else draw.uniform(max(started, NOW - 7200), NOW)
    name = f"job-{number:04d}"
    queue, priority = draw.choice(QUEUES), draw.choice(PRIORITIES)
    return Job(
        name, queue, priority, gpus, tuple(chosen), minimum, float(int(started)),
        float(int(max(checkpointed, started))),
    )  # fmt: skip
