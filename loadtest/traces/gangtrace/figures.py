"""What a log says: waits, utilisation, how far apart the members of a gang sit.

Spread follows Arnold (arXiv 2509.15940, section 3): a communication group is the worse off
the more leaves it spans. The trace's jobs trained data-parallel, so all of a job is one
group. For a gang and a level::

    spread      domains it stands in ÷ the fewest that would hold it on an empty fleet
    crossings   neighbours in rank order that are in different domains; the last rank is the
                neighbour of the first (ring all-reduce). One domain: 0, k domains: at least k

Only gangs of several pods count there: a lone pod is on one host whichever.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from loadtest.traces.fleet import Fleet
from loadtest.traces.gangtrace.replay import Log
from loadtest.traces.gangtrace.stream import Stream
from loadtest.traces.trace import Job

Floats = NDArray[np.float64]

Figure = float | int | str | dict[str, float]

T = TypeVar("T")

LEVELS: Final = ("leaf", "aggregation")

RESOLUTION_S: Final = 1.0
"""Submissions and run times are whole seconds in the trace."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """The two levels above the hosts: the domain of each host, and how many hosts it has."""

    fleet: Fleet

    def domains(self, level: str) -> list[str]:
        """Return the domain of every host; ``level``: ``leaf`` (ASW) or ``aggregation`` (PSW)."""
        if level == "leaf":
            return [f"{host.block}/{host.rack}" for host in self.fleet.hosts]
        return [host.block for host in self.fleet.hosts]

    def fewest(self, level: str, job: Job) -> int:
        """Return how many domains hold a job at least, all of the fleet being free."""
        room: dict[str, int] = {}
        for name, host in zip(self.domains(level), self.fleet.hosts, strict=True):
            room[name] = room.get(name, 0) + host.gpus // job.gpus_per_pod
        need, count = job.pods, 0
        for size in sorted(room.values(), reverse=True):
            if need <= 0:
                break
            need, count = need - size, count + 1
        return count


@dataclass(frozen=True, slots=True)
class GangPlace:
    """How a gang is placed at one level."""

    gpus: int
    #: Defined in the module's docstring.
    spread: float
    crossings: int
    #: Whether it started without waiting.
    at_once: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """One log in figures."""

    waits: dict[str, float]
    #: Waits of the jobs with several pods.
    gang_waits: dict[str, float]
    utilisation: float
    #: By level.
    places: dict[str, list[GangPlace]]

    @classmethod
    def of(cls, stream: Stream, log: Log, fleet: Fleet) -> "Outcome":
        """Evaluate a log; one of a side without hosts has no places."""
        fabric = Fabric(fleet)
        placed = any(log.hosts)
        return cls(
            wait_figures(waits(stream, log)),
            wait_figures(waits(stream, log, gangs=True)),
            utilisation(stream, log, fleet.gpus),
            {level: gang_places(stream, log, fabric, level) if placed else [] for level in LEVELS},
        )


def waits(stream: Stream, log: Log, *, gangs: bool = False) -> Floats:
    """Return float64[jobs], seconds from arrival to start; ``gangs``: of several pods only."""
    found = [
        start - job.arrival
        for job, start in _counted(stream, log.starts)
        if job.pods > 1 or not gangs
    ]
    return np.array(found, dtype=np.float64)


def wait_figures(seconds: Floats) -> dict[str, float]:
    """Return mean, quantiles and the longest; zeros if there is no value."""
    if not len(seconds):
        return dict.fromkeys(("mean", "p50", "p95", "max"), 0.0)
    p50, p95, most = np.percentile(seconds, [50, 95, 100]).tolist()
    return {
        "mean": round(float(seconds.mean()), 1),
        "p50": round(p50, 1),
        "p95": round(p95, 1),
        "max": round(most, 1),
    }


def utilisation(stream: Stream, log: Log, gpus: int) -> float:
    """Return the share of the GPUs that is in use, over the counted turn."""
    used = 0.0
    for job, start in zip(stream.jobs, log.starts, strict=True):
        inside = min(start + job.duration, stream.span) - min(start, stream.span)
        used += job.gpus * inside
    return used / (gpus * stream.span)


def gang_places(stream: Stream, log: Log, fabric: Fabric, level: str) -> list[GangPlace]:
    """Return how each counted gang of several pods is placed."""
    domains = fabric.domains(level)
    fewest: dict[tuple[int, int], int] = {}
    found = []
    starts = dict(zip((job.name for job in stream.jobs), log.starts, strict=True))
    for job, hosts in _counted(stream, log.hosts):
        if job.pods < 2:
            continue
        key = (job.pods, job.gpus_per_pod)
        if key not in fewest:
            fewest[key] = fabric.fewest(level, job)
        path = [domains[host] for host in hosts]
        at_once = starts[job.name] - job.arrival < RESOLUTION_S
        found.append(GangPlace(job.gpus, len(set(path)) / fewest[key], crossings(path), at_once))
    return found


def crossings(path: Sequence[str]) -> int:
    """Count neighbours in different domains around the ring."""
    return sum(a != b for a, b in pairwise([*path, path[0]]))


def mean_spread(places: Sequence[GangPlace]) -> float:
    """Return the mean over gangs, 1 where there are none."""
    return sum(each.spread for each in places) / len(places) if places else 1.0


def by_size(places: Sequence[GangPlace]) -> dict[str, float]:
    """Return the mean spread of each size in GPUs."""
    sizes = sorted({each.gpus for each in places})
    return {
        str(size): round(mean_spread([each for each in places if each.gpus == size]), 3)
        for size in sizes
    }


def wait_ratio(ours: float, theirs: float) -> float:
    """Return ours / theirs for seconds; less than one counts as one, the trace's resolution."""
    return round(max(ours, RESOLUTION_S) / max(theirs, RESOLUTION_S), 4)


def flat(prefix: str, values: Mapping[str, float]) -> dict[str, Figure]:
    """Return the values with a prefix to their names."""
    return {f"{prefix}_{name}": value for name, value in values.items()}


def _counted(stream: Stream, values: Sequence[T]) -> Iterator[tuple[Job, T]]:
    return zip(stream.jobs[stream.warm :], values[stream.warm :], strict=True)
