"""What queues used, and what they borrowed, on average.

Both, since what was borrowed does not follow from what was used: a queue that is idle at night and
borrows all day may have used no more than it is entitled to, on average.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.queueing.averageuse.usehistory import UseHistory


@dataclass(frozen=True, slots=True)
class QueueAverage:
    """What one queue used on average: by cell, in units of the model."""

    used: Mapping[Cell, float] = field(default_factory=dict)
    #: What it used above what it was entitled to.
    borrowed: Mapping[Cell, float] = field(default_factory=dict)


class QueueHistory:
    """The averages of the queues of a tree."""

    def __init__(self, half_life: float, ahead: float) -> None:
        """Begin without a past; seconds, as in ``UseHistory``."""
        self._used: UseHistory[QueueName, Cell] = UseHistory(half_life, ahead)
        self._borrowed: UseHistory[QueueName, Cell] = UseHistory(half_life, ahead)
        #: as in ``UseHistory``
        self.part = self._used.part

    @property
    def version(self) -> int:
        """How often somebody noted or restored anything."""
        return self._used.version + self._borrowed.version

    def note(self, node: QueueNode, now: float) -> None:
        """Take note of what a queue uses and borrows from now on."""
        name = node.spec.name
        self._used.note(name, node.usage, now)
        found = ((cell, node.borrowed(cell)) for cell in node.usage if node.is_shared(cell))
        self._borrowed.note(name, {cell: amount for cell, amount in found if amount}, now)

    def average(self, queue: QueueName, now: float) -> QueueAverage:
        """Return what a queue used and borrowed on average, as it is now."""
        return QueueAverage(self._used.average(queue, now), self._borrowed.average(queue, now))

    def restore(self, queue: QueueName, average: QueueAverage, at: float) -> None:
        """Take note of averages that were written down, unless later ones are known."""
        self._used.restore(queue, average.used, at)
        self._borrowed.restore(queue, average.borrowed, at)

    def keep_only(self, queues: Collection[QueueName]) -> None:
        """Forget all others."""
        self._used.keep_only(queues)
        self._borrowed.keep_only(queues)
