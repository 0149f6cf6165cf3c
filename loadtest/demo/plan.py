"""What the demonstration submits: a fleet, jobs on a compressed clock, and their wishes."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from loadtest.testbed.client.pods import Gang
from loadtest.traces import fleet as fleets
from loadtest.traces import trace as traces
from loadtest.traces.fleet import Fleet
from loadtest.traces.trace import Job, Trace
from muster.kube import names

DEFAULT_JOBS: Final = 260
# Seconds into which the arrivals are compressed, so that the run takes well under a minute.
WINDOW: Final = 12.0
NAMESPACE: Final = "default"
JOB_LABEL: Final = "loadtest.testbed.deployment.muster.dev/job"
_LARGEST_SHARE: Final = 3  # no job asks for more than a third of the fleet


@dataclass(frozen=True, slots=True)
class Submission:
    """A job with what it asks of the network. Times in seconds of the demonstration."""

    index: int
    job: Job
    gang: Gang

    @property
    def minimum(self) -> int:
        """Members that must be placed together."""
        return self.job.pods


@dataclass(frozen=True, slots=True)
class Story:
    """Everything that is decided before the first process starts."""

    fleet: Fleet
    trace: Trace
    submissions: tuple[Submission, ...]
    seed: int
    speed: float  # trace seconds per second


def make(
    *,
    hosts: int | None,
    jobs: int | None,
    seed: int,
    topology: Path | None,
    trace: Path | None,
) -> Story:
    """Decide what to run; raises ``FleetError`` or ``TraceError``."""
    count = DEFAULT_JOBS if jobs is None else jobs
    if count < 1:
        raise traces.TraceError(f"jobs: {count}: give at least 1")
    fleet = fleets.read_topology(topology, hosts) if topology else fleets.clos(hosts, seed=seed)
    largest = fleet.gpus // _LARGEST_SHARE
    if trace:
        drawn = traces.read_philly(trace, count, largest=largest, seed=seed)
    else:
        drawn = traces.philly_like(count, largest=largest, seed=seed)
    speed = max(drawn.span / WINDOW, 1.0)
    compressed = drawn.compressed(speed)
    chance = random.Random(seed)
    submissions = tuple(
        Submission(i, job, _gang(job, chance)) for i, job in enumerate(compressed.jobs)
    )
    return Story(fleet, compressed, submissions, seed, speed)


def _gang(job: Job, chance: random.Random) -> Gang:
    """Give a job a wish that fits its size: small gangs one leaf, larger ones one block."""
    labels = {JOB_LABEL: job.name}
    required = preferred = ""
    if 2 <= job.pods <= 6:
        required = names.RACK
    elif 6 < job.pods <= 48 and chance.random() < 0.5:
        required, preferred = names.BLOCK, names.RACK
    elif job.pods > 6:
        preferred = names.BLOCK if job.pods > 48 else names.RACK
    return Gang(
        job.name,
        job.pods,
        gpus=job.gpus_per_pod,
        namespace=NAMESPACE,
        required=required,
        preferred=preferred,
        labels=labels,
    )
