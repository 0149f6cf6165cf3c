"""The pages of frozen columns as the blocks of a file, each written once.

Several snapshots of one cluster share nearly all their pages (``muster.cluster.columns.columns``),
so a file with the states behind the last decisions is hardly larger than one with a single state: a
page that was written before, as the same object or with the same content, is referred to by its
number::

    snapshot 1   page a   page b   page c          blocks  a b c │ b'
                   │        │        │
    snapshot 2   page a   page b'  page c          columns [0 1 2] and [0 3 2]

Writing is a generator: it yields the bytes to be written next, at most a page, and sometimes b"",
so that the caller can return to the event loop in between.
"""

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import PAGE_ROWS
from muster.cluster.dump.codec import decode, encode
from muster.cluster.dump.container import frame

T = TypeVar("T")

Pieces: TypeAlias = Generator[bytes, None, T]
"""Yields bytes to be written, b"" among them, and returns the result."""

Array: TypeAlias = NDArray[np.generic]
VALUES_PER_PIECE: Final = 8  # a pod class takes about 0.1 ms to encode
VALUES_PER_BLOCK: Final = 1024
PAGES_PER_PIECE: Final = 64  # pages that were written before: a microsecond or two each
_LENGTHS: Final = np.dtype("<i4")
_JSON: Final = json.JSONEncoder(separators=(",", ":"))
_NONE: Final = b"null"  # most rows of a small cluster: columns grow by pages


class BlockWriter:
    """Numbers blocks in the order in which they are yielded."""

    def __init__(self) -> None:
        self._by_identity: dict[tuple[int, int], int] = {}
        self._by_content: dict[bytes, int] = {}
        self._seen: list[object] = []  # not freed: else id() may return for another object

    def numbers(self, pages: Iterable[Array]) -> Pieces[list[int]]:
        """Write pages of a numeric column."""
        keyed = (
            ((page.__array_interface__["data"][0], page.nbytes), page, _array_pieces(page))
            for page in pages
        )
        return (yield from self._all(keyed))

    def values(self, pages: Iterable[Sequence[object]]) -> Pieces[list[int]]:
        """Write pages of values, encoded by ``muster.cluster.dump.codec``, a JSON line for each."""
        return (yield from self._all(((id(p), 0), p, _value_pieces(p)) for p in pages))

    def strings(self, pages: Iterable[Sequence[bytes]]) -> Pieces[list[int]]:
        """Write pages of byte strings: their number, their lengths, then the bytes."""
        return (yield from self._all(((id(p), 0), p, _string_pieces(p)) for p in pages))

    def raw(self, data: bytes) -> Pieces[int]:
        """Write one block unchanged."""
        digest = blake2b(data, digest_size=16).digest()
        number = self._by_content.get(digest)
        if number is None:
            number = self._by_content[digest] = len(self._by_content)
            yield frame(data)
        return number

    def _all(
        self, pages: Iterable[tuple[tuple[int, int], object, Pieces[bytes]]]
    ) -> Pieces[list[int]]:
        blocks = []
        for index, (key, page, content) in enumerate(pages):
            number = yield from self._once(key, page, content)
            blocks.append(number)
            if index % PAGES_PER_PIECE == PAGES_PER_PIECE - 1:
                yield b""
        return blocks

    def _once(self, key: tuple[int, int], page: object, content: Pieces[bytes]) -> Pieces[int]:
        number = self._by_identity.get(key)
        if number is None:
            data = yield from content
            number = self._by_identity[key] = yield from self.raw(data)
            self._seen.append(page)
        return number


def _array_pieces(page: Array) -> Pieces[bytes]:
    yield b""
    return page.astype(page.dtype.newbyteorder("<"), copy=False).tobytes()


def _value_pieces(page: Sequence[object]) -> Pieces[bytes]:
    lines = []
    for index, value in enumerate(page):
        if index % VALUES_PER_PIECE == 0:
            yield b""
        lines.append(line(value))
    return b"\n".join(lines)


def _string_pieces(page: Sequence[bytes]) -> Pieces[bytes]:
    yield b""
    lengths = np.fromiter((len(page), *map(len, page)), dtype=_LENGTHS, count=len(page) + 1)
    return lengths.tobytes() + b"".join(page)


def line(value: object) -> bytes:
    """Return one value as one line of JSON, the same bytes for the same value."""
    if value is None:
        return _NONE
    return _JSON.encode(encode(value)).encode()


def paged(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """Cut a sequence into pieces of one block."""
    return (
        values[start : start + VALUES_PER_BLOCK]
        for start in range(0, len(values), VALUES_PER_BLOCK)
    )


def rows_paged(column: Array) -> Iterator[Array]:
    """Cut a flat column into pages like a paged one."""
    return (column[start : start + PAGE_ROWS] for start in range(0, len(column), PAGE_ROWS))


class BlockReader:
    """Reads the blocks of a ``BlockWriter`` by number. Raises ``ValueError`` for anything else."""

    def __init__(self, blocks: Sequence[memoryview]) -> None:
        self._blocks = blocks

    def raw(self, number: int) -> memoryview:
        """Return one block."""
        if not 0 <= number < len(self._blocks):
            raise ValueError(f"damaged: it has {len(self._blocks)} blocks and names {number}")
        return self._blocks[number]

    def numbers(self, dtype: str, blocks: Sequence[int], count: int) -> Array:
        """Return a column of ``count`` rows."""
        kind = np.dtype(dtype)
        pages = [np.frombuffer(self.raw(number), dtype=kind) for number in blocks]
        column = np.concatenate([np.empty(0, dtype=kind), *pages])
        return column[: _enough(count, len(column))].astype(kind.newbyteorder("="), copy=False)

    def values(self, kind: type[T], blocks: Sequence[int], count: int) -> list[T | None]:
        """Return ``count`` values; None where none was written."""
        known: dict[int, list[T | None]] = {}  # all pages without a value are one block
        found: list[T | None] = []
        for number in blocks:
            if number not in known:
                known[number] = [_value(kind, text) for text in _lines(self.raw(number))]
            found += known[number]
        return found[: _enough(count, len(found))]

    def strings(self, blocks: Sequence[int], count: int) -> list[bytes]:
        """Return ``count`` byte strings."""
        found = [text for number in blocks for text in _split(self.raw(number))]
        return found[: _enough(count, len(found))]


def _lines(block: memoryview) -> list[bytes]:
    return bytes(block).split(b"\n")


def _value(kind: type[T], text: bytes) -> T | None:
    if text == _NONE:
        return None
    data = json.loads(text)
    return None if data is None else decode(kind, data)


def _split(block: memoryview) -> list[bytes]:
    (count,) = np.frombuffer(block, dtype=_LENGTHS, count=1).tolist()
    lengths = np.frombuffer(block, dtype=_LENGTHS, count=count + 1)
    ends = np.cumsum(lengths[1:], dtype=np.int64) + lengths.nbytes
    starts = (ends - lengths[1:]).tolist()
    return [bytes(block[low:high]) for low, high in zip(starts, ends.tolist(), strict=True)]


def _enough(count: int, found: int) -> int:
    if found < count:
        raise ValueError(f"damaged: a column of {count} rows has {found}")
    return count
