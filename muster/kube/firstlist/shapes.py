"""Pods of a page that have the shape of a known pod: their fields are where that pod's are.

::

    a pod, read once ──► mask: the bits that a pod of its shape must share with it
                              │      tags, sizes, numbers, and what counts of a kind (``FieldTree``)
                              ▼
    pods as long as it ──► AND mask, all at once ──► equal? ──yes──► they have its *shape*

    a page ──► each pod has the shape of a pod of another page? ──yes──► no field is looked for
                      │ no
                      ▼
               fields are looked for in the first pod of each shape, and in each that has none
               (``muster.kube.firstlist.podfields``)

Pods of a DaemonSet differ in names, addresses, IDs and times, and most of these have the same
length in all of them. The same is true of the pods of a gang, and of similar Deployments. A million
pods may have some fifty shapes, and the fields have to be searched only in one pod of each.

The *labelling* of a pod, its labels, annotations and owners, is no part of its shape. It is
compared with that of the shape's pod at the same time, while the bytes are in the cache: pods of a
DaemonSet have the same labelling.
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
from muster.kube.firstlist.podfields import LABELLING, TREE, FieldTree, PodFields
from muster.protogen import kubernetes_v1_pb2 as messages

_FEWEST: Final = 32  # pods that make a shape worth it; for fewer a search for the fields is faster
_SHARE: Final = 4  # one in so many of a sample must have a shape, or the others are not compared
_LEFT: Final = 16  # if at most one in so many of a page has no shape, some of these become shapes
_AT_ONCE: Final = 8  # so many of them: a shape takes 0.3 ms to make, to walk a page some 5 ms
_TRIED: Final = 8  # shapes of one length, each on a few of the pods of that length
_MOST: Final = 256  # shapes, of some 15 KB each; owners' pods come in a row, so the old ones go
_WORD: Final = 8
_NONE: Final = -1
_META: Final = messages.Pod.METADATA_FIELD_NUMBER
_ALL: Final = slice(None)

Words = NDArray[np.uint64]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class FieldPlaces:
    """Where the fields of a page's n pods are, by the places in m pods that were walked."""

    #: Of the m pods.
    fields: PodFields
    #: int[n]: which of the m pods each one has its shape from; a walked pod has it from itself.
    source: Rows
    #: int64[n]: how far the bytes of a pod lie behind those of its source.
    shift: Places
    #: bool[n - 1]: whether a pod is similar to the one before it: all that counts of it is equal,
    #: but for its labelling.
    similar: Flags
    #: int[n]: one number for all pods of one labelling, -1 where it is not known.
    labelling: Rows

    @property
    def broken(self) -> Flags:
        """bool[n]: which pods have to be decoded by themselves."""
        return self.fields.broken[self.source]

    def spread(self, ranges: Ranges, some: slice | Rows = _ALL) -> Ranges:
        """Return where something is in pods. ``ranges``: where it is in the walked ones."""
        source = self.source[some]
        begin, end = ranges.begin[source], ranges.end[source]
        shift = np.where(end, self.shift[some], 0)  # a field that is absent is at 0
        return Ranges(begin + shift, end + shift)

    def one(self, ranges: Ranges, place: int) -> tuple[int, int]:
        """Return where something is in one pod. ``ranges``: where it is in the walked ones."""
        source = self.source[place]
        begin, end = int(ranges.begin[source]), int(ranges.end[source])
        shift = int(self.shift[place]) if end else 0
        return begin + shift, end + shift


class _Piece(NamedTuple):
    """A stretch of words of a shape; most of them count."""

    #: Bytes from the pod's beginning.
    at: int
    #: The bits that count, with the labelling.
    mask: Words
    #: The shape's words under ``mask``.
    counted: Words
    #: The words that have bytes of the labelling in them.
    labelling: slice
    #: The bits of these that count without the labelling.
    beside: Words


@dataclass(frozen=True, slots=True)
class _Shape:
    """One pod, and which of its bits a pod of its shape shares."""

    #: Bytes.
    length: int
    words: Words
    labelling: bytes
    pieces: tuple[_Piece, ...]


