"""Pods of a page that have another one's shape: their fields are where that one's are.

::

    a pod, read once ──► mask: what a pod of its shape must share with it, bit by bit
                              │      tags, sizes, numbers, and what counts of a kind (``Tree``)
                              ▼
    pods as long as it ──► AND mask, all at once ──► what counts is the same: an *echo*

    a page ──► everybody echoes a pod of another page? ──yes──► nothing is walked
                      │ no
                      ▼
               the first echo of each, and whoever echoes none, are walked
               (``muster.kube.firstlist.podfields``)

What an echo says in its labels, annotations and owners is compared with what that pod says while
its bytes are at hand anyway: pods of a DaemonSet say the same, and need not be compared once more.

Pods of a DaemonSet differ in names, addresses, IDs and times, most of which are as long in one pod
as in the next; so do pods of a gang, and those of Deployments of one make. A million pods may have
some fifty shapes, and only of one pod of each it has to be found where its fields are.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from muster.kube.firstlist.fieldtable import (
    PADDING,
    Buffer,
    Flags,
    Places,
    Ranges,
    steps,
    stretches,
)
from muster.kube.firstlist.onemessage import VARINT, Body, fields_of
from muster.kube.firstlist.podfields import TOLD, TREE, PodFields, Tree
from muster.protogen import kubernetes_v1_pb2 as messages

_FEWEST: Final = 32  # with fewer it takes less to find their fields
_SHARE: Final = 4  # one in so many of a few must have a shape, or the others are not looked at
_LEFT: Final = 16  # if one in so many of a page has no shape, some become shapes
_AT_ONCE: Final = 8  # so many of them: a shape takes 0.3 ms by hand, to walk a page some 5 ms
_TRIED: Final = 8  # shapes of one length, each on a few of the pods that are as long
_MOST: Final = 256  # shapes, of some 15 KB each; owners' pods come in a row, so the old ones go
_WORD: Final = 8
_NOBODY: Final = -1
_META: Final = messages.Pod.METADATA_FIELD_NUMBER
_ALL: Final = slice(None)

Words = NDArray[np.uint64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Echoes:
    """Where the fields of a page's n pods are, by those of the pods that were walked.

    ``fields``: of these. ``source``: int[n], which of these each pod echoes, or is. ``shift``:
    int64[n], how far behind that one's bytes its own are. ``kin``: bool[n - 1], of each pod but the
    first, whether what counts of it but its labels is the same as of the one before it. ``says``:
    int[n], one number for all pods that say the same in labels, annotations and owners; -1 for
    those of which that is not known.
    """

    fields: PodFields
    source: Rows
    shift: Places
    kin: Flags
    says: Rows

    @property
    def broken(self) -> Flags:
        """Which pods are to be read in another way."""
        return self.fields.broken[self.source]

    def spread(self, ranges: Ranges, some: slice | Rows = _ALL) -> Ranges:
        """Return of pods where something is, from where it is in those that were walked."""
        source = self.source[some]
        begin, end = ranges.begin[source], ranges.end[source]
        shift = np.where(end, self.shift[some], 0)  # what is not there is at 0
        return Ranges(begin + shift, end + shift)

    def one(self, ranges: Ranges, place: int) -> tuple[int, int]:
        """Return the same of one pod."""
        source = self.source[place]
        begin, end = int(ranges.begin[source]), int(ranges.end[source])
        shift = int(self.shift[place]) if end else 0
        return begin + shift, end + shift


class _Piece(NamedTuple):
    """Words of a shape among which most count. ``at``: bytes from the pod's beginning.

    ``mask``: the bits that count; ``counted``: they. ``told``: which words have labels,
    annotations or owners in them, ``beside``: the bits of these that count if those may differ.
    """

    at: int
    mask: Words
    counted: Words
    told: slice
    beside: Words


@dataclass(frozen=True, slots=True)
class _Shape:
    """A pod's words, and those of them that count. ``said``: labels, annotations and owners."""

    length: int
    words: Words
    said: bytes
    pieces: tuple[_Piece, ...]


