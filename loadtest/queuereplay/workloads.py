"""What is replayed: jobs with their queues, and a cluster that they load as much as is asked for.

``philly``  a window of the Philly trace with gangs of a quarter of the cluster, on 16 hosts of 8
            GPUs: the largest job of the trace asks for all of them. A queue for each of the 15
            virtual clusters, entitled to its part of the GPU-seconds of the whole trace
``model``   jobs of 1 to 256 GPUs by the model of Lublin and Feitelson on 32 hosts of 8 GPUs. One
            queue: the model has no users

A job is cut into equal pods as in ``Job``: whole hosts where its size is a multiple of one.
"""

import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.traces.fleet import Fleet, grid
from loadtest.traces.gangtrace.stream import Stream, StreamError, turning
from loadtest.traces.lublin import lublin
from loadtest.traces.trace import Job, Trace, read_philly

BIG: Final = 0.25
"""A gang is big from this part of the cluster on."""
FEWEST_BIG: Final = 5
PHILLY_HOSTS: Final = 16
MODEL_HOSTS: Final = 32


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs and the cluster that they are for."""

    stream: Stream
    fleet: Fleet
    #: By queue, the GPUs that it is entitled to; together those of the fleet.
    entitled: Mapping[str, int]

    def is_big(self, job: Job) -> bool:
        """Return whether a job is a big gang."""
        return job.gpus >= BIG * self.fleet.gpus


def model(jobs: int, load: float, seed: int) -> Workload:
    """Make a workload; raises ``StreamError`` for a load that cannot be."""
    fleet = _hosts(MODEL_HOSTS)
    stream = turning(lublin(_checked(jobs), seed=seed), fleet, load)
    return Workload(stream, fleet, {"batch": fleet.gpus})


def philly(path: Path, jobs: int, load: float, seed: int) -> Workload:
    """Read a workload.

    Raises ``TraceError`` for a file that cannot be read, ``StreamError`` for a load that cannot be
    and for a trace without enough big gangs.
    """
    fleet, whole = _hosts(PHILLY_HOSTS), read_philly(path, 0, largest=0)
    window = _window(whole, _checked(jobs), fleet, seed)
    entitled = _parts(fleet.gpus, _work(whole.jobs))
    return Workload(turning(window, fleet, load), fleet, entitled)


def _hosts(count: int) -> Fleet:
    return grid(count, blocks=2, rack=4)


def _checked(jobs: int) -> int:
    if jobs < 2:
        raise StreamError(f"--jobs {jobs}: give the number of jobs, 2 or more")
    return jobs


def _window(whole: Trace, jobs: int, fleet: Fleet, seed: int) -> Trace:
    """Return consecutive jobs, drawn by seed among the windows with enough big gangs."""
    big = [number for number, job in enumerate(whole.jobs) if job.gpus >= BIG * fleet.gpus]
    firsts = [
        first
        for first in range(max(1, len(whole.jobs) - jobs + 1))
        if bisect_left(big, first + jobs) - bisect_left(big, first) >= min(FEWEST_BIG, len(big))
    ]
    first = random.Random(seed).choice(firsts)
    return Trace(whole.title, whole.jobs[first : first + jobs])


def _work(jobs: Sequence[Job]) -> Counter[str]:
    found: Counter[str] = Counter()
    for job in jobs:
        found[job.tenant] += round(job.gpus * job.duration)
    return found


def _parts(gpus: int, work: Mapping[str, int]) -> dict[str, int]:
    """Divide GPUs in proportion to work, at least one each (largest remainders)."""
    whole = sum(work.values())
    exact = {name: (gpus - len(work)) * amount / whole for name, amount in sorted(work.items())}
    found = {name: 1 + int(part) for name, part in exact.items()}
    by_rest = sorted(exact, key=lambda name: int(exact[name]) - exact[name])
    for name in by_rest[: gpus - sum(found.values())]:
        found[name] += 1
    return found
