"""Pods that kube-scheduler turns away by a filter of its own (volume zone, device claims).

::

    rack r1 ── r1-0 r1-1 r1-2        rack r2 ── r2-0 r2-1 r2-2      (8 GPUs each)
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from support.extenders import PODS, World, eventually, plan_of, until, world

from extender.refusals import KEEP_S
from kube import names
from kube.translate import pod_uid
from loadtest.api import ApiFailed
from loadtest.pods import Gang

PATIENCE_S = 30.0
EVICT_S = 100.0


@dataclass
class Clocked:
    """A cluster whose extender is told the time by the test."""

    cluster: World = field(init=False)
    now: float = 1_000_000.0

    async def refuse(self, name: str) -> None:
        """Say what kube-scheduler says when no node that the pod may go to passes."""
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"status": {"conditions": [condition]}}
        made = await self.cluster.api.patch(f"{PODS}/{name}/status", patch)
        uid = pod_uid(made["metadata"]["uid"])
        await until(lambda: uid in self.cluster.extender.repairer._pods.refused)

    async def look(self, after: float = 0.0) -> None:
        self.now += after
        await self.cluster.extender.repairer.look()
        await self.cluster.settled()

    async def exists(self, name: str) -> bool:
        try:
            await self.cluster.pod(name)
        except ApiFailed as error:
            return error.code != 404
        return True


@pytest.fixture
async def clocked() -> AsyncIterator[Clocked]:
    made = Clocked()
    settings = {"refused_after_seconds": PATIENCE_S, "evict_after_seconds": EVICT_S}
    async with world(clock=lambda: made.now, spare_count=0, **settings) as cluster:
        await cluster.nodes({"r1": 3, "r2": 3})
        made.cluster = cluster
        yield made


async def test_a_refused_pod_is_given_time_for_kube_scheduler_retries_by_itself(
    clocked: Clocked,
) -> None:
    await clocked.cluster.gang(Gang("free", 1), owned=False)
    before = await clocked.cluster.released(["free-0"])
    await clocked.refuse("free-0")
    await clocked.look()
    await clocked.look(after=PATIENCE_S - 1)
    assert await clocked.cluster.released(["free-0"]) == before


async def test_a_refused_pod_is_planned_again_beside_its_siblings_on_another_node(
    clocked: Clocked,
) -> None:
    gang = Gang("free", 2, required=names.RACK)
    await clocked.cluster.gang(gang, owned=False)
    before = await clocked.cluster.released(["free-0", "free-1"])
    await clocked.cluster.bind("free-1", before["free-1"])
    await clocked.refuse("free-0")
    await clocked.look()
    await clocked.look(after=PATIENCE_S)
    after = await clocked.cluster.released(["free-0"])
    assert after["free-0"] not in before.values()
    assert after["free-0"].partition("-")[0] == before["free-0"].partition("-")[0]


async def test_a_pod_refused_time_and_again_never_returns_to_a_node_that_refused_it(
    clocked: Clocked,
) -> None:
    await clocked.cluster.gang(Gang("free", 1, required=names.RACK), owned=False)
    seen = []
    for _ in range(6):
        seen.append((await clocked.cluster.released(["free-0"]))["free-0"])
        await clocked.refuse("free-0")
        await clocked.look()
        await clocked.look(after=PATIENCE_S)
    assert len(set(seen)) == 6
    assert plan_of(await clocked.cluster.pod("free-0")) is None
    async with clocked.cluster.http.get("/v1/explain/default/free-0") as response:
        lines = (await response.json())["lines"]
    assert any("6 removed by refused by kube-scheduler" in line for line in lines), lines
    clocked.now += KEEP_S
    await clocked.cluster.extender.planner.settle()
    await clocked.cluster.released(["free-0"])


async def test_a_node_that_changes_after_it_refused_is_worth_another_try(
    clocked: Clocked,
) -> None:
    """Found by the simulation: kube-scheduler saw it go before our watch of nodes did."""
    await clocked.cluster.gang(Gang("free", 1, required=names.RACK), owned=False)
    for _ in range(6):
        last = (await clocked.cluster.released(["free-0"]))["free-0"]
        await clocked.refuse("free-0")
        await clocked.look()
        await clocked.look(after=PATIENCE_S)
    assert plan_of(await clocked.cluster.pod("free-0")) is None
    found = await clocked.cluster.api.get(f"/api/v1/nodes/{last}")
    await clocked.cluster.api.delete(f"/api/v1/nodes/{last}")
    meta = {key: found["metadata"][key] for key in ("name", "labels")}
    await clocked.cluster.api.create("/api/v1/nodes", found | {"metadata": meta})
    assert await clocked.cluster.released(["free-0"]) == {"free-0": last}


async def test_a_refused_pinned_pod_is_evicted_late_and_its_successor_goes_elsewhere(
    clocked: Clocked,
) -> None:
    cluster = clocked.cluster
    members = await cluster.gang(Gang("g", 2, required=names.RACK))
    placed = await cluster.released(["g-0", "g-1"])
    await cluster.bind("g-1", placed["g-1"])
    await clocked.refuse("g-0")
    await clocked.look()
    await clocked.look(after=EVICT_S - 1)
    assert await clocked.exists("g-0")
    await clocked.look(after=2)
    assert not await clocked.exists("g-0")
    again = {key: members[0][key] for key in ("apiVersion", "kind", "spec")}
    meta = {key: members[0]["metadata"][key] for key in ("name", "labels", "annotations")}
    owners = members[0]["metadata"]["ownerReferences"]
    await cluster.api.create(PODS, again | {"metadata": meta | {"ownerReferences": owners}})
    after = await cluster.released(["g-0"])
    assert after["g-0"] not in placed.values()
    assert after["g-0"].partition("-")[0] == placed["g-0"].partition("-")[0]


async def test_a_pod_that_is_bound_while_it_is_looked_at_keeps_its_plan(clocked: Clocked) -> None:
    cluster = clocked.cluster
    await cluster.gang(Gang("free", 1), owned=False)
    placed = await cluster.released(["free-0"])
    await clocked.refuse("free-0")
    await clocked.look()
    repairer = cluster.extender.repairer
    uid = next(iter(repairer._pods.refused))
    hold, pod = cluster.extender.engine.state.hold(uid), repairer._pods.get(uid)
    assert hold is not None
    assert pod is not None
    await cluster.bind("free-0", placed["free-0"])
    await repairer._plan_again(uid, pod, "refused by kube-scheduler")
    assert plan_of(await cluster.pod("free-0")) is not None


async def test_explain_says_that_kube_scheduler_refuses_the_pod(clocked: Clocked) -> None:
    await clocked.cluster.gang(Gang("g", 1))
    node = (await clocked.cluster.released(["g-0"]))["g-0"]
    await clocked.refuse("g-0")
    async with clocked.cluster.http.get("/v1/explain/default/g-0") as response:
        (line,) = (await response.json())["lines"]
    assert line == f"released to node {node} and cannot bind: refused by kube-scheduler"


async def test_members_that_only_wait_for_their_gang_are_not_taken_for_refused(
    clocked: Clocked,
) -> None:
    """Ungated, ``filter`` turns them away: the same condition, and nothing is wrong."""
    await clocked.cluster.gang(Gang("half", 2), gated=False, owned=False, ranks=range(1))
    await clocked.refuse("half-0")
    await clocked.look()
    await clocked.look(after=PATIENCE_S + EVICT_S)
    assert await clocked.exists("half-0")

    async def told() -> bool:
        return bool(await clocked.cluster.events("PlanBroken"))

    assert not await told()
    await clocked.cluster.gang(Gang("other", 1), owned=False)
    await eventually(lambda: clocked.cluster.released(["other-0"]))
