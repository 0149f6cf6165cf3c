"""HTTP/1.1 exchanges over connections that stay open, for releases and for lists.

A gang's release is thousands of small requests, and a general client takes more CPU in Python than
everything else that is done for a pod: measured with TLS, 135 µs of CPU per request with
aiohttp and 30 µs here (docs/adr/0008). A list comes in two chunks for each pod (kube-apiserver
writes its items one by one, through 2 KiB of net/http). In aiohttp these chunks cost more than to
read the pod (docs/design/first-list.md), so a list is asked for with HTTP/1.0 where the server
supports it (``muster.kube.http.closedbody``).

Only whole answers are handled here. The bytes are parsed by httptools (llhttp, as in Node.js)::

        ┌────── idle, newest first ◄─────────┐
        ▼                                    │ answered, and it may stay open
    taken, or opened ──► request written ────┤
                                             └ broken, late, or "Connection: close": dropped

One request at a time per connection. Streams, proxies and other reads stay with aiohttp.
"""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, cast
from urllib.parse import urlsplit

import aiohappyeyeballs
import httptools

from muster.kube.http.closedbody import NOT_SERVED, SUCCESS, InPlace, is_packed
from muster.kube.http.longbody import Bulk, Rooms
from muster.kube.http.sockets import SocketFactory

CONNECT_S: Final = 10.0
HAPPY_EYEBALLS_S: Final = 0.25  # RFC 8305
_LONGEST_ANSWER_BYTES: Final = 1 << 30  # a page of a list: 5,000 objects, most of some KB


class NoConnectionError(OSError):
    """No connection came about: nothing was sent."""


class BrokenOffError(OSError):
    """The connection ended, or sent what is not HTTP, before the answer was whole."""


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """Where to connect."""

    url: str
    #: ``None``: plain HTTP.
    tls: ssl.SSLContext | None = None
    #: The name that the server's certificate must have; ``None``: the host of ``url``.
    name: str | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """One whole answer."""

    status: int
    body: bytes | memoryview
    #: The header Retry-After as it came.
    retry_after: str | None = None