class Shapes:
    """The shapes of pods so far, and where the fields of their pods are."""

    def __init__(self, *, fewest: int = _FEWEST) -> None:
        """``fewest``: pods of one length that it takes to make a shape."""
        self._fewest = fewest
        self._book = _Book()

    def locate(self, buffer: Buffer, items: Ranges) -> FieldPlaces:
        """Find the fields of pods. ``items``: where the pods are."""
        if len(self._book) > _MOST:
            self._book = _Book()
        known = len(self._book)
        found = _Found.nothing(len(items))
        self._find(buffer, items, found)
        number = found.number
        left = np.flatnonzero(number == _NONE)
        if _LEFT * len(left) <= len(items):
            self._remember(buffer, items, left, found)
        # With many owners each page has new shapes, and it has fewer pods than the book has shapes.
        if len(self._book) > known or (number == _NONE).any():
            return _by_page(buffer, items, found)
        return self._book.locate(items, found)

    def _find(self, buffer: Buffer, items: Ranges, found: "_Found") -> None:
        """Find each pod's shape; make new shapes where many pods have the same length."""
        lengths = items.end - items.begin
        each, counts = np.unique(lengths, return_counts=True)
        for length, count in zip(each.tolist(), counts.tolist(), strict=True):
            shapes = self._book.of_length(length)
            if not shapes and count < self._fewest:
                continue
            rows = np.flatnonzero(lengths == length)
            for known in shapes:
                alike = self._like_if_few_are(buffer, items.begin[rows], self._book.shapes[known])
                rows = found.take(rows, alike, known, self._book.labelling[known])
            while len(rows) >= self._fewest:
                middle = int(rows[len(rows) // 2])  # probably of the most frequent shape
                shape = _shape(buffer, items, middle)
                if shape is None:
                    break
                alike = self._like_if_few_are(buffer, items.begin[rows], shape)
                if np.count_nonzero(alike.same) < self._fewest:
                    break
                new = self._book.add(shape)
                rows = found.take(rows, alike, new, self._book.labelling[new])

    def _like_if_few_are(self, buffer: Buffer, begins: Places, shape: _Shape) -> "_Alike":
        """Return which pods have a shape; none at all if a sample of them rarely has it."""
        if len(begins) > _SHARE * self._fewest:
            few = begins[:: len(begins) // self._fewest]
            if _SHARE * np.count_nonzero(_like(buffer, few, shape).same) < len(few):
                none = np.zeros(len(begins), dtype=np.bool_)
                return _Alike(none, none)
        return _like(buffer, begins, shape)

    def _remember(self, buffer: Buffer, items: Ranges, left: Rows, found: "_Found") -> None:
        """Make some shapes of pods that have none."""
        lengths = items.end[left] - items.begin[left]
        for _ in range(_AT_ONCE):
            alone = found.number[left] == _NONE
            if not alone.any():
                return
            one = int(alone.argmax())
            shape = _shape(buffer, items, int(left[one]))
            if shape is None:
                return
            tried = left[alone & (lengths == lengths[one])]
            new = self._book.add(shape)
            found.take(
                tried, _like(buffer, items.begin[tried], shape), new, self._book.labelling[new]
            )


class _Alike(NamedTuple):
    """How some pods compare with the pod of a shape."""

    #: Which have its shape.
    same: Flags
    #: Which of these have its labelling, too.
    labelling: Flags


class _Found(NamedTuple):
    """What is known of a page's pods; ``_NONE`` for what is not known."""

    #: int[n]: the number of each pod's shape.
    number: Rows
    #: int[n], see ``FieldPlaces``.
    labelling: Rows

    @classmethod
    def nothing(cls, count: int) -> Self:
        """Return the initial state for so many pods: nothing is known."""
        return cls(np.full(count, _NONE, dtype=np.intp), np.full(count, _NONE, dtype=np.intp))

    def take(self, rows: Rows, alike: _Alike, number: int, labelling: int) -> Rows:
        """Enter which of some pods have a shape; return the others."""
        self.number[rows[alike.same]] = number
        self.labelling[rows[alike.labelling]] = labelling
        return rows[~alike.same]


def _by_page(buffer: Buffer, items: Ranges, found: _Found) -> FieldPlaces:
    """Walk a page: the first pod of each shape, and those that have none."""
    number = found.number
    source = np.arange(len(items))
    known = np.flatnonzero(number != _NONE)
    _, first, among = np.unique(number[known], return_index=True, return_inverse=True)
    source[known] = known[first][among]
    walked, source = np.unique(source, return_inverse=True)
    fields = PodFields(buffer, items.at(walked))
    # Pods of two shapes are as similar as the walked pods of these: each two are compared once.
    pairs, pair = np.unique(source[1:] * len(walked) + source[:-1], return_inverse=True)
    these, those = np.divmod(pairs, max(len(walked), 1))
    similar = fields.same(these, those) & ~(fields.broken[these] | fields.broken[those])
    shift = items.begin - fields.items.begin[source]
    return FieldPlaces(fields, source, shift, similar[pair], found.labelling)


class _Book:
    """Shapes by number, and the fields of the pods that they were made of."""

    def __init__(self) -> None:
        self.shapes: list[_Shape] = []
        #: Of each shape, the number of its pod's labelling.
        self.labelling: list[int] = []
        self._labellings: dict[bytes, int] = {}
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
        known = self._labellings
        self.labelling.append(known.setdefault(shape.labelling, len(known)))
        self._by_length.setdefault(shape.length, []).append(number)
        return number

    def locate(self, items: Ranges, found: _Found) -> FieldPlaces:
        """Find the fields of pods that all have a shape, by the pods these were made of."""
        number = found.number
        fields = self._fields or self._walked()
        kind = self._kind[number]
        similar = (kind[1:] == kind[:-1]) & ~fields.broken[number[1:]]
        shift = items.begin - fields.items.begin[number]
        return FieldPlaces(fields, number, shift, similar, found.labelling)

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
        low, high = _labelling(buffer.body, begin, end)
    except (ValueError, IndexError):
        return None
    words = buffer.texts(np.array([begin]), size).view(np.uint64)[0]
    beside = mask.view(np.uint64).copy()
    mask[low - begin : high - begin] = 0xFF
    labelling = slice((low - begin) // _WORD, -(-(high - begin) // _WORD))
    pieces = tuple(_pieces(words, mask.view(np.uint64), beside, labelling))
    return _Shape(end - begin, words, bytes(buffer.body[low:high]), pieces)


def _pieces(words: Words, mask: Words, beside: Words, labelling: slice) -> Iterator[_Piece]:
    """Yield the words that count, with few others between: unread words are not fetched."""
    for some in stretches(mask != 0):
        low, high = some.start, some.stop
        first, last = max(labelling.start, low), min(labelling.stop, high)
        within = slice(first - low, max(last - low, 0))
        counted = words[some] & mask[some]
        yield _Piece(low * _WORD, mask[some], counted, within, beside[some][within])


def _labelling(body: Body, at: int, end: int) -> tuple[int, int]:
    """Return the range of a pod's labels, annotations and owners.

    Raises ``ValueError`` or ``IndexError`` for a pod that cannot be read.
    """
    (meta,) = (one for one in fields_of(body, at, end) if one.number == _META)
    low, high = LABELLING
    some = [one for one in fields_of(body, meta.begin, meta.end) if low <= one.number <= high]
    return (some[0].at, some[-1].end) if some else (at, at)


def _free(body: Body, at: int, end: int, tree: FieldTree) -> Iterator[tuple[int, int]]:
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
    """Compare messages, from these places on, with the pod of a shape."""
    same, labelling = np.ones((2, len(begins)), dtype=np.bool_)
    for piece in shape.pieces:
        for some in steps(len(begins), piece.mask.nbytes):
            _compare(buffer, begins[some] + piece.at, piece, _Alike(same[some], labelling[some]))
    return _Alike(same, labelling)


def _compare(buffer: Buffer, at: Places, piece: _Piece, alike: _Alike) -> None:
    """Clear the flags of messages with other words, from these places on, than the shape."""
    words = buffer.texts(at, piece.mask.nbytes).view(np.uint64)
    words &= piece.mask
    equal = words == piece.counted
    if equal.all():
        return
    whole = equal.all(axis=1)
    alike.labelling[:] &= whole
    if len(piece.beside):
        (others,) = np.nonzero(~whole)
        rest = equal[others]
        beside = words[others, piece.labelling] & piece.beside
        rest[:, piece.labelling] = beside == piece.counted[piece.labelling] & piece.beside
        whole[others] = rest.all(axis=1)
    alike.same[:] &= whole
