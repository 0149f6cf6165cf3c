"""A queue between watches and a consumer that may be slow.

It has no bound of its own and accepts everything. A caller that puts much has to check first how
many ``items`` wait. Watches do so: while too much waits here, they store what they have read as
bytes (``muster.kube.watching.readahead``).
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """First in, first out, for one event loop. ``put`` can be the sink of a watch."""

    def __init__(self) -> None:
        #: what waits now, oldest first
        self.items: deque[Item] = deque()
        self._filled = asyncio.Event()
        #: the most items that ever waited
        self.peak = 0
        #: all items that were ever put
        self.total = 0

    def put(self, items: Iterable[Item]) -> None:
        """Store items; never waits."""
        before = len(self.items)
        self.items.extend(items)
        self.total += len(self.items) - before
        self.peak = max(self.peak, len(self.items))
        if self.items:
            self._filled.set()

    async def take(self, limit: int) -> list[Item]:
        """Wait for items and return up to ``limit`` of them, oldest first."""
        while not self.items:
            self._filled.clear()
            await self._filled.wait()
        return [self.items.popleft() for _ in range(min(limit, len(self.items)))]
