import json
import uuid
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pods.jsonpods import pod

from muster.cluster.events import DeviceSpec
from muster.cluster.specs.podconstraints import Taint, TaintEffect
from muster.kube.translation.allocationsannotation import encode
from muster.kube.translation.translate import node_event, pod_event, pod_uid, read_node
from muster.kube.wire import Node

# -- events --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ("annotations", "muster.dev/movable", "false"),
        ("labels", "muster.dev/movable", "false"),
        ("annotations", "karpenter.sh/do-not-disrupt", "true"),
        ("annotations", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
    ],
)
def test_a_pod_that_is_not_to_be_disturbed_stays(where: str, key: str, value: str) -> None:
    assert pod_event(pod(metadata={where: {key: value}})).stays
    assert not pod_event(pod(metadata={where: {key: "whatever"}})).stays
    assert not pod_event(pod()).stays


def test_a_pods_event_says_everything_about_it() -> None:
    source = pod(
        labels={"a": "b", "apps.kubernetes.io/pod-index": "4"},
        metadata={
            "uid": "254ec386-36c8-4d44-8ac9-60e25c9162de",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-01T00:05:00Z",
            "ownerReferences": [{"kind": "Job", "name": "j", "uid": "x", "controller": True}],
            "annotations": {"muster.dev/plan": "not ours"},
        },
        nodeName="n1",
        schedulingGates=[],
        priority=7,
        status={
            "phase": "Failed",
            "startTime": "2026-01-01T00:00:10Z",
            "nominatedNodeName": "n2",
        },
    )
    event = pod_event(source, managed=True, rank=3, role="worker", queue="q")
    assert event.uid == bytes.fromhex("254ec38636c84d448ac960e25c9162de")
    assert event.labels.labels == (("a", "b"),)
    assert (event.node, event.nominated, event.priority) == ("n1", "n2", 7)
    assert (event.created, event.started) == (1767225600.0, 1767225610.0)
    assert (event.finished, event.succeeded, event.terminating) == (True, False, True)
    assert event.ends_by == 1767225900.0
    assert (event.owned, event.managed, event.plan) == (True, True, None)
    assert (event.rank, event.role, event.queue, event.preemptible) == (3, "worker", "q", True)


def test_a_pending_pod_has_no_node_and_names_its_gates() -> None:
    event = pod_event(pod(schedulingGates=[{"name": "a/b"}, {"name": "muster.dev/plan"}]))
    assert (event.node, event.nominated, event.started) == (None, None, 0.0)
    assert event.gates == {"a/b", "muster.dev/plan"}


@pytest.mark.parametrize(
    "text",
    [
        "254EC386-36C8-4D44-8AC9-60E25C9162DE",
        "254ec38636c84d448ac960e25c9162de",
        "254ec386-36c8-4d44-8ac960-e25c9162de",
        "254ec386-36c8-4d44-8ac9-60e25c9162d ",
        "mirror-pod-hash",
        "",
    ],
)
def test_only_a_canonical_uuid_is_its_own_bytes(text: str) -> None:
    plain = pod_uid("254ec386-36c8-4d44-8ac9-60e25c9162de")
    assert len(pod_uid(text)) == 16
    assert pod_uid(text) != plain


@given(st.uuids(), st.uuids())
def test_different_uids_have_different_bytes(one: uuid.UUID, other: uuid.UUID) -> None:
    assert pod_uid(str(one)) == one.bytes
    assert (pod_uid(str(one)) == pod_uid(str(other))) == (one == other)


# -- nodes ---------------------------------------------------------------------------------------


def node(**parts: Any) -> Node:
    meta = {"name": "n1", "labels": {"rack": "r1"}, "annotations": parts.pop("annotations", {})}
    body = {"metadata": meta, "spec": parts.pop("spec", {}), "status": parts}
    return msgspec.json.decode(json.dumps(body), type=Node)


