"""Every set of victims of a small case, and what each costs, from the case alone."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

from loadtest.benches.room.cases import Job, RoomCase
from loadtest.benches.room.oracle import may_give_way
from loadtest.benches.room.rules import may_go, suffices


def sets(case: RoomCase) -> Iterator[dict[str, tuple[int, ...]]]:
    """Yield every set of victims: by gang, the ranks that end."""
    choices = [list(_endings(job)) for job in case.jobs if may_give_way(case, job)]
    names = [job.name for job in case.jobs if may_give_way(case, job)]
    for chosen in itertools.product(*choices):
        yield {name: ranks for name, ranks in zip(names, chosen, strict=True) if ranks}


def _endings(job: Job) -> Iterator[tuple[int, ...]]:
    """Yield the members that may end together: none, surplus without the first, all."""
    yield ()
    for count in range(1, job.surplus + 1):
        yield from itertools.combinations(range(1, len(job.hosts)), count)
    yield tuple(range(len(job.hosts)))


def fits(case: RoomCase, ended: dict[str, tuple[int, ...]]) -> bool:
    """Return whether a set may go, and is enough: queues by counts, nodes by places."""
    counts = {name: len(ranks) for name, ranks in ended.items()}
    free = case.free()
    for job in case.jobs:
        for rank in ended.get(job.name, ()):
            free[job.hosts[rank]] += job.gpus
    return may_go(case, counts) and has_quota(case, counts) and case.fits(free)


def has_quota(case: RoomCase, counts: dict[str, int]) -> bool:
    """Return whether the queue's numbers allow it, on a cluster where room is no matter."""
    wide = replace(case, racks=tuple(range(256)), asked=replace(case.asked, in_rack=False))
    return suffices(wide, counts)


def cost(case: RoomCase, ended: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the cost of a set: priority, lost work in powers of eight, gangs, lost work, pods."""
    hit = [job for job in case.jobs if job.name in ended]
    lost = sum(job.lost(len(ended[job.name])) for job in hit)
    waste = next(n for n in itertools.count() if 8**n > lost)
    whole = sum(len(ended[job.name]) == len(job.hosts) for job in hit)
    most = max((job.priority for job in hit), default=0)
    return most, waste, whole, lost, sum(map(len, ended.values()))
