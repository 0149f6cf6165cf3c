"""The replay: arrivals and ends in virtual time, gangs started strictly first come, first served.

::

    arrival ──► queue ──► head: place ──► all members run ──► end ──► room is free
                            ▲   │ no room                               │
                            │   ▼                                       │
                            └─ blocked, and everybody behind it ◄───────┘ another look

No job overtakes another: a job waits for room at the head, or for the jobs before it. A blocked
head is looked at again only when something has ended since, as the extender does. All ends
of an instant come before its arrivals.
"""

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from loadtest.traces.gangtrace.stream import Stream
from loadtest.traces.trace import Job

Hosts = tuple[int, ...]
"""The host of each pod in rank order, as indices into the fleet's hosts."""


class Side(Protocol):
    """Decides where gangs go. Jobs are identified by their name."""

    def submitted(self, job: Job, now: float) -> None:
        """Learn of a job."""

    def place(self, job: Job, now: float) -> Hosts | None:
        """Start a job whole; ``None``: it does not fit now, and nothing of it has started."""

    def ended(self, job: Job, now: float) -> None:
        """Free what a job held."""


@dataclass(slots=True)
class Log:
    """What happened: start and hosts of each job of the stream, in its order."""

    starts: list[float] = field(default_factory=list)
    hosts: list[Hosts] = field(default_factory=list)
    #: How often a head was put to the side.
    looks: int = 0


def replay(stream: Stream, side: Side) -> Log:
    """Replay a stream until its last job has started."""
    return _Replay(stream, side).run()


class _Replay:
    """``arrived``: how many jobs are there; those from ``len(log.starts)`` on are queued."""

    def __init__(self, stream: Stream, side: Side) -> None:
        self.jobs = stream.jobs
        self.side = side
        self.log = Log()
        self.arrived = 0
        self.queue: deque[Job] = deque()
        self.running: list[tuple[float, int]] = []  # a heap of (end, job number)
        self.blocked = False

    def run(self) -> Log:
        while len(self.log.starts) < len(self.jobs):
            now = self._next()
            self._end(now)
            self._arrive(now)
            self._start(now)
        return self.log

    def _next(self) -> float:
        times = [self.running[0][0]] if self.running else []
        if self.arrived < len(self.jobs):
            times.append(self.jobs[self.arrived].arrival)
        if not times:
            raise RuntimeError(f"{self.queue[0]} does not start on an idle fleet")
        return min(times)

    def _end(self, now: float) -> None:
        while self.running and self.running[0][0] <= now:
            _, number = heapq.heappop(self.running)
            self.side.ended(self.jobs[number], now)
            self.blocked = False

    def _arrive(self, now: float) -> None:
        while self.arrived < len(self.jobs) and self.jobs[self.arrived].arrival <= now:
            job = self.jobs[self.arrived]
            self.side.submitted(job, now)
            self.queue.append(job)
            self.arrived += 1

    def _start(self, now: float) -> None:
        while self.queue and not self.blocked:
            job = self.queue[0]
            self.log.looks += 1
            hosts = self.side.place(job, now)
            if hosts is None:
                self.blocked = True
                return
            self.queue.popleft()
            heapq.heappush(self.running, (now + job.duration, len(self.log.starts)))
            self.log.starts.append(now)
            self.log.hosts.append(hosts)
