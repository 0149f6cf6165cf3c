"""Connections that come to nothing are closed, so that those of the API server find a place.

aiohttp waits for ever for the rest of a request's head, and takes any number of connections.

::

               first byte               head complete           answered
    IDLE ────────────────────► HEAD ────────────────► BUSY ─────────────────► IDLE
     │ aiohttp's keep-alive      │ head_seconds         │ the handler's deadlines
     └───────────────────────────┴──────────────────────┴──► closed

When there are too many, the one goes that has been at a head or a body for longest, and only
where nobody has been for ``PATIENCE_S``, the one that has been idle for longest. A caller that
works is neither: whoever fills the table pushes himself out, not the API server.

Handshakes are cut off by asyncio (``ssl_handshake_timeout``) before anything comes here.
"""

import asyncio
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from typing import Final, Protocol, runtime_checkable

from aiohttp import web

from muster.observability.connections import Passing
from webhook.http.bodybudget import PIECE_BYTES
from webhook.metrics import Metrics

HANDSHAKE_S: Final = 5.0
PATIENCE_S: Final = 1.0  # a head or a body takes milliseconds
_SWEEP_S: Final = 0.5  # between two looks at who is slow

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


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

    ``since``: when the present stage began, seconds of the loop's clock.
    """

    __slots__ = ("_door", "since", "stage", "transport")

    def __init__(self, door: "Door", inner: asyncio.Protocol) -> None:
        super().__init__(inner)
        self._door = door
        self.stage = ConnectionStage.IDLE
        self.since = 0.0
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection in, or another one's place."""
        self.transport = transport
        if isinstance(transport, _Limited):
            transport.set_read_buffer_limits(PIECE_BYTES)
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
        metrics: Metrics,
        clock: Callable[[], float],
        *,
        connections: int,
        head_seconds: float,
    ) -> None:
        """Allow ``connections`` at a time; ``clock`` gives seconds that only grow."""
        self._inner = inner
        self._metrics = metrics
        self.clock = clock
        self._at_most = connections
        self._head_seconds = head_seconds
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
        if len(self._open) > self._at_most:
            self._close(self._dispensable(), "too_many")
        self._metrics.connections.set(len(self._open))

    def lost(self, connection: Connection) -> None:
        """Forget one."""
        self._open.discard(connection)
        self._metrics.connections.set(len(self._open))

    async def run(self) -> None:
        """Close those that are slow, for ever."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self.sweep()

    def sweep(self) -> None:
        """Close those that have been at a head for too long."""
        until = self.clock() - self._head_seconds
        slow = [c for c in self._open if c.stage is ConnectionStage.HEAD and c.since <= until]
        for connection in slow:
            self._close(connection, "slow_head")

    def _dispensable(self) -> Connection:
        slow = self.clock() - PATIENCE_S
        working = [c for c in self._open if c.stage is not ConnectionStage.IDLE and c.since <= slow]
        return min(working or self._open, key=lambda connection: connection.since)

    def _close(self, connection: Connection, reason: str) -> None:
        self._open.discard(connection)
        self._metrics.closed.labels(reason).inc()
        connection.close()


def busy(handler: Handler) -> Handler:
    """Tell the connection when its request's head is complete, and when it is answered."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        connection = _connection(request)
        if connection is None:
            return await handler(request)
        connection.enter(ConnectionStage.BUSY)
        try:
            return await handler(request)
        finally:
            connection.enter(ConnectionStage.IDLE)

    return handle


def _connection(request: web.BaseRequest) -> Connection | None:
    transport = request.transport
    protocol = transport.get_protocol() if transport is not None else None
    return protocol if isinstance(protocol, Connection) else None
