"""The replay: submissions and ends in virtual time, and a side that says who starts.

::

    submitted ──► side: who starts now? ──► runs ──► ended
                    ▲                                  │
                    ├──────── room is free ◄───────────┘
                    └──────── a time that the side has named

The side is asked after all ends and submissions of an instant. It goes on until the last job has
started.

A side may have jobs give way to others. Each goes on later from its last checkpoint::

    start ├──1 h──┼──1 h──┼───┤ gives way          the third hour's work is lost
                  └─ last checkpoint ─► ├── what is left of its run time
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from loadtest.queuereplay.submissions import Submission

CHECKPOINT_S: Final = 3600.0
"""Each job writes a checkpoint after so many seconds of a run."""
MOST_TIMES: Final = 10
"""A job that gives way more often in one instant would do so for ever."""


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

    def give_way(self, now: float) -> Sequence[Submission]:
        """Stop jobs for the sake of others and return them; they wait again."""

    def next_look(self) -> float:
        """Return when it wants to be asked even if nothing happens, infinity: never."""


@dataclass(frozen=True, slots=True)
class CutRun:
    """A run that ended because its job gave way."""

    start: float
    end: float

    @property
    def kept(self) -> float:
        """Seconds of work until the last checkpoint."""
        return (self.end - self.start) // CHECKPOINT_S * CHECKPOINT_S

    @property
    def lost(self) -> float:
        """Seconds of work since then."""
        return self.end - self.start - self.kept


@dataclass(slots=True)
class Log:
    """What happened."""

    #: When each job started first, by its number.
    starts: list[float]
    #: The first promise of each job that got one.
    promised: Mapping[int, StartPromise] = field(default_factory=dict)
    #: The runs of jobs that gave way, by their numbers.
    cut: dict[int, list[CutRun]] = field(default_factory=dict)
    #: When those started last.
    again: dict[int, float] = field(default_factory=dict)

    def end(self, one: Submission) -> float:
        """Return when a job is done."""
        kept = sum(run.kept for run in self.cut.get(one.number, ()))
        return self.again.get(one.number, self.starts[one.number]) + one.job.duration - kept

    def runs(self, one: Submission) -> Iterator[tuple[float, float]]:
        """Yield start and end of each run of a job."""
        yield from ((run.start, run.end) for run in self.cut.get(one.number, ()))
        yield self.again.get(one.number, self.starts[one.number]), self.end(one)


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
        self.began: dict[int, float] = {}  # of those that run

    def run(self) -> Log:
        while self.arrived < len(self.jobs) or self.waiting:
            now = self._next()
            self._end(now)
            self._arrive(now)
            self._decide(now)
        self.log.promised = dict(self.side.promised)
        return self.log

    def _decide(self, now: float) -> None:
        """Ask the side until no job gives way."""
        times: Counter[int] = Counter()
        while True:
            for one in self.side.start(now):
                self._start(one, now)
            leaving = self.side.give_way(now)
            if not leaving:
                return
            for one in leaving:
                self._give_way(one, now)
                times[one.number] += 1
                if times[one.number] > MOST_TIMES:
                    raise ReplayError(
                        f"job {one.job.name}: gave way {times[one.number]} times at {now:.0f} s, "
                        "and each time it was started again"
                    )

    def _give_way(self, one: Submission, now: float) -> None:
        if one.number not in self.began:
            raise ReplayError(f"job {one.job.name}: gave way at {now:.0f} s and did not run")
        self.running.remove((self.log.end(one), one.number))
        heapq.heapify(self.running)
        run = CutRun(self.began.pop(one.number), now)
        self.log.cut.setdefault(one.number, []).append(run)
        self.free += one.gpus
        self.waiting.add(one.number)

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
            del self.began[one.number]
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
        self.began[one.number] = now
        if one.number in self.log.cut:
            self.log.again[one.number] = now
        else:
            self.log.starts[one.number] = now
        heapq.heappush(self.running, (self.log.end(one), one.number))
