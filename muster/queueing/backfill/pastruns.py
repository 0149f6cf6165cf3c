"""The last runs of each queue: what a queue's object keeps of what was learned.

::

    first leader   learns ──► the last 32 of each queue ──► status of its object ──┐
    killed           ▲                                                             │
    next leader      └──────── those that it does not know ◄───────────────────────┘

Two replicas' lists are put together as multisets, in which a run is as often as in the list that
has it more often. So a leader learns nothing twice from what it wrote itself, five gangs that ended
in one second stay five, and it makes no difference how often or in which order lists are read.
"""

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from muster.cluster.quota.aliases import OWN
from muster.cluster.quota.queuespec import QueueName

_OWN: Final = f"{OWN}/"
KEPT: Final = 32  # runs of a queue


class PastRun(NamedTuple):
    """A gang that ran to its end. Times are whole, as a status has them."""

    #: Seconds since the epoch.
    ended_at: int
    #: How long it ran, in seconds, rounded up.
    seconds: int
    #: Its namespace.
    namespace: str
    #: Its name without the numbers at the end.
    template: str


def past_run(namespace: str, template: str, seconds: float, ended_at: float) -> PastRun:
    """Return a run; both times in seconds, ``ended_at`` since the epoch."""
    return PastRun(int(ended_at), math.ceil(max(seconds, 0.0)), namespace, template)


def keeps_runs(queue: QueueName) -> bool:
    """Return whether a queue's object keeps its last runs: only Muster's own kind has a field."""
    return queue.startswith(_OWN)


class PastRuns:
    """The last runs of each queue, the one that ended first first."""

    def __init__(self) -> None:
        """Begin without any."""
        self._queues: dict[QueueName, list[PastRun]] = {}

    def of(self, queue: QueueName) -> Sequence[PastRun]:
        """Return the last runs of a queue, at most ``KEPT``."""
        return self._queues.get(queue, ())

    def note(self, queue: QueueName, run: PastRun) -> None:
        """Take note of a run."""
        known = self._queues.setdefault(queue, [])
        insort(known, run)
        del known[:-KEPT]

    def restore(self, queue: QueueName, written: Iterable[PastRun]) -> list[PastRun]:
        """Take note of runs that were written down; returns those of the last that are new."""
        before = Counter(self.of(queue))
        last = sorted((before | Counter(written)).elements())[-KEPT:]
        self._queues[queue] = last
        return sorted((Counter(last) - before).elements())

    def forget(self, queue: QueueName) -> None:
        """Forget the runs of a queue."""
        self._queues.pop(queue, None)
