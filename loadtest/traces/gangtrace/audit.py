"""An account of its own beside a side, of gangs that are partial and hosts over-committed.

Wraps a side and believes nothing of it: it keeps the free GPUs of every host itself, from
what the side says where pods are, and the order of submissions.
"""

from collections import deque
from dataclasses import dataclass, field

from loadtest.traces.fleet import Fleet
from loadtest.traces.gangtrace.replay import Hosts, Side
from loadtest.traces.trace import Job


@dataclass(slots=True)
class Faults:
    """How often something happened that must not."""

    partial: int = 0
    overcommitted: int = 0
    overtaken: int = 0


@dataclass(slots=True)
class Audited:
    """A side whose answers are checked."""

    side: Side
    fleet: Fleet
    #: What the side did wrong.
    faults: Faults = field(default_factory=Faults)
    _queue: deque[str] = field(default_factory=deque)
    _held: dict[str, Hosts] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Begin with an idle fleet."""
        self._free = [host.gpus for host in self.fleet.hosts]

    def submitted(self, job: Job, now: float) -> None:
        """Note the order."""
        self._queue.append(job.name)
        self.side.submitted(job, now)

    def place(self, job: Job, now: float) -> Hosts | None:
        """Check what a side says of a start."""
        hosts = self.side.place(job, now)
        if hosts is None:
            return None
        self.faults.overtaken += self._queue[0] != job.name
        self._queue.remove(job.name)
        self.faults.partial += len(hosts) != job.pods
        for host in hosts:
            self._free[host] -= job.gpus_per_pod
        self.faults.overcommitted += sum(self._free[host] < 0 for host in set(hosts))
        self._held[job.name] = hosts
        return hosts

    def ended(self, job: Job, now: float) -> None:
        """Take back what the job held."""
        for host in self._held.pop(job.name):
            self._free[host] += job.gpus_per_pod
        self.side.ended(job, now)
