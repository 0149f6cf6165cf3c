"""What a log says about a rule.

Jobs that are there from the beginning (``Stream.warm``) are served and not counted. Seconds are
those of the trace.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loadtest.queuereplay.fairness import Stay, hourly_index
from loadtest.queuereplay.replay import Log
from loadtest.queuereplay.submissions import Submission
from loadtest.queuereplay.workloads import Workload

SHORT_RUN_S: Final = 10.0
"""Shorter run times count as this in slowdowns (Feitelson and Rudolph's bound)."""
TOLERANCE_S: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Outcome:
    """One replay in figures."""

    #: Seconds until it was done in which a job did nothing that counts: it waited, or did what was
    #: lost when it gave way. Without that: from submission to start.
    mean_wait: float
    #: (Wait + run time) ÷ run time, of runs of at least ``SHORT_RUN_S``; mean.
    bounded_slowdown: float
    #: The 95 % quantile of waits of big gangs; 0 without any.
    big_gang_p95: float
    #: Share of the GPUs in use from time 0 until the last arrival, without work that was lost.
    utilisation: float
    #: ``loadtest.queuereplay.fairness``.
    jain: float
    #: Jobs that were promised a start.
    promises: int
    #: Of these, started later, though nothing ran longer than was known.
    broken: int
    #: Started later, and a job without an estimate ran for longer than was learned, or beyond the
    #: promised start.
    overrun: int
    #: Started later, and it was said that gangs within their entitlement may come first.
    yielded: int
    #: How often a job gave way.
    gave_way: int = 0
    #: Part of the work that was lost thereby.
    lost: float = 0.0


def outcome(workload: Workload, jobs: Sequence[Submission], log: Log) -> Outcome:
    """Evaluate a log."""
    counted = jobs[workload.stream.warm :]
    waits = np.array([log.end(one) - one.job.duration - one.job.arrival for one in counted])
    runs = np.array([one.job.duration for one in counted])
    big = waits[[workload.is_big(one.job) for one in counted]]
    bounded = np.maximum(runs, SHORT_RUN_S)
    late = Counter(_late(jobs, log))
    return Outcome(
        mean_wait=float(waits.mean()),
        bounded_slowdown=float(np.maximum((waits + runs) / bounded, 1.0).mean()),
        big_gang_p95=float(np.percentile(big, 95)) if len(big) else 0.0,
        utilisation=_utilisation(workload, jobs, log),
        jain=_jain(workload, jobs, log),
        promises=len(log.promised),
        broken=late["broken"],
        overrun=late["overrun"],
        yielded=late["yielded"],
        gave_way=sum(map(len, log.cut.values())),
        lost=_lost(jobs, log) / sum(one.gpus * one.job.duration for one in jobs),
    )


def _utilisation(workload: Workload, jobs: Sequence[Submission], log: Log) -> float:
    last = jobs[-1].job.arrival
    used = sum(
        one.gpus * (min(end, last) - min(start, last))
        for one in jobs
        for start, end in log.runs(one)
    )
    return (used - _lost(jobs, log, last)) / (workload.fleet.gpus * last)


def _lost(jobs: Sequence[Submission], log: Log, until: float = math.inf) -> float:
    """Return the GPU-seconds of work that were lost by a time."""
    return sum(
        jobs[number].gpus * run.lost
        for number, runs in log.cut.items()
        for run in runs
        if run.end <= until
    )


def _jain(workload: Workload, jobs: Sequence[Submission], log: Log) -> float:
    last = jobs[-1].job.arrival
    return hourly_index(list(_stays(jobs, log)), workload.entitled, workload.fleet.gpus, last)


def _stays(jobs: Sequence[Submission], log: Log) -> Iterator[Stay]:
    """Yield each run with the wait before it."""
    for one in jobs:
        asked = one.job.arrival
        for start, end in log.runs(one):
            yield Stay(one.job.tenant, one.gpus, asked, start, end)
            asked = end


def _late(jobs: Sequence[Submission], log: Log) -> Iterator[str]:
    """Yield what became of each promise after which a job started late."""
    unknown = [one for one in jobs if one.estimate is None]
    for number, promise in log.promised.items():
        if log.starts[number] > promise.at + TOLERANCE_S:
            if not promise.is_firm:
                yield "yielded"
            elif any(_runs(one, log, promise.at) for one in unknown) or any(
                _exceeds(jobs[one], log, end, number) for one, end in promise.expected.items()
            ):
                yield "overrun"
            else:
                yield "broken"


def _exceeds(one: Submission, log: Log, expected: float, promised: int) -> bool:
    """Return whether a job ran beyond its expected end before a promised one started."""
    return expected < log.starts[promised] and log.end(one) > expected + TOLERANCE_S


def _runs(one: Submission, log: Log, at: float) -> bool:
    return any(start <= at < end for start, end in log.runs(one))
