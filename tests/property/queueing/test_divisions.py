"""What must hold of every division, whatever is claimed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.queueing.shares.division import Claim, Division
from muster.queueing.shares.twophases import two_phases
from muster.queueing.shares.waterfilling import waterfilling

AMOUNTS = st.integers(0, 40)
CLAIMS = st.lists(
    st.builds(
        Claim,
        demand=AMOUNTS,
        entitled=st.integers(0, 5),
        limit=AMOUNTS,
        weight=st.sampled_from([0, 1, 500, 1000, 3000]),
        priority=st.integers(0, 1),
    ),
    max_size=6,
)
BOTH = pytest.mark.parametrize("divide", [waterfilling, two_phases])


@BOTH
@given(total=st.integers(0, 100), claims=CLAIMS)
def test_nobody_gets_more_than_it_can_use_or_less_than_it_is_entitled_to(
    divide: Division, total: int, claims: list[Claim]
) -> None:
    for claim, part in zip(claims, divide(total, claims), strict=True):
        assert min(claim.entitled, claim.most) <= part <= claim.most


@BOTH
@given(total=st.integers(0, 100), claims=CLAIMS)
def test_nothing_is_left_while_somebody_can_use_it(
    divide: Division, total: int, claims: list[Claim]
) -> None:
    floors = sum(min(claim.entitled, claim.most) for claim in claims)
    wanted = sum(claim.most for claim in claims)
    assert sum(divide(total, claims)) == max(floors, min(total, wanted))


@BOTH
@given(total=st.integers(0, 60), more=st.integers(0, 40), claims=CLAIMS)
def test_of_a_larger_amount_nobody_gets_less_by_more_than_a_unit(
    divide: Division, total: int, more: int, claims: list[Claim]
) -> None:
    before, after = divide(total, claims), divide(total + more, claims)
    assert all(a >= b - 1 for a, b in zip(after, before, strict=True))
