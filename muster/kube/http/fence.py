"""The fence of a leader: what stops a process from writing when its time is over.

::

            permit(), leads            now ≥ until (no code has to notice), or shut()
    CLOSED ───────────────────► OPEN ───────────────────────────────────────► CLOSED
                                │  ▲
                                └──┘ extend(until): a renewal was acknowledged

The transport asks before each attempt of each write, after everything that waits (a free
connection slot, a back-off), and its sockets ask again in the call that hands bytes to the
kernel. They ask a clock, not a flag: a process that was stopped for a minute finds the fence
closed before any message arrives.

What was sent in time must also end in time, with the process frozen or cut off::

    until        a write sent just before it …                       until + write_timeout_s
    │────────────────────┬───────────────────────────────────────────────┤   < lease_s
    │  on the wire       │  in the API server                            │
    │  (muster.kube.http.sockets:    │  (?timeout=: its deadline for the request,    │
    │  the kernel gives  │  counted from when it came in)                │
    │  the data up)      │                                               │

so that for the next holder of the Lease each write is either done, or will never be done.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from muster.kube.errors import Fenced

NEVER: Final = float("-inf")
NETWORK_SHARE: Final = 0.25
"""The part of a write's time-out in which its bytes must arrive. The rest is the server's."""


def monotonic() -> float:
    """Return seconds on a clock that is never set and that counts while the machine sleeps.

    ``time.monotonic`` stands still while the machine is suspended (clock_gettime(2),
    CLOCK_MONOTONIC), but a lease ages in that time, too.
    """
    boot = getattr(time, "CLOCK_BOOTTIME", None)  # Linux
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Fence:
    """Whether this process may write now. For one event loop."""

    def __init__(self, *, write_timeout_s: float, clock: Callable[[], float] = monotonic) -> None:
        self.write_timeout_s = write_timeout_s
        self._listeners: list[Callable[[], None]] = []
        self._clock = clock
        self._until = NEVER
        self._permitted = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def network_s(self) -> float:
        """How long the bytes of a write may be on their way."""
        return self.write_timeout_s * NETWORK_SHARE

    @property
    def server_s(self) -> float:
        """How long the API server may work on a write."""
        return self.write_timeout_s - self.network_s

    def is_open(self) -> bool:
        """Whether a write may be sent now."""
        return self._permitted and self._clock() < self._until

    def listen(self, listener: Callable[[], None]) -> None:
        """Have ``listener`` called for each write that is not sent."""
        self._listeners.append(listener)

    def extend(self, until: float) -> None:
        """Move the end of the leader's time, on the fence's clock."""
        self._until = until

    def permit(self) -> None:
        """Open: everything that was written before this leader's time has been seen."""
        self._permitted = True

    def shut(self) -> None:
        """Close for good, before the time is over."""
        self._permitted = False
        self._until = NEVER

    @contextmanager
    def write(self, what: str) -> Iterator[None]:
        """Enclose one attempt of one write. Raises ``Fenced``, and then nothing was sent."""
        if not self.is_open():
            for listener in self._listeners:
                listener()
            raise Fenced(f"{what}: was not sent, this replica does not lead (any more)")
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()

    async def settled(self) -> bool:
        """Wait until no write is in flight; False if one still is after the time-out."""
        try:
            async with asyncio.timeout(self.write_timeout_s):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
