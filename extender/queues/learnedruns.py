"""Run times that were learned: kept in the objects of Muster's queues, read by the next leader.

::

    gangs end ──► run times ──► status of their queue, once a minute at most ──┐
                      ▲                                                        │
                      └── what this replica does not know ◄── objects seen ◄───┘

A replica that does not lead keeps what the leader writes; when it leads it goes on from there.
"""

from collections.abc import Sequence
from typing import Any

from extender.engine import Clock
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.backfill.pastruns import PastRun
from muster.queueing.backfill.runtimes import RunTimes
from muster.workloads.queues.averages.writtenruns import INTERVAL_S, written_runs
from muster.workloads.queues.muster import OwnQueue


class LearnedRuns:
    """The run times of one cluster's gangs, as the objects of its queues keep them."""

    def __init__(self, times: RunTimes, clock: Clock) -> None:
        """``clock``: seconds since the epoch."""
        self._times = times
        self._clock = clock
        self._learned = 0
        #: seconds since the epoch: when it was found that something was learned
        self._since = 0.0

    def seen(self, found: Any, queue: QueueName | None) -> None:
        """Take over what the status of an object says, but for what is known."""
        if isinstance(found, OwnQueue) and queue is not None:
            said = written_runs(found.status)
            if said is not None:
                runs = (PastRun(*run) for run in said.last)
                self._times.restore(queue, found.metadata.name, runs)

    def gone(self, name: str, queue: QueueName) -> None:
        """Forget what was learned of a queue whose object is gone; ``name``: the object's."""
        self._times.forget(queue, name)

    def sight(self, node: QueueNode | None) -> Sequence[PastRun] | None:
        """Return what a queue's status is to keep; ``None``: there is no such queue."""
        return None if node is None else self._times.kept(node.spec.name)

    @property
    def turn(self) -> tuple[int, int]:
        """A value that changes when statuses may be due: for two minutes after a run was learned.

        What was learned within a minute after a write is written in the next one.
        """
        now = self._clock()
        if self._learned != self._times.learned:
            self._learned, self._since = self._times.learned, now
        return self._learned, int(min(now, self._since + 2 * INTERVAL_S) / INTERVAL_S)
