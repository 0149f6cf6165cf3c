"""What a watch has brought, as whole lines: read at once, and kept as bytes until it is wanted.

::

    stream ──► whole lines, in pieces ──► is there room for events? ──yes──► decoded
                        ▲                              │ no
                        └──── a task reads on ◄────────┘ until there is

An API server cuts a watch whose reader is late, so reading must not wait for a slow consumer. But
to decode at once what it has no time for costs memory: an event that waits decoded takes three
times its JSON, in small objects among others that stay, so that none of it goes back to the system
when they are gone. Pieces of lines do (docs/design/first-list.md).
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from typing import Final, Protocol

from muster.kube.errors import DecodeError, KubeError

LONGEST_LINE_BYTES: Final = 64 << 20  # etcd refuses objects of more than 1.5 MiB
PIECE_BYTES: Final = 16 << 10  # of events: decoded in a quarter of a millisecond


class BodyStream(Protocol):
    """The body of a watch."""

    async def read(self) -> bytes:
        """Return what has arrived, ``b""`` at the end; raises ``TransportError``."""
        ...


class ReadAhead:
    """Reads one stream to its end."""

    def __init__(self, stream: BodyStream, what: str, came: Callable[[int], None]) -> None:
        """Call ``came`` with the number of lines that came, each time; ``what``: for messages."""
        self._stream, self._what, self._told = stream, what, came
        self._kept: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._ended = False
        self._error: KubeError | None = None

    async def next(self) -> bytes:
        """Return the next whole lines, some 16 KiB of them, ``b""`` after the last.

        Raises what ended the stream (``TransportError``, ``DecodeError`` for a line without end)
        once all that came before it has been returned.
        """
        while not self._kept and not self._ended:
            await self._read()
        if self._kept:
            return self._kept.popleft()
        if self._error is not None:
            raise self._error
        return b""

    async def read_on_until(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait until somebody is ``ready``, and read on meanwhile."""
        reader = asyncio.create_task(self._read_on(), name=f"read {self._what}")
        try:
            await ready()
        finally:
            reader.cancel()  # what is there stays in the socket's buffer
            await asyncio.wait({reader})
        if not reader.cancelled():
            reader.result()

    async def _read_on(self) -> None:
        while not self._ended:
            await self._read()

    async def _read(self) -> None:
        """Take what has come; note how the stream ended."""
        try:
            chunk = await self._stream.read()
            self._ended = not chunk
            self._take(chunk)
        except KubeError as error:
            self._ended, self._error = True, error

    def _take(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if end:
            lines = b"".join([*self._rest, chunk[:end]])
            self._rest.clear()
            self._told(lines.count(b"\n"))
            self._kept.extend(pieces(lines))
        if end < len(chunk):
            self._rest.append(chunk[end:])
        if sum(map(len, self._rest)) > LONGEST_LINE_BYTES:
            raise DecodeError(f"{self._what}: a line does not end")


def pieces(lines: bytes) -> Iterator[bytes]:
    """Cut whole lines into parts of some lines each, none of them empty."""
    begin = 0
    while begin < len(lines):
        end = lines.find(b"\n", begin + PIECE_BYTES) + 1 or len(lines)
        yield lines[begin:end]
        begin = end
