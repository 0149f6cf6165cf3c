"""What is said of a template that the API server will add to, and when nothing is."""

from typing import Any

import pytest

from muster.kube.translation.serveradditions import unread_additions
from muster.kube.translation.serverdefaults import with_defaults

JSON = dict[str, Any]
FULL = {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
LIMITED = {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}


def said(spec: JSON, priority: int = 0) -> list[str]:
    made: Any = with_defaults(spec)
    return list(unread_additions(made, "team", priority))


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [FULL, LIMITED], "initContainers": [FULL]},
        {"containers": [{}], **FULL},
        {"containers": [{}], **LIMITED},
        {"containers": [FULL], "priorityClassName": "high", "priority": 0},
        {"containers": "none", "runtimeClassName": ""},
        {},
    ],
)
def test_nothing_is_said_of_a_pod_that_says_it_all(spec: JSON) -> None:
    assert said(spec) == []


@pytest.mark.parametrize(
    ("containers", "missing"),
    [
        ({"containers": [{}]}, "no cpu and no memory"),
        ({"containers": [FULL, {"resources": {"requests": {"cpu": "1"}}}]}, "no memory"),
        ({"containers": [FULL], "initContainers": [{"resources": None}]}, "no cpu and no memory"),
        ({"containers": [{}], "resources": {"limits": {"memory": "1Gi"}}}, "no cpu"),
    ],
)
def test_a_limit_range_may_add_what_a_container_does_not_request(
    containers: JSON, missing: str
) -> None:
    (line,) = said(containers)
    assert line == (
        f"without what a LimitRange of namespace team gives containers that request {missing}: "
        "Muster does not read it"
    )


def test_classes_are_named_with_what_is_supposed_in_their_place() -> None:
    spec = {"containers": [FULL], "runtimeClassName": "kata", "priorityClassName": "high"}
    runtime, priority = said(spec, priority=7)
    assert runtime.startswith(
        "without overhead, node selector and tolerations of RuntimeClass kata"
    )
    assert priority == "with priority 7: Muster does not read PriorityClass high"
