"""What several queues get of an amount: Volcano's and KAI's way."""

import pytest

from muster.queueing.shares.division import Claim, Division, fill
from muster.queueing.shares.twophases import two_phases
from muster.queueing.shares.waterfilling import waterfilling


def test_an_amount_is_divided_by_weight() -> None:
    assert waterfilling(12, [Claim(100, weight=1000), Claim(100, weight=3000)]) == [3, 9]


def test_what_somebody_does_not_ask_for_goes_to_the_others_by_weight() -> None:
    claims = [Claim(1, weight=1000), Claim(100, weight=1000), Claim(100, weight=2000)]
    assert waterfilling(13, claims) == [1, 4, 8]


def test_nobody_gets_more_than_its_limit() -> None:
    assert waterfilling(12, [Claim(100, limit=2), Claim(100)]) == [2, 10]


def test_a_guarantee_counts_in_the_part_by_weight() -> None:
    assert waterfilling(12, [Claim(100, entitled=4), Claim(100)]) == [6, 6]
    assert waterfilling(12, [Claim(100, entitled=8), Claim(100)]) == [8, 4]


def test_a_guarantee_that_nobody_asks_for_is_not_divided() -> None:
    assert waterfilling(12, [Claim(3, entitled=8), Claim(100)]) == [3, 9]


def test_quotas_are_given_before_the_rest_is_divided_by_weight() -> None:
    claims = [Claim(100, entitled=6, weight=1000), Claim(100, entitled=2, weight=1000)]
    assert two_phases(12, claims) == [8, 4]


def test_of_the_rest_the_higher_priority_gets_all_it_can_use() -> None:
    claims = [Claim(100, entitled=2), Claim(7, entitled=2, priority=1), Claim(100)]
    assert two_phases(13, claims) == [4, 7, 2]


def test_quotas_of_more_than_there_is_are_given_all_the_same() -> None:
    assert two_phases(4, [Claim(9, entitled=4), Claim(9, entitled=4)]) == [4, 4]


def test_no_weight_gets_what_the_others_leave() -> None:
    assert fill(10, [4, 100, 100], [1000, 0, 0]) == [4, 3, 3]
    assert fill(3, [4, 100, 100], [1000, 0, 0]) == [3, 0, 0]


def test_units_that_cannot_be_divided_go_to_the_largest_weight_first() -> None:
    assert fill(4, [9, 9, 9], [1000, 1000, 2000]) == [1, 1, 2]
    assert fill(2, [9, 9, 9], [1000, 1000, 1000]) == [1, 1, 0]


@pytest.mark.parametrize("divide", [waterfilling, two_phases])
def test_nothing_is_divided_among_nobody(divide: Division) -> None:
    assert divide(5, []) == []
