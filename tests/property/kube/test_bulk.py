"""A body put together part by part, against the parts joined; and whose memory it stands in."""

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.http import longbody
from muster.kube.http.longbody import Bulk, Rooms

PARTS = st.lists(st.lists(st.binary(max_size=9), max_size=4), max_size=6)


@given(st.lists(PARTS, max_size=4), st.binary(max_size=5), st.integers(0, 20))
def test_a_body_is_its_parts_and_what_is_to_stand_behind_them(
    answers: list[list[list[bytes]]], behind: bytes, first: int
) -> None:
    rooms = Rooms(behind, bool)
    for parts in answers:
        with patch.object(longbody, "_FIRST_BYTES", first):
            body = Bulk(rooms)
        for each in parts:
            body.add(each)
        joined = b"".join(part for each in parts for part in each)
        assert (body.size, body.so_far()) == (len(joined), joined)
        assert body.whole() == joined + behind
        assert body.whole().readonly


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=60), st.integers(0, 9)), max_size=4),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
    st.binary(max_size=5),
    st.integers(0, 20),
)
def test_what_is_read_to_its_place_is_the_body_without_what_stood_before_it(
    answers: list[tuple[bytes, int]], sizes: list[int], behind: bytes, first: int
) -> None:
    rooms = Rooms(behind, lambda body: body[-1:] == b"x")
    for came, begin in answers:
        with patch.object(longbody, "_FIRST_BYTES", first):
            body = Bulk(rooms)
        while body.size < len(came):
            place = body.place(sizes[body.size % len(sizes)])
            part = came[body.size : body.size + len(place)]
            place[: len(part)] = part
            body.came(len(part))
        assert body.so_far() == came
        body.begin_at(min(begin, len(came)))
        assert body.is_whole() == came[begin:].endswith(b"x")
        assert body.whole() == came[begin:] + behind


@given(st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 3)), max_size=12))
def test_a_body_that_somebody_looks_at_stays_as_it_is(answers: list[tuple[bytes, int]]) -> None:
    """Each is let go some answers later; what looks at it is an array of numpy, as in a page."""
    rooms, held = Rooms(b".", bool), list[tuple[np.ndarray, bytes]]()
    with patch.object(longbody, "_FIRST_BYTES", 0):
        for text, kept in answers:
            body = Bulk(rooms)
            body.add([text])
            held.append((np.frombuffer(body.whole()[: len(text)], dtype=np.uint8), text))
            del body, held[: -1 - kept]
            assert all(array.tobytes() == told for array, told in held)


def test_a_body_stands_where_one_before_it_stood_that_nobody_looks_at() -> None:
    rooms = Rooms(b"", bool)

    def one() -> tuple[Bulk, int]:
        body = Bulk(rooms)
        body.add([b"a"])
        return body, np.frombuffer(body.whole(), dtype=np.uint8).ctypes.data

    first, place = one()
    second, other = one()
    del first
    third, again = one()
    assert again == place != other
    assert second.whole() == third.whole() == b"a"


def test_bodies_that_grow_a_little_stand_where_the_ones_before_them_stood() -> None:
    rooms, places = Rooms(b"behind", bool), set[int]()
    for size in range(100_000, 100_040):
        body = Bulk(rooms)
        body.add([bytes(size)])
        if size > 100_000:  # the first one had to be made room for
            places.add(np.frombuffer(body.whole(), dtype=np.uint8).ctypes.data)
        body.whole()
        del body
    assert len(places) == 1
