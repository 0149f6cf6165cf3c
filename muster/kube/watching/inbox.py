"""A queue between watches and a consumer that may be slow.

It has no bound of its own: what is put is taken. Who puts much looks at ``depth`` before, as
watches do: they keep what they have read as bytes while too much waits here
(``muster.kube.watching.readahead``).
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """First in, first out, for one event loop. ``put`` is made to be a watch's sink."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._filled = asyncio.Event()
        self.peak = 0
        self.total = 0

    @property
    def depth(self) -> int:
        """Return how many items wait now; ``peak`` is the most there ever were."""
        return len(self._items)

    def put(self, items: Iterable[Item]) -> None:
        """Take items over; never waits."""
        before = len(self._items)
        self._items.extend(items)
        self.total += len(self._items) - before
        self.peak = max(self.peak, len(self._items))
        if self._items:
            self._filled.set()

    async def take(self, limit: int) -> list[Item]:
        """Wait for items and return up to ``limit`` of them, oldest first."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        return [self._items.popleft() for _ in range(min(limit, len(self._items)))]
