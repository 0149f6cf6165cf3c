"""What the gangs of each queue ask for in all, kept while gangs come and go."""

from collections import defaultdict
from collections.abc import Mapping

from muster.cluster.quota.cells import Amounts, Cell
from muster.cluster.quota.queuespec import QueueName


class WantedAmounts:
    """Sums of requests by queue."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._sums: defaultdict[QueueName, dict[Cell, int]] = defaultdict(dict)
        #: Queues whose sums changed since somebody emptied this set.
        self.touched: set[QueueName] = set()

    def add(self, queue: QueueName, request: Amounts) -> None:
        """Add what a gang asks for."""
        self._change(queue, request, 1)

    def drop(self, queue: QueueName, request: Amounts) -> None:
        """Take away what a gang asked for."""
        self._change(queue, request, -1)

    def of(self, queue: QueueName) -> Mapping[Cell, int]:
        """Return what the gangs of a queue ask for."""
        return self._sums.get(queue, {})

    def queues(self) -> list[QueueName]:
        """Return the queues of which anybody asked for anything."""
        return list(self._sums)

    def _change(self, queue: QueueName, request: Amounts, sign: int) -> None:
        own = self._sums[queue]
        for cell, amount in request.items():
            own[cell] = own.get(cell, 0) + sign * amount
        self.touched.add(queue)
