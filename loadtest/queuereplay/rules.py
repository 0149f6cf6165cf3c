"""The rules beside which the planner is put, on one pool of GPUs without hosts.

A pool is the strongest form of each: no rule loses room to fragments, or to a queue's quota.

==================  ========================================================================
``StrictFIFO``      first come, first served; who does not fit keeps all others waiting
                    (Kueue's strategy of that name)
``BestEffortFIFO``  in the order of submission, and who does not fit steps aside (Kueue's
                    default)
``EASY-FCFS``       the first that waits gets a start time, its *shadow time*; others go before
                    it in the order of submission if they delay it by nothing (Lifka, 1995)
``EASY-SAF``        the same, the others by the smallest estimated area: GPUs times seconds
``SJF``             the shortest first by true run times, which nobody knows; who does not fit
                    steps aside, and nobody is stopped: about what can be had at best
==================  ========================================================================
"""

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from loadtest.queuereplay.replay import Side, StartPromise
from loadtest.queuereplay.submissions import Submission

Key = Callable[[Submission], float]


class Line:
    """Jobs that wait, by a key and then by their number."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._jobs: list[tuple[float, int, Submission]] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._jobs)

    def __iter__(self) -> Iterator[Submission]:
        """Yield them, the first in the line first."""
        return (one for _, _, one in self._jobs)

    def first(self) -> Submission:
        """Return the first."""
        return self._jobs[0][2]

    def add(self, one: Submission) -> None:
        """Put a job into its place."""
        insort(self._jobs, (self._key(one), one.number, one))

    def drop(self, one: Submission) -> None:
        """Take a job out."""
        del self._jobs[bisect_left(self._jobs, (self._key(one), one.number))]


class Greedy:
    """Goes through the line by a key; who does not fit stops the line or steps aside."""

    def __init__(self, gpus: int, key: Key, *, strict: bool = False) -> None:
        """Begin with an idle pool of ``gpus`` GPUs."""
        self.free = gpus
        #: It promises nothing.
        self.promised: dict[int, StartPromise] = {}
        self._line = Line(key)
        self._strict = strict

    def submitted(self, one: Submission, now: float) -> None:  # noqa: ARG002
        """Put a job into the line."""
        self._line.add(one)

    def ended(self, one: Submission, now: float) -> None:  # noqa: ARG002
        """Give GPUs back."""
        self.free += one.gpus

    def give_way(self, now: float) -> Sequence[Submission]:  # noqa: ARG002
        """Return that whoever runs goes on."""
        return ()

    def next_look(self) -> float:
        """Return that nothing changes by itself."""
        return math.inf

    def start(self, now: float) -> Sequence[Submission]:  # noqa: ARG002
        """Start who fits."""
        started = list(self._fitting())
        for one in started:
            self._line.drop(one)
        return started

    def _fitting(self) -> Iterator[Submission]:
        for one in self._line:
            if not self.free or (self._strict and one.gpus > self.free):
                return
            if one.gpus <= self.free:
                self.free -= one.gpus
                yield one


class Easy:
    """Backfills around the first that waits; see the module's account.

    Of a job without an estimate it is taken that it runs for ``most_s``.
    """

    def __init__(self, gpus: int, key: Key, most_s: float) -> None:
        """Begin with an idle pool; ``key`` orders those that may go before the first."""
        self.free = gpus
        #: The first shadow time of each job that was the first in the line.
        self.promised: dict[int, StartPromise] = {}
        self._line = Line(_number)
        self._others = Line(key)
        self._most_s = most_s
        self._running: list[tuple[float, int, int]] = []  # sorted: expected end, number, GPUs
        self._ends: dict[int, float] = {}

    def submitted(self, one: Submission, now: float) -> None:  # noqa: ARG002
        """Put a job into the line."""
        self._line.add(one)
        self._others.add(one)

    def ended(self, one: Submission, now: float) -> None:  # noqa: ARG002
        """Give GPUs back."""
        self.free += one.gpus
        self._running.remove((self._ends.pop(one.number), one.number, one.gpus))

    def give_way(self, now: float) -> Sequence[Submission]:  # noqa: ARG002
        """Return that whoever runs goes on."""
        return ()

    def next_look(self) -> float:
        """Return that nothing changes by itself."""
        return math.inf

    def start(self, now: float) -> Sequence[Submission]:
        """Start from the line's beginning who fits, then those that delay the next by nothing."""
        started = []
        while len(self._line) and self._line.first().gpus <= self.free:
            started.append(self._take(self._line.first(), now))
        if len(self._line):
            started += [self._take(one, now) for one in self._backfilled(now)]
        return started

    def shadow(self, one: Submission) -> tuple[float, int]:
        """Return when a job can start by the expected ends, and how many GPUs it then leaves."""
        free, at = self.free, math.inf
        for end, _, gpus in self._running:
            if end > at:
                break
            free += gpus
            if free >= one.gpus and at == math.inf:
                at = end
        return at, free - one.gpus

    def _backfilled(self, now: float) -> list[Submission]:
        first = self._line.first()
        shadow, extra = self.shadow(first)
        self.promised.setdefault(first.number, StartPromise(shadow))
        found, free = [], self.free
        for one in self._others:
            if not free:
                break
            if one.gpus > free or one is first:
                continue
            in_time = now + self._expected(one) <= shadow
            if in_time or one.gpus <= extra:
                free -= one.gpus
                extra -= 0 if in_time else one.gpus
                found.append(one)
        return found

    def _take(self, one: Submission, now: float) -> Submission:
        self._line.drop(one)
        self._others.drop(one)
        self.free -= one.gpus
        end = self._ends[one.number] = now + self._expected(one)
        insort(self._running, (end, one.number, one.gpus))
        return one

    def _expected(self, one: Submission) -> float:
        return self._most_s if one.estimate is None else one.estimate


def rules(gpus: int, most_s: float) -> dict[str, Side]:
    """Return every rule by its name; ``most_s``: what a job without an estimate may take."""

    def area(one: Submission) -> float:
        return one.gpus * (most_s if one.estimate is None else one.estimate)

    return {
        FIFO: Greedy(gpus, _number, strict=True),
        BEST_EFFORT: Greedy(gpus, _number),
        EASY_FCFS: Easy(gpus, _number, most_s),
        EASY_SAF: Easy(gpus, area, most_s),
        SJF: Greedy(gpus, lambda one: one.job.duration),
    }


FIFO: Final = "StrictFIFO"
BEST_EFFORT: Final = "BestEffortFIFO"
EASY_FCFS: Final = "EASY-FCFS"
EASY_SAF: Final = "EASY-SAF"
SJF: Final = "SJF"


def _number(one: Submission) -> float:
    return one.number
