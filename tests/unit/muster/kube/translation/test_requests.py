"""What a pod asks for; each row is a pod drawn as text.

``c:`` containers, ``i:`` init containers and ``s:`` sidecars, in the order of the list,
each with its CPU; ``+`` is the overhead, ``=`` the pod-level request.
"""

import msgspec
import pytest

from muster.kube.quantity import QuantityError
from muster.kube.translation.requests import pod_requests
from muster.kube.wire import Condition, Container, ContainerStatus, PodSpec, PodStatus, Resources


def pod(text: str) -> PodSpec:
    containers: list[Container] = []
    inits: list[Container] = []
    extra: dict[str, object] = {}
    for word in text.split():
        if word.startswith("+"):
            extra["overhead"] = {"cpu": word[1:]}
        elif word.startswith("="):
            extra["resources"] = {"requests": {"cpu": word[1:]}}
        else:
            kind, cpu = word.split(":")
            asks = Resources(requests={"cpu": cpu})
            number = str(len(containers) + len(inits))
            if kind == "c":
                containers.append(Container(name=number, resources=asks))
            else:
                policy = "Always" if kind == "s" else ""
                inits.append(Container(name=number, resources=asks, restart_policy=policy))
    made = {"containers": containers, "initContainers": inits, **extra}
    return msgspec.convert(msgspec.to_builtins(made), PodSpec)


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("c:1 c:2", 3000),
        # Init containers run alone, before the containers.
        ("i:5 c:1 c:2", 5000),
        ("i:2 i:3 c:1 c:1", 3000),
        # A sidecar runs beside the containers.
        ("s:2 c:1 c:2", 5000),
        # An init container AFTER a sidecar runs beside it, one BEFORE it does not.
        ("s:2 i:5 c:1", 7000),
        ("i:5 s:2 c:1", 5000),
        ("s:1 i:2 s:3 i:1 c:1", 5000),
        ("s:1 i:4 s:3 i:1 c:0", 5000),
        ("i:9 s:1 s:1 c:1", 9000),
        # While the last sidecar starts, all of them are held, and no container yet.
        ("s:3 s:4 c:0", 7000),
        # The overhead comes on top of either, and of the pod-level request.
        ("i:5 c:1 +250m", 5250),
        ("c:1 =4 +1", 5000),
        ("c:9 =4", 4000),
        # Sums are exact, the total is rounded up once.
        ("c:0.4m c:0.4m", 1),
        ("c:0.6m c:0.6m", 2),
        ("c:1n", 1),
    ],
)
def test_cpu_is_counted_as_kube_scheduler_counts_it(text: str, milli: int) -> None:
    assert pod_requests(pod(text)) == {"cpu": milli, "pods": 1}


def test_every_resource_has_its_own_maximum() -> None:
    spec = PodSpec(
        containers=(Container(resources=Resources(requests={"cpu": "1", "memory": "1Gi"})),),
        init_containers=(Container(resources=Resources(requests={"memory": "4Gi"})),),
    )
    assert pod_requests(spec) == {"cpu": 1000, "memory": 4 << 30, "pods": 1}


def test_pod_level_requests_replace_only_cpu_memory_and_huge_pages() -> None:
    asks = {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "2Mi", "nvidia.com/gpu": "8"}
    level = {"cpu": "2", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "1"}
    spec = PodSpec(
        containers=(Container(resources=Resources(requests=asks)),),
        resources=Resources(requests=level),
    )
    assert pod_requests(spec) == {
        "cpu": 2000,
        "memory": 1 << 30,
        "hugepages-2Mi": 4 << 20,
        "nvidia.com/gpu": 8,
        "pods": 1,
    }


def test_limits_are_not_requests_because_the_api_server_has_derived_those() -> None:
    only_limits = Container(resources=Resources(limits={"nvidia.com/gpu": "8"}))
    assert pod_requests(PodSpec(containers=(only_limits,))) == {"pods": 1}


def test_zero_is_as_good_as_nothing() -> None:
    zero = Container(resources=Resources(requests={"cpu": "0", "nvidia.com/gpu": "0"}))
    assert pod_requests(PodSpec(containers=(zero,))) == {"pods": 1}


def resized(wanted: str, has: str, granted: str, *conditions: Condition) -> dict[str, int]:
    spec = PodSpec(containers=(Container(name="a", resources=Resources(requests={"cpu": wanted})),))
    entry = ContainerStatus(
        name="a", resources=Resources(requests={"cpu": has}), allocated_resources={"cpu": granted}
    )
    return pod_requests(spec, PodStatus(container_statuses=(entry,), conditions=conditions))


def test_a_container_that_is_being_resized_counts_with_the_largest_amount() -> None:
    assert resized("1", "3", "2")["cpu"] == 3000
    assert resized("4", "3", "2")["cpu"] == 4000
    assert resized("1", "1", "1")["cpu"] == 1000


def test_an_infeasible_resize_does_not_count() -> None:
    infeasible = Condition(type="PodResizePending", status="True", reason="Infeasible")
    assert resized("9", "3", "2", infeasible)["cpu"] == 3000
    deferred = Condition(type="PodResizePending", status="True", reason="Deferred")
    assert resized("9", "3", "2", deferred)["cpu"] == 9000


def test_a_status_without_resources_leaves_the_specification() -> None:
    spec = PodSpec(containers=(Container(name="a", resources=Resources(requests={"cpu": "1"})),))
    status = PodStatus(container_statuses=(ContainerStatus(name="a"), ContainerStatus(name="x")))
    assert pod_requests(spec, status)["cpu"] == 1000


def test_the_error_names_the_resource_and_the_value() -> None:
    bad = Container(resources=Resources(requests={"example.com/npu": "1Zi"}))
    with pytest.raises(QuantityError, match=r"example.com/npu: quantity '1Zi'"):
        pod_requests(PodSpec(containers=(bad,)))
    large = Container(resources=Resources(requests={"memory": "8Ei"}))
    with pytest.raises(QuantityError, match=r"memory: .*out of range"):
        pod_requests(PodSpec(containers=(large, large)))
