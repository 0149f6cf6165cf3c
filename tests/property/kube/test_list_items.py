"""Where the items of a list are, whatever their sizes and whatever stands between them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.errors import DecodeError
from muster.kube.firstlist.items import is_whole, read_list
from muster.kube.http.mediatypes import MAGIC
from muster.kube.resources import PODS
from muster.protogen import kubernetes_v1_pb2 as messages

SIZES = st.one_of(
    st.integers(0, 3), st.integers(126, 300), st.just(1 << 14), st.integers(16_382, 16_386)
)
META, ITEM, UNKNOWN = 1, 2, 5
FIELDS = st.tuples(st.sampled_from([META, ITEM, ITEM, ITEM, UNKNOWN]), SIZES)
VERSION = messages.ListMeta(resourceVersion="7").SerializeToString()


def sized(number: int, value: bytes) -> bytes:
    size, head = len(value), bytearray([number << 3 | 2])
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size]) + value


def listed(fields: list[tuple[int, bytes]]) -> bytes:
    return MAGIC + sized(2, b"".join(sized(number, value) for number, value in fields))


@given(st.lists(FIELDS, max_size=12))
def test_items_are_found_between_anything_else(drawn: list[tuple[int, int]]) -> None:
    fields = [
        (number, VERSION if number == META else bytes([place + 1]) * size)
        for place, (number, size) in enumerate(drawn)
    ]
    body = listed(fields)
    meta, items = read_list(PODS, body)
    found = [body[begin:end] for begin, end in zip(items.begin, items.end, strict=True)]
    assert found == [value for number, value in fields if number == ITEM]
    assert meta.resource_version == ("7" if META in {number for number, _ in fields} else "")


@given(st.lists(SIZES, min_size=1, max_size=5), st.integers(1, 400))
def test_a_list_that_ends_in_the_middle_is_none(sizes: list[int], missing: int) -> None:
    whole = b"".join(sized(ITEM, b"x" * size) for size in sizes)
    torn = whole[: -min(missing, len(whole) - 1)]
    if torn in {whole[:at] for at in _ends(sizes)}:
        return  # it ends between two items
    with pytest.raises(DecodeError, match="list of pods"):
        read_list(PODS, MAGIC + sized(2, torn))


@given(st.lists(SIZES, max_size=5), st.integers(1, 400))
def test_of_a_list_that_is_broken_off_it_can_be_told(sizes: list[int], missing: int) -> None:
    whole = listed([(ITEM, b"x" * size) for size in sizes])
    assert is_whole(whole)
    assert is_whole(whole + sized(3, b"") + sized(4, b""))  # as kube-apiserver ends it
    assert not is_whole(whole[: -min(missing, len(whole) - len(MAGIC))])


@pytest.mark.parametrize(
    ("text", "whole"), [(b'{"a":1}\n', True), (b'{"a":{}', True), (b'{"a":', False), (b"", False)]
)
def test_of_json_as_far_as_its_end_tells_it(text: bytes, *, whole: bool) -> None:
    assert is_whole(text) == whole


def _ends(sizes: list[int]) -> list[int]:
    heads = [len(sized(ITEM, b"x" * size)) for size in sizes]
    return [sum(heads[:count]) for count in range(len(heads) + 1)]
