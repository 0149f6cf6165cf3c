"""What tells a planned pod from its kin, asked of another pod, against what it would be of that.

::

    one ──► Apart.of ──► is_of(other)?  ═══  Apart.of(other) ── is the same?
"""

from hypothesis import given
from hypothesis import strategies as st

from kube.ownbytes import Apart, OwnBytes

NODES = st.sampled_from(("n0", "n1", "n10"))
TOKENS = st.sampled_from((b"abcde", b"x1y2z", b"ABCDE", b"abcd", b"abcdef", b""))
TEXTS = st.one_of(
    st.sampled_from((b"data", b"kube-api-access-", b"abcde")),
    TOKENS.map(lambda token: b"kube-api-access-" + token),
)
VOLUMES = st.lists(TEXTS, max_size=4).map(b"|".join)
PINS = st.one_of(
    NODES.map(lambda node: b"pin " + node.encode()), st.sampled_from((b"", b"\xff\xff"))
)


def own(pin: bytes, volumes: bytes) -> OwnBytes:
    return OwnBytes(b"p", b"u", b"", pin, volumes, b"")


PODS = st.builds(own, PINS, VOLUMES)


@given(PODS, NODES, PODS, NODES)
def test_a_pod_is_apart_as_another_one_when_the_same_tells_them_apart(
    one: OwnBytes, first: str, other: OwnBytes, second: str
) -> None:
    apart = Apart.of(one, first)
    assert apart.is_of(one, first)
    assert apart.is_of(other, second) == (Apart.of(other, second) == apart)


@given(VOLUMES, TOKENS, TOKENS, VOLUMES)
def test_names_of_tokens_tell_nobody_apart(
    before: bytes, token: bytes, other: bytes, after: bytes
) -> None:
    these, those = (
        own(b"", before + b"kube-api-access-" + each + b"|" + after) for each in (token, other)
    )
    apart = Apart.of(these, "n0")
    assert apart.is_of(those, "n0") == (Apart.of(those, "n0") == apart)


def test_two_pods_with_tokens_of_their_own_are_alike() -> None:
    one = own(b"pin n0", b"kube-api-access-abcde|data")
    other = own(b"pin n1", b"kube-api-access-fghij|data")
    assert Apart.of(one, "n0").is_of(other, "n1")
    assert not Apart.of(one, "n0").is_of(other, "n0")
