"""The judge is judged: each kind of violation is found, and lawful states are not."""

import json
from typing import Any

import pytest

from loadtest.testbed.oracles.checker import Checker
from loadtest.testbed.standins.reflector import Change


def node(name: str = "n1", gpus: int = 8) -> dict[str, Any]:
    allocatable = {"cpu": "8", "pods": "10", "nvidia.com/gpu": str(gpus)}
    return {"metadata": {"name": name}, "status": {"allocatable": allocatable}}


def pod(
    name: str,
    on: str = "",
    *,
    gang: str = "g",
    size: int = 2,
    minimum: str = "",
    phase: str = "Pending",
    gpus: int = 1,
    devices: tuple[str, ...] = (),
) -> dict[str, Any]:
    notes = {"muster.dev/gang-size": str(size)}
    if minimum:
        notes["muster.dev/gang-min"] = minimum
    if devices:
        notes["muster.dev/plan"] = json.dumps({"node": on, "devices": {on: devices}})
    return {
        "metadata": {
            "uid": f"uid-{name}",
            "name": name,
            "namespace": "default",
            "labels": {"muster.dev/gang": gang} if gang else {},
            "annotations": notes,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}],
        },
        "status": {"phase": phase},
    }


@pytest.fixture
def checker() -> Checker:
    made = Checker(patience=60.0)
    for name in ("n1", "n2"):
        made.node(Change.PRESENT, node(name), 0.0)
    return made


def feed(checker: Checker, *pods: dict[str, Any], at: float) -> None:
    for one in pods:
        checker.pod(Change.PRESENT, one, at)


def test_a_whole_gang_is_not_partial(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), pod("b", "n2"), at=1.0)
    assert checker.partial_gangs(1000.0, at_end=True) == []


def test_members_may_follow_each_other_within_the_patience(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), at=1.0)
    feed(checker, pod("b", "n2"), at=61.0)
    assert checker.partial_gangs(1000.0, at_end=True) == []


def test_how_long_a_gang_was_partial_at_most_is_told_though_it_is_no_finding(
    checker: Checker,
) -> None:
    feed(checker, pod("a", "n1"), at=1.0)
    feed(checker, pod("b", "n2"), at=40.0)
    feed(checker, pod("a", "n1"), at=50.0)
    assert checker.longest_partial_s == 39.0


def test_a_gang_that_stays_partial_is_found_even_when_it_is_made_whole_later(
    checker: Checker,
) -> None:
    feed(checker, pod("a", "n1"), at=1.0)
    feed(checker, pod("b", "n2"), at=62.0)
    [finding] = checker.partial_gangs(1000.0, at_end=True)
    assert "default/g" in finding.text


def test_a_gang_that_is_partial_at_the_end_is_found_at_once(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), at=1.0)
    assert checker.partial_gangs(2.0) == []
    [finding] = checker.partial_gangs(2.0, at_end=True)
    assert "1 of at least 2 members" in finding.text


@pytest.mark.parametrize(("minimum", "partial"), [("1", 0), ("50%", 0), ("51%", 1), ("2", 1)])
def test_the_minimum_is_a_number_or_a_share_rounded_up(
    checker: Checker, minimum: str, partial: int
) -> None:
    feed(checker, pod("a", "n1", minimum=minimum), at=1.0)
    assert len(checker.partial_gangs(2.0, at_end=True)) == partial


def test_succeeded_members_count_and_failed_ones_do_not(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), pod("b", "n2"), at=1.0)
    feed(checker, pod("a", "n1", phase="Succeeded"), at=2.0)
    checker.pod(Change.GONE, pod("a", "n1", phase="Succeeded"), 3.0)
    assert checker.partial_gangs(100.0, at_end=True) == []
    feed(checker, pod("b", "n2", phase="Failed"), at=4.0)
    assert len(checker.partial_gangs(100.0, at_end=True)) == 1


def test_a_gang_that_is_gone_altogether_is_not_partial(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), pod("b", "n2"), at=1.0)
    for name in ("a", "b"):
        checker.pod(Change.GONE, pod(name, "n1"), 2.0)
    assert checker.partial_gangs(100.0, at_end=True) == []


def test_a_pod_group_says_the_minimum(checker: Checker) -> None:
    group = {"metadata": {"namespace": "default", "name": "g"}, "spec": {"minMember": 3}}
    checker.pod_group(group)
    feed(checker, pod("a", "n1"), pod("b", "n2"), at=1.0)
    assert len(checker.partial_gangs(2.0, at_end=True)) == 1


def test_more_gpus_than_there_are_is_found_once(checker: Checker) -> None:
    feed(checker, pod("a", "n1", gpus=8), at=1.0)
    assert checker.double_allocations() == []
    feed(checker, pod("b", "n1", gpus=1), at=2.0)
    feed(checker, pod("b", "n1", gpus=1, phase="Running"), at=3.0)
    [finding] = checker.double_allocations()
    assert finding.text == "node n1: nvidia.com/gpu is given away twice"


