"""`muster bench room` on a few clusters: what it must find on any."""

import pytest

from loadtest.benches.room.bench import LARGER, RoomSettings, cost_of, run
from loadtest.benches.room.cases import generate
from loadtest.benches.room.rules import RULES, may_go
from loadtest.benches.room.score import answered
from muster.placement.victims.costs import CostKind, CostOrder


def test_every_answer_on_small_clusters_is_the_optimum_and_nothing_is_broken() -> None:
    """Of 80 clusters 60 are small; the oracle is OR-tools."""
    figures, misses = run(RoomSettings(cases=80, seeds=1, large=False))
    assert figures["optimal_share"] == 1.0, misses
    keys = ("wrong_cases", "below_entitlement", "partial_gangs", "cycles", "unsettled_runs")
    assert {key: figures[key] for key in keys} == dict.fromkeys(keys, 0)


def test_no_cases_are_refused() -> None:
    """A number of cases below 1."""
    with pytest.raises(ValueError, match="--cases: 0 is not allowed: 1 or more"):
        RoomSettings(cases=0, seeds=1, large=False)


def test_an_order_of_costs_names_each_once() -> None:
    """Twice the same, and nothing."""
    with pytest.raises(ValueError, match="order of costs: gangs, gangs is not allowed"):
        CostOrder((CostKind.GANGS, CostKind.GANGS))


@pytest.mark.parametrize("number", [135, 263, 403, 407, 507, 575, 603])
def test_no_rule_of_others_finds_a_cheaper_set_where_one_did(number: int) -> None:
    """Larger clusters in which the first sets of the bounded search were not good enough."""
    case = generate(number, *LARGER)
    made = answered(case)
    assert made.cost is not None
    for rule, choose in RULES.items():
        other = choose(case)
        if other is not None and may_go(case, other.gone):
            assert made.cost <= cost_of(case, other), rule
