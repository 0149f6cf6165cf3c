"""Plans that users write or copy while no webhook answers claim nothing, and Muster's own stay.

::

    block b ── r0 ── r0-h00 … r0-h15      hosts of 8 GPUs
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, is_bound, reported, until

from extender.releases.plankeys import NAME
from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

SECRET = f"/api/v1/namespaces/muster-system/secrets/{NAME}"
HOSTS = 16
GANG = pods.Gang("train", 12, required=names.RACK)
HOLD = [{"name": "example.com/hold"}]


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Muster with reservations, and kube-scheduler as recommended; judged at the end."""
    async with cluster(real_plane, reserves=True) as it:
        await it.add_racks(range(1))
        yield it


async def make(fleet: Cluster, gang: pods.Gang) -> list[JSON]:
    """Create the gang's pods all at once; returns them as they were made."""
    members = pods.members(gang, await pods.create_owner(fleet.api, gang))
    return await asyncio.gather(*(fleet.api.create(PODS, pod) for pod in members))


def plan_of(pod: JSON) -> str:
    return str(pod["metadata"].get("annotations", {}).get(names.PLAN, ""))


async def without_webhook(fleet: Cluster, made: list[JSON]) -> None:
    """Create pods while no webhook answers."""
    fleet.muster.webhook.kill()
    for pod in made:
        stored = await fleet.api.create(PODS, pod)
        assert plan_of(stored) == plan_of(pod)
    await fleet.muster.start(fleet.muster.webhook)


async def lost_their_plans(fleet: Cluster, *pods_: JSON) -> bool:
    called = [pod["metadata"]["name"] for pod in pods_]
    return not any([plan_of(await fleet.api.get(f"{PODS}/{name}")) for name in called])


def forged(name: str, plan: str) -> JSON:
    """Return a pod that claims a host by a plan and never runs, for a gate of its own."""
    pod: JSON = pods.pod(name, gpus=8, annotations={names.PLAN: plan})
    pod["spec"]["schedulingGates"] = HOLD
    return pod


async def test_plans_that_a_user_writes_while_no_webhook_answers_hold_no_room(
    fleet: Cluster,
) -> None:
    mine = [
        forged(f"mine-{host}", json.dumps({"id": "mine", "node": f"r0-h{host:02d}"}))
        for host in range(HOSTS)
    ]
    await without_webhook(fleet, mine)
    theirs = pods.Gang("theirs", HOSTS, required=names.RACK)
    await make(fleet, theirs)
    await fleet.bound(theirs)
    await until(lambda: lost_their_plans(fleet, *mine))
    assert await reported(fleet, "PlanDoesNotCount")


async def test_a_copied_plan_counts_once(fleet: Cluster) -> None:
    """The copies are of the same gang and number, so that nothing but the plan tells them apart."""
    made = await make(fleet, GANG)
    assert all(map(plan_of, made))
    await fleet.bound(GANG)
    copies = []
    for pod in made[:4]:
        meta = pod["metadata"]
        kept = {key: meta[key] for key in ("labels", "annotations", "ownerReferences", "namespace")}
        spec = {**pod["spec"], "schedulingGates": HOLD}
        copy = {"metadata": {**kept, "name": f"copy-{meta['name']}"}, "spec": spec}
        copies.append({"apiVersion": "v1", "kind": "Pod", **copy})
    await without_webhook(fleet, copies)
    await until(lambda: lost_their_plans(fleet, *copies))
    theirs = pods.Gang("theirs", HOSTS - GANG.size)
    await make(fleet, theirs)
    await fleet.bound(theirs)


async def test_an_extender_that_starts_anew_keeps_its_own_plans_and_no_others(
    fleet: Cluster,
) -> None:
    scheduler = fleet.plane.program(SCHEDULER)
    scheduler.kill()
    made = await make(fleet, GANG)
    assert all(map(plan_of, made))
    fleet.muster.extender.kill()
    key = (await fleet.api.get(SECRET))["data"]
    mine = [forged("mine", json.dumps({"id": "mine", "node": "r0-h15"}))]
    await without_webhook(fleet, mine)
    await fleet.muster.start(fleet.muster.extender)
    await until(lambda: lost_their_plans(fleet, *mine))
    assert (await fleet.api.get(SECRET))["data"] == key
    assert [plan_of(pod) for pod in await fleet.list_pods(GANG)] == [
        plan_of(pod) for pod in sorted(made, key=lambda pod: str(pod["metadata"]["name"]))
    ]
    scheduler.start()
    await scheduler.wait_ready()
    await fleet.bound(GANG)
    for pod in await fleet.list_pods(GANG):
        assert is_bound(pod)
        assert json.loads(plan_of(pod))["node"] == pod["spec"]["nodeName"]
