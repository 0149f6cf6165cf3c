"""HTTP to the API server: one connection pool, errors by class, retries where they are safe.

Which failure is retried, for a request that changes something and for one that does not:

==================================  =========  ============================================
failure                             reads      writes
==================================  =========  ============================================
401                                 once       once, with credentials loaded anew
429                                 yes        yes: refused before anything was done (not
                                               for evictions, where it is the budget's no)
no connection came about            yes        yes: nothing was sent
connection lost, time-out, 5xx      yes        never: it may have taken effect; the caller
                                               reads again and decides
==================================  =========  ============================================

Reads and watches go through aiohttp. It repeats a GET by itself, once and at once, when an idle
connection turns out to be closed. Requests with a body, and lists that are read where they are
stored (``HttpRequest.rooms``), go through ``muster.kube.http.exchange``, which repeats nothing.

Waits double from ``Retry.base_s`` with full jitter, and are never shorter than what the
server asked for with Retry-After.

A transport with a ``fence`` is for writes alone: each attempt asks the fence first and keeps to
its time-outs (``muster.kube.http.fence``), and so do its sockets (``muster.kube.http.sockets``).
"""

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from muster.kube.errors import (
    APIError,
    KubeError,
    NotSent,
    ServerError,
    TooManyRequests,
    TransportError,
    Unauthorized,
    from_response,
)
from muster.kube.http import serverclock, sockets
from muster.kube.http.auth import Auth
from muster.kube.http.calllabels import NO_ANSWER, OK, Observer, verb_and_resource
from muster.kube.http.closedbody import SUCCESS
from muster.kube.http.credentials import Credentials
from muster.kube.http.exchange import Exchange, NoConnectionError, ServerAddress
from muster.kube.http.fence import Fence
from muster.kube.http.longbody import Rooms
from muster.kube.http.serverclock import Skew

Answered = bytes | memoryview
JSON: Final = "application/json"
_FAILURES: Final = (aiohttp.ClientError, TimeoutError, OSError)
_READ_BUFFER_BYTES: Final = 1 << 20  # what a stream may run ahead while the loop is busy
_GATHERED_S: Final = 0.005  # as long as events wait for each other before a gang is looked at
_CONNECT_S: Final = 10.0
# kube-apiserver packs the pages of lists for clients that accept gzip. To unpack a pod of 6.8 KB
# takes 6 µs, to read it unpacked takes 3; only over a slow network the packed one arrives sooner.
# To send no header is not enough: a proxy on the way may then add one of its own.
_AS_IT_IS: Final = {"Accept-Encoding": "identity"}
_CLOSED: Final = "the client is closed: use it inside `async with`"


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a request is sent, and the waits between the attempts."""

    #: The first one included.
    attempts: int = 5
    #: The longest wait before the second attempt; doubled for each later one.
    base_s: float = 0.1
    #: The longest wait of all, unless the server asks for more.
    limit_s: float = 10.0

    def wait_s(self, attempt: int, *, jitter: float, asked: float | None) -> float:
        """Return the wait after failed ``attempt`` (0, 1, …); ``jitter`` is within [0, 1)."""
        mine = min(self.limit_s, self.base_s * (1 << min(attempt, 16))) * jitter
        return mine if asked is None else asked + mine


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request."""

    method: str
    #: Encoded already.
    path: str
    #: Not encoded yet.
    query: Mapping[str, str] | None = None
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON
    #: False for evictions: there 429 is the answer of a disruption budget.
    retry_429: bool = True
    #: False for a POST that only asks (a review): it is retried like a read.
    stores: bool = True
    #: Memory for the answer's body, if that is long, with the bytes that must follow the body: to
    #: add them later would take a copy.
    rooms: Rooms | None = None

    @property
    def target(self) -> str:
        """Return path and query, encoded."""
        return self.path if self.query is None else f"{self.path}?{urlencode(self.query)}"

    @property
    def changes_nothing(self) -> bool:
        """Return whether sending it twice is the same as sending it once."""
        return self.method == "GET" or not self.stores

    def within(self, server_s: float) -> "HttpRequest":
        """Return the request with a deadline for the API server (request_deadline.go)."""
        return replace(self, query={**(self.query or {}), "timeout": f"{server_s * 1000:.0f}ms"})


_VERSION: Final = HttpRequest("GET", "/version")


