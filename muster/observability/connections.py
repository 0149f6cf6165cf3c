"""A connection that passes everything on to aiohttp's handler; subclasses override a part."""

import asyncio


class Passing(asyncio.Protocol):
    """``inner``: what handles the connection."""

    __slots__ = ("inner",)

    def __init__(self, inner: asyncio.Protocol) -> None:
        self.inner = inner

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass on."""
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass on."""
        self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass on."""
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass on."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on."""
        self.inner.resume_writing()
