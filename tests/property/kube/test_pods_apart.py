"""What sets a planned pod apart from its siblings, asked of another pod, and of that pod itself.

::

    one ──► Apart.of ──► is_of(other)?  ═══  Apart.of(other) ── is the same?
"""

from hypothesis import example, given
from hypothesis import strategies as st

from loadtest.testbed.standins.packers import packed
from muster.kube.firstlist.ownbytes import Apart, OwnBytes

NODES = st.sampled_from(("n0", "n1", "n10"))
TOKENS = st.sampled_from((b"abcde", b"x1y2z", b"ABCDE", b"abcd", b"abcdef", b""))
TEXTS = st.one_of(
    st.sampled_from((b"data", b"kube-api-access-", b"abcde")),
    TOKENS.map(lambda token: b"kube-api-access-" + token),
)
VOLUMES = st.lists(TEXTS, max_size=4).map(b"|".join)


def pin(*nodes: str, key: str = "metadata.name") -> bytes:
    """Return node affinity of which each node is a term."""
    rules = [{"key": key, "operator": "In", "values": [node]} for node in nodes]
    terms = [{"matchFields": [rule]} for rule in rules]
    preferred = [{"weight": 100, "preference": {"matchFields": rules[:1]}}]
    required = {"nodeSelectorTerms": terms}
    return packed(
        "Affinity",
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": required,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            }
        },
    )


PINS = st.one_of(
    NODES.map(pin), st.builds(pin, NODES, NODES), st.sampled_from((b"", b"\xff\xff", b"pin n0"))
)


def own(pin: bytes, volumes: bytes) -> OwnBytes:
    return OwnBytes(b"p", b"u", b"", pin, volumes, b"")


PODS = st.builds(own, PINS, VOLUMES)
SPARES = st.lists(NODES, max_size=3).map(tuple)  # a node may be named twice


@example(own(pin("n0"), b""), "n0", (), own(pin("n0"), b""), "n0", ("n0",))
@example(own(pin("n0"), b""), "n1", ("n0",), own(pin("n0"), b""), "n1", ("n0", "n0"))
@given(PODS, NODES, SPARES, PODS, NODES, SPARES)
def test_a_pod_is_apart_as_another_one_when_the_same_tells_them_apart(
    one: OwnBytes,
    first: str,
    ones: tuple[str, ...],
    other: OwnBytes,
    second: str,
    others: tuple[str, ...],
) -> None:
    apart = Apart.of(one, first, ones)
    assert apart.is_of(one, first, ones)
    same = Apart.of(other, second, others) == apart
    for _ in range(2):  # what was told once is remembered
        assert apart.is_of(other, second, others) == same


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
    one = own(pin("n0"), b"kube-api-access-abcde|data")
    other = own(pin("n1"), b"kube-api-access-fghij|data")
    assert Apart.of(one, "n0").is_of(other, "n1")
    assert not Apart.of(one, "n0").is_of(other, "n0")


def test_names_of_other_lengths_and_spares_tell_nobody_apart() -> None:
    one, other = own(pin("n0", "n1"), b""), own(pin("n10", "n1000"), b"")
    apart = Apart.of(one, "n0", ["n1"])
    assert apart.is_of(other, "n10", ["n1000"])
    assert not apart.is_of(other, "n1000", ["n10"])
    assert not apart.is_of(other, "n10")
    assert not apart.is_of(own(pin("n10", "n1000", key="other"), b""), "n10", ["n1000"])


def test_plans_with_many_spares_or_long_ones_are_alike_too() -> None:
    """Anybody may write a plan's annotation."""
    for spares in ([f"m{n}" for n in range(300)], ["n" * size for size in (127, 128, 40_000)]):
        apart = Apart.of(own(pin("n0", *spares), b""), "n0", spares)
        others = [spare.swapcase() for spare in spares]
        assert apart.is_of(own(pin("n1", *others), b""), "n1", others)
        assert apart.is_of(own(pin("n1", *others), b""), "n1", others)
        assert not apart.is_of(own(pin("n1", *others), b""), "n1", others[:-1])
