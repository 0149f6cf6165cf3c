"""The number of members is computed without listing them, since a user may write any number."""

import msgspec
import pytest
from support.pods.wirepods import pod

from extender.reservations.eligibility import (
    MOST_MEMBERS,
    gang_problem,
    member_count,
    numbering_problem,
    numbers,
    pod_problem,
)
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.kube.names import PLAN_GATE
from muster.workloads import registry
from muster.workloads.keys.ranks import COMPLETION_INDEX


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


@pytest.mark.parametrize("jobs", [[2, 2], [2], [8], [3, 1]])
def test_numbers_of_several_jobs_or_of_one_of_another_size_are_not_the_gangs(
    jobs: list[int],
) -> None:
    assert "numbered by" in numbering_problem(gang(4, 4), jobs)


@pytest.mark.parametrize("jobs", [[], [4]])
def test_numbers_of_its_only_job_are_the_gangs(jobs: list[int]) -> None:
    assert numbering_problem(gang(4, 4), jobs) == ""


def test_nothing_is_reserved_by_the_numbers_of_a_statefulset() -> None:
    labels = {"muster.dev/gang": "g", "muster.dev/gang-size": "4"}
    first = pod("g-1", labels=labels | {"apps.kubernetes.io/pod-index": "1"})
    assert "StatefulSet" in pod_problem(first, registry.place(first))


@pytest.mark.parametrize(("number", "is_known"), [(None, False), (0, True), (-5, True)])
def test_nothing_is_reserved_while_the_number_of_a_priority_class_is_not_known(
    number: int | None, *, is_known: bool
) -> None:
    """A class that the webhook gives has a number once the API server has looked at it again."""
    labels = {"muster.dev/gang": "g", "muster.dev/gang-size": "4", COMPLETION_INDEX: "1"}
    job = ("batch/v1", "Job", "g")
    first = pod("g-1", labels=labels, owner=job, gates=(PLAN_GATE,))
    spec = msgspec.structs.replace(first.spec, priority_class_name="given", priority=number)
    first = msgspec.structs.replace(first, spec=spec)
    assert (pod_problem(first, registry.place(first)) == "") is is_known
