"""How much of reviews that are still being sent may lie in memory at once.

Small reviews, as good as all there are, never wait: connections bound them. A large one waits
until what it announces is free, first come, first served, until its deadline. Meanwhile nothing
of it is read: the socket's buffers fill, and its sender waits.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

SMALL_BYTES: Final = 64 * 1024  # eight times a pod with everything in it
PIECE_BYTES: Final = SMALL_BYTES // 2
"""What one connection may have at each step between its socket and its handler.

There are three: read from the socket, waiting to be decrypted, waiting to be taken by the handler
(there twice as much). asyncio's own sizes are eight times these, and a thousand clients that are
sent away one by one made it 490 MiB where it is 270 now, 64 of them `limits.largeBytes`.
"""


class BodyBudget:
    """``total`` bytes; for one event loop."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._total = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def free(self) -> int:
        """Return how many bytes are free."""
        return self._free

    @contextlib.asynccontextmanager
    async def held(self, wanted: int) -> AsyncIterator[None]:
        """Hold ``wanted`` bytes inside the block; waits until they are free."""
        amount = min(wanted, self._total)
        await self._take(amount)
        try:
            yield
        finally:
            self._give(amount)

    async def _take(self, amount: int) -> None:
        if not self._waiting and amount <= self._free:
            self._free -= amount
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            self._withdraw(amount, turn)
            raise

    def _withdraw(self, amount: int, turn: asyncio.Future[None]) -> None:
        if turn.done() and not turn.cancelled():
            self._give(amount)  # given in the same moment
        elif (amount, turn) in self._waiting:  # not passed over by `_serve` in the same moment
            self._waiting.remove((amount, turn))
            self._serve()

    def _give(self, amount: int) -> None:
        self._free += amount
        self._serve()

    def _serve(self) -> None:
        """Let in the first that waits as long as there is room for it."""
        while self._waiting and self._waiting[0][0] <= self._free:
            amount, turn = self._waiting.popleft()
            if not turn.cancelled():
                self._free -= amount
                turn.set_result(None)
