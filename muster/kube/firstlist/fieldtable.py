"""Where the fields of many protobuf messages are: one step of numpy for a field of all of them.

A message on the wire is a row of fields, and the place of a field is known only when the field
before it has been read. So it takes a step per field, but one step reads that field of all messages
of a page::

    step 1      step 2      step 3                     number ──► first, begin, end, of each message
    ┌────┬──────────┬──────┐
    │tag │ size,bytes│ tag …│   message 0                first  where its tag stands
    ├────┼──────┬───┴───┬──┘                            begin  where its last value begins
    │tag │ size…│ tag … │      message 1                end    where its last value ends
    └────┴──────┴───────┘

(https://protobuf.dev/programming-guides/encoding). Only field numbers below 64 and sizes below
256 MiB are read; Kubernetes uses no others, and neither groups nor fixed-width numbers. A message
that has one of these, or that ends in the middle of a field, is *broken*: it has to be decoded by
itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.kube.firstlist.onemessage import BYTES, MORE, VARINT, Body

Places = NDArray[np.int64]
"""int64[n]: offsets into a page."""
Flags = NDArray[np.bool_]
Wanted = tuple[tuple[int, int], ...]
"""First and last number of each stretch of fields."""
Number = NDArray[np.int64] | int
"""One for each message, or one for all."""

PADDING: Final = bytes(64)
"""The bytes that must follow a page, because words and blocks are read from any place in it."""

_NUMBERS: Final = 64
_LONGEST_SIZE: Final = 4  # bytes
_LOOKED_AT: Final = 6  # bytes of a varint, all that is left of a word behind the longest tag
_END_OF_TEN: Final = 0x0080_8080  # the highest bits of a varint's bytes 6 to 9
_TIME_BYTES: Final = 8  # of a meta/v1 Time as Go writes it: seconds, and nanoseconds, which are 0
_TIME, _TIME_BITS = np.array([0x0010_0080_8080_8008, -0x7F7F_7F7F_7F01], dtype=np.int64)
"""Tags, and the highest bits of the five bytes of a number."""
_SECOND: Final = 0x7F80  # of a tag's second byte; a third would make the number too large
_BLOCK: Final = 64  # bytes compared at once
_IN_CACHE: Final = 1 << 19  # bytes: a fourth of a processor's own cache
_GAP: Final = 32  # unwanted words between wanted ones: fewer are fetched faster than left out
_TAILS: Final = np.array([(1 << 8 * size) - 1 for size in range(8)] + [-1], dtype=np.int64)


def single(*numbers: int) -> Wanted:
    """Return stretches of one field each."""
    return tuple((number, number) for number in numbers)


def stretches(wanted: Flags) -> tuple[slice, ...]:
    """Return slices with all wanted words in them, and with short rows of others between them."""
    (some,) = np.nonzero(wanted)
    if not len(some):
        return ()
    (gaps,) = np.nonzero(np.diff(some) > _GAP)
    begins, ends = some[[0, *(gaps + 1)]].tolist(), (some[[*gaps, -1]] + 1).tolist()
    return tuple(map(slice, begins, ends))


def steps(count: int, size: int) -> Iterator[slice]:
    """Yield ``count`` rows of ``size`` bytes a few at a time, so that they stay in the cache."""
    step = max(_IN_CACHE // size, 1)
    return (slice(row, row + step) for row in range(0, count, step))


class Buffer:
    """The bytes of a page, readable from any place."""

    def __init__(self, padded: Body) -> None:
        """Read ``padded``, a page and ``PADDING``."""
        self.body = padded
        self._words = np.ndarray(
            (len(padded) - 7,), dtype=np.dtype("V8"), buffer=padded, strides=(1,)
        )
        self._blocks = np.ndarray(
            (len(padded) - _BLOCK + 1,), dtype=np.dtype(f"V{_BLOCK}"), buffer=padded, strides=(1,)
        )

    def cut(self, begin: int, end: int) -> bytes:
        """Return the bytes between two places."""
        return bytes(self.body[begin:end])

    def have(self, text: bytes, ranges: "Ranges") -> Flags:
        """Return bool[n]: which ranges hold a text. Mostly none does, and that is found at once."""
        size = int((ranges.end - ranges.begin).max(initial=0))
        at = np.minimum(ranges.begin, len(self.body) - size)
        # These bytes are more than the ranges: what is not in them is in no range.
        if text not in self.texts(at, max(size, 1)).tobytes():
            return np.zeros(len(ranges), dtype=np.bool_)
        body, ends = self.body, zip(ranges.begin.tolist(), ranges.end.tolist(), strict=True)
        return np.array([text in bytes(body[begin:end]) for begin, end in ends], dtype=np.bool_)

    def words(self, at: Places) -> Places:
        """Return the eight bytes from each place on, the first one lowest."""
        found: Places = self._words[at].view("<i8")
        return found

    def texts(self, at: Places, size: int) -> NDArray[np.uint8]:
        """Return uint8[n, size]: the bytes from each place on."""
        whole = np.ndarray(
            (len(self.body) - size + 1,), np.dtype(f"V{size}"), self.body, strides=(1,)
        )
        return whole[at].view(np.uint8).reshape(-1, size)

    def blocks(self, at: Places) -> NDArray[np.int64]:
        """Return int64[n, 8]: the 64 bytes from each place on."""
        return self._blocks[at].view("<i8").reshape(-1, _BLOCK // 8)


@dataclass(frozen=True, slots=True)
class Ranges:
    """One range of bytes for each of n messages; an empty one where there is nothing."""

    #: First byte.
    begin: Places
    #: The byte after the last.
    end: Places

    def __len__(self) -> int:
        return len(self.begin)

    def at(self, rows: NDArray[np.intp]) -> "Ranges":
        """Return some of them."""
        return Ranges(self.begin[rows], self.end[rows])


@dataclass(frozen=True, slots=True)
class Heads:
    """The fields that begin at n places."""

    #: int[n], or one number for all.
    number: Number
    #: Where their values begin.
    begin: Places
    #: Where the next fields begin.
    after: Places
    #: bool[n]: which cannot be read here.
    broken: Flags

    def at(self, rows: Flags) -> "Heads":
        """Return some of them."""
        number = self.number if isinstance(self.number, int) else self.number[rows]
        return Heads(number, self.begin[rows], self.after[rows], self.broken[rows])


def heads(buffer: Buffer, at: Places) -> Heads:
    """Read a field's tag and size at each place."""
    word = buffer.words(at)
    one = _one_tag(word)
    if one is None:
        wide = word >> 7 & 1  # numbers from 16 on have a tag of two bytes
        tag = (word & 0x7F) | (word >> 1 & _SECOND) * wide
        return _sized(buffer, at + 1 + wide, word >> 8 + 8 * wide, tag >> 3, tag & 7)
    size = 2 if one & 0x80 else 1
    same = one & 0x7F | (one >> 1 & _SECOND if size > 1 else 0)
    word = word >> 8 * size
    byte = int(word[0]) & 0xFF
    if byte < MORE and bool(((word & 0xFF) == byte).all()):
        return _alike_sized(at + size, byte, same >> 3, same & 7)
    return _sized(buffer, at + size, word, same >> 3, same & 7)


