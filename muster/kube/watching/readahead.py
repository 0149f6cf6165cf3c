"""Reads a watch at once, and stores its lines as bytes until the consumer can take them.

::

    stream ──► whole lines, in pieces ──► is there room for events? ──yes──► decoded
                        ▲                              │ no
                        └──── a task reads on ◄────────┘ until there is

The API server cuts a watch with a late reader, so reading must not wait for a slow consumer. But
to decode the events before the consumer has time for them costs memory. A decoded event takes
three times the memory of its JSON, in small objects among others that stay, so that the memory
does not return to the system when the event is gone. The memory of bytes does return
(docs/design/first-list.md).
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
        """Call ``came`` with the number of lines after each read; ``what``: for messages."""
        self._stream, self._what, self._came = stream, what, came
        self._unread: deque[bytes] = deque()
        self._rest: list[bytes] = []
        self._ended = False
        self._error: KubeError | None = None

    async def next(self) -> bytes:
        """Return the next whole lines, some 16 KiB of them, ``b""`` after the last.

        Raises what ended the stream (``TransportError``, ``DecodeError`` for a line without end)
        once all that came before it has been returned.
        """
        while not self._unread and not self._ended:
            await self._read()
        if self._unread:
            return self._unread.popleft()
        if self._error is not None:
            raise self._error
        return b""

    async def read_on_until(self, ready: Callable[[], Awaitable[None]]) -> None:
        """Wait until ``ready`` returns, and read on meanwhile."""
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
            self._came(lines.count(b"\n"))
            self._unread.extend(pieces(lines))
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
