"""Hot spares through the extender: taken with the plan, used by successors, told to people.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2 r1-3      (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1 r2-2 r2-3
"""

import time
from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import api_server
from support.extenders.extenders import World, eventually, running_extender, world

from extender.config.settings import ExtenderConfig
from extender.reservations.expectedrows import ExpectedRows, seen_pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import Gang, members
from muster.cluster.tables.gangview import GangView
from muster.kube import names
from muster.kube.translation.translate import pod_uid

TRIO = Gang("g", 3, required=names.RACK, spares="1")
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as made:
        await made.nodes({"r1": 4, "r2": 4})
        yield made


def view(cluster: World, name: str) -> GangView:
    state = cluster.extender.engine.state
    (key,) = [key for key in state.gangs() if key.endswith(f"/{name}")]
    found = state.gang(key)
    assert found is not None
    return found


def hot_spares(cluster: World, name: str) -> list[str]:
    snapshot = cluster.extender.engine.state.snapshot()
    rows = snapshot.pods.node[view(cluster, name).standby].tolist()
    return sorted(snapshot.nodes.name(row) for row in rows)


async def start(cluster: World, gang: Gang) -> dict[str, str]:
    await cluster.gang(gang)
    placed = await cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
    for name, node in placed.items():
        await cluster.bind(name, node)
    await cluster.settled()
    return placed


async def lose(cluster: World, pod: str) -> None:
    uid = pod_uid((await cluster.pod(pod))["metadata"]["uid"])
    await cluster.api.delete(f"{PODS}/{pod}")
    state = cluster.extender.engine.state

    async def gone() -> bool:
        return state.pod_row(uid) is None

    await eventually(gone)