def _alike_sized(at: Places, byte: int, number: int, kind: int) -> Heads:
    """Read what follows the tags if it is the same byte in all messages: one look-up is enough."""
    begin = at + 1 if kind == BYTES else at
    after = begin + (byte if kind == BYTES else 1)
    odd = number < 1 or number >= _NUMBERS or kind not in (BYTES, VARINT)
    return Heads(number, begin, after, np.full(len(at), odd, dtype=np.bool_))


def _one_tag(word: NDArray[np.int64]) -> int | None:
    """Return the two bytes that all words begin with, ``None`` if these differ."""
    one = int(word[0]) & 0xFFFF
    mask = 0xFFFF if one & 0x80 else 0xFF
    return one if bool(((word & mask) == one & mask).all()) else None


def _sized(
    buffer: Buffer, at: Places, word: NDArray[np.int64], number: Number, kind: Number
) -> Heads:
    """Read what follows the tags. ``at``: where; ``word``: the bytes that are there."""
    # Bytes of a varint but the last have their highest bit set: the first without one ends it.
    last = ~word & 0x8080_8080_8080
    last &= -last
    size = 1 + (last > 1 << 7).astype(np.int64)
    if (last > 1 << 15).any():
        size += last > 1 << 15
        size += last > 1 << 23
        size += last > 1 << 31
        size += last > 1 << 39
    long = last == 0
    if long.any():
        # Negative numbers have ten bytes: the first nine with their highest bit set.
        rest = buffer.words(at[long] + _LOOKED_AT)
        negative = rest & 0x8080_8080 == _END_OF_TEN
        size[long] = np.where(negative, 10, 1)
        long[long] = ~negative
    is_bytes = kind == BYTES
    begin = at + size * is_bytes
    length = np.where(is_bytes, _low_bits(word & ((last << 1) - 1)), size)
    odd = long | (number < 1) | (number >= _NUMBERS)
    odd |= np.where(is_bytes, size > _LONGEST_SIZE, kind != VARINT)
    return Heads(number, begin, begin + length, odd)