class Shapes:
    """Shapes met so far; knows where the fields of their pods are."""

    def __init__(self, *, fewest: int = _FEWEST) -> None:
        """``fewest``: pods as long as each other that are worth to be compared."""
        self._fewest = fewest
        self._book = _Book()

    def echoes(self, buffer: Buffer, items: Ranges) -> Echoes:
        """Find which of these pods are echoes, and of which others."""
        if len(self._book) > _MOST:
            self._book = _Book()
        known = len(self._book)
        found = _Found.of_nobody(len(items))
        self._find(buffer, items, found)
        number = found.number
        left = np.flatnonzero(number == _NOBODY)
        if _LEFT * len(left) <= len(items):
            self._remember(buffer, items, left, found)
        # Where owners are many each page has new shapes, and the page is less than the book.
        if len(self._book) > known or (number == _NOBODY).any():
            return _by_page(buffer, items, found)
        return self._book.echoes(items, found)

    def _find(self, buffer: Buffer, items: Ranges, found: "_Found") -> None:
        """Find each pod's shape; new ones are those of many."""
        lengths = items.end - items.begin
        each, counts = np.unique(lengths, return_counts=True)
        for length, count in zip(each.tolist(), counts.tolist(), strict=True):
            shapes = self._book.of_length(length)
            if not shapes and count < self._fewest:
                continue
            rows = np.flatnonzero(lengths == length)
            for known in shapes:
                alike = self._like_if_few_are(buffer, items.begin[rows], self._book.shapes[known])
                rows = found.take(rows, alike, known, self._book.says[known])
            while len(rows) >= self._fewest:
                middle = int(rows[len(rows) // 2])  # one of the most, where there are several
                shape = _shape(buffer, items, middle)
                if shape is None:
                    break
                alike = self._like_if_few_are(buffer, items.begin[rows], shape)
                if np.count_nonzero(alike.same) < self._fewest:
                    break
                new = self._book.add(shape)
                rows = found.take(rows, alike, new, self._book.says[new])

    def _like_if_few_are(self, buffer: Buffer, begins: Places, shape: _Shape) -> "_Alike":
        """Tell which pods have a shape; of many not if it does not fit a few of them."""
        if len(begins) > _SHARE * self._fewest:
            few = begins[:: len(begins) // self._fewest]
            if _SHARE * np.count_nonzero(_like(buffer, few, shape).same) < len(few):
                nobody = np.zeros(len(begins), dtype=np.bool_)
                return _Alike(nobody, nobody)
        return _like(buffer, begins, shape)

    def _remember(self, buffer: Buffer, items: Ranges, left: Rows, found: "_Found") -> None:
        """Make some shapes of pods that have none."""
        lengths = items.end[left] - items.begin[left]
        for _ in range(_AT_ONCE):
            alone = found.number[left] == _NOBODY
            if not alone.any():
                return
            one = int(alone.argmax())
            shape = _shape(buffer, items, int(left[one]))
            if shape is None:
                return
            tried = left[alone & (lengths == lengths[one])]
            new = self._book.add(shape)
            found.take(tried, _like(buffer, items.begin[tried], shape), new, self._book.says[new])


class _Alike(NamedTuple):
    """Which pods have a shape, and which of them say what its pod says, too."""

    same: Flags
    say: Flags


class _Found(NamedTuple):
    """What is known of a page's pods. ``number``: of each one's shape; ``says``: as in ``Echoes``.

    Both int[n], ``_NOBODY`` for what is not known.
    """

    number: Rows
    says: Rows

    @classmethod
    def of_nobody(cls, count: int) -> Self:
        """Return what is known at first."""
        return cls(np.full(count, _NOBODY, dtype=np.intp), np.full(count, _NOBODY, dtype=np.intp))

    def take(self, rows: Rows, alike: _Alike, number: int, says: int) -> Rows:
        """Enter which of some pods have a shape; return the others."""
        self.number[rows[alike.same]] = number
        self.says[rows[alike.say]] = says
        return rows[~alike.same]


def _by_page(buffer: Buffer, items: Ranges, found: _Found) -> Echoes:
    """Walk a page: the first of each shape, and whoever has none."""
    number = found.number
    source = np.arange(len(items))
    known = np.flatnonzero(number != _NOBODY)
    _, first, among = np.unique(number[known], return_index=True, return_inverse=True)
    source[known] = known[first][among]
    walked, source = np.unique(source, return_inverse=True)
    fields = PodFields(buffer, items.at(walked))
    # Echoes of one pod are kin, and of two pods as these are: so each two are compared once.
    pairs, pair = np.unique(source[1:] * len(walked) + source[:-1], return_inverse=True)
    these, those = np.divmod(pairs, max(len(walked), 1))
    kin = fields.same(these, those) & ~(fields.broken[these] | fields.broken[those])
    shift = items.begin - fields.items.begin[source]
    return Echoes(fields, source, shift, kin[pair], found.says)


class _Book:
    """Shapes by number, and the fields of the pods that they were made of."""

    def __init__(self) -> None:
        self.shapes: list[_Shape] = []
        self.says: list[int] = []
        """Of each shape, the number of what its pod says."""
        self._said: dict[bytes, int] = {}
        self._by_length: dict[int, list[int]] = {}
        self._fields: PodFields | None = None
        self._kind = np.zeros(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self.shapes)

    def of_length(self, length: int) -> list[int]:
        """Return some shapes of pods of so many bytes, the newest first."""
        return self._by_length.get(length, [])[: -_TRIED - 1 : -1]

    def add(self, shape: _Shape) -> int:
        """Enter a shape; return its number."""
        self._fields = None
        self.shapes.append(shape)
        number = len(self.shapes) - 1
        self.says.append(self._said.setdefault(shape.said, len(self._said)))
        self._by_length.setdefault(shape.length, []).append(number)
        return number

    def echoes(self, items: Ranges, found: _Found) -> Echoes:
        """Return pods that all have a shape as echoes of the pods these were made of."""
        number = found.number
        fields = self._fields or self._walked()
        kind = self._kind[number]
        kin = (kind[1:] == kind[:-1]) & ~fields.broken[number[1:]]
        return Echoes(fields, number, items.begin - fields.items.begin[number], kin, found.says)

    def _walked(self) -> PodFields:
        """Walk the pods that the shapes were made of, and number what counts of them."""
        sizes = np.array([shape.words.nbytes for shape in self.shapes], dtype=np.int64)
        begins = sizes.cumsum() - sizes
        lengths = np.array([shape.length for shape in self.shapes], dtype=np.int64)
        buffer = Buffer(b"".join((*(shape.words.tobytes() for shape in self.shapes), PADDING)))
        fields = PodFields(buffer, Ranges(begins, begins + lengths))
        kinds: dict[Hashable, int] = {}
        numbers = [kinds.setdefault(fields.counted(n), len(kinds)) for n in range(len(fields))]
        self._kind = np.array(numbers, dtype=np.intp)
        self._fields = fields
        return fields


def _shape(buffer: Buffer, items: Ranges, row: int) -> _Shape | None:
    """Return a pod's shape, ``None`` for one that cannot be read."""
    begin, end = int(items.begin[row]), int(items.end[row])
    size = -(-(end - begin) // _WORD) * _WORD
    mask = np.full(size, 0xFF, dtype=np.uint8)
    mask[end - begin :] = 0
    try:
        for low, high in _free(buffer.body, begin, end, TREE):
            mask[low - begin : high - begin] = 0
        low, high = _told(buffer.body, begin, end)
    except (ValueError, IndexError):
        return None
    words = buffer.texts(np.array([begin]), size).view(np.uint64)[0]
    beside = mask.view(np.uint64).copy()
    mask[low - begin : high - begin] = 0xFF
    told = slice((low - begin) // _WORD, -(-(high - begin) // _WORD))
    pieces = tuple(_pieces(words, mask.view(np.uint64), beside, told))
    return _Shape(end - begin, words, bytes(buffer.body[low:high]), pieces)


def _pieces(words: Words, mask: Words, beside: Words, told: slice) -> Iterator[_Piece]:
    """Yield the words that count, and few others: what nobody reads need not be fetched."""
    for some in stretches(mask != 0):
        low, high = some.start, some.stop
        within = slice(max(told.start, low) - low, max(min(told.stop, high) - low, 0))
        counted = words[some] & mask[some]
        yield _Piece(low * _WORD, mask[some], counted, within, beside[some][within])


def _told(body: Body, at: int, end: int) -> tuple[int, int]:
    """Return from where to where a pod has labels, annotations and owners.

    Raises ``ValueError``, ``IndexError`` for a pod of which that cannot be said.
    """
    (meta,) = (one for one in fields_of(body, at, end) if one.number == _META)
    low, high = TOLD
    told = [one for one in fields_of(body, meta.begin, meta.end) if low <= one.number <= high]
    return (told[0].at, told[-1].end) if told else (at, at)


def _free(body: Body, at: int, end: int, tree: Tree) -> Iterator[tuple[int, int]]:
    """Yield the bytes that may differ. Raises ``ValueError``, ``IndexError`` for no message."""
    for field in fields_of(body, at, end):
        inner = tree.inner.get(field.number)
        if field.kind == VARINT:
            continue
        if inner is not None:
            yield from _free(body, field.begin, field.end, inner)
        elif not tree.shares(field.number):
            yield field.begin, field.end


def _like(buffer: Buffer, begins: Places, shape: _Shape) -> _Alike:
    """Tell which messages, from these places on, have a shape, and say what its pod says."""
    same, say = np.ones(len(begins), dtype=np.bool_), np.ones(len(begins), dtype=np.bool_)
    for piece in shape.pieces:
        for some in steps(len(begins), piece.mask.nbytes):
            _compare(buffer, begins[some] + piece.at, piece, _Alike(same[some], say[some]))
    return _Alike(same, say)


def _compare(buffer: Buffer, at: Places, piece: _Piece, alike: _Alike) -> None:
    """Strike out whose words, from these places on, are others than a shape's."""
    words = buffer.texts(at, piece.mask.nbytes).view(np.uint64)
    words &= piece.mask
    equal = words == piece.counted
    if equal.all():
        return
    whole = equal.all(axis=1)
    alike.say[:] &= whole
    if len(piece.beside):
        (others,) = np.nonzero(~whole)
        rest = equal[others]
        beside = words[others, piece.told] & piece.beside
        rest[:, piece.told] = beside == piece.counted[piece.told] & piece.beside
        whole[others] = rest.all(axis=1)
    alike.same[:] &= whole
