"""UIDs read in words of eight characters, beside ``uuid``, which reads them one by one."""

import uuid

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from muster.kube.firstlist.uids import UID_ROOM, UID_TEXT, read_uids

CANONICAL = st.uuids().map(str)


def spoiled(text: str, place: int, byte: int) -> bytes:
    raw = bytearray(text.encode())
    raw[place] = byte
    return bytes(raw)


SPOILED = st.builds(spoiled, CANONICAL, st.integers(0, UID_TEXT - 1), st.integers(0, 255))
ANY = st.one_of(CANONICAL.map(str.encode), SPOILED, st.binary(min_size=36, max_size=36))


def canonical(text: bytes) -> bool:
    try:
        return str(uuid.UUID(text.decode("latin-1"))).encode() == text
    except ValueError:
        return False


@given(texts=st.lists(ANY, min_size=1, max_size=20), behind=st.binary(min_size=4, max_size=4))
def test_uids_are_read_as_one_by_one(texts: list[bytes], behind: bytes) -> None:
    chars = np.frombuffer(b"".join(text + behind for text in texts), dtype=np.uint8)
    words, odd = read_uids(chars.reshape(len(texts), UID_ROOM))
    assert odd.tolist() == [not canonical(text) for text in texts]
    for text, is_odd, found in zip(texts, odd, words, strict=True):
        assert is_odd or found.tobytes() == uuid.UUID(text.decode()).bytes


@given(st.integers(0, UID_TEXT - 1), st.integers(0, 255))
def test_any_byte_is_a_digit_or_a_dash_or_makes_it_odd(place: int, byte: int) -> None:
    text = spoiled("01234567-89ab-cdef-0123-456789abcdef", place, byte)
    _, odd = read_uids(np.frombuffer(text + b"0000", dtype=np.uint8).reshape(1, UID_ROOM))
    assert odd.tolist() == [not canonical(text)]
