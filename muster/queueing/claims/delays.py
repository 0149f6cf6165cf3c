"""Claims that wait for a time before they wait in line: a check asked for another try later.

They stop nobody, not in a strict queue either, and count as waiting (Kueue's ``requeueState``;
pkg/cache/queue/cluster_queue.go, ``backoffWaitingTimeExpired`` at 0.19.2).
"""

from collections import Counter
from math import inf

from muster.cluster.claims import ClaimKey
from muster.cluster.quota.queuespec import QueueName


class ClaimDelays:
    """Who waits until when. Times are in seconds since the epoch."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._until: dict[ClaimKey, tuple[QueueName, float]] = {}
        self._counts: Counter[QueueName] = Counter()
        #: whether anybody came since somebody asked who is due
        self.is_new = False

    @property
    def next_at(self) -> float:
        """When the next one is due, ``inf``: never."""
        return min((at for _, at in self._until.values()), default=inf)

    def of(self, queue: QueueName) -> int:
        """Return how many are for a queue."""
        return self._counts[queue]

    def put(self, key: ClaimKey, queue: QueueName, until: float) -> None:
        """Have a claim wait until a time."""
        self.drop(key)
        self._until[key] = queue, until
        self._counts[queue] += 1
        self.is_new = True

    def drop(self, key: ClaimKey) -> None:
        """Forget a claim."""
        found = self._until.pop(key, None)
        if found is not None:
            self._counts[found[0]] -= 1

    def due(self, now: float) -> list[ClaimKey]:
        """Return those whose time has come, and forget them."""
        self.is_new = False
        found = [key for key, (_, at) in self._until.items() if at <= now]
        for key in found:
            self.drop(key)
        return found
