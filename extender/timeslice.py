"""Sharing the event loop: requests first, then work, a slice of it at a time.

::

    work ──slice is over──► queue ─────────────────────┐
                                                       ▼   once an iteration of the loop
    a request's bytes ──► arrived ──► is one waiting to be answered? ──yes──► the queue waits on,
                                                       │ no                   a few iterations long
                                                       ▼
                                     the first of the queue goes on, a slice begins
                                                       │
                                     is a part of the slice left? ──yes──► a few more go on
                                                       │ no
                                                       ▼
                                           the next slice, in the same way

The loop runs what was ready before in front of what it has just read, so work that only gave way
for an iteration would go before the request it gave way to. That is why the queue moves on in the
second iteration, when the request's bytes are here and its handler is about to run. Slices are
measured in time and not in steps: a step of a plan costs microseconds on a small cluster and a
millisecond on a large one.

Before sockets are read, and after an answer, the core is offered to other processes. On a machine
whose cores are all in use a caller that was woken up waits else until the kernel's next tick, up to
4 ms, though the extender gives way to its request ten times in that time (docs/adr/0034).
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.0003  # of all work together; an answer takes as long, an iteration a tenth of it
AT_ONCE: Final = 3  # beside the first of a slice: a pod's release takes a third of one
PATIENCE: Final = 4  # iterations that work waits for requests; who sends bytes slowly stops nobody


class Pace:
    """Counts from the last time that the loop ran other tasks; one for all work of a process.

    ``clock``: seconds, only ever growing. ``offer``: lets other processes have the core.
    """

    def __init__(
        self, clock: Callable[[], float], offer: Callable[[], None] = os.sched_yield
    ) -> None:
        self.clock, self._offer = clock, offer
        self._since = clock()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._request = False
        self._waited = 0
        self._begins = False  # the slice: nobody has gone on in it
        self._back = 0  # how many stand at the front of the queue again since it began

    def arrived(self) -> None:
        """Note that something of a request was read, which is answered before any work."""
        self._request = True

    def begin(self) -> None:
        """Begin a slice, if nobody waits for one: the process was idle until now.

        Without that the first of what has come, however short, would give way to nobody.
        """
        if not self._queue:
            self._since = self.clock()

    async def breathe(self) -> None:
        """Let others run if the slice is over."""
        if not self._is_over():
            return
        await self._turn(len(self._queue))
        while not self._may_go_on():
            self._back += 1
            await self._turn(self._back - 1)

    async def drive(self, work: Generator[None, None, T]) -> T:
        """Run a generator to its end and return its value, breathing at its yields."""
        while True:
            try:
                next(work)
            except StopIteration as stop:
                result: T = stop.value
                return result
            await self.breathe()

    def _is_over(self) -> bool:
        return self.clock() - self._since >= SLICE_S

    def _may_go_on(self) -> bool:
        """Whether one whose turn has come has a part of the slice left; the first has it all."""
        first, self._begins = self._begins, False
        return first or not self._is_over()

    async def _turn(self, place: int) -> None:
        """Wait in the queue, behind the ``place`` first of it."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        while self._queue and self._queue[0].done():  # cancelled
            del self._queue[0]
        if not self._queue:
            loop.call_soon(self._read_first)
        self._queue.insert(place, turn)
        await turn

    def _read_first(self) -> None:
        self._offer()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        if self._request and self._waited < PATIENCE:
            self._waited += 1
            self._request = False
            loop.call_soon(self._go_on)
            return
        if self._waited:
            self._offer()  # whoever has been answered goes on
        self._request, self._waited, self._since = False, 0, self.clock()
        self._begins, self._back = True, 0
        self._wake(1)
        if self._queue:
            loop.call_soon(self._share)  # behind the step of the one that was woken

    def _share(self) -> None:
        """Have others go on in what is left of the slice."""
        if self._request or self._is_over():
            self._read_first()
            return
        self._wake(AT_ONCE)
        if self._queue:
            asyncio.get_running_loop().call_soon(self._read_first)

    def _wake(self, most: int) -> None:
        for _ in range(min(most, len(self._queue))):
            turn = self._queue.popleft()
            if not turn.done():  # else it was cancelled
                turn.set_result(None)
