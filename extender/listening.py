"""Listening: aiohttp's server, and word to the work of this process that a request has come."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import Final

from muster.observability.connections import Passing

Factory = Callable[[], asyncio.Protocol]
BACKLOG: Final = 128  # as aiohttp's sites


class _Connection(Passing):
    __slots__ = ("_arrived",)

    def __init__(self, inner: asyncio.Protocol, arrived: Callable[[], None]) -> None:
        super().__init__(inner)
        self._arrived = arrived

    def data_received(self, data: bytes) -> None:
        self._arrived()
        super().data_received(data)


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
