"""Giving the event loop back at short intervals, measured in time and not in steps.

A step of a plan costs microseconds on a small cluster and a millisecond on a large one.
Going by the clock, a long computation delays ``filter`` by one slice, whatever its size.
"""

import asyncio
from collections.abc import Callable, Generator
from typing import Final, TypeVar

T = TypeVar("T")

SLICE_S: Final = 0.001  # a plan hit takes 0.1 ms over the wire; it may wait for one slice


class Pace:
    """Counts from the last time the loop ran other tasks."""

    def __init__(self, clock: Callable[[], float], slice_s: float = SLICE_S) -> None:
        self._clock = clock
        self._slice_s = slice_s
        self._since = clock()

    async def breathe(self) -> None:
        """Let other tasks run if this one has had its slice."""
        if self._clock() - self._since >= self._slice_s:
            await asyncio.sleep(0)
            self._since = self._clock()

    async def drive(self, work: Generator[None, None, T]) -> T:
        """Run a generator to its end and return its value, breathing at its yields."""
        while True:
            try:
                next(work)
            except StopIteration as stop:
                result: T = stop.value
                return result
            await self.breathe()
