"""The number of members is computed without listing them, since a user may write any number."""

import pytest

from extender.reservations.eligibility import MOST_MEMBERS, gang_problem, member_count, numbers
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec


def gang(size: int | None, min_count: int, runs: tuple[tuple[int, int], ...] = ()) -> GangSpec:
    return GangSpec(
        key=GangKey("muster/default/g"),
        namespace="default",
        name="g",
        dialect="muster",
        min_count=min_count,
        submitted_at=0.0,
        size=size,
        rank_runs=runs,
    )


@pytest.mark.parametrize(
    "spec", [gang(4, 2), gang(None, 3), gang(6, 6, ((2, 3),)), gang(7, 7, ((2, 3), (1, 1)))]
)
def test_as_many_members_are_counted_as_have_numbers(spec: GangSpec) -> None:
    assert member_count(spec) == len(numbers(spec))
    assert gang_problem(spec, 0) == ""


def test_a_gang_of_more_than_are_reserved_for_is_told_so() -> None:
    assert f"a gang of 1000000: from 2, or its least number, to {MOST_MEMBERS} are" in (
        gang_problem(gang(1_000_000, 2), 0)
    )
