"""How many gangs of a queue give way within a minute: a wrong setting must not empty a cluster.

::

    most 2      order of 5 at 0 s ─► taken: counted as 2 at 0 s, 2 at 60 s, 1 at 120 s
                order of 1        ─► refused until 120 s

An order larger than that would never be taken (its gangs end together), so it is if nothing of its
queue gave way lately; the minutes to come pay for it.
"""

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

    def allows(self, queue: str, count: int, now: float) -> bool:
        """Return whether so many gangs of a queue may give way together now."""
        left = self.left(queue, now)
        return count <= left or left == self._most

    def note(self, queue: str, now: float) -> None:
        """Count a gang that gives way: now, or in the first minute that has room for it."""
        minute = (self._most - self.left(queue, now)) // self._most
        self._times[queue].append(now + WINDOW_S * minute)
