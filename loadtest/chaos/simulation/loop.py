"""An event loop in virtual time: when nothing is left to do now, the clock jumps.

::

    ready callbacks ──► none left ──► clock := time of the first timer ──► its callbacks
                                          no timer either: ``Stalled``

It has no selector, no sockets and no threads, so the order in which callbacks run depends
on nothing but the program: the same seed gives the same run, hours of it in seconds.

A *process* can be stopped as by SIGSTOP. What it does runs in its context; while it is
stopped, whatever becomes due there is set aside, and runs when it is continued::

    callback is due ──► its process is stopped? ── no ──► run
                                │ yes                      ▲
                                └──► set aside ──continue──┘   (the clock went on meanwhile)
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Stalled(RuntimeError):
    """Nothing will ever happen again: no callback is ready and no timer is set."""


class Process:
    """What can be stopped and continued: everything that runs in its ``context``."""

    def __init__(self) -> None:
        """Begin a process, running."""
        self.stopped = False
        self._aside: list[asyncio.Handle] = []
        self.context: Context = Context()
        self.context.run(_PROCESS.set, self)

    def set_aside(self, handle: asyncio.Handle) -> None:
        """Keep a callback that became due while stopped."""
        self._aside.append(handle)

    def resume(self) -> list[asyncio.Handle]:
        """Let it run again; returns what was set aside, for ``VirtualLoop.resume``."""
        self.stopped = False
        aside, self._aside = self._aside, []
        return aside


_PROCESS: ContextVar[Process | None] = ContextVar("_PROCESS", default=None)


def _is_set_aside(context: Context, handle: asyncio.Handle) -> bool:
    process = context.get(_PROCESS)
    if process is None or not process.stopped:
        return False
    process.set_aside(handle)
    return True


class _Handle(asyncio.Handle):
    """A callback that waits while its process is stopped."""

    __slots__ = ("_place",)

    def __init__(
        self, callback: Callable[..., Any], args: Any, loop: Any, context: Context | None
    ) -> None:
        self._place = copy_context() if context is None else context
        super().__init__(callback, args, loop, self._place)

    def _run(self) -> None:
        if not _is_set_aside(self._place, self):
            super()._run()


class _Timer(asyncio.TimerHandle):
    """The same, at a time."""

    __slots__ = ("_place",)
    _scheduled: bool

    def __init__(  # as asyncio.TimerHandle
        self,
        when: float,
        callback: Callable[..., Any],
        args: Any,
        loop: Any,
        context: Context | None,
    ) -> None:
        self._place = copy_context() if context is None else context
        super().__init__(when, callback, args, loop, self._place)

    def _run(self) -> None:
        if not _is_set_aside(self._place, self):
            super()._run()


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
    """One run's loop. ``time`` starts at 0 and counts virtual seconds."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, wrong: Callable[[str], None]) -> None:
        """``wrong`` is called for every exception that no task or callback caught."""
        super().__init__()
        self._virtual = 0.0
        self._selector = _Jump(self)
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: wrong(_message(context)))

    def time(self) -> float:
        """Return the virtual time in seconds."""
        return self._virtual

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._virtual += seconds

    def resume(self, process: Process) -> None:
        """Continue a stopped process: what was set aside runs next, in its order."""
        self._ready.extend(process.resume())

    # What asyncio.BaseEventLoop does, with handles that know how to wait.

    def _call_soon(
        self, callback: Callable[..., Any], args: Any, context: Context | None
    ) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Run a callback at a virtual time."""
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True  # noqa: SLF001  as the base class does
        return timer

    def _process_events(self, event_list: list[Any]) -> None:
        """There are no file descriptors."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never waits in a selector, so it need not be woken."""


def _message(context: dict[str, Any]) -> str:
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
