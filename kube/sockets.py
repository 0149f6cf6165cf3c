"""Sockets on which nothing is delivered late.

A socket that is closed with data unsent goes on to deliver it for minutes when the network
comes back, and so does that of a process which is stopped. A write of a leader must not
arrive after its time, so its sockets are told to give up:

* ``SO_LINGER`` of zero: closing the connection throws away what has not been acknowledged and
  resets it; the API server then also drops a request it is still working on;
* ``TCP_USER_TIMEOUT`` (Linux, tcp(7)): the kernel does the same by itself when data stays
  unacknowledged for that long, whatever state the process is in.
"""

import socket
import struct
from collections.abc import Callable
from typing import Final

from aiohttp import AddrInfoType

MILLISECONDS: Final = 1000
_LINGER_ZERO: Final = struct.pack("ii", 1, 0)  # struct linger: on, for no time
_USER_TIMEOUT: Final[int | None] = getattr(socket, "TCP_USER_TIMEOUT", None)

SocketFactory = Callable[[AddrInfoType], socket.socket]


def giving_up_after(network_s: float) -> SocketFactory:
    """Return a factory of non-blocking sockets whose unacknowledged data is dropped."""

    def make(address: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        if _USER_TIMEOUT is not None:
            limit_ms = max(1, round(network_s * MILLISECONDS))
            made.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, limit_ms)
        return made

    return make
