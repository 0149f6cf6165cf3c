"""From a trace to a stream of gangs that loads a fleet as much as is asked for.

The trace is closed to a ring that turns again and again, so that the fleet is in its steady
state from the beginning on. One turn takes as long as the fleet needs for all the work in
it, divided by the load::

    trace      a   b       c  d                 durations stay as they are,
                                                only submissions move closer
    turns   ─a─b───c─d─│─a─b───c─d─│
      -1    ═══════════╪══             jobs of earlier turns that would still run at the
       0               │ counted   │   beginning come first, with what is left of them
                       0         span

Otherwise a trace of a hundred days, compressed to a week, with jobs that run for weeks,
would begin on an empty fleet and end before the fleet is full.
"""

import math
import random
from dataclasses import dataclass, replace

from loadtest.traces.fleet import GPUS_PER_HOST, Fleet
from loadtest.traces.trace import Job, Trace


class StreamError(Exception):
    """A trace that a fleet cannot serve; the message names the job, its size and the remedy."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Gangs in the order in which they are to start.

    ``jobs[:warm]`` are on the fleet, or wait for it, at time 0 and are not counted.
    """

    jobs: tuple[Job, ...]
    warm: int
    #: Seconds of one turn, in which the others arrive.
    span: float
    #: How many times closer than in the trace the submissions are.
    speedup: float


def scaled(trace: Trace, scale: int, share: float, seed: int) -> Trace:
    """Return the trace with ``scale`` times the GPUs in a ``share`` of the jobs, drawn by seed."""
    if scale < 1 or not 0.0 <= share <= 1.0:
        raise StreamError(
            f"--scale {scale} --mix {share}: sizes are multiplied by a whole number of at least "
            "1, in a share of the jobs between 0 and 1"
        )
    chance = random.Random(seed)
    jobs = [
        replace(job, gpus=job.gpus * scale, large=scale > 1) if chance.random() < share else job
        for job in trace.jobs
    ]
    return Trace(trace.title, tuple(jobs))


def turning(trace: Trace, fleet: Fleet, load: float) -> Stream:
    """Return one turn of the trace, and before it what is left of the turns before.

    ``load``: GPU-seconds asked for per second, as a share of the fleet's GPUs.
    """
    if not 0.0 < load < math.inf:
        raise StreamError(f"--load {load}: give the share of the fleet's GPUs asked for, above 0")
    for job in {job.gpus: job for job in trace.jobs}.values():
        _check(job, fleet)
    work = sum(job.gpus * job.duration for job in trace.jobs)
    span = work / (load * fleet.gpus)
    # The gap that closes the ring is as long as the mean of the others.
    length = max(trace.span, 1.0) * len(trace.jobs) / max(len(trace.jobs) - 1, 1)
    speedup = length / span
    begin = trace.jobs[0].arrival
    counted = [replace(job, arrival=(job.arrival - begin) / speedup) for job in trace.jobs]
    warm = _left_over(counted, span)
    return Stream((*warm, *counted), len(warm), span, speedup)


def _left_over(jobs: list[Job], span: float) -> list[Job]:
    """Return what would be left at time 0 of the jobs of earlier turns, oldest first."""
    found: list[tuple[float, Job]] = []
    for job in jobs:
        turn = 1
        while (begun := job.arrival - turn * span) + job.duration > 0:
            left = replace(
                job, name=f"{job.name}.{turn}", arrival=0.0, duration=begun + job.duration
            )
            found.append((begun, left))
            turn += 1
    found.sort(key=lambda pair: pair[0])
    return [job for _, job in found]


def _check(job: Job, fleet: Fleet) -> None:
    if not job.gpus:
        return
    room = sum(host.gpus // job.gpus_per_pod for host in fleet.hosts)
    if job.pods > room:
        raise StreamError(
            f"job {job.name} asks for {job.gpus} GPUs in {job.pods} pods; the fleet of "
            f"{len(fleet.hosts)} hosts takes {room} of these when empty: lower --scale "
            f"or take a larger fleet (hosts are taken to have {GPUS_PER_HOST} GPUs)"
        )
