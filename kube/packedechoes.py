"""Pods of a page that have another one's shape: their fields are where that one's are.

::

    a pod, read once ──► mask: what a pod of its shape must share with it, bit by bit
                              │      tags, sizes, numbers, and what pods of a kind have in common
                              ▼
    pods as long as it ──► XOR, AND mask, all at once ──► nothing is left: an *echo*

Pods of a DaemonSet differ in names, addresses, IDs and times, most of which are as long in one pod
as in the next. So a page of thousands has some ten shapes, and only of one pod of each it has to be
found where its fields are (``kube.fieldtable``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kube.fieldtable import BYTES, VARINT, Buffer, Flags, Places, Ranges, Wanted, varint

_FEWEST: Final = 32  # with fewer it takes less to find their fields
_MOST_LENGTHS: Final = 64
_MOST_SHAPES: Final = 3  # of one length, of some 10 KB each
_SHARE: Final = 4  # one in so many of a few must have a shape, or the others are not looked at
_WORD: Final = 8
_ROWS: Final = 128  # compared at once: with 4 KB each they stay in the processor's cache

Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Tree:
    """What is looked at of a message.

    ``shared``: fields that count as a whole. ``inner``: messages that are looked into. Of all
    others only the size counts.
    """

    shared: Wanted
    inner: Mapping[int, "Tree"] = field(default_factory=dict)

    def shares(self, number: int) -> bool:
        """Whether all of a field counts."""
        return any(low <= number <= high for low, high in self.shared)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A pod's words, and the bits of them that count."""

    words: Words
    mask: Words


@dataclass(frozen=True, slots=True)
class Echoes:
    """Which messages of a page have to be walked.

    ``walked``: int[m], their places. ``source``: int[n], the place among these of the one that each
    echoes, or its own. ``shift``: int64[n], how far behind that one's bytes its own are.
    """

    walked: NDArray[np.intp]
    source: NDArray[np.intp]
    shift: Places

    @classmethod
    def of(cls, source: NDArray[np.intp], items: Ranges) -> "Echoes":
        """``source``: int[n], the place on the page of the one that each echoes, or its own."""
        walked, among = np.unique(source, return_inverse=True)
        return cls(walked, among, items.begin - items.begin[source])

    def spread(self, ranges: Ranges) -> Ranges:
        """Return of all messages where something is, from where it is in those that were walked."""
        begin, end = ranges.begin[self.source], ranges.end[self.source]
        shift = np.where(end, self.shift, 0)  # what is not there is at 0
        return Ranges(begin + shift, end + shift)

    def one(self, ranges: Ranges, place: int) -> tuple[int, int]:
        """Return the same of one message."""
        source = self.source[place]
        begin, end = int(ranges.begin[source]), int(ranges.end[source])
        shift = int(self.shift[place]) if end else 0
        return begin + shift, end + shift


class Shapes:
    """Shapes met so far, the last ones of each length."""

    def __init__(self, tree: Tree, *, fewest: int = _FEWEST) -> None:
        """``fewest``: messages as long as each other that are worth to be compared."""
        self._tree = tree
        self._fewest = fewest
        self._known: dict[int, list[_Shape]] = {}

    def echoes(self, buffer: Buffer, items: Ranges) -> Echoes:
        """Tell which of these messages are echoes, and of which others."""
        source = np.arange(len(items))
        lengths = items.end - items.begin
        found, counts = np.unique(lengths, return_counts=True)
        for length in found[counts >= self._fewest].tolist():
            self._find(buffer, items.begin, length, np.flatnonzero(lengths == length), source)
        return Echoes.of(source, items)

    def _find(
        self,
        buffer: Buffer,
        begins: Places,
        length: int,
        rows: NDArray[np.intp],
        source: NDArray[np.intp],
    ) -> None:
        """Find echoes among messages of one length: of shapes that are known, then of a new one."""
        if len(self._known) >= _MOST_LENGTHS and length not in self._known:
            self._known.clear()
        known = self._known.setdefault(length, [])
        for shape in [*known, None]:
            if len(rows) < self._fewest:
                return
            middle = int(begins[rows[len(rows) // 2]])  # one of the most, where there are several
            tried = shape or _shape(buffer, middle, length, self._tree)
            if tried is None:
                return
            few = begins[rows[:: len(rows) // self._fewest]]
            if _SHARE * np.count_nonzero(_like(buffer, few, tried)) < len(few):
                continue
            same = _like(buffer, begins[rows], tried)
            source[rows[same]] = rows[same][:1]
            rows = rows[~same]
            if shape is None:
                known.insert(0, tried)
                del known[_MOST_SHAPES:]


def _shape(buffer: Buffer, begin: int, length: int, tree: Tree) -> _Shape | None:
    """Return a message's shape, ``None`` for one that cannot be read."""
    size = -(-length // _WORD) * _WORD
    mask = np.full(size, 0xFF, dtype=np.uint8)
    mask[length:] = 0
    try:
        for low, high in _free(buffer.bytes, begin, begin + length, tree):
            mask[low - begin : high - begin] = 0
    except (ValueError, IndexError):
        return None
    words = buffer.texts(np.array([begin]), size).view(np.uint64)[0]
    return _Shape(words, mask.view(np.uint64))


def _free(body: bytes, at: int, end: int, tree: Tree) -> Iterator[tuple[int, int]]:
    """Yield the bytes that may differ. Raises ``ValueError`` for what is no message."""
    while at < end:
        tag, at = varint(body, at)
        number, kind = tag >> 3, tag & 7
        size, begin = varint(body, at)
        if kind == VARINT:
            at = begin
            continue
        if kind != BYTES or begin + size > end:
            raise ValueError(f"field {number} of kind {kind} ends at {begin + size} of {end}")
        at = begin + size
        inner = tree.inner.get(number)
        if inner is not None:
            yield from _free(body, begin, at, inner)
        elif not tree.shares(number):
            yield begin, at


def _like(buffer: Buffer, begins: Places, shape: _Shape) -> Flags:
    """Tell which messages, from these places on, have a shape."""
    same = np.empty(len(begins), dtype=np.bool_)
    for row in range(0, len(begins), _ROWS):
        words = buffer.texts(begins[row : row + _ROWS], _WORD * len(shape.words)).view(np.uint64)
        words ^= shape.words
        words &= shape.mask
        same[row : row + _ROWS] = ~words.any(axis=1)
    return same
