"""An event loop in virtual time: when nothing is left to do now, the clock jumps.

::

    ready callbacks ──► none left ──► clock := time of the first timer ──► its callbacks
                                          no timer either: ``Stalled``

It has no selector, no sockets and no threads, so the order in which callbacks run depends
on nothing but the program: the same seed gives the same run, hours of it in seconds.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Stalled(RuntimeError):
    """Nothing will ever happen again: no callback is ready and no timer is set."""


class _Jump:
    """Stands where a selector stands; waiting is moving the clock."""

    def __init__(self, loop: "VirtualLoop") -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        """Let ``timeout`` seconds pass at once."""
        if timeout is None:
            raise Stalled("no callback is ready and no timer is set")
        if timeout > 0:
            self._loop.advance(timeout)
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """One run's loop. ``time`` starts at 0 and counts seconds that nobody waited for."""

    def __init__(self, wrong: Callable[[str], None]) -> None:
        """``wrong`` is told of every exception that no task or callback caught."""
        super().__init__()
        self._virtual = 0.0
        self._selector = _Jump(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: wrong(_told(context)))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual += seconds

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no file descriptors."""

    def _write_to_self(self) -> None:
        """Nobody waits in a selector, so nobody has to be woken."""


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context.get('message')}: {error!r}"


def finish_now(coroutine: Any) -> Any:
    """Run a coroutine that never waits for anything, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waited; nothing here may")
