"""A body cut into chunks as net/http does; the figures are those of kube-apiserver 1.35."""

from hypothesis import given
from hypothesis import strategies as st

from loadtest.benches.coldstart.chunks import BUFFER, framed, unframed


def sizes(*parts: int) -> list[int]:
    return [len(unframed(chunk)) for chunk in framed([bytes(size) for size in parts])]


def test_pods_of_less_than_two_buffers_come_in_three_chunks_for_two() -> None:
    pod = 3, 3822  # tag and size, and the pod
    assert sizes(*pod * 6) == [2048, 2048, 3554] * 3


def test_a_larger_one_comes_in_two() -> None:
    pod = 3, 4250
    assert sizes(*pod * 3) == [2048, 2205] * 3


@given(st.lists(st.binary(max_size=3 * BUFFER), max_size=6))
def test_chunks_hold_the_body(parts: list[bytes]) -> None:
    assert b"".join(map(unframed, framed(parts))) == b"".join(parts)
