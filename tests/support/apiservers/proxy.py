"""A TCP proxy that can be cut: what a lost connection to the API server looks like."""

import asyncio
from types import TracebackType
from typing import Self

_CHUNK = 64 * 1024


class Proxy:
    """Forwards one loopback port to another; an async context manager.

    ``cut()`` aborts every connection at once (both ends see a reset) and lets new ones through;
    ``block()`` also refuses new ones until ``unblock()``. ``freeze()`` lets nothing pass and says
    nothing, as a network that swallows packets; ``thaw()`` lets go on what came after it.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._blocked = False
        self._open = asyncio.Event()
        self._open.set()
        self.connections = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.block()
        self._open.set()
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Abort all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    def block(self) -> None:
        """Abort all connections and refuse new ones."""
        self._blocked = True
        self.cut()

    def unblock(self) -> None:
        """Accept connections again."""
        self._blocked = False

    def freeze(self) -> None:
        """Swallow everything."""
        self._open.clear()

    def thaw(self) -> None:
        """Forward again; what was swallowed is lost, so its connections are, too."""
        self.cut()
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._blocked:
            writer.transport.abort()
            return
        self.connections += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = {writer, far_writer}
        self._writers |= pair
        try:
            await asyncio.gather(self._copy(reader, far_writer), self._copy(far_reader, writer))
        finally:
            self._writers -= pair

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.transport.abort()
