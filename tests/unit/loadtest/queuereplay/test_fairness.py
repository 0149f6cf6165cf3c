"""Jain's index by the hour, and what a fair part is."""

import numpy as np
import pytest

from loadtest.queuereplay.fairness import Stay, fair_parts, hourly_index, jain


def test_the_index_is_1_when_all_get_alike_and_1_over_n_when_one_gets_all() -> None:
    assert jain(np.array([2.0, 2.0, 2.0])) == 1.0
    assert jain(np.array([4.0, 0.0, 0.0, 0.0])) == 0.25
    assert jain(np.array([1.0, 2.0])) == pytest.approx(9.0 / 10.0)
    assert jain(np.zeros(3)) == 1.0


@pytest.mark.parametrize(
    ("demand", "weights", "room", "parts"),
    [
        ([10.0, 10.0], [1.0, 3.0], 8.0, [2.0, 6.0]),
        ([1.0, 10.0], [1.0, 1.0], 8.0, [1.0, 7.0]),  # what one leaves goes to the other
        ([1.0, 2.0, 10.0], [1.0, 1.0, 1.0], 9.0, [1.0, 2.0, 6.0]),
        ([1.0, 2.0], [1.0, 1.0], 9.0, [1.0, 2.0]),  # nobody gets more than the demand
        ([0.0, 5.0], [9.0, 1.0], 4.0, [0.0, 4.0]),
    ],
)
def test_a_fair_part_is_by_weight_and_at_most_the_demand(
    demand: list[float], weights: list[float], room: float, parts: list[float]
) -> None:
    found = fair_parts(np.array(demand), np.array(weights), room)
    assert found.tolist() == pytest.approx(parts)


def stay(queue: str, gpus: int, arrival: float, start: float, end: float) -> Stay:
    return Stay(queue, gpus, arrival * 3600.0, start * 3600.0, end * 3600.0)


def test_hours_are_judged_one_by_one() -> None:
    """In the first hour ``a`` has all 4 GPUs though ``b`` asks for 2; in the second each has 2."""
    stays = [stay("a", 4, 0, 0, 1), stay("a", 2, 1, 1, 2), stay("b", 2, 0, 1, 2)]
    first = (2.0 + 0.0) ** 2 / (2 * (2.0**2 + 0.0))
    assert hourly_index(stays, {"a": 1.0, "b": 1.0}, 4, 7200.0) == pytest.approx((first + 1.0) / 2)


def test_a_weight_is_what_a_queue_is_due() -> None:
    stays = [
        stay("a", 3, 0, 0, 1),
        stay("a", 4, 0, 1, 2),
        stay("b", 1, 0, 0, 1),
        stay("b", 4, 0, 1, 2),
    ]
    assert hourly_index(stays[:1] + stays[2:3], {"a": 3.0, "b": 1.0}, 4, 3600.0) == 1.0
    assert hourly_index(stays, {"a": 3.0, "b": 1.0}, 4, 3600.0) == pytest.approx(1.0)
    assert hourly_index(stays, {"a": 1.0, "b": 1.0}, 4, 3600.0) < 0.9


def test_hours_with_demand_of_one_queue_alone_are_left_out() -> None:
    stays = [stay("a", 4, 0, 0, 5), stay("b", 4, 4, 5, 6)]
    assert hourly_index(stays, {"a": 1.0, "b": 1.0}, 4, 4 * 3600.0) == 1.0
    assert hourly_index(stays, {"a": 1.0, "b": 1.0}, 4, 5 * 3600.0) == 0.5


def test_what_nobody_could_have_used_is_no_demand() -> None:
    """``b`` asks for 40 GPUs in the last quarter: in the hour it could use one at most."""
    waiting = [stay("b", 4, 0.75, 9, 10) for _ in range(9)]
    stays = [
        stay("a", 4, 0, 0, 0.75),
        stay("a", 4, 0, 9, 10),
        stay("b", 4, 0.75, 0.75, 1),
        *waiting,
    ]
    assert hourly_index(stays, {"a": 1.0, "b": 3.0}, 4, 3600.0) == pytest.approx(1.0)


def test_demand_is_at_most_the_cluster_and_what_waits_counts() -> None:
    """``b`` asks for ten times the cluster: its part is half of it, and it has half of it."""
    waiting = [stay("b", 4, 0, 9, 10) for _ in range(10)]
    stays = [stay("a", 2, 0, 0, 1), stay("a", 2, 0, 9, 10), stay("b", 2, 0, 0, 1), *waiting]
    assert hourly_index(stays, {"a": 1.0, "b": 1.0}, 4, 3600.0) == pytest.approx(1.0)
