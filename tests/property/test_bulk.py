"""A body put together part by part, against the parts joined."""

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kube import bulk
from kube.bulk import Bulk

PARTS = st.lists(st.lists(st.binary(max_size=9), max_size=4), max_size=6)


@given(PARTS, st.binary(max_size=5), st.integers(0, 60), st.integers(0, 20))
def test_a_body_is_its_parts_and_what_is_to_stand_behind_them(
    parts: list[list[bytes]], behind: bytes, longest: int, first: int
) -> None:
    with patch.object(bulk, "_FIRST_BYTES", first):
        body = Bulk(behind, longest)
    for each in parts:
        body.add(each)
    joined = b"".join(part for each in parts for part in each)
    assert (body.size, body.so_far()) == (len(joined), joined)
    assert body.whole() == joined + behind
    assert body.whole().readonly
