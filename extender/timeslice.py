"""Shares the event loop: requests first, then work, one time slice after the other.

::

    work ──slice is over──► queue ─────────────────────┐
                                                       ▼   once per iteration of the loop
    a request's bytes ──► arrived ──► does a request wait for its answer? ──yes──► the queue waits,
                                                       │ no                 for a few iterations
                                                       ▼
                                     the first task of the queue continues, a slice begins
                                                       │
                                     is a part of the slice left? ──yes──► a few more continue
                                                       │ no
                                                       ▼
                                           the next slice, in the same way

The loop runs callbacks that were ready before it runs those for bytes that it has just read. Work
that waited for only one iteration would therefore run before the request that it waited for. So
the queue continues in the second iteration, when the request's bytes are here and its handler is
about to run. Slices are measured in time and not in steps, because a step of a plan costs
microseconds on a small cluster and a millisecond on a large one.

Before sockets are read, and after an answer, the process offers its CPU core to other processes.
Without this, on a machine with all cores in use, a caller that has become ready waits for the
kernel's next tick, up to 4 ms, although the extender interrupts its work for the request ten times
in that time (docs/adr/0034).
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Generator
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.0003  # for all work together; an answer takes as long, an iteration a tenth
AT_ONCE: Final = 3  # tasks beside the first of a slice: a pod's release takes a third of one
PATIENCE: Final = 4  # iterations that work waits for requests; so a slow sender blocks no work


class Pace:
    """The time slices of all work of a process; the work calls ``breathe`` between its steps."""

    def __init__(
        self, clock: Callable[[], float], offer: Callable[[], None] = os.sched_yield
    ) -> None:
        """``clock`` returns monotonic seconds, ``offer`` offers the core to other processes."""
        self.clock, self._offer = clock, offer
        self._since = clock()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._request = False
        self._waited = 0
        self._begins = False  # a slice began, and no task has continued in it yet
        self._back = 0  # tasks that returned to the front of the queue since the slice began

    def arrived(self) -> None:
        """Note that bytes of a request were read; it is answered before any work continues."""
        self._request = True

    def begin(self) -> None:
        """Begin a slice if no task waits for one: the process was idle until now.

        Otherwise the first new work would find its slice over and would wait without need.
        """
        if not self._queue:
            self._since = self.clock()

    async def breathe(self) -> None:
        """Let other tasks run if the slice is over."""
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
        """Return whether a task whose turn has come may continue; the first of a slice may."""
        first, self._begins = self._begins, False
        return first or not self._is_over()

    async def _turn(self, place: int) -> None:
        """Wait in the queue, behind its first ``place`` tasks."""
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
            self._offer()  # callers with an answer continue
        self._request, self._waited, self._since = False, 0, self.clock()
        self._begins, self._back = True, 0
        self._wake(1)
        if self._queue:
            loop.call_soon(self._share)  # behind the step of the task that was woken

    def _share(self) -> None:
        """Have more tasks continue in the rest of the slice."""
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