def test_room_of_an_ended_pod_is_free_and_of_a_terminating_one_is_not(checker: Checker) -> None:
    feed(checker, pod("a", "n1", gpus=8), at=1.0)
    feed(checker, pod("a", "n1", gpus=8, phase="Succeeded"), pod("b", "n1", gpus=8), at=2.0)
    assert checker.double_allocations() == []
    going = pod("b", "n1", gpus=8)
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    feed(checker, going, pod("c", "n1", gpus=1), at=3.0)
    assert len(checker.double_allocations()) == 1


def test_one_device_in_two_hands_is_found(checker: Checker) -> None:
    feed(checker, pod("a", "n1", devices=("gpu-0",)), pod("b", "n2", devices=("gpu-0",)), at=1.0)
    assert checker.double_allocations() == []
    feed(checker, pod("c", "n1", devices=("gpu-0", "gpu-1")), at=2.0)
    [finding] = checker.double_allocations()
    assert finding.text == "node n1: device gpu-0 is given away twice"


def says(name: str, **given: tuple[str, ...]) -> dict[str, Any]:
    """Return a node that says which devices its pods were given."""
    made = node(name)
    pods = {uid: {"nvidia.com/gpu": devices} for uid, devices in given.items()}
    text = json.dumps({"version": 1, "generation": 1, "pods": pods})
    made["metadata"]["annotations"] = {"muster.dev/node-allocations": text}
    return made


def test_what_the_node_says_it_gave_counts_more_than_the_plan(checker: Checker) -> None:
    first = pod("a", "n1", devices=("gpu-0",))
    checker.node(Change.PRESENT, says("n1", **{first["metadata"]["uid"]: ("gpu-1",)}), 0.0)
    feed(checker, first, pod("b", "n1", devices=("gpu-0",)), at=1.0)
    assert checker.double_allocations() == []
    feed(checker, pod("c", "n1", devices=("gpu-1",)), at=2.0)
    [finding] = checker.double_allocations()
    assert finding.text == "node n1: device gpu-1 is given away twice"


def test_what_was_given_is_the_plans_again_when_the_node_says_it_no_more(checker: Checker) -> None:
    first = pod("a", "n1", devices=("gpu-0",))
    feed(checker, first, at=1.0)
    checker.node(Change.PRESENT, says("n1", **{first["metadata"]["uid"]: ("gpu-1",)}), 2.0)
    checker.node(Change.PRESENT, node("n1"), 3.0)
    feed(checker, pod("b", "n1", devices=("gpu-1",)), at=4.0)
    assert checker.double_allocations() == []
    feed(checker, pod("c", "n1", devices=("gpu-0",)), at=5.0)
    assert len(checker.double_allocations()) == 1


def sharer(name: str, asks: dict[str, str], device: str, **notes: str) -> dict[str, Any]:
    """Return a pod on n1 that asks for part of a device and is planned on it."""
    made = pod(name, "n1", devices=(device,))
    made["metadata"]["annotations"] |= notes
    made["spec"]["containers"] = [{"resources": {"requests": asks}}]
    return made


@pytest.mark.parametrize(
    ("asks", "device", "notes"),
    [
        ({}, "gpu-0", {"gpu-fraction": "0.4"}),
        ({}, "gpu-0", {"gpu-memory": "30000"}),
        ({"nvidia.com/gpumem": "30000"}, "gpu-0", {}),
        ({"nvidia.com/mig-3g.40gb": "1"}, "gpu-0/3g.40gb@0", {}),
    ],
)
def test_parts_of_one_device_may_have_several_owners_until_it_is_full(
    checker: Checker, asks: dict[str, str], device: str, notes: dict[str, str]
) -> None:
    shared = node("n1") | {"metadata": {"name": "n1", "labels": {"nvidia.com/gpu.memory": "80000"}}}
    shared["status"]["allocatable"] |= {"nvidia.com/mig-3g.40gb": "9"}
    checker.node(Change.PRESENT, shared, 0.0)
    second = device.replace("@0", "@4")
    feed(checker, sharer("a", asks, device, **notes), sharer("b", asks, second, **notes), at=1.0)
    assert checker.double_allocations() == []
    feed(checker, sharer("c", asks, device, **notes), at=2.0)
    assert checker.double_allocations()


def test_a_whole_device_is_nobody_elses(checker: Checker) -> None:
    feed(checker, sharer("a", {}, "gpu-0", **{"gpu-fraction": "0.1"}), at=1.0)
    feed(checker, pod("b", "n1", devices=("gpu-0",)), at=2.0)
    assert [f.text for f in checker.double_allocations()] == [
        "node n1: device gpu-0 is given away twice"
    ]


def test_a_pod_slot_too_many_is_found(checker: Checker) -> None:
    checker.node(Change.PRESENT, node("small") | {"status": {"allocatable": {"pods": "1"}}}, 0.0)
    feed(checker, pod("a", "small", gpus=0), pod("b", "small", gpus=0), at=1.0)
    assert [f.text for f in checker.double_allocations()] == [
        "node small: pods is given away twice"
    ]


def test_a_pod_that_changes_its_node_is_found(checker: Checker) -> None:
    feed(checker, pod("a", "n1"), pod("a", "n2"), at=1.0)
    assert "moved from n1 to n2" in checker.double_allocations()[0].text