def test_a_nodes_event_is_in_the_models_units() -> None:
    event = node_event(
        node(
            allocatable={"cpu": "95500m", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
            conditions=[{"type": "Ready", "status": "Unknown"}],
            spec={
                "unschedulable": True,
                "taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}],
            },
        )
    )
    assert event.allocatable == {
        "cpu": 95500,
        "memory": 1 << 40,
        "pods": 110,
        "nvidia.com/gpu": 8,
    }
    assert (event.unschedulable, event.ready) == (True, False)
    assert event.taints == (Taint("gpu", "x", TaintEffect.NO_SCHEDULE),)
    assert event.labels == {"rack": "r1"}


def test_a_node_without_conditions_counts_as_ready() -> None:
    assert node_event(node()).ready


def test_unreadable_parts_of_a_node_are_reported_and_the_rest_counts() -> None:
    broken = node(
        allocatable={"cpu": "4", "example.com/npu": "lots"},
        spec={"taints": [{"key": "a", "effect": "NoBreakfast"}]},
        annotations={"muster.dev/node-topology": '{"devices": 5}'},
    )
    event, problems = read_node(broken)
    assert event.allocatable == {"cpu": 4000}
    assert (event.taints, event.devices) == ((), ())
    assert [problem.split(":")[1].strip() for problem in problems] == [
        "status.allocatable",
        "spec.taints",
        "annotation muster.dev/node-topology",
    ]
    assert "example.com/npu: quantity 'lots'" in problems[0]


def test_devices_come_from_the_annotation() -> None:
    device = {
        "name": "GPU-0",
        "resource": "nvidia.com/gpu",
        "numa": 1,
        "parent": "pci-3",
        "healthy": False,
        "counters": {"devices": 1},
        "from a later version": {},
    }
    event, problems = read_node(
        node(annotations={"muster.dev/node-topology": json.dumps({"devices": [device]})})
    )
    assert problems == ()
    assert event.devices == (
        DeviceSpec(
            "GPU-0",
            "nvidia.com/gpu",
            numa=1,
            parent="pci-3",
            healthy=False,
            counters={"devices": 1},
        ),
    )


def test_a_device_says_why_it_is_not_healthy() -> None:
    device = {"name": "g", "resource": "r", "healthy": False, "reason": "XID 79"}
    event = node_event(
        node(annotations={"muster.dev/node-topology": json.dumps({"devices": [device]})})
    )
    assert [(spec.healthy, spec.reason) for spec in event.devices] == [(False, "XID 79")]


def test_what_was_given_comes_by_pod_and_name_whatever_the_resource() -> None:
    uid = "00000000-0000-4000-8000-000000000001"
    text = encode(7, [(uid, {"rdma/hca": ["mlx5_0"], "nvidia.com/gpu": ["GPU-b", "GPU-a"]})])
    event = node_event(node(annotations={"muster.dev/node-allocations": text}))
    assert event.allocations == {pod_uid(uid): ("GPU-a", "GPU-b", "mlx5_0")}


def test_a_node_that_tells_nothing_has_given_nothing() -> None:
    assert node_event(node()).allocations == {}


@pytest.mark.parametrize("text", ["", "[]", '{"version":2,"generation":1,"pods":{}}', "{" * 9999])
def test_allocations_that_cannot_be_read_are_told_and_leave_what_was_told(text: str) -> None:
    event, (problem,) = read_node(node(annotations={"muster.dev/node-allocations": text}))
    assert event.allocations is None
    assert problem.startswith("node n1: annotation muster.dev/node-allocations: ")
    assert problem.endswith("; what it had before still counts")


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "[" * 100_000, '{"devices":[{}]}'])
def test_a_broken_topology_annotation_is_never_fatal(text: str) -> None:
    event, problems = read_node(node(annotations={"muster.dev/node-topology": text}))
    assert event.devices == ()
    assert len(problems) == 1


@pytest.mark.parametrize(
    "device",
    [
        {"name": ""},
        {"counters": {"memory": 1 << 31}},
        {"counters": {"memory": -1}},
        {"placements": [{"name": "1g.5gb", "masks": [[0, 1 << 31]]}]},
        {"placements": [{"name": "1g.5gb", "masks": [[1 << 15, 1]]}]},
    ],
)
def test_what_the_model_cannot_count_is_refused_with_its_place(device: dict[str, Any]) -> None:
    told = {"devices": [{"name": "g", "resource": "r"} | device]}
    event, (problem,) = read_node(node(annotations={"muster.dev/node-topology": json.dumps(told)}))
    assert event.devices == ()
    assert "$.devices[0]" in problem


@pytest.mark.parametrize("other", ["r", "s"])
def test_a_device_listed_twice_is_a_contradiction(other: str) -> None:
    twice = {"devices": [{"name": "g", "resource": "r"}, {"name": "g", "resource": other}]}
    event, problems = read_node(node(annotations={"muster.dev/node-topology": json.dumps(twice)}))
    assert event.devices == ()
    assert "listed twice" in problems[0]
