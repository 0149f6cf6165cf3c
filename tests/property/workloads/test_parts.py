"""Sharing a gang's minimum over its parts, for every division of every minimum."""

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.specs.gangspec import GangSpec
from muster.kube import wire
from muster.workloads.keys.templateparts import TemplatePart, whole

SIZES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=5)


@given(sizes=SIZES, asked=st.integers(0, 60))
def test_the_roles_share_the_minimum_in_order_and_nothing_more(
    sizes: list[tuple[int, int]], asked: int
) -> None:
    parts = [
        TemplatePart(f"role-{n}", wire.ObjectMeta(), size, min(size, start))
        for n, (size, start) in enumerate(sizes)
    ]
    plain = GangSpec(key="d/n/x", namespace="n", name="x", dialect="d", min_count=asked)
    made = whole(plain, wire.ObjectMeta(), parts)
    shares = {role.name: role.min_count for role in made.roles}
    startable = sum(part.at_start for part in parts)
    assert made.min_count == sum(shares.values()) == min(asked, startable)
    left = made.min_count
    for part in parts:  # each takes all it can before the next one gets any
        assert shares.get(part.role, 0) == min(part.at_start, left)
        left -= shares.get(part.role, 0)
