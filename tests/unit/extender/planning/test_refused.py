"""Pods that kube-scheduler turns away by a filter of its own (volume zone, device claims).

The two racks are drawn in support/clocked.py.
"""

from collections.abc import AsyncIterator

import pytest
from support.clusters.clocked import Clocked, two_racks
from support.extenders.extenders import PODS, eventually, plan_of, until

from extender.planning.refusednodes import KEEP_S
from loadtest.testbed.client.pods import Gang
from muster.kube import names
from muster.kube.translation.translate import pod_uid

PATIENCE_S = 30.0
EVICT_S = 100.0


class Refusing(Clocked):
    """What kube-scheduler does, and what the extender does about it."""

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


@pytest.fixture
async def refusing() -> AsyncIterator[Refusing]:
    settings = {"refused_after_seconds": PATIENCE_S, "evict_after_seconds": EVICT_S}
    async with two_racks(Refusing(), **settings) as made:
        yield made


async def test_a_refused_pod_is_given_time_for_kube_scheduler_retries_by_itself(
    refusing: Refusing,
) -> None:
    await refusing.cluster.gang(Gang("free", 1), owned=False)
    before = await refusing.cluster.released(["free-0"])
    await refusing.refuse("free-0")
    await refusing.look()
    await refusing.look(after=PATIENCE_S - 1)
    assert await refusing.cluster.released(["free-0"]) == before


async def test_a_refused_pod_is_planned_again_beside_its_siblings_on_another_node(
    refusing: Refusing,
) -> None:
    gang = Gang("free", 2, required=names.RACK)
    await refusing.cluster.gang(gang, owned=False)
    before = await refusing.cluster.released(["free-0", "free-1"])
    await refusing.cluster.bind("free-1", before["free-1"])
    await refusing.refuse("free-0")
    await refusing.look()
    await refusing.look(after=PATIENCE_S)
    after = await refusing.cluster.released(["free-0"])
    assert after["free-0"] not in before.values()
    assert after["free-0"].partition("-")[0] == before["free-0"].partition("-")[0]


async def test_a_pod_refused_time_and_again_never_returns_to_a_node_that_refused_it(
    refusing: Refusing,
) -> None:
    await refusing.cluster.gang(Gang("free", 1, required=names.RACK), owned=False)
    seen = []
    for _ in range(6):
        seen.append((await refusing.cluster.released(["free-0"]))["free-0"])
        await refusing.refuse("free-0")
        await refusing.look()
        await refusing.look(after=PATIENCE_S)
    assert len(set(seen)) == 6
    assert plan_of(await refusing.cluster.pod("free-0")) is None
    async with refusing.cluster.http.get("/v1/explain/default/free-0") as response:
        lines = (await response.json())["lines"]
    assert any("6 removed by refused by kube-scheduler" in line for line in lines), lines
    refusing.now += KEEP_S
    await refusing.cluster.extender.planner.settle()
    await refusing.cluster.released(["free-0"])


async def test_a_node_that_changes_after_it_refused_is_worth_another_try(
    refusing: Refusing,
) -> None:
    """Found by the simulation: kube-scheduler saw it go before our watch of nodes did."""
    await refusing.cluster.gang(Gang("free", 1, required=names.RACK), owned=False)
    for _ in range(6):
        last = (await refusing.cluster.released(["free-0"]))["free-0"]
        await refusing.refuse("free-0")
        await refusing.look()
        await refusing.look(after=PATIENCE_S)
    assert plan_of(await refusing.cluster.pod("free-0")) is None
    found = await refusing.cluster.api.get(f"/api/v1/nodes/{last}")
    await refusing.cluster.api.delete(f"/api/v1/nodes/{last}")
    meta = {key: found["metadata"][key] for key in ("name", "labels")}
    await refusing.cluster.api.create("/api/v1/nodes", found | {"metadata": meta})
    assert await refusing.cluster.released(["free-0"]) == {"free-0": last}


async def test_a_refused_pinned_pod_is_evicted_late_and_its_successor_goes_elsewhere(
    refusing: Refusing,
) -> None:
    cluster = refusing.cluster
    members = await cluster.gang(Gang("g", 2, required=names.RACK))
    placed = await cluster.released(["g-0", "g-1"])
    await cluster.bind("g-1", placed["g-1"])
    await refusing.refuse("g-0")
    await refusing.look()
    await refusing.look(after=EVICT_S - 1)
    assert await refusing.exists("g-0")
    await refusing.look(after=2)
    assert not await refusing.exists("g-0")
    again = {key: members[0][key] for key in ("apiVersion", "kind", "spec")}
    meta = {key: members[0]["metadata"][key] for key in ("name", "labels", "annotations")}
    owners = members[0]["metadata"]["ownerReferences"]
    await cluster.api.create(PODS, again | {"metadata": meta | {"ownerReferences": owners}})
    after = await cluster.released(["g-0"])
    assert after["g-0"] not in placed.values()
    assert after["g-0"].partition("-")[0] == placed["g-0"].partition("-")[0]


async def test_a_pod_that_is_bound_while_it_is_looked_at_keeps_its_plan(refusing: Refusing) -> None:
    cluster = refusing.cluster
    await cluster.gang(Gang("free", 1), owned=False)
    placed = await cluster.released(["free-0"])
    await refusing.refuse("free-0")
    await refusing.look()
    repairer = cluster.extender.repairer
    uid = next(iter(repairer._pods.refused))
    hold, pod = cluster.extender.engine.state.hold(uid), repairer._pods.get(uid)
    assert hold is not None
    assert pod is not None
    await cluster.bind("free-0", placed["free-0"])
    await repairer._plan_again(uid, pod, "refused by kube-scheduler")
    assert plan_of(await cluster.pod("free-0")) is not None


async def test_explain_says_that_kube_scheduler_refuses_the_pod(refusing: Refusing) -> None:
    await refusing.cluster.gang(Gang("g", 1))
    node = (await refusing.cluster.released(["g-0"]))["g-0"]
    await refusing.refuse("g-0")
    async with refusing.cluster.http.get("/v1/explain/default/g-0") as response:
        (line,) = (await response.json())["lines"]
    assert line == f"released to node {node} and cannot bind: refused by kube-scheduler"


async def test_members_that_only_wait_for_their_gang_are_not_taken_for_refused(
    refusing: Refusing,
) -> None:
    """Ungated, ``filter`` turns them away: the same condition, and nothing is wrong."""
    await refusing.cluster.gang(Gang("half", 2), gated=False, owned=False, ranks=range(1))
    await refusing.refuse("half-0")
    await refusing.look()
    await refusing.look(after=PATIENCE_S + EVICT_S)
    assert await refusing.exists("half-0")

    async def reported() -> bool:
        return bool(await refusing.cluster.events("PlanBroken"))

    assert not await reported()
    await refusing.cluster.gang(Gang("other", 1), owned=False)
    await eventually(lambda: refusing.cluster.released(["other-0"]))
