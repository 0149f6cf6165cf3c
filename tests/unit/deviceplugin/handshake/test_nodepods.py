"""Pods of the API server as the handshake wants them."""

from typing import Any

import msgspec
import pytest

from deviceplugin.allocation.values import PodStage
from deviceplugin.handshake.nodepods import node_pod
from muster.kube import wire

GPU, HCA = "nvidia.com/gpu", "rdma/hca"
NODE = "n1"
PLAN = '{"id":"p","node":"n1","spares":["n2"],"devices":{"n1":["g0"],"n2":["g7"]},"generation":1}'


def pod(**parts: Any) -> wire.Pod:
    meta = {"name": "a", "namespace": "ns", "uid": "u", "annotations": parts.get("notes", {})}
    if parts.get("deleted"):
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"containers": parts.get("containers", []), "initContainers": parts.get("init", [])}
    body = {"metadata": meta, "spec": spec, "status": {"phase": parts.get("phase", "Pending")}}
    return msgspec.convert(body, wire.Pod)


def container(name: str, limits: dict[str, str], **more: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits}, **more}


def test_containers_are_in_the_kubelet_s_order_and_only_plain_init_ones_pass_on() -> None:
    found = node_pod(
        pod(
            init=[
                container("init", {GPU: "1"}),
                container("car", {GPU: "2"}, restartPolicy="Always"),
            ],
            containers=[container("main", {GPU: "4", HCA: "1", "cpu": "3", "other/x": "1"})],
        ),
        NODE,
        7,
        {GPU, HCA},
    )
    assert [(each.name, dict(each.amounts), each.passes_on) for each in found.containers] == [
        ("init", {GPU: 1}, True),
        ("car", {GPU: 2}, False),
        ("main", {GPU: 4, HCA: 1}, False),
    ]
    assert found.batch == 7


@pytest.mark.parametrize(
    ("notes", "plan", "readable"),
    [
        ({}, None, True),
        ({"muster.dev/plan": PLAN}, ("g0",), True),
        ({"muster.dev/plan": PLAN.replace("n1", "n3")}, None, True),
        ({"muster.dev/plan": "{"}, None, False),
        ({"muster.dev/plan": "[" * 10_000}, None, False),
    ],
    ids=["none", "ours", "another node's", "broken", "hostile"],
)
def test_the_plan_is_that_of_this_node(
    notes: dict[str, str], plan: tuple[str, ...] | None, *, readable: bool
) -> None:
    found = node_pod(pod(notes=notes), NODE, 1, {GPU})
    assert (found.plan, found.problem == "") == (plan, readable)


@pytest.mark.parametrize(
    ("parts", "life"),
    [
        ({}, PodStage.WAITING),
        ({"phase": "Running"}, PodStage.RUNNING),
        ({"phase": "Running", "deleted": True}, PodStage.ENDING),
        ({"phase": "Failed", "deleted": True}, PodStage.OVER),
        ({"phase": "Succeeded"}, PodStage.OVER),
    ],
)
def test_how_far_a_pod_is(parts: dict[str, Any], life: PodStage) -> None:
    assert node_pod(pod(**parts), NODE, 1, {GPU}).life is life