def _low_bits(word: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of the varint in each word, of 35 bits at most."""
    found: NDArray[np.int64] = (
        (word & 0x7F)
        | (word >> 1 & 0x7F << 7)
        | (word >> 2 & 0x7F << 14)
        | (word >> 3 & 0x7F << 21)
        | (word >> 4 & 0x7F << 28)
    )
    return found


def varints(buffer: Buffer, ranges: Ranges) -> NDArray[np.int64]:
    """Return the number in each range, 0 for an empty one. Up to 35 bits are read."""
    size = ranges.end - ranges.begin
    word = buffer.words(ranges.begin) & _TAILS[np.minimum(size, 8)]
    return _low_bits(word)


_Cells = tuple[Number, NDArray[np.intp] | slice]


class MessageFields:
    """The wanted fields of n messages.

    Fields that are next to each other may be wanted as one *stretch*.
    """

    def __init__(self, slots: Mapping[int, int], count: int) -> None:
        self._slots = slots
        shape = (max(slots.values()) + 1, count)
        self.first = np.zeros(shape, dtype=np.int64)
        self.begin = np.zeros(shape, dtype=np.int64)
        self.end = np.zeros(shape, dtype=np.int64)
        self.sizes = np.zeros(shape, dtype=np.int64)
        self.broken = np.zeros(count, dtype=np.bool_)

    def note(self, slot: Number, rows: NDArray[np.intp], at: Places, head: Heads) -> None:
        """Note a field of each of ``rows``, that begins ``at``. Slot 0: it is not wanted."""
        everyone = len(rows) == len(self.broken)  # then a slice, which is much faster
        if isinstance(slot, int) and not slot:
            return
        if isinstance(slot, int) and everyone:
            self._note((slot, slice(None)), at, head)
        else:
            self._note((slot, rows), at, head)

    def _note(self, cells: _Cells, at: Places, head: Heads) -> None:
        self.first[cells] = np.where(self.sizes[cells], self.first[cells], at)
        self.begin[cells] = head.begin
        self.end[cells] = head.after
        self.sizes[cells] += head.after - at

    def value(self, number: int) -> Ranges:
        """Return where a field's value is, the last one if there are several."""
        slot = self._slots[number]
        return Ranges(self.begin[slot], self.end[slot])

    def stretch(self, number: int) -> Ranges:
        """Return the ranges of a field and of those wanted with it, with their tags."""
        slot = self._slots[number]
        return Ranges(self.first[slot], self.end[slot])


def walk(buffer: Buffer, messages: Ranges, wanted: Wanted) -> MessageFields:
    """Return the fields of messages. ``wanted``: first and last number of each stretch."""
    slots = {n: i + 1 for i, (low, high) in enumerate(wanted) for n in range(low, high + 1)}
    slot_of = np.zeros(_NUMBERS, dtype=np.int64)
    slot_of[list(slots)] = list(slots.values())
    found = MessageFields(slots, len(messages))
    rows = np.flatnonzero(messages.begin < messages.end)
    at, end = messages.begin[rows], messages.end[rows]
    while len(rows):
        head = heads(buffer, at)
        fits = ~head.broken & (head.after <= end)
        if not fits.all():
            found.broken[rows[~fits]] = True
            rows, at, end, head = rows[fits], at[fits], end[fits], head.at(fits)
            if not len(rows):
                break
        number = head.number
        slot = int(slot_of[number]) if isinstance(number, int) else slot_of[number]
        found.note(slot, rows, at, head)
        left = head.after < end
        if left.all():
            at = head.after
        else:
            rows, at, end = rows[left], head.after[left], end[left]
    # A stretch with something else in it would be read as if that belonged to it.
    torn = found.sizes[1:] != found.end[1:] - found.first[1:]
    found.broken |= torn.any(axis=0)
    return found


def seconds(buffer: Buffer, times: Ranges) -> tuple[NDArray[np.int64], Flags]:
    """Return the seconds of times, which are field 1, and which times are broken.

    Go writes five bytes of seconds for any time from 1978 to 3058, and no nanoseconds.
    """
    word, there = buffer.words(times.begin), times.begin < times.end
    as_go = (word & _TIME_BITS == _TIME) & (times.end - times.begin == _TIME_BYTES)
    if bool((as_go | ~there).all()):
        return np.where(there, _low_bits(word >> 8), 0), np.zeros(len(times), dtype=np.bool_)
    fields = walk(buffer, times, single(1))
    return varints(buffer, fields.value(1)), fields.broken


def entries(buffer: Buffer, stretch: Ranges) -> tuple[NDArray[np.intp], Ranges]:
    """Return the values of a repeated field: the message of each, ascending, and its range.

    ``stretch``: the range of the field in each message. The caller leaves out broken messages.
    """
    rows = np.flatnonzero(stretch.begin < stretch.end)
    at, end = stretch.begin[rows], stretch.end[rows]
    owners, begins, ends = [rows], [at], [at]
    while len(rows):
        head = heads(buffer, at)
        owners.append(rows)
        begins.append(head.begin)
        ends.append(head.after)
        left = head.after < end
        rows, at, end = rows[left], head.after[left], end[left]
    owner = np.concatenate(owners[1:]) if len(owners) > 1 else owners[0]
    order = np.argsort(owner, kind="stable")
    begin = np.concatenate(begins[1:] or begins)[order]
    return owner[order], Ranges(begin, np.concatenate(ends[1:] or ends)[order])


def alike(buffer: Buffer, these: Ranges, those: Ranges) -> Flags:
    """Return bool[n]: whether the two ranges of a pair hold the same bytes."""
    length = these.end - these.begin
    same: Flags = length == those.end - those.begin
    rows = np.flatnonzero(same & (length > 0))
    a, b, left = these.begin[rows], those.begin[rows], length[rows]
    while len(rows):
        differ = buffer.blocks(a) ^ buffer.blocks(b)
        tail = left < _BLOCK
        if tail.any():
            within = np.clip(left[tail, None] - _OFFSETS, 0, 8)
            differ[tail] &= _TAILS[within]
        equal = ~differ.any(axis=1)
        same[rows[~equal]] = False
        more = equal & (left > _BLOCK)
        rows, a, b, left = rows[more], a[more] + _BLOCK, b[more] + _BLOCK, left[more] - _BLOCK
    return same


_OFFSETS: Final = np.arange(0, _BLOCK, 8, dtype=np.int64)
