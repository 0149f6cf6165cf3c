"""An answer that ends with its connection, read to where it is to stand.

kube-apiserver writes a list object by object, and net/http makes two chunks of each pod for a
client that asks with HTTP/1.1. To parse ten thousand chunks and to join their bytes takes three
times as long as the kernel takes to deliver them (docs/design/first-list.md). HTTP/1.0 has no
chunks::

    request ──► head ──┬─► neither a length nor chunks: the body, until the server closes
                       │       recv_into its place, a list says itself whether it is whole
                       └─► anything else: an error, a short list, a proxy that makes chunks or packs
                               handed back to ``muster.kube.http.exchange``, as if it had been read
                               there

A server writes some 64 KiB at a time, and to be woken for each of them costs as much as to read
them. So once the body has begun, the kernel is asked to wake us for half a megabyte, or for the
end. Not with TLS, because the kernel does not see its end: some servers close TLS with a record of
a few bytes, and wait for our record before they close the connection.
"""

import asyncio
import contextlib
import socket
from typing import Final, Protocol

import httptools

from muster.kube.http.longbody import Bulk

NOT_SERVED: Final = frozenset((426, 505))
"""The answer of a proxy that does not speak HTTP/1.0 (Envoy: Upgrade Required)."""

SUCCESS: Final = range(200, 300)
_READ_BYTES: Final = 1 << 20  # at once: some 0.2 ms, in which no other connection is served
_WOKEN_FOR: Final = 1 << 19  # bytes; with a fourth of it a start takes 3 % more, with more the same
_LONGEST_HEAD: Final = 1 << 16
_END_OF_HEAD: Final = b"\r\n\r\n"
_FRAMED: Final = frozenset((b"content-length", b"transfer-encoding"))


def is_packed(named: bytes, value: bytes) -> bool:
    """Return whether a header, with its name in small letters, means that the body is packed."""
    return named == b"content-encoding" and value.lower() != b"identity"


class BodyReader(Protocol):
    """Reads every other kind of answer, and receives the result of this one."""

    def hand_back(self, came: bytes) -> None:
        """Read on, from what has come so far."""
        ...

    def hand_over(self, status: int) -> None:
        """Take the whole body."""
        ...

    def break_off(self, why: str) -> None:
        """End it."""
        ...

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the connection is gone."""
        ...


class Socket(Protocol):
    """What is asked of the connection's socket."""

    def setsockopt(self, level: int, option: int, value: int, /) -> object:
        """Set an option. Raises ``OSError``."""
        ...


class InPlace(asyncio.BufferedProtocol):
    """Reads one answer into ``bulk``, of ``longest`` bytes at most."""

    def __init__(
        self, reader: BodyReader, bulk: Bulk, longest: int, plain: Socket | None = None
    ) -> None:
        """``plain``: the connection's socket, if there is no TLS on it."""
        self._reader, self._bulk, self._longest = reader, bulk, longest
        self._plain = plain
        self._status = 0  # none before its head is there

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Return where the next bytes belong."""
        return self._bulk.place(_READ_BYTES)

    def buffer_updated(self, nbytes: int) -> None:
        """Count what came; look at the head once."""
        self._bulk.came(nbytes)
        if not self._status:
            self._begin()
        elif self._bulk.size > self._longest:
            self._reader.break_off("the answer does not end")

    def eof_received(self) -> None:
        """Hand the body over, if it is whole."""
        self._end()

    def connection_lost(self, error: Exception | None) -> None:
        """Do the same if the end was not reported before; pass it on to the reader."""
        if error is None:
            self._end()
        self._reader.connection_lost(error)

    def _begin(self) -> None:
        came = self._bulk.so_far()
        end = came.find(_END_OF_HEAD)
        if end < 0 and len(came) < _LONGEST_HEAD:
            return
        head = _Head(came[: end + len(_END_OF_HEAD)]) if end >= 0 else None
        if head is None or head.is_handed_back or head.status not in SUCCESS:
            self._bulk.forget()
            self._reader.hand_back(came)
            return
        self._status = head.status
        self._bulk.begin_at(end + len(_END_OF_HEAD))
        if self._plain is not None:
            with contextlib.suppress(OSError):  # without this option the process is woken often
                self._plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _WOKEN_FOR)

    def _end(self) -> None:
        status, self._status = self._status, 0
        if not status:
            return
        if self._bulk.is_whole():
            self._reader.hand_over(status)
        else:
            self._reader.break_off("the list ends in the middle")


class _Head:
    """An answer's status, and whether its body is as it is; nonsense has the status 0."""

    def __init__(self, head: bytes) -> None:
        self.is_handed_back = False
        parser = httptools.HttpResponseParser(self)
        try:
            parser.feed_data(head)
            self.status = int(parser.get_status_code())
        except httptools.HttpParserError:
            self.status = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Look for the headers that state where the body ends, or that it is packed."""
        named = name.lower()
        self.is_handed_back |= named in _FRAMED or is_packed(named, value)
