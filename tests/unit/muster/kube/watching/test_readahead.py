"""A watch is read at once and its lines wait as bytes, whatever becomes of their consumer.

::

    Socket ──► ReadAhead ──► the test, when it likes
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.errors import DecodeError, TransportError
from muster.kube.watching import readahead
from muster.kube.watching.readahead import PIECE_BYTES, ReadAhead, pieces


@dataclass
class Socket:
    """Chunks as they arrive; then ``error``, or the end. An empty chunk is a pause."""

    chunks: deque[bytes]
    error: Exception | None = None
    stays_open: bool = False

    async def read(self) -> bytes:
        while self.chunks and not self.chunks[0]:
            self.chunks.popleft()
            await asyncio.sleep(0)
        if self.chunks:
            return self.chunks.popleft()
        if self.stays_open:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        return b""


async def everything(ahead: ReadAhead) -> list[bytes]:
    found = []
    while lines := await ahead.next():
        found.append(lines)
    return found


async def some_steps() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@given(
    st.lists(st.binary(max_size=9).map(lambda raw: raw.replace(b"\n", b"") + b"\n"), max_size=30),
    st.lists(st.integers(0, 200), max_size=12),
    st.binary(max_size=5).map(lambda raw: raw.replace(b"\n", b"")),
    st.integers(0, 3),
)
def test_lines_come_whole_and_in_order_however_they_are_cut(
    lines: list[bytes], cuts: list[int], torn: bytes, behind: int
) -> None:
    whole = b"".join(lines)
    sent = whole + torn
    at = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    chunks = deque(chunk for a, b in pairwise(at) for chunk in (sent[a:b], b""))
    came: list[int] = []

    async def a_moment() -> None:
        for _ in range(behind):
            await asyncio.sleep(0)

    async def read() -> list[bytes]:
        found = []
        ahead = ReadAhead(Socket(chunks), "watch of pods", came.append)
        while piece := await ahead.next():
            found.append(piece)
            if behind:
                await ahead.read_on_until(a_moment)
        return found

    found = asyncio.run(read())
    assert b"".join(found) == whole
    assert all(piece.endswith(b"\n") for piece in found)
    assert sum(came) == len(lines)


async def test_the_socket_is_read_to_its_end_while_its_consumer_is_behind() -> None:
    socket = Socket(deque([b"a\n", b"", b"b\nc", b"", b"\n"]))
    came: list[int] = []
    ahead = ReadAhead(socket, "watch of pods", came.append)
    await ahead.read_on_until(some_steps)
    assert came == [1, 1, 1]
    assert await everything(ahead) == [b"a\n", b"b\n", b"c\n"]
    assert await ahead.next() == b""


@pytest.mark.parametrize("behind", [0, 1])
async def test_what_came_before_the_connection_was_lost_counts(behind: int) -> None:
    socket = Socket(deque([b"a\n", b"b\nhalf"]), TransportError("connection lost"))
    ahead = ReadAhead(socket, "watch of pods", lambda _lines: None)
    for _ in range(behind):
        await ahead.read_on_until(some_steps)
    assert [await ahead.next(), await ahead.next()] == [b"a\n", b"b\n"]
    with pytest.raises(TransportError, match="connection lost"):
        await ahead.next()


async def test_a_line_that_does_not_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readahead, "LONGEST_LINE_BYTES", 8)
    socket = Socket(deque([b"a\n", b"12345", b"6789", b"\n"]))
    ahead = ReadAhead(socket, "watch of pods", lambda _lines: None)
    assert await ahead.next() == b"a\n"
    with pytest.raises(DecodeError, match="watch of pods: a line does not end"):
        await ahead.next()


async def test_who_is_cancelled_while_behind_leaves_no_reader() -> None:
    before = asyncio.all_tasks()
    ahead = ReadAhead(Socket(deque(), stays_open=True), "watch of pods", lambda _lines: None)

    async def for_ever() -> None:
        await asyncio.Event().wait()

    follower = asyncio.create_task(ahead.read_on_until(for_ever))
    await some_steps()
    follower.cancel()
    with pytest.raises(asyncio.CancelledError):
        await follower
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    "sizes",
    [[], [1], [9_000] * 5, [16_384, 1], [16_385, 16_385], [40_000, 3, 50_000], [16_384, 16_385]],
)
def test_what_arrives_together_is_read_in_pieces_of_whole_lines(sizes: list[int]) -> None:
    lines = b"".join(b"x" * (size - 1) + b"\n" for size in sizes)
    found = list(pieces(lines))
    assert b"".join(found) == lines
    assert all(piece.endswith(b"\n") for piece in found)
    assert all(len(piece[:-1].rpartition(b"\n")[0]) <= PIECE_BYTES for piece in found)
