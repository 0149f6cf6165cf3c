"""YuniKorn's applications. Manifests after yunikorn.apache.org/docs (gang scheduling)."""

import json

import pytest
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import RoleSpec
from muster.kube import wire
from muster.workloads import registry
from muster.workloads.dialect import Member

GROUPS = json.dumps(
    [
        {"name": "launcher", "minMember": 1, "minResource": {"cpu": "100m"}},
        {"name": "workers", "minMember": 4, "minResource": {"nvidia.com/gpu": 1}},
    ]
)


def member(group: str, *, groups: str = GROUPS, **labels: str) -> wire.Pod:
    return pod(
        labels={"applicationId": "app-1", "queue": "root.sandbox", **labels},
        annotations={
            "yunikorn.apache.org/task-group-name": group,
            **({"yunikorn.apache.org/task-groups": groups} if groups else {}),
        },
    )


def test_an_application_is_a_gang_with_a_role_for_each_task_group() -> None:
    spec = registry.spec_from_pod(member("launcher"))
    assert spec is not None
    assert (spec.key, spec.min_count, spec.queue) == ("yunikorn/team-a/app-1", 5, "root.sandbox")
    assert spec.roles == (RoleSpec("launcher", 1), RoleSpec("workers", 4))


def test_the_other_members_may_leave_the_list_to_the_first() -> None:
    other = member("workers", groups="")
    assert registry.member(other) == Member("yunikorn/team-a/app-1", "workers")
    assert registry.spec_from_pod(other) is None


def test_a_driver_is_not_held_back_for_executors_that_only_it_can_make() -> None:
    driver = pod(
        labels={"spark-app-selector": "spark-1", "spark-role": "driver"},
        annotations={
            "yunikorn.apache.org/task-group-name": "launcher",
            "yunikorn.apache.org/task-groups": GROUPS,
        },
    )
    spec = registry.spec_from_pod(driver)
    assert spec is not None
    assert (spec.key, spec.min_count) == ("yunikorn/team-a/spark-1", 1)
    assert spec.roles == (RoleSpec("launcher", 1),)


def test_a_pod_of_an_application_without_a_task_group_is_on_its_own() -> None:
    assert registry.member(pod(labels={"yunikorn.apache.org/app-id": "app-1"})) is None


@pytest.mark.parametrize("groups", ["launcher", "[1]", '[{"name": "x", "minMember": 10000000}]'])
def test_a_list_that_cannot_be_read_is_a_problem(groups: str) -> None:
    spec = registry.spec_from_pod(member("launcher", groups=groups))
    assert spec is not None
    assert "yunikorn.apache.org/task-groups" in spec.problems[0]
