"""The average use of each of Kueue's LocalQueues, read from their statuses and written there.

Gangs are counted by their pods, Workload objects by their claims.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.queueing.averageuse.userhistory import LocalName, UserHistory
from muster.workloads.queues.averages import fields
from muster.workloads.queues.kueue import LocalQueue
from muster.workloads.queues.sight import AverageSight

NOTE_S: Final = 10.0  # a change counts from the next look on; a half-life is hours or days


class LocalUse:
    """The averages of LocalQueues."""

    def __init__(self, history: UserHistory, clock: Callable[[], float], interval_s: float) -> None:
        """``interval_s``: seconds between two writes of one average."""
        self._history = history
        self._clock = clock
        self.interval_s = interval_s
        self._was_noted = False

    def seen(self, found: Any) -> None:
        """Take over what the status of a LocalQueue says, if it is later than what is known."""
        said = fields.local_average(found.status) if isinstance(found, LocalQueue) else None
        if said is not None:
            meta = found.metadata
            self._history.restore(f"{meta.namespace}/{meta.name}", said.amounts, said.at)

    def noted(self) -> None:
        """Take note that the history has what is used now: statuses may say it."""
        self._was_noted = True

    def sight(self, node: QueueNode | None, name: LocalName) -> AverageSight | None:
        """Return what those used who name a queue so; ``None``: that orders nothing."""
        if node is None or not node.spec.goes_by_users or not self._was_noted:
            return None
        return AverageSight(self.average(name), {}, self.interval_s)

    def average(self, name: LocalName) -> Mapping[Cell, float]:
        """Return what those used on average who name a queue as a LocalQueue has it."""
        return cells(self._history.average(name, self._clock()))


def cells(amounts: Mapping[str, float]) -> dict[Cell, float]:
    """Return amounts by resource as cells without a flavor."""
    return {Cell("", resource): amount for resource, amount in amounts.items()}
