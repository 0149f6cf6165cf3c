"""A client of admission that costs little: prebuilt requests over TLS, on non-blocking sockets.

The client runs on the cores of the server it measures, so whatever it burns is missing there. One
thread, ``select`` (microseconds, where epoll of Python rounds up to milliseconds), OpenSSL's own
sockets, no HTTP library: a request is bytes, a reply is found by its Content-Length.

::

    closed loop   every connection sends its next request when its reply is there
    open loop     request k is due at k / rate, whatever became of the others; a time is taken
                  from then on, also while the request waits for a free connection. So a server that
                  stalls is charged for all requests that waited (no coordinated omission)
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self
from urllib.parse import urlsplit

_READ_BYTES: Final = 1 << 18
_PATIENCE_S: Final = 10.0  # without any reply: longer than an API server waits for a webhook
_LENGTH: Final = b"\r\nContent-Length: "

Accept = Callable[[int, bytes], bool]
"""From the number of a request and its reply's body: whether that is the right answer."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go: prebuilt ones, sent in turn, and what a right answer is."""

    url: str
    requests: Sequence[bytes]
    accept: Accept

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 443


@dataclass(slots=True)
class Outcome:
    """Times in seconds, one per right answer, in the order of the replies; the rest is errors."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    took: float = 0.0


def request(path: str, body: bytes, token: str = "") -> bytes:
    """Return an HTTP/1.1 request as the API server's client writes it; ``token``: what it shows."""
    shown = f"Authorization: Bearer {token}\r\n" if token else ""
    head = (
        f"POST {path}?timeout=10s HTTP/1.1\r\nHost: muster-webhook.muster-system.svc:443\r\n"
        "User-Agent: kube-apiserver-admission\r\n"
        f"{shown}Content-Length: {len(body)}\r\nAccept: application/json, */*\r\n"
        "Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
    )
    return head.encode() + body


def trusting(bundle: bytes) -> ssl.SSLContext:
    """Return the context of a client that trusts the certificates of ``bundle`` (PEM)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=bundle.decode())
    return context


class Connection:
    """One keep-alive connection with at most one request on its way."""

    def __init__(self, target: Target, context: ssl.SSLContext) -> None:
        plain = socket.create_connection(target.address, timeout=_PATIENCE_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = context.wrap_socket(plain, server_hostname=target.address[0])
        self._socket.setblocking(False)
        self._received = b""
        self._whole = 0  # bytes of the reply, head included; 0: not known yet
        self.number = -1
        self.since = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Return the descriptor, for ``select``."""
        return self._socket.fileno()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def send(self, data: bytes, number: int, since: float) -> None:
        """Send a request; ``since``: the time that it counts from."""
        self.number, self.since = number, since
        self._received, self._whole = b"", 0
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
                select.select([], [self], [], _PATIENCE_S)

    def reply(self) -> tuple[int, bytes] | None:
        """Return status and body when all of it is here; ``None`` while it is not.

        Raises ``OSError`` when the server has hung up.
        """
        while True:
            try:
                data = self._socket.recv(_READ_BYTES)
            except ssl.SSLWantReadError:
                return None
            if not data:
                raise ConnectionResetError("the server has hung up")
            self._received = self._received + data if self._received else data
            if not self._whole:
                self._whole = _length(self._received)
            if self._whole and len(self._received) >= self._whole:
                body = self._received[self._received.index(b"\r\n\r\n") + 4 :]
                return int(self._received[9:12]), body


def _length(received: bytes) -> int:
    """Return the length of a reply with its head, 0 before all of the head is here."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        return 0
    start = received.index(_LENGTH, 0, end + 2) + len(_LENGTH)
    return end + 4 + int(received[start : received.index(b"\r\n", start)])


def closed(target: Target, context: ssl.SSLContext, connections: int, count: int) -> Outcome:
    """Send ``count`` requests as fast as replies come."""
    return _Run(target, context, connections).closed(count)


def opened(
    target: Target, context: ssl.SSLContext, connections: int, due: Sequence[float]
) -> Outcome:
    """Send a request at each of the times ``due``, seconds from the start, in order."""
    return _Run(target, context, connections).opened(due)


class _Run:
    """One measurement over connections of its own."""

    def __init__(self, target: Target, context: ssl.SSLContext, connections: int) -> None:
        self._target, self._context = target, context
        self._idle = deque(Connection(target, context) for _ in range(connections))
        self._busy: set[Connection] = set()
        self._sent = 0
        self._outcome = Outcome()

    def closed(self, count: int) -> Outcome:
        began = time.perf_counter()
        while self._sent < count or self._busy:
            while self._idle and self._sent < count:
                self._send(time.perf_counter())
            self._receive(_PATIENCE_S)
        return self._end(began)

    def opened(self, due: Sequence[float]) -> Outcome:
        began = time.perf_counter()
        count = len(due)
        while self._sent < count or self._busy:
            now = time.perf_counter() - began
            while self._idle and self._sent < count and due[self._sent] <= now:
                self._send(began + due[self._sent])
            waits = self._idle and self._sent < count
            self._receive(max(0.0, due[self._sent] - now) if waits else _PATIENCE_S)
        return self._end(began)

    def _send(self, since: float) -> None:
        connection = self._idle.popleft()
        number = self._sent
        self._sent += 1
        requests = self._target.requests
        try:
            connection.send(requests[number % len(requests)], number, since)
        except OSError:
            self._lost(connection)
            return
        self._busy.add(connection)

    def _receive(self, seconds: float) -> None:
        """Take what replies there are, waiting up to ``seconds`` for the first."""
        if not self._busy:
            time.sleep(min(seconds, _PATIENCE_S))
            return
        ready, _, _ = select.select(self._busy, (), (), seconds)
        if not ready and seconds == _PATIENCE_S:
            for connection in tuple(self._busy):
                self._lost(connection)
        for connection in ready:
            try:
                reply = connection.reply()
            except OSError:
                self._lost(connection)
                continue
            if reply is not None:
                self._take(connection, *reply)

    def _take(self, connection: Connection, status: int, body: bytes) -> None:
        took = time.perf_counter() - connection.since
        self._busy.discard(connection)
        self._idle.append(connection)
        if status == 200 and self._target.accept(connection.number, body):
            self._outcome.seconds.append(took)
        else:
            self._outcome.errors += 1

    def _lost(self, connection: Connection) -> None:
        """Count a call that came to nothing, and dial again."""
        self._outcome.errors += 1
        self._busy.discard(connection)
        connection.close()
        self._idle.append(Connection(self._target, self._context))

    def _end(self, began: float) -> Outcome:
        self._outcome.took = time.perf_counter() - began
        for connection in self._idle:
            connection.close()
        return self._outcome