async def recreate(cluster: World, gang: Gang, *ranks: int) -> dict[str, str]:
    job = await cluster.api.get(f"/apis/batch/v1/namespaces/default/jobs/{gang.name}")
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": gang.name,
        "uid": job["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    made = list(members(gang, owner))
    for rank in ranks:
        made[rank]["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await cluster.api.create(PODS, made[rank])
    placed = await cluster.released([f"{gang.name}-{rank}" for rank in ranks])
    await cluster.settled()
    return placed


async def explain(cluster: World, pod: str) -> list[str]:
    async with cluster.http.get(f"/v1/explain/default/{pod}") as response:
        lines: list[str] = (await response.json())["lines"]
        return lines


async def test_a_hot_spare_is_held_with_the_plan_and_kept_from_other_gangs(cluster: World) -> None:
    placed = await start(cluster, TRIO)
    (spare,) = hot_spares(cluster, "g")
    assert spare not in placed.values()
    assert {node.partition("-")[0] for node in placed.values()} == {spare.partition("-")[0]}
    other = await start(cluster, Gang("other", 4))
    assert spare not in other.values()
    await cluster.gang(Gang("late", 1))
    await cluster.settled()
    assert len(view(cluster, "late").waiting) == 1


async def test_two_members_lost_at_once_take_the_hot_spare_and_the_nearest_node(
    cluster: World,
) -> None:
    gang = Gang("g", 3, required=names.BLOCK, preferred=names.RACK, spares="1")
    placed = await start(cluster, gang)
    (spare,) = hot_spares(cluster, "g")
    for name in ("g-0", "g-2"):
        await cluster.api.delete(f"{NODES}/{placed[name]}")
        await lose(cluster, name)
    anew = await recreate(cluster, gang, 0, 2)
    assert spare in anew.values()
    assert (await cluster.pod("g-1"))["spec"]["nodeName"] == placed["g-1"]
    assert len(hot_spares(cluster, "g")) == 1


async def test_a_gang_that_lacks_spares_says_so_and_takes_them_when_room_appears(
    cluster: World,
) -> None:
    await start(cluster, Gang("filler", 4))
    lone = await start(cluster, Gang("lone", 1))
    await start(cluster, Gang("g", 2, required=names.BLOCK, spares="2"))
    assert len(hot_spares(cluster, "g")) == 1
    (line,) = [x for x in await explain(cluster, "g-0") if x.startswith("hot spares")]
    assert line.startswith("hot spares: 1 of 2 kept, on r")
    assert line.endswith("there is no room for 1 more in the muster.dev/block of its members")

    async def told() -> bool:
        return bool(await cluster.events("SparesMissing"))

    await eventually(told)
    await lose(cluster, "lone-0")
    await cluster.settled()
    assert lone["lone-0"] in hot_spares(cluster, "g")
    (line,) = [x for x in await explain(cluster, "g-0") if x.startswith("hot spares")]
    assert line.startswith("hot spares: 2 of 2 kept")


async def test_a_gang_that_runs_is_told_of_a_hot_spare_that_it_lost(cluster: World) -> None:
    await start(cluster, Gang("filler", 4))
    await start(cluster, TRIO)
    (spare,) = hot_spares(cluster, "g")
    await cluster.api.delete(f"{NODES}/{spare}")

    async def told() -> bool:
        return len(await cluster.events("SparesMissing")) == 2

    await eventually(told)
    kinds = [event["regarding"] for event in await cluster.events("SparesMissing")]
    assert {each["kind"]: each["name"] for each in kinds} == {"Pod": "g-0", "Job": "g"}


async def test_hot_spares_are_counted_in_metrics_and_survive_a_complete_relist(
    cluster: World,
) -> None:
    await start(cluster, TRIO)
    before = hot_spares(cluster, "g")
    await cluster.extender.parts.api.census.take()
    async with cluster.http.get("/metrics") as response:
        text = await response.text()
    assert 'muster_ledger_entries{state="standby"} 1.0' in text
    assert 'muster_spare_reserved{resource="nvidia.com/gpu"} 8.0' in text
    assert not set(seen_pods(cluster.extender.engine.state, ExpectedRows())) & _uids(cluster, "g")
    assert hot_spares(cluster, "g") == before


def _uids(cluster: World, name: str) -> set[bytes]:
    snapshot = cluster.extender.engine.state.snapshot()
    return {snapshot.pods.uid(row) for row in view(cluster, name).standby.tolist()}


async def test_hot_spares_end_with_their_gang(cluster: World) -> None:
    await start(cluster, TRIO)
    for rank in range(3):
        await lose(cluster, f"g-{rank}")
    await cluster.settled()
    states = cluster.extender.engine.state.snapshot().pods.state.array()
    assert not (states == 8).any()


async def test_a_new_leader_takes_the_hot_spares_before_it_plans_a_gang_that_waits() -> None:
    """The waiting gang was submitted first, and would fit on the hot spare and its neighbour."""
    config = ExtenderConfig(debounce_seconds=0.0, drain_seconds=2.0, spare_count=0)
    early = Gang("early", 2)
    async with api_server() as (server, url):
        async with running_extender(server, url, config, time.time, ()) as cluster:
            await cluster.nodes({"r1": 5})
            await cluster.gang(early, ranks=range(1))
            await start(cluster, Gang("filler", 1))
            await start(cluster, Gang("g", 3, spares="1"))
            assert len(hot_spares(cluster, "g")) == 1
            await cluster.gang(early, ranks=range(1, 2), owned=False)
            await cluster.settled()
        async with Api(url) as api:
            await api.delete(f"{PODS}/filler-0")
        async with running_extender(server, url, config, time.time, ()) as cluster:
            await cluster.settled()
            assert len(hot_spares(cluster, "g")) == 1
            assert len(view(cluster, "early").waiting) == 2


async def test_explain_tells_of_a_node_that_became_less_under_its_pods(cluster: World) -> None:
    placed = await start(cluster, TRIO)
    node = placed["g-1"]
    seven = {"nvidia.com/gpu": "7"}
    await cluster.api.patch(
        f"{NODES}/{node}/status", {"status": {"allocatable": seven, "capacity": seven}}
    )

    async def told() -> bool:
        return any("became less" in line for line in await explain(cluster, "g-1"))

    await eventually(told)
    (line,) = [line for line in await explain(cluster, "g-1") if "became less" in line]
    assert line.startswith(f"node {node} has 7 of nvidia.com/gpu and 8 are used")
    assert (await cluster.pod("g-1"))["spec"]["nodeName"] == node
    assert not any("became less" in line for line in await explain(cluster, "g-0"))


async def test_explain_of_a_broken_gang_says_who_stays_and_what_becomes_of_it(
    cluster: World,
) -> None:
    gang = Gang("g", 4, required=names.RACK)
    placed = await start(cluster, gang)
    await start(cluster, Gang("other", 4))
    await cluster.api.delete(f"{NODES}/{placed['g-2']}")
    await lose(cluster, "g-2")
    job = await cluster.api.get("/apis/batch/v1/namespaces/default/jobs/g")
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "g",
        "uid": job["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    made = list(members(gang, owner))[2]
    made["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    await cluster.api.create(PODS, made)
    await cluster.settled()
    lines = await explain(cluster, "g-2")
    assert lines[-1] == (
        "3 members stay where they are; the others go beside them, in the muster.dev/rack of "
        "those; the gang is left as it is meanwhile (muster.dev/repair: wait)"
    )
