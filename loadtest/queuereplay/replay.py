"""The replay: submissions and ends in virtual time, and a side that says who starts.

::

    submitted ──► side: who starts now? ──► runs ──► ended
                    ▲                                  │
                    ├──────── room is free ◄───────────┘
                    └──────── a time that the side has named

The side is asked after all ends and submissions of an instant. It goes on until the last job has
started.
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from loadtest.queuereplay.submissions import Submission


class ReplayError(Exception):
    """A side that does what none may do; the message names the job and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class StartPromise:
    """What was first said to a job about its start."""

    #: Seconds of the replay.
    at: float
    #: Whether nobody may delay it. Where queues lend, who borrows gives way to the entitled.
    is_firm: bool = True
    #: When jobs without an estimate were taken to end, by their numbers: those that ran when it
    #: was made, and those that started while it stood. What is not known has no end.
    expected: Mapping[int, float] = field(default_factory=dict)


class Side(Protocol):
    """Decides who starts when."""

    @property
    def promised(self) -> Mapping[int, StartPromise]:
        """Return the first promise of each job that got one, by its number."""

    def submitted(self, one: Submission, now: float) -> None:
        """Learn of a job."""

    def ended(self, one: Submission, now: float) -> None:
        """Free what a job held."""

    def start(self, now: float) -> Sequence[Submission]:
        """Start jobs, each of them whole, and return them."""

    def next_look(self) -> float:
        """Return when it wants to be asked even if nothing happens, infinity: never."""


@dataclass(slots=True)
class Log:
    """What happened."""

    #: When each job started, by its number.
    starts: list[float]
    #: The first promise of each job that got one.
    promised: Mapping[int, StartPromise] = field(default_factory=dict)


def replay(jobs: Sequence[Submission], side: Side, gpus: int) -> Log:
    """Replay jobs on a cluster of ``gpus`` GPUs.

    Raises ``ReplayError`` for a side that starts more than fits, or a job that it was not given.
    """
    return _Replay(jobs, side, gpus).run()


class _Replay:
    def __init__(self, jobs: Sequence[Submission], side: Side, gpus: int) -> None:
        self.jobs, self.side, self.free = jobs, side, gpus
        self.log = Log([math.nan] * len(jobs))
        self.arrived = 0
        self.waiting: set[int] = set()
        self.running: list[tuple[float, int]] = []  # a heap of (end, number)

    def run(self) -> Log:
        while self.arrived < len(self.jobs) or self.waiting:
            now = self._next()
            self._end(now)
            self._arrive(now)
            for one in self.side.start(now):
                self._start(one, now)
        self.log.promised = dict(self.side.promised)
        return self.log

    def _next(self) -> float:
        times = [self.side.next_look()]
        if self.running:
            times.append(self.running[0][0])
        if self.arrived < len(self.jobs):
            times.append(self.jobs[self.arrived].job.arrival)
        if min(times) == math.inf:
            first = self.jobs[min(self.waiting)].job
            raise ReplayError(f"job {first.name}: {first.gpus} GPUs do not start on an idle fleet")
        return min(times)

    def _end(self, now: float) -> None:
        while self.running and self.running[0][0] <= now:
            one = self.jobs[heapq.heappop(self.running)[1]]
            self.free += one.gpus
            self.side.ended(one, now)

    def _arrive(self, now: float) -> None:
        while self.arrived < len(self.jobs) and self.jobs[self.arrived].job.arrival <= now:
            self.waiting.add(self.arrived)
            self.side.submitted(self.jobs[self.arrived], now)
            self.arrived += 1

    def _start(self, one: Submission, now: float) -> None:
        if one.number not in self.waiting or one.gpus > self.free:
            raise ReplayError(
                f"job {one.job.name}: started at {now:.0f} s with {self.free} GPUs free, of which "
                f"it asks for {one.gpus}; waiting: {one.number in self.waiting}"
            )
        self.waiting.discard(one.number)
        self.free -= one.gpus
        self.log.starts[one.number] = now
        heapq.heappush(self.running, (now + one.job.duration, one.number))
