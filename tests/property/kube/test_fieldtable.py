"""Protobuf walked in columns, against the same messages read byte by byte.

::

    messages of any fields ──► bytes ──► walk, entries, alike, varints ═══ a plain reader
"""

from collections.abc import Iterator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.firstlist.fieldtable import (
    PADDING,
    Buffer,
    Ranges,
    alike,
    entries,
    seconds,
    single,
    varints,
    walk,
)

WANTED = ((1, 1), (3, 5), (16, 16), (18, 30))
Field = tuple[int, int | bytes]


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def encoded(fields: list[Field]) -> bytes:
    parts = []
    for number, value in fields:
        kind = 2 if isinstance(value, bytes) else 0
        content = varint(len(value)) + value if isinstance(value, bytes) else varint(value)
        parts.append(varint(number << 3 | kind) + content)
    return b"".join(parts)


NUMBERS = st.integers(1, 63)
AMOUNTS = st.one_of(st.integers(0, 300), st.integers(0, (1 << 42) - 1), st.integers(-(1 << 31), -1))
TEXTS = st.one_of(st.binary(max_size=6), st.integers(100, 20_000).map(bytes))
MESSAGE = st.lists(st.tuples(NUMBERS, st.one_of(AMOUNTS, TEXTS)), max_size=6)
SORTED = MESSAGE.map(lambda fields: sorted(fields, key=lambda field: field[0]))
ALIKE = st.tuples(st.lists(NUMBERS, max_size=8).map(sorted), st.integers(1, 4)).map(
    lambda drawn: [[(number, b"x" * n) for number in drawn[0]] for n in range(drawn[1])]
)
PAGES = st.one_of(st.lists(SORTED, max_size=6), ALIKE)


def laid_out(messages: list[bytes]) -> tuple[Buffer, Ranges]:
    ends = np.cumsum([0, *map(len, messages)], dtype=np.int64)
    return Buffer(b"".join(messages) + PADDING), Ranges(ends[:-1], ends[1:])


def spans(fields: list[Field], low: int, high: int) -> Iterator[tuple[int, int]]:
    at = 0
    for field in fields:
        size = len(encoded([field]))
        if low <= field[0] <= high:
            yield at, at + size
        at += size


@given(PAGES)
def test_a_stretch_is_where_its_fields_are(messages: list[list[Field]]) -> None:
    buffer, ranges = laid_out(list(map(encoded, messages)))
    found = walk(buffer, ranges, WANTED)
    assert not found.broken.any()
    for low, high in WANTED:
        stretch = found.stretch(low)
        for n, fields in enumerate(messages):
            where = list(spans(fields, low, high))
            begin, end = (where[0][0], where[-1][1]) if where else (0, 0)
            offset = int(ranges.begin[n]) if where else 0
            assert (stretch.begin[n], stretch.end[n]) == (offset + begin, offset + end)


@given(PAGES)
def test_a_value_is_the_last_one_told(messages: list[list[Field]]) -> None:
    buffer, ranges = laid_out(list(map(encoded, messages)))
    found = walk(buffer, ranges, WANTED)
    for n, fields in enumerate(messages):
        for number in (1, 16):
            told = [value for of, value in fields if of == number]
            where = found.value(number).at(np.array([n]))
            body = buffer.cut(int(where.begin[0]), int(where.end[0]))
            if not told:
                assert body == b""
            elif isinstance(told[-1], bytes):
                assert body == told[-1]
            else:
                assert body == varint(told[-1])
                assert varints(buffer, where)[0] == told[-1] & ((1 << 35) - 1)


@given(PAGES)
def test_entries_are_the_values_of_a_stretch(messages: list[list[Field]]) -> None:
    buffer, ranges = laid_out(list(map(encoded, messages)))
    owner, each = entries(buffer, walk(buffer, ranges, WANTED).stretch(18))
    pairs = zip(each.begin.tolist(), each.end.tolist(), strict=True)
    read = list(zip(owner.tolist(), (buffer.cut(b, e) for b, e in pairs), strict=True))
    assert read == [
        (n, value if isinstance(value, bytes) else varint(value))
        for n, fields in enumerate(messages)
        for number, value in fields
        if 18 <= number <= 30
    ]


@given(st.lists(st.tuples(st.binary(max_size=200), st.binary(max_size=200), st.booleans())))
def test_ranges_are_alike_when_their_bytes_are(pairs: list[tuple[bytes, bytes, bool]]) -> None:
    these, those = [a for a, _, _ in pairs], [a if same else b for a, b, same in pairs]
    first, one = laid_out([*these, *those])
    count = len(pairs)
    a, b = Ranges(one.begin[:count], one.end[:count]), Ranges(one.begin[count:], one.end[count:])
    assert alike(first, a, b).tolist() == [x == y for x, y in zip(these, those, strict=True)]


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=8), st.data())
def test_bytes_of_any_sort_are_broken_or_read_and_never_beyond_their_end(
    messages: list[bytes], data: st.DataObject
) -> None:
    cut = data.draw(st.lists(SORTED.map(encoded), max_size=4))
    messages = [*messages, *(one[: data.draw(st.integers(0, len(one)))] for one in cut)]
    buffer, ranges = laid_out(messages)
    found = walk(buffer, ranges, WANTED)
    for low, _ in WANTED:
        stretch = found.stretch(low)
        told = ~found.broken & (stretch.begin < stretch.end)
        assert (stretch.begin >= ranges.begin)[told].all()
        assert (stretch.end <= ranges.end)[told].all()


TIMES = st.lists(
    st.one_of(
        st.builds(lambda n: encoded([(1, n), (2, 0)]), st.integers(0, (1 << 35) - 1)),
        st.builds(lambda n: encoded([(1, n)]), st.integers(0, 300)),
        st.just(b""),
        SORTED.map(encoded),
        st.binary(max_size=9),
    ),
    max_size=6,
)


@given(TIMES, st.booleans())
def test_seconds_are_those_that_are_walked_to(times: list[bytes], as_go: bool) -> None:  # noqa: FBT001  drawn
    kept = [one for one in times if not as_go or one[:1] == b"\x08"]
    buffer, ranges = laid_out(kept)
    fields = walk(buffer, ranges, single(1))
    read, broken = seconds(buffer, ranges)
    assert broken.tolist() == fields.broken.tolist()
    assert read[~broken].tolist() == varints(buffer, fields.value(1))[~broken].tolist()


def test_what_is_cut_short_is_broken() -> None:
    whole = encoded([(1, b"abc"), (5, 7)])
    buffer, ranges = laid_out([whole, whole[:-1], whole[:3], b"\x0b", b"\x09" + bytes(8)])
    assert walk(buffer, ranges, WANTED).broken.tolist() == [False, True, True, True, True]


def test_a_stretch_with_another_field_in_it_is_broken() -> None:
    buffer, ranges = laid_out([encoded([(3, 1), (1, 1), (4, 1)]), encoded([(3, 1), (4, 1)])])
    assert walk(buffer, ranges, WANTED).broken.tolist() == [True, False]
