"""What LimitRanges give to the containers of templates."""

import pytest

from muster.kube.translation.limitranges import (
    LimitRange,
    LimitRangeItem,
    LimitRangeSpec,
    default_requests,
    with_default_requests,
)


def limit_range(kind: str = "Container", **requests: str) -> LimitRange:
    item = LimitRangeItem(type=kind, default_request=requests)
    return LimitRange(spec=LimitRangeSpec(limits=(item,)))


def test_of_several_defaults_the_least_counts_and_only_those_of_containers() -> None:
    ranges = [
        limit_range(cpu="2", memory="1Gi"),
        limit_range(cpu="500m"),
        limit_range("Pod", a="1"),
    ]
    assert default_requests(ranges) == {"cpu": "500m", "memory": "1Gi"}
    assert default_requests([]) == {}


def test_a_default_that_cannot_be_read_is_left_out() -> None:
    assert default_requests([limit_range(cpu="many", memory="1Gi")]) == {"memory": "1Gi"}


def test_a_container_gets_what_it_does_not_request_itself() -> None:
    asks = {"name": "a", "resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "8"}}}
    spec = {"containers": [asks, {"name": "b"}], "initContainers": [{"name": "c"}]}
    made = with_default_requests(spec, {"cpu": "1", "memory": "1Gi"})
    given = {"requests": {"cpu": "1", "memory": "1Gi"}}
    assert made == {
        "containers": [
            {
                "name": "a",
                "resources": {
                    "requests": {"cpu": "4", "memory": "1Gi"},
                    "limits": {"cpu": "8"},
                },
            },
            {"name": "b", "resources": given},
        ],
        "initContainers": [{"name": "c", "resources": given}],
    }


@pytest.mark.parametrize("spec", [None, "x", {}, {"containers": None}, {"containers": ["x"]}])
def test_what_is_no_pod_stays_as_it_is(spec: object) -> None:
    assert with_default_requests(spec, {"cpu": "1"}) == spec


def test_without_defaults_nothing_changes() -> None:
    spec = {"containers": [{"name": "a"}]}
    assert with_default_requests(spec, {}) is spec
