"""Gangs through the whole extender: watched, planned, released, asked for, bound.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import api_server
from support.extenders.extenders import (
    PODS,
    World,
    eventually,
    plan_of,
    running_extender,
    until,
    world,
)

from extender.calls.wire import Reason
from extender.config.settings import ExtenderConfig
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names
from muster.kube.translation.translate import pod_uid

RACKS = {"r1": 2, "r2": 2}
ALL = ["r1-0", "r1-1", "r2-0", "r2-1"]


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes(RACKS)
        yield running


def named(gang: Gang) -> list[str]:
    return [f"{gang.name}-{rank}" for rank in range(gang.size)]


def rack(node: str) -> str:
    return node.rpartition("-")[0]


async def waits(cluster: World, gang: Gang) -> None:
    """Assert that the gang was looked at and none of it is released."""
    await cluster.settled()
    for name in named(gang):
        assert plan_of(await cluster.pod(name)) is None


async def test_a_gang_lands_on_one_rack(cluster: World) -> None:
    gang = Gang("g", 2, required=names.RACK)
    await cluster.gang(gang)
    placed = await cluster.released(named(gang))
    assert len({rack(node) for node in placed.values()}) == 1
    assert len(set(placed.values())) == 2


async def test_a_gang_waits_whole_rather_than_straddle_two_racks(cluster: World) -> None:
    gang = Gang("wide", 3, required=names.RACK)
    await cluster.gang(gang)
    await waits(cluster, gang)


async def test_a_gang_that_waits_goes_when_space_appears(cluster: World) -> None:
    first, second = Gang("first", 3), Gang("second", 2)
    await cluster.gang(first)
    for name, node in (await cluster.released(named(first))).items():
        await cluster.bind(name, node)
    await cluster.gang(second)
    await waits(cluster, second)
    for name in named(first):
        await cluster.api.delete(f"{PODS}/{name}")
    placed = await cluster.released(named(second))
    assert len(set(placed.values())) == 2


async def test_two_gangs_that_cannot_both_fit_do_not_deadlock(cluster: World) -> None:
    one, other = Gang("one", 3), Gang("other", 3)
    async with asyncio.TaskGroup() as group:
        group.create_task(cluster.gang(one))
        group.create_task(cluster.gang(other))
    await cluster.settled()
    released = [
        [plan_of(await cluster.pod(name)) is not None for name in named(gang)]
        for gang in (one, other)
    ]
    assert sorted(all(states) for states in released) == [False, True]
    assert sorted(any(states) for states in released) == [False, True]


async def test_a_gang_that_does_not_fit_is_skipped_and_later_ones_go(cluster: World) -> None:
    large, small = Gang("large", 5), Gang("small", 1)
    await cluster.gang(large)
    await waits(cluster, large)
    await cluster.gang(small)
    await cluster.released(named(small))
    await waits(cluster, large)
    async with cluster.http.get("/v1/gangs?phase=admitted") as response:
        (row,) = await response.json()
    assert row["gang"] == "muster/default/large"
    assert row["skips"] >= 1
    assert row["reason"]


async def test_an_incomplete_gang_waits_for_its_last_member(cluster: World) -> None:
    gang = Gang("late", 3)
    await cluster.gang(gang, ranks=range(2))
    await cluster.settled()
    assert plan_of(await cluster.pod("late-0")) is None
    await cluster.gang(gang, ranks=range(2, 3), owned=False)
    await cluster.released(named(gang))


async def test_a_gate_of_another_controller_holds_the_whole_gang(cluster: World) -> None:
    gang = Gang("queued", 2)
    pods = await cluster.gang(gang, ranks=range(1))
    second = pods[0]
    second["metadata"] = {
        key: second["metadata"][key] for key in ("namespace", "labels", "annotations")
    } | {"name": "queued-1"}
    second["spec"]["schedulingGates"] = [
        {"name": names.PLAN_GATE}, {"name": "kueue.x-k8s.io/topology"}
    ]  # fmt: skip
    second.pop("status", None)
    await cluster.api.create(PODS, second)
    await cluster.settled()
    assert plan_of(await cluster.pod("queued-0")) is None
    patch = {"spec": {"schedulingGates": [
        {"$patch": "delete", "name": "kueue.x-k8s.io/topology"}
    ]}}  # fmt: skip
    await cluster.api.patch(
        f"{PODS}/queued-1", patch, kind="application/strategic-merge-patch+json"
    )
    await cluster.released(named(gang))


async def test_without_the_webhook_the_gang_goes_through_filter_alone(cluster: World) -> None:
    gang = Gang("plain", 2)
    first, *_ = await cluster.gang(gang, gated=False, ranks=range(1))
    state = cluster.extender.engine.state
    await until(lambda: state.find_pod("default", "plain-0") is not None)
    answer = await cluster.filter(first, ALL)
    assert set(answer["FailedAndUnresolvableNodes"].values()) == {Reason.WAITING.value}
    await cluster.gang(gang, gated=False, ranks=range(1, 2), owned=False)
    placed = await cluster.released(named(gang))
    for name in named(gang):
        answer = await cluster.filter(await cluster.pod(name), ALL)
        assert answer["NodeNames"] == [placed[name]]


async def test_a_gang_that_waits_in_a_namespace_that_is_opened_to_muster_is_planned(
    cluster: World,
) -> None:
    """Its pods have no event of their own: only the namespace changes."""
    where, gang = "/api/v1/namespaces/default", Gang("plain", 2)
    await cluster.api.patch(where, {"metadata": {"labels": {names.MANAGED: "false"}}})
    (first,) = await cluster.gang(gang, gated=False, ranks=range(1))
    state, uid = cluster.extender.engine.state, pod_uid(first["metadata"]["uid"])
    await until(lambda: state.pod_row(uid) is not None and state.gang_of(uid) is None)
    await cluster.gang(gang, gated=False, ranks=range(1, 2), owned=False)
    await waits(cluster, gang)
    await cluster.api.patch(where, {"metadata": {"labels": {names.MANAGED: None}}})
    await cluster.released(named(gang))


async def test_members_that_wait_ungated_are_woken_by_a_patch_once_the_plan_stands(
    cluster: World,
) -> None:
    """kube-scheduler does not retry a rejected pod when its sibling arrives (up to 5 minutes)."""
    gang = Gang("plain", 2)
    (first,) = await cluster.gang(gang, gated=False, ranks=range(1))
    await cluster.gang(gang, gated=False, ranks=range(1, 2), owned=False)

    async def touched() -> bool:
        now = await cluster.pod("plain-0")
        return bool(now["metadata"]["resourceVersion"] != first["metadata"]["resourceVersion"])

    await eventually(touched)


async def test_unmanaged_pods_are_untouched(cluster: World) -> None:
    before = await cluster.api.create(PODS, pod("free"))
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    await cluster.settled()
    assert await cluster.pod("free") == before


async def test_a_gang_half_released_at_a_crash_is_completed_before_anything_else() -> None:
    """The new process finds one member pinned; the urgent gang would take its sibling's room."""
    config = ExtenderConfig(debounce_seconds=0.0, drain_seconds=2.0, spare_count=0)
    half, urgent = Gang("half", 2), Gang("urgent", 2)
    async with api_server() as (server, url):
        async with running_extender(server, url, config) as first:
            await first.nodes({"r1": 2})
            await first.gang(half)
            placed = await first.released(named(half))
        # Put one member back to where a crash in the middle of releasing would have left it.
        async with running_extender(server, url, config) as second:
            del second
        async with Api(url) as api:
            whole = await api.get(f"{PODS}/half-1")
            await api.delete(f"{PODS}/half-1")
            whole["metadata"] = {
                key: whole["metadata"][key] for key in ("namespace", "labels", "name")
            } | {"annotations": {names.GANG_SIZE: "2"}}
            whole["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            whole["spec"].pop("affinity", None)
            whole.pop("status", None)
            for rank in range(2):
                other = {
                    **whole,
                    "metadata": {
                        "name": f"urgent-{rank}",
                        "namespace": "default",
                        "labels": {names.GANG: urgent.name},
                        "annotations": {names.GANG_SIZE: "2"},
                    },
                    "spec": whole["spec"] | {"priority": 1000},
                }
                await api.create(PODS, other)
            await api.create(PODS, whole)
        async with running_extender(server, url, config) as third:
            now = await third.released(["half-1"])
            assert {placed["half-0"], now["half-1"]} == {"r1-0", "r1-1"}
            await waits(third, urgent)


async def test_a_restart_answers_filter_from_what_the_pods_say() -> None:
    config = ExtenderConfig(debounce_seconds=0.0, drain_seconds=2.0)
    async with api_server() as (server, url):
        async with running_extender(server, url, config) as first:
            await first.nodes(RACKS)
            await first.gang(Gang("g", 2))
            placed = await first.released(["g-0", "g-1"])
        async with running_extender(server, url, config) as second:
            for name, node in placed.items():
                answer = await second.filter(await second.pod(name), ALL)
                assert answer["NodeNames"] == [node]


async def test_explain_says_where_a_pod_goes_and_why_another_waits(cluster: World) -> None:
    await cluster.gang(Gang("g", 1))
    node = (await cluster.released(["g-0"]))["g-0"]
    async with cluster.http.get("/v1/explain/default/g-0") as response:
        assert (await response.json())["node"] == node
    await cluster.gang(Gang("wide", 5))
    await cluster.settled()
    async with cluster.http.get("/v1/explain/default/wide-0") as response:
        body = await response.json()
    assert body["gang"]["gang"] == "muster/default/wide"
    assert body["lines"]
    await cluster.bind("g-0", node)
    await cluster.settled()
    async with cluster.http.get("/v1/explain/default/g-0") as response:
        assert (await response.json())["node"] == node
    async with cluster.http.get("/v1/explain/default/nobody") as response:
        assert response.status == 404


async def test_status_counts_what_is_there(cluster: World) -> None:
    await cluster.gang(Gang("g", 2))
    await cluster.released(["g-0", "g-1"])
    await cluster.settled()
    async with cluster.http.get("/v1/status") as response:
        status = await response.json()
    assert status["ready"] is True
    assert status["nodes"] == 4
    assert status["gangs"]["Released"] == 1
    assert status["holds"]["released"] == 2
