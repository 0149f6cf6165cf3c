"""Connections that come to nothing are closed, so that those of the API server find a place.

aiohttp waits for ever for the rest of a request's head, and takes any number of connections.

::

               first byte               head complete           answered
    IDLE ────────────────────► HEAD ────────────────► BUSY ─────────────────► IDLE
     │ aiohttp's keep-alive      │ head_seconds         │ the handler's deadlines
     └───────────────────────────┴──────────────────────┴──► closed

When there are too many, a *stranger* is closed first: a connection on which no request has passed
authentication yet. Among strangers, and then among the others, the one goes that has been at a head
or a body for longest, if that is longer than ``PATIENCE_S``, else the one that has been idle for
longest. So whoever fills the table pushes out his own connections, and never one that
kube-scheduler or the API server has used.

Handshakes are cut off by asyncio (``ssl_handshake_timeout``) before anything comes here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, NamedTuple, Protocol, TypeVar, runtime_checkable

from aiohttp import web
from prometheus_client import Counter, Gauge

from muster.observability.connections import Passing

HANDSHAKE_S: Final = 5.0
PATIENCE_S: Final = 1.0  # a head or a body takes milliseconds
_SWEEP_S: Final = 0.5  # between two looks at who is slow

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
_Request = TypeVar("_Request", bound=web.BaseRequest)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a server takes."""

    #: Connections at a time.
    connections: int
    #: For the head of a request.
    head_seconds: float
    #: Bytes of a TLS connection that may wait to be decrypted; asyncio's own limit is 512 KiB.
    read_bytes: int


class ConnectionMetrics(NamedTuple):
    """What is counted."""

    #: Connections that are open.
    open: Gauge
    #: Connections that were closed here, by ``reason``.
    closed: Counter


class ConnectionStage(Enum):
    """See the drawing in the module's docstring."""

    IDLE = auto()
    HEAD = auto()
    BUSY = auto()


@runtime_checkable
class _Limited(Protocol):
    """asyncio's TLS transport: how much of it may wait to be decrypted, 512 KiB otherwise."""

    def set_read_buffer_limits(self, high: int) -> None:
        """Stop reading from the socket at ``high`` bytes."""


class Connection(Passing):
    """One connection, and the stage it is in.

    ``since``: when the present stage began, seconds of the loop's clock. ``known``: whether a
    request on it has passed authentication.
    """

    __slots__ = ("_door", "known", "since", "stage", "transport")

    def __init__(self, door: "Door", inner: asyncio.Protocol) -> None:
        super().__init__(inner)
        self._door = door
        self.stage = ConnectionStage.IDLE
        self.since = 0.0
        self.known = False
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in, or another one's place."""
        self.transport = transport
        if isinstance(transport, _Limited):
            transport.set_read_buffer_limits(self._door.limits.read_bytes)
        self.enter(ConnectionStage.IDLE)
        self._door.opened(self)
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._door.lost(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Note that a request has begun."""
        if self.stage is ConnectionStage.IDLE:
            self.enter(ConnectionStage.HEAD)
        super().data_received(data)

    def enter(self, stage: ConnectionStage) -> None:
        """Begin a stage."""
        self.stage = stage
        self.since = self._door.clock()

    def close(self) -> None:
        """Close at once, whatever is being sent."""
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()


class Door:
    """Makes connections for ``inner`` (aiohttp's server) and closes them; ``run`` is one task."""

    def __init__(
        self,
        inner: Callable[[], asyncio.Protocol],
        limits: ConnectionLimits,
        metrics: ConnectionMetrics,
        clock: Callable[[], float],
    ) -> None:
        """``clock`` gives seconds that only grow."""
        self._inner = inner
        self.limits = limits
        self._metrics = metrics
        self.clock = clock
        self._open: set[Connection] = set()

    def __call__(self) -> Connection:
        """Return the protocol of a new connection."""
        return Connection(self, self._inner())

    @property
    def connections(self) -> AbstractSet[Connection]:
        """Return those that are open."""
        return self._open

    def opened(self, connection: Connection) -> None:
        """Take a new one in."""
        self._open.add(connection)
        if len(self._open) > self.limits.connections:
            self._close(self._dispensable(), "too_many")
        self._metrics.open.set(len(self._open))

    def lost(self, connection: Connection) -> None:
        """Forget one."""
        self._open.discard(connection)
        self._metrics.open.set(len(self._open))

    async def run(self) -> None:
        """Close those that are slow, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep()

    def sweep(self) -> None:
        """Close those that have been at a head for too long."""
        until = self.clock() - self.limits.head_seconds
        slow = [c for c in self._open if c.stage is ConnectionStage.HEAD and c.since <= until]
        for connection in slow:
            self._close(connection, "slow_head")

    def _dispensable(self) -> Connection:
        late = self.clock() - PATIENCE_S

        def worth(connection: Connection) -> tuple[bool, bool, float]:
            slow = connection.stage is not ConnectionStage.IDLE and connection.since <= late
            return connection.known, not slow, connection.since

        return min(self._open, key=worth)

    def _close(self, connection: Connection, reason: str) -> None:
        self._open.discard(connection)
        self._metrics.closed.labels(reason).inc()
        connection.close()


def busy(handler: Handler) -> Handler:
    """Return the handler with ``working`` around it."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return await working(request, handler)

    return handle


async def working(
    request: _Request, handler: Callable[[_Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Tell the connection when its request's head is complete, and when it is answered."""
    connection = _connection(request.transport)
    if connection is None:
        return await handler(request)
    connection.enter(ConnectionStage.BUSY)
    try:
        return await handler(request)
    finally:
        connection.enter(ConnectionStage.IDLE)


def vouch(transport: asyncio.BaseTransport | None) -> None:
    """Note that a request on the connection has passed authentication."""
    connection = _connection(transport)
    if connection is not None:
        connection.known = True


def _connection(transport: asyncio.BaseTransport | None) -> Connection | None:
    protocol = transport.get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, Connection) else None
