"""Sockets for a leader's writes: nothing leaves late, nothing arrives late.

*Leaving.* A process may be stopped anywhere, also between the fence's question and the sending,
and a request takes some hundred microseconds of Python to build and encrypt. So the socket
asks once more, in the very call that hands bytes to the kernel, and breaks the connection
instead of sending. A server never acts on a request whose end is missing.

*Arriving.* A socket that is closed with data unsent goes on to deliver it for minutes when the
network comes back, and so does that of a stopped process. These give up:

* ``SO_LINGER`` of zero: closing the connection throws away what has not been acknowledged and
  resets it; the API server then also drops a request it is still working on;
* ``TCP_USER_TIMEOUT`` (Linux, tcp(7)): the kernel does the same by itself when data stays
  unacknowledged for that long, whatever state the process is in.
"""

import socket
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from aiohttp import AddrInfoType

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

MILLISECONDS: Final = 1000
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)  # struct linger: on, for no time
_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)

SocketFactory = Callable[[AddrInfoType], socket.socket]


class FencedSocket(socket.socket):
    """A non-blocking socket that sends only while ``may_send`` says so."""

    def __init__(
        self, family: int, kind: int, protocol: int, *, may_send: Callable[[], bool]
    ) -> None:
        super().__init__(family, kind, protocol)
        self._may_send = may_send
        self.setblocking(False)

    def send(self, data: "ReadableBuffer", flags: int = 0, /) -> int:
        """Send as ``socket.send`` does, or raise ``ConnectionAbortedError``."""
        self._ask()
        return super().send(data, flags)

    def sendmsg(self, *arguments: Any) -> int:
        """Send as ``socket.sendmsg`` does (asyncio on Python 3.12 and later), or raise."""
        self._ask()
        return super().sendmsg(*arguments)

    def _ask(self) -> None:
        if not self._may_send():
            raise ConnectionAbortedError("the fence is closed: this replica does not lead")


def fenced(may_send: Callable[[], bool], network_s: float) -> SocketFactory:
    """Return a factory of sockets that ask ``may_send`` and give up after ``network_s``."""

    def make(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = FencedSocket(family, kind, protocol, may_send=may_send)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        if _USER_TIMEOUT is not None:
            limit_ms = max(1, round(network_s * MILLISECONDS))
            made.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, limit_ms)
        return made

    return make
