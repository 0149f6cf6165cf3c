"""``bind``: a Binding with UID and annotation, idempotent, its errors in the wire's own field."""

import json
from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import PODS, World, until, world

from extender.calls.wire import Reason
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names
from muster.kube.translation.translate import pod_uid


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 3})
        yield running


async def bind(cluster: World, obj: JSON, node: str, **other: str) -> str:
    meta = obj["metadata"]
    args = {
        "PodName": meta["name"],
        "PodNamespace": meta["namespace"],
        "PodUID": meta["uid"],
        "Node": node,
    }
    answer = await cluster.verb("bind", args | other)
    error: str = answer["Error"]
    return error


async def planned(cluster: World, *, gated: bool = True) -> tuple[JSON, str]:
    await cluster.gang(Gang("g", 1), gated=gated)
    node = (await cluster.released(["g-0"]))["g-0"]
    await cluster.settled()
    return await cluster.pod("g-0"), node


@pytest.mark.parametrize("gated", [True, False])
async def test_a_planned_pod_is_bound_with_its_plan_in_the_annotation(
    cluster: World,
    *,
    gated: bool,
) -> None:
    found, node = await planned(cluster, gated=gated)
    assert await bind(cluster, found, node) == ""
    bound = await cluster.pod("g-0")
    assert bound["spec"]["nodeName"] == node
    assert json.loads(bound["metadata"]["annotations"][names.PLAN])["node"] == node


async def test_binding_twice_is_a_success_twice(cluster: World) -> None:
    found, node = await planned(cluster)
    assert await bind(cluster, found, node) == ""
    assert await bind(cluster, found, node) == ""
    await cluster.settled()
    assert await bind(cluster, found, node) == ""


async def test_the_spare_may_be_bound_and_any_other_node_may_not(cluster: World) -> None:
    found, node = await planned(cluster)
    spare = json.loads(found["metadata"]["annotations"][names.PLAN])["spares"][0]
    (other,) = {"r1-0", "r1-1", "r1-2"} - {node, spare}
    assert await bind(cluster, found, other) == Reason.ELSEWHERE
    assert await bind(cluster, found, spare) == ""


async def test_a_waiting_member_is_not_bound(cluster: World) -> None:
    (member,) = await cluster.gang(Gang("half", 2), gated=False, ranks=range(1))
    assert await bind(cluster, member, "r1-0") == Reason.WAITING


async def test_an_unmanaged_pod_is_bound_as_it_is(cluster: World) -> None:
    free = await cluster.api.create(PODS, pod("free"))
    assert await bind(cluster, free, "r1-1") == ""
    bound = await cluster.pod("free")
    assert bound["spec"]["nodeName"] == "r1-1"
    assert names.PLAN not in bound["metadata"].get("annotations", {})


async def test_a_recreated_pod_of_the_same_name_is_not_bound_for_its_predecessor(
    cluster: World,
) -> None:
    free = await cluster.api.create(PODS, pod("free"))
    await cluster.api.delete(f"{PODS}/free")
    await cluster.api.create(PODS, pod("free"))
    assert "uid" in (await bind(cluster, free, "r1-1")).lower()
    assert not (await cluster.pod("free"))["spec"].get("nodeName")


async def test_a_pod_bound_elsewhere_is_an_error_that_names_the_node(cluster: World) -> None:
    free = await cluster.api.create(PODS, pod("free"))
    await cluster.bind("free", "r1-2")
    assert "r1-2" in await bind(cluster, free, "r1-1")


async def test_a_refused_binding_keeps_the_plan(cluster: World) -> None:
    """elastic-gpu-scheduler reported success though nothing was bound."""
    found, node = await planned(cluster)
    wrong = await bind(cluster, found, node, PodNamespace="nowhere")
    assert wrong
    assert (await cluster.filter(found, ["r1-0", "r1-1", "r1-2"]))["NodeNames"] == [node]
    assert await bind(cluster, found, node) == ""


async def test_a_pod_that_does_not_exist_is_an_error(cluster: World) -> None:
    ghost = pod("ghost")
    ghost["metadata"]["uid"] = "7b0c7a6e-1111-4222-8333-0123456789ab"
    assert "ghost" in await bind(cluster, ghost, "r1-0")


async def test_the_ledger_confirms_what_was_bound(cluster: World) -> None:
    found, node = await planned(cluster)
    await bind(cluster, found, node)
    state = cluster.extender.engine.state
    uid = pod_uid(found["metadata"]["uid"])
    await until(lambda: (hold := state.hold(uid)) is not None and hold.state == "Confirmed")
    await cluster.settled()
