"""Listening: aiohttp's server, and word to the work of this process that a request has come."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Final

Factory = Callable[[], asyncio.Protocol]
BACKLOG: Final = 128  # as aiohttp's sites


class _Connection(asyncio.Protocol):
    """One connection: everything goes on to ``inner``, aiohttp's handler of it."""

    __slots__ = ("_arrived", "_inner")

    def __init__(self, inner: asyncio.Protocol, arrived: Callable[[], None]) -> None:
        self._inner = inner
        self._arrived = arrived

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._arrived()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


@asynccontextmanager
async def listening(
    inner: Factory,
    arrived: Callable[[], None],
    host: str,
    port: int,
    tls: SSLContext | None,
) -> AsyncIterator[asyncio.Server]:
    """Take connections inside the block; ``arrived`` is called before any bytes are looked at.

    Connections that are open stay open after it. Raises ``OSError`` for an address that is taken.
    """
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(inner(), arrived), host, port, ssl=tls, backlog=BACKLOG
    )
    try:
        yield server
    finally:
        server.close()