class Exchange:
    """A pool of connections to one server; an async context manager."""

    def __init__(self, server: ServerAddress, socket_factory: SocketFactory | None = None) -> None:
        self._socket_factory = socket_factory
        parts = urlsplit(server.url)
        self.server = server
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.encode()
        self._tls = (server.tls or True) if parts.scheme == "https" else None
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._retired = False
        self._closes = True  # HTTP/1.0 is served, as far as is known

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; calls that wait for an answer raise ``BrokenOffError``."""
        for connection in list(self._open):
            connection.abort()

    def retire(self) -> None:
        """Let requests under way end, and close each connection after its request."""
        self._retired = True
        while self._idle:
            self._idle.pop().abort()

    async def ask(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        *,
        within_s: float,
        rooms: Rooms | None = None,
    ) -> HttpAnswer:
        """Send one request and return the answer, whatever its status.

        ``path``: encoded, with its query. ``rooms``: where the body is put if it is a long one
        (``muster.kube.http.longbody``). Raises ``NoConnectionError``, ``BrokenOffError`` and
        ``TimeoutError``.
        """
        async with asyncio.timeout(within_s):
            if rooms is not None and self._closes:
                request = self._encoded("1.0", method, path, headers, body)
                answer = await self._asked(request, Bulk(rooms), in_place=True)
                if answer.status not in NOT_SERVED:
                    return answer
                self._closes = False
            request = self._encoded("1.1", method, path, headers, body)
            return await self._asked(request, None if rooms is None else Bulk(rooms))

    async def _asked(
        self, request: bytes, bulk: Bulk | None, *, in_place: bool = False
    ) -> HttpAnswer:
        connection = await self._take()
        try:
            answer = await connection.ask(request, bulk, in_place=in_place)
        except BaseException:
            connection.abort()  # a late answer would pass for the next request's
            raise
        if connection.may_stay and not self._retired:
            self._idle.append(connection)
        else:
            connection.abort()
        return answer

    async def _take(self) -> "_Connection":
        while self._idle:
            connection = self._idle.pop()  # the newest: the others may rest until they close
            if connection.is_open:
                return connection
        try:
            async with asyncio.timeout(CONNECT_S):
                return await self._connect()
        except (OSError, TimeoutError) as error:  # ssl.SSLError is an OSError
            raise NoConnectionError(f"{type(error).__name__}: {error}") from error

    async def _connect(self) -> "_Connection":
        loop = asyncio.get_running_loop()
        try:  # an address is not looked up, so it takes no thread
            found = socket.getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        connected = await aiohappyeyeballs.start_connection(
            found,
            happy_eyeballs_delay=HAPPY_EYEBALLS_S,
            loop=loop,
            socket_factory=self._socket_factory,
        )
        _, connection = await loop.create_connection(
            lambda: _Connection(self._open),
            sock=connected,
            ssl=self._tls,
            server_hostname=(self.server.name or self._host) if self._tls else None,
        )
        return connection

    def _encoded(
        self, version: str, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> bytes:
        if body is not None:
            headers = headers | {"Content-Length": str(len(body))}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return b"%b %b HTTP/%b\r\nHost: %b\r\n%b\r\n%b" % (
            method.encode(),
            (self._prefix + path).encode(),
            version.encode(),
            self._authority,
            lines.encode("latin-1"),
            body or b"",
        )


class _Connection(asyncio.Protocol):
    """One connection. The ``on_`` methods are called by the parser."""

    def __init__(self, register: "set[_Connection]") -> None:
        self._register = register
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[HttpAnswer] | None = None
        self._parts: list[bytes] = []
        self.on_body = self._parts.append  # no Python for each of a list's chunks
        self._parser = httptools.HttpResponseParser(self)
        self._keep = True
        self._bulk: Bulk | None = None
        self._forget()

    @property
    def is_open(self) -> bool:
        """Whether it can be written to, as far as is known."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def may_stay(self) -> bool:
        """Whether the server lets another request follow."""
        return self.is_open and self._keep

    async def ask(self, request: bytes, bulk: Bulk | None, *, in_place: bool) -> HttpAnswer:
        """Write a request and wait for its answer. ``bulk``: what is to hold the body."""
        if self._transport is None:
            raise BrokenOffError("the connection is closed")
        self._bulk = bulk
        if bulk is not None and in_place:
            ask = self._transport.get_extra_info
            plain = None if ask("ssl_object") else ask("socket")
            self._transport.set_protocol(InPlace(self, bulk, _LONGEST_ANSWER_BYTES, plain))
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiter

    def abort(self) -> None:
        """End it at once."""
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)
        self._register.add(self)

    def data_received(self, data: bytes) -> None:
        """Parse what came. Bytes without a request before them end the connection."""
        if self._waiter is None:
            self.abort()
            return
        self._size += len(data)
        if self._size > _LONGEST_ANSWER_BYTES:
            self.break_off("the answer does not end")
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.break_off(f"not an HTTP answer: {error}")
        self._take()

    def connection_lost(self, error: Exception | None) -> None:
        """End; the call that waits raises ``BrokenOffError``."""
        self._transport = None
        self._register.discard(self)
        self.break_off(str(error) if error else "the server closed the connection")

    # -- muster.kube.http.closedbody ---------------------------------------------------------

    def hand_back(self, came: bytes) -> None:
        """Read on an answer that says where it ends."""
        if self._transport is not None:
            self._transport.set_protocol(self)
            self.data_received(came)

    def hand_over(self, status: int) -> None:
        """Take a body that ended with its connection."""
        self._keep = False
        self._answer(status)

    def break_off(self, why: str) -> None:
        """End it; the call that waits raises ``BrokenOffError``."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(BrokenOffError(why))
        self.abort()

    # -- httptools ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begin an answer; one without a request must not pass for the answer to the next."""
        self._forget()
        if self._waiter is None:
            self.abort()

    def _forget(self) -> None:
        self._parts.clear()
        self._size = 0
        self._retry_after: str | None = None

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the one header that matters; refuse a body that is packed though none was asked."""
        named = name.lower()
        if named == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif is_packed(named, value):
            self.break_off(
                f"the answer is packed (Content-Encoding: {value.decode('latin-1')}), though only"
                " identity is accepted: some proxy on the way packs it; let it leave answers alone"
            )

    def on_message_complete(self) -> None:
        """Hand the answer over, unless it was an interim one."""
        status = self._parser.get_status_code()
        if status < SUCCESS.start:
            return
        self._keep = self._parser.should_keep_alive()
        self._answer(status)

    def _answer(self, status: int) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(HttpAnswer(status, self._body(status), self._retry_after))
        self._parts.clear()
        self._bulk = None

    def _take(self) -> None:
        """Put the parts that came together where they belong, while they are in the cache."""
        if self._bulk is not None and self._parts:
            self._bulk.add(self._parts)
            self._parts.clear()

    def _body(self, status: int) -> bytes | memoryview:
        if self._bulk is None:
            return b"".join(self._parts)
        self._take()
        return self._bulk.whole() if status in SUCCESS else self._bulk.so_far()
