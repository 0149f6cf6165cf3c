"""How many gangs of a queue give way within a minute: a wrong setting must not empty a cluster."""

from collections import defaultdict, deque
from typing import Final

WINDOW_S: Final = 60.0


class EvictionRates:
    """Counts, by queue, what gave way within the last minute."""

    def __init__(self, most: int) -> None:
        """``most``: gangs of one queue within a minute."""
        self._most = most
        #: when gangs of a queue gave way, in seconds, the oldest first
        self._times: dict[str, deque[float]] = defaultdict(deque)

    def left(self, queue: str, now: float) -> int:
        """Return how many more gangs of a queue may give way now."""
        times = self._times.get(queue, deque())
        while times and times[0] <= now - WINDOW_S:
            times.popleft()
        if not times:
            self._times.pop(queue, None)
        return self._most - len(times)

    def note(self, queue: str, now: float) -> None:
        """Count a gang that gives way."""
        self._times[queue].append(now)
