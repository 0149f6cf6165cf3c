"""Defects seen in other extenders, each a test of what must not happen here.

Second ``filter`` refused, side effects of ``filter``, ``NodeNames: null``, float scores and
success without a binding are in tests/unit/extender (filter, wire, bind).

::

    rack r1 ── r1-0 r1-1 (8 GPUs each)      rack cpu ── cpu-0 (none)
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import PODS, World, eventually, go_args, plan_of, world

from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 2})
        yield running


async def test_a_node_without_gpus_crashes_nothing_and_gets_no_gang(cluster: World) -> None:
    """elastic-gpu-scheduler panicked on a node without GPUs."""
    await cluster.nodes({"cpu": 1}, gpus=0)
    bare = {"metadata": {"name": "bare"}, "status": {}}
    await cluster.api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **bare})
    await cluster.gang(Gang("g", 2))
    placed = await cluster.released(["g-0", "g-1"])
    assert set(placed.values()) == {"r1-0", "r1-1"}
    answer = await cluster.filter(await cluster.pod("g-0"), ["bare", "cpu-0", "r1-0", "r1-1"])
    assert answer["NodeNames"] == [placed["g-0"]]


async def test_filter_and_bind_at_the_same_time_agree(cluster: World) -> None:
    """HAMi crashed on concurrent access to a map."""
    await cluster.nodes({"r2": 30})
    gang = Gang("g", 32)
    await cluster.gang(gang)
    placed = await cluster.released([f"g-{rank}" for rank in range(32)])

    async def soak(name: str) -> None:
        obj = await cluster.pod(name)
        for _ in range(5):
            answer = await cluster.filter(obj, sorted(placed.values()))
            assert answer["NodeNames"] == [placed[name]]
        args = {
            "PodName": name,
            "PodNamespace": "default",
            "PodUID": obj["metadata"]["uid"],
            "Node": placed[name],
        }
        assert (await cluster.verb("bind", args))["Error"] == ""

    async with asyncio.TaskGroup() as group:
        for name in placed:
            group.create_task(soak(name))
    await cluster.settled()


async def test_the_room_of_a_deleted_gang_is_given_back(cluster: World) -> None:
    """HAMi and HiveD kept locks and cells of pods that were gone."""
    first, second = Gang("first", 2), Gang("second", 2)
    await cluster.gang(first)
    await cluster.released(["first-0", "first-1"])
    await cluster.gang(second)
    for name in ("first-0", "first-1"):
        await cluster.api.delete(f"{PODS}/{name}")
    await cluster.released(["second-0", "second-1"])


async def test_a_recreated_member_does_not_inherit_its_predecessors_plan(cluster: World) -> None:
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    await cluster.api.delete(f"{PODS}/g-0")
    again = pod("g-0", gpus=8, labels={names.GANG: "g"}, annotations={names.GANG_SIZE: "2"})
    again["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    again = await cluster.api.create(PODS, again)
    await cluster.settled()
    assert plan_of(await cluster.pod("g-0")) is None
    answer = await cluster.filter(again, ["r1-0", "r1-1"])
    assert answer["NodeNames"] == []


async def test_an_unknown_topology_level_is_told_in_an_event_that_names_it(cluster: World) -> None:
    """A misspelt level was an opaque wait for ever (microsoft/pai#4029)."""
    await cluster.gang(Gang("typo", 1, required="example.com/rakc"))

    async def told() -> bool:
        events = await cluster.api.get("/apis/events.k8s.io/v1/namespaces/default/events")
        return any("example.com/rakc" in event.get("note", "") for event in events["items"])

    await eventually(told)
    async with cluster.http.get("/v1/explain/default/typo-0") as response:
        assert any("example.com/rakc" in line for line in (await response.json())["lines"])


async def test_garbage_between_good_calls_breaks_neither(cluster: World) -> None:
    await cluster.gang(Gang("g", 1))
    node = (await cluster.released(["g-0"]))["g-0"]
    good = go_args(await cluster.pod("g-0"), ["r1-0", "r1-1"])
    for cut in range(0, len(good), 97):
        async with cluster.http.post("/v1/extender/filter", data=good[:cut]) as response:
            assert response.status == 400
        async with cluster.http.post("/v1/extender/filter", data=good) as response:
            assert (await response.json())["NodeNames"] == [node]