class Transport:
    """A connection pool; an async context manager."""

    def __init__(
        self,
        auth: Auth,
        *,
        connections: int = 64,
        timeout_s: float = 30.0,
        retry: Retry | None = None,
        user_agent: str = "muster",
        fence: Fence | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._observers: list[Observer] = []
        self._auth = auth
        self._slots = asyncio.Semaphore(connections)
        self._timeout_s = timeout_s
        self._user_agent = user_agent
        self._exchange: Exchange | None = None
        self._fence = fence
        self._socket_factory = (
            None if fence is None else sockets.fenced(fence.is_open, fence.network_s)
        )
        self._retry = retry or Retry()
        self._sleep = sleep
        self._jitter = jitter
        self._session: aiohttp.ClientSession | None = None

    def observe(self, observer: Observer) -> None:
        """Have ``observer`` called with every attempt of a request, however it ends."""
        self._observers.append(observer)

    async def __aenter__(self) -> Self:
        # Streams hold a connection each and for ever, so only `send` is limited, by a semaphore.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=30, socket_factory=self._socket_factory
            ),
            headers={"User-Agent": self._user_agent, **_AS_IT_IS},
            timeout=aiohttp.ClientTimeout(total=self._timeout_s, sock_connect=_CONNECT_S),
            read_bufsize=_READ_BUFFER_BYTES,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        session, self._session = self._session, None
        if self._exchange is not None:
            self._exchange.close()
        if session is not None:
            await session.close()

    async def send(self, request: HttpRequest) -> bytes:
        """Return the body of a successful answer. Raises ``APIError`` or ``TransportError``."""
        body = await self.read(request)
        return body if isinstance(body, bytes) else bytes(body)

    async def read(self, request: HttpRequest) -> Answered:
        """Return the same without a copy of a long body (``HttpRequest.rooms``)."""
        attempt = 0
        while True:
            try:
                return await self._authorised(request)
            except KubeError as error:
                last = attempt + 1 >= self._retry.attempts
                if last or not _may_retry(request, error):
                    raise
                asked = error.retry_after if isinstance(error, APIError) else None
            await self._sleep(self._retry.wait_s(attempt, jitter=self._jitter(), asked=asked))
            attempt += 1

    async def skew(self, clock: Callable[[], float]) -> Skew:
        """Compare the API server's clock with ours; raises what ``serverclock.skew`` raises."""
        with self._observed(_VERSION):
            return await serverclock.skew(self._auth, clock)

    @asynccontextmanager
    async def stream(self, request: HttpRequest, *, idle_s: float) -> AsyncIterator["AnswerStream"]:
        """Open an answer without end; silence of ``idle_s`` breaks it.

        Raises what ``send`` raises, and so does reading; nothing is retried.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S, sock_read=idle_s)
        credentials = await self._auth.current()
        with self._observed(request, watches=True):
            try:
                opened = await self._connect(request, credentials, limits)
            except Unauthorized:
                opened = await self._connect(request, await self._auth.renew(credentials), limits)
        try:
            yield AnswerStream(request, opened)
        finally:
            opened.close()  # closes the connection: an unfinished stream cannot be used again

    async def _authorised(self, request: HttpRequest) -> Answered:
        credentials = await self._auth.current()
        async with self._slots:
            try:
                return await self._once(request, credentials)
            except Unauthorized:
                renewed = await self._auth.renew(credentials)
                return await self._once(request, renewed)

    async def _once(self, request: HttpRequest, credentials: Credentials) -> Answered:
        fence = self._fence
        if fence is None:
            with self._observed(request):
                return await self._attempt(request, credentials, self._timeout_s)
        with fence.write(f"{request.method} {request.path}"), self._observed(request):
            within = request.within(fence.server_s)
            return await self._attempt(within, credentials, fence.write_timeout_s)

    def _observed(self, request: HttpRequest, *, watches: bool = False) -> "_Attempt":
        return _Attempt(self._observers, request, watches)

    async def _attempt(
        self, request: HttpRequest, credentials: Credentials, within_s: float
    ) -> Answered:
        if (request.body is not None or request.rooms is not None) and credentials.proxy is None:
            return await self._ask(request, credentials, within_s)
        limits = aiohttp.ClientTimeout(
            total=within_s, sock_connect=_CONNECT_S, ceil_threshold=math.inf
        )
        opened = await self._connect(request, credentials, limits)
        async with opened:
            try:
                blocks = [block async for block in opened.content.iter_any()]
                return b"".join((*blocks, b"" if request.rooms is None else request.rooms.behind))
            except _FAILURES as error:
                raise _transport_error(request, error) from error

    async def _ask(
        self, request: HttpRequest, credentials: Credentials, within_s: float
    ) -> Answered:
        """Send what has a body, the hot path, or ask for a list, without aiohttp."""
        headers = {"User-Agent": self._user_agent, "Accept": request.accept, **_AS_IT_IS}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        headers |= credentials.headers
        try:
            answer = await self._pool(credentials).ask(
                request.method,
                request.target,
                headers,
                request.body,
                within_s=within_s,
                rooms=request.rooms,
            )
        except NoConnectionError as error:
            raise NotSent(f"{request.method} {request.path}: {error}") from error
        except (OSError, TimeoutError) as error:
            raise _transport_error(request, error) from error
        if answer.status in SUCCESS:
            return answer.body
        raise from_response(answer.status, bytes(answer.body), retry_after=answer.retry_after)

    def _pool(self, credentials: Credentials) -> Exchange:
        """Return the connections of these credentials; those of older ones are closed."""
        if self._session is None:
            raise RuntimeError(_CLOSED)
        server = ServerAddress(credentials.server, credentials.tls, credentials.server_hostname)
        if self._exchange is None or self._exchange.server != server:
            if self._exchange is not None:
                self._exchange.retire()
            self._exchange = Exchange(server, self._socket_factory)
        return self._exchange

    async def _connect(
        self, request: HttpRequest, credentials: Credentials, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Return a successful response with its body still unread."""
        try:
            response = await self._request(request, credentials, limits)
            if response.status in SUCCESS:
                return response
            async with response:
                body = await response.read()
        except _FAILURES as error:
            raise _transport_error(request, error) from error
        raise from_response(response.status, body, retry_after=response.headers.get("Retry-After"))

    async def _request(
        self, request: HttpRequest, credentials: Credentials, limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError(_CLOSED)
        url = URL(credentials.server + request.path, encoded=True)
        headers = {"Accept": request.accept, **credentials.headers}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session.request(
            request.method,
            url if request.query is None else url.with_query(request.query),
            data=request.body,
            headers=headers,
            ssl=True if credentials.tls is None else credentials.tls,
            server_hostname=credentials.server_hostname,
            proxy=credentials.proxy,
            timeout=limits,
            allow_redirects=False,
        )


@dataclass(slots=True)
class _Attempt:
    """Calls the observers of one attempt, however it ends; every release is one."""

    observers: Sequence[Observer]
    request: HttpRequest
    watches: bool
    began: float = 0.0

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        code = OK if error is None else error.code if isinstance(error, APIError) else NO_ANSWER
        request = self.request
        verb, resource = verb_and_resource(request.method, request.path, watches=self.watches)
        took_s = time.perf_counter() - self.began
        for observer in self.observers:
            observer(verb, resource, code, took_s)


class AnswerStream:
    """The body of an answer without end.

    For ``_GATHERED_S`` after each read, what arrives is left in the socket: to wake the process
    for each of a thousand events a second costs more than to decode them.
    """

    def __init__(self, request: HttpRequest, response: aiohttp.ClientResponse) -> None:
        self._request = request
        self._response = response
        self._content = response.content
        self._loop = asyncio.get_running_loop()

    async def read(self) -> bytes:
        """Return what has arrived, at least one byte; ``b""`` when the server ended the answer."""
        try:
            found = await self._content.readany()
        except _FAILURES as error:
            raise _transport_error(self._request, error) from error
        self._gather()
        return found

    def _gather(self) -> None:
        connection = self._response.connection
        transport = None if connection is None else connection.transport
        if transport is not None and not transport.is_closing():
            transport.pause_reading()
            self._loop.call_later(_GATHERED_S, transport.resume_reading)


def _may_retry(request: HttpRequest, error: KubeError) -> bool:
    """Return whether the table above allows another attempt."""
    if isinstance(error, TooManyRequests):
        return request.retry_429
    if isinstance(error, NotSent):
        return True
    return request.changes_nothing and isinstance(error, TransportError | ServerError)


def _transport_error(request: HttpRequest, error: Exception) -> TransportError:
    """Return our error for aiohttp's, and whether the request certainly was not sent."""
    unsent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    kind = NotSent if unsent else TransportError
    return kind(f"{request.method} {request.path}: {type(error).__name__}: {error}")
