"""An HTTP proxy before a real API server that stops a client at one exact request.

::

    extender ──TLS──► StoppingProxy ──TLS──► kube-apiserver
                         │  request n: held back, or passed on and its reply held back
                         └─ deaf: everything is passed on, nothing comes back (watches too)

A test kills the client when ``reached`` is set: at that request and at no other, without
a clock. The proxy shows the API server's own certificate.
"""

import asyncio
import re
import ssl
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from loadtest.testbed.controlplane.controlplane import ControlPlane

_CHUNK: Final = 64 * 1024
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LOST: Final = (OSError, asyncio.IncompleteReadError)
Keeps = Literal["request", "reply"]


@dataclass(slots=True)
class Stop:
    """Where a client is stopped: at request ``number`` of ``method`` with ``part`` in its path."""

    method: str
    part: str
    number: int
    keeps: Keeps
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    _seen: int = 0

    def hits(self, head: bytes) -> bool:
        """Count a request; return whether it is the one."""
        method, path, _ = head.decode("latin-1").split(" ", 2)
        if method != self.method or self.part not in path:
            return False
        self._seen += 1
        return self._seen >= self.number  # those behind it get no further either


@dataclass(slots=True)
class _Line:
    """One connection of the client, and whether its replies are held back."""

    writer: asyncio.StreamWriter
    far: asyncio.StreamWriter
    muted: Stop | None = None


class StoppingProxy:
    """An async context manager; ``port`` is where it listens on loopback."""

    def __init__(self, plane: ControlPlane) -> None:
        made = plane.credentials
        self._target = urlsplit(plane.url).port or 0
        self._upstream = ssl.create_default_context(cafile=str(made.ca))
        self._shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._shown.load_cert_chain(made.certificate, made.key)
        self._lines: set[asyncio.StreamWriter] = set()
        self._stop: Stop | None = None
        self._age = 0  # how many clients were cut off
        self._hears = asyncio.Event()
        self._hears.set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._shown)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.open()
        self._server.close()
        await self._server.wait_closed()

    def stop_at(self, method: str, part: str, number: int = 1, *, keeps: Keeps = "request") -> Stop:
        """Keep back that request (or its reply) and all such ones after it."""
        self._stop = Stop(method, part, number, keeps)
        return self._stop

    def deafen(self) -> None:
        """Let nothing come back to the client any more; what it asks is still done."""
        self._hears.clear()

    def open(self) -> None:
        """Let everything through again, for the client that is started next.

        What the client before it had sent, and the proxy had not read yet, is lost.
        """
        self._age += 1
        for writer in list(self._lines):
            writer.transport.abort()
        self._stop = None
        self._hears.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        age = self._age
        try:
            far_reader, far = await asyncio.open_connection(
                "127.0.0.1", self._target, ssl=self._upstream, server_hostname="localhost"
            )
        except OSError:
            writer.transport.abort()
            return
        if age != self._age:
            writer.transport.abort()
            far.transport.abort()
            return
        line = _Line(writer, far)
        self._lines |= {writer, far}
        try:
            await asyncio.gather(self._requests(reader, line), self._replies(far_reader, line))
        finally:
            self._lines -= {writer, far}

    async def _requests(self, reader: asyncio.StreamReader, line: _Line) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1])) if length else b""
                stop = self._stop if self._stop is not None and self._stop.hits(head) else None
                if stop is not None and stop.keeps == "request":
                    stop.reached.set()
                    await reader.read()  # until the client is gone
                    return
                line.muted = stop
                line.far.write(head + body)
                await line.far.drain()
        except _LOST:
            pass
        finally:
            line.far.transport.abort()

    async def _replies(self, reader: asyncio.StreamReader, line: _Line) -> None:
        try:
            while data := await reader.read(_CHUNK):
                if line.muted is not None:
                    line.muted.reached.set()  # it is done, and the client will never know
                    continue
                await self._hears.wait()
                line.writer.write(data)
                await line.writer.drain()
        except _LOST:
            pass
        finally:
            line.writer.transport.abort()
