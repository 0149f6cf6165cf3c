"""Pods that are made with their place in them: the real API server, scheduler and Job controller.

::

    zone z ── block b ─┬─ r0 ── r0-h00 … r0-h15      hosts of 8 GPUs, 16 to a rack
                       └─ r1 ── r1-h00 … r1-h15
"""

import asyncio
import base64
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
import pytest_asyncio
from support.apiservers.apiproxy import StoppingProxy
from support.extenders.realcluster import (
    PODS,
    Cluster,
    cluster,
    is_bound,
    is_released,
    racks,
    until,
)
from support.webhooks.otherhook import other_webhook

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, ApiFailed
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
GANG = pods.Gang("train", 12, required=names.RACK)
MESHED = "mesh.example.com/on"


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Muster with reservations, and kube-scheduler as recommended; judged at the end."""
    async with cluster(real_plane, reserves=True) as it:
        await it.add_racks(range(2))
        yield it


async def make(fleet: Cluster, gang: pods.Gang, owner: JSON | None = None) -> list[JSON]:
    """Create the gang's pods all at once; returns them as they were made."""
    members = pods.members(gang, owner or await pods.create_owner(fleet.api, gang))
    return await asyncio.gather(*(fleet.api.create(PODS, pod) for pod in members))


def is_placed(made: JSON) -> bool:
    """Whether a pod was made with its place in it."""
    return is_released(made) and names.PLAN in made["metadata"]["annotations"]


def are_as_they_were_made(found: Sequence[JSON]) -> bool:
    """Whether nobody has changed the spec of these pods (core/v1: generation, from 1.35)."""
    return all(pod["metadata"]["generation"] == 1 for pod in found)


async def test_a_gang_is_bound_on_one_rack_without_a_write_to_its_pods(fleet: Cluster) -> None:
    made = await make(fleet, GANG)
    assert all(map(is_placed, made))
    await fleet.bound(GANG)
    assert len(racks(await fleet.placement(GANG))) == 1
    assert are_as_they_were_made(await fleet.list_pods(GANG))


async def ask_webhook(fleet: Cluster, pod: JSON) -> JSON:
    """Ask it for a review as anybody may who reaches its port; returns the response."""
    path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"
    url = (await fleet.api.get(path))["webhooks"][0]["clientConfig"]["url"]
    asked = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "dryRun": False,
        "userInfo": {"username": "system:kube-controller-manager"},
        "object": pod,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    async with aiohttp.ClientSession() as session, session.post(url, json=review, ssl=False) as it:
        response: JSON = (await it.json())["response"]
        return response


async def test_nothing_is_held_for_somebody_who_only_reaches_the_webhook(fleet: Cluster) -> None:
    big = pods.Gang("stranger", 32)
    for pod in pods.members(big, pods.owner_reference(big, "11111111-2222-3333-4444-555555555555")):
        response = await ask_webhook(fleet, pod)
        patch = json.loads(base64.b64decode(response["patch"]))
        assert not [each for each in patch if "plan" in each["path"]]
    assert all(map(is_placed, await make(fleet, GANG)))
    await fleet.bound(GANG)


async def test_gangs_that_are_never_stored_do_not_keep_the_cluster_from_others(
    fleet: Cluster,
) -> None:
    """Their pods pass mutation, and a field is refused by validation afterwards."""
    theirs = pods.Gang("theirs", 32)
    stopped = asyncio.Event()

    async def attack() -> None:
        for round_ in itertools.count():
            gang = pods.Gang(f"attack-{round_}", 32)
            pod = next(iter(pods.members(gang, await pods.create_owner(fleet.api, gang))))
            pod["spec"]["containers"][0]["name"] = "No_Name"
            pod["metadata"]["namespace"] = "attacker"
            with pytest.raises(ApiFailed, match="No_Name"):
                await fleet.api.create("/api/v1/namespaces/attacker/pods", pod)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await stopped.wait()
            if stopped.is_set():
                return

    await fleet.api.ensure("/api/v1/namespaces", {"metadata": {"name": "attacker"}})
    attacking = asyncio.create_task(attack())
    await asyncio.sleep(1.0)
    await make(fleet, theirs)
    await fleet.bound(theirs)
    stopped.set()
    await attacking


async def test_gangs_that_come_together_get_room_of_their_own(fleet: Cluster) -> None:
    gangs = [pods.Gang(f"train-{number}", 8, required=names.RACK) for number in range(4)]
    made = await asyncio.gather(*(make(fleet, gang) for gang in gangs))
    assert all(is_placed(pod) for each in made for pod in each)
    await fleet.bound(*gangs)


async def test_a_gang_without_room_is_gated_and_goes_whole_when_there_is_some(
    fleet: Cluster,
) -> None:
    first, second, third = (pods.Gang(f"train-{n}", 12, required=names.RACK) for n in range(3))
    await make(fleet, first)
    await make(fleet, second)
    assert not any(map(is_released, await make(fleet, third)))
    await fleet.bound(first, second)
    await fleet.stays_unbound(third)
    for pod in await fleet.list_pods(first):
        await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}")
    await fleet.bound(third)
    assert len(racks(await fleet.placement(third))) == 1


async def test_while_the_extender_is_away_pods_are_gated_and_wait_for_it(fleet: Cluster) -> None:
    fleet.muster.extender.kill()
    assert not any(map(is_released, await make(fleet, GANG)))
    await fleet.muster.start(fleet.muster.extender)
    await fleet.bound(GANG)


async def test_an_extender_killed_after_it_gave_the_places_takes_them_from_the_pods(
    fleet: Cluster,
) -> None:
    members = [*pods.members(GANG, await pods.create_owner(fleet.api, GANG))]
    for pod in members[:8]:
        assert is_placed(await fleet.api.create(PODS, pod))
    fleet.muster.extender.kill()
    for pod in members[8:10]:
        assert is_placed(await fleet.api.create(PODS, pod))  # the webhook knows its place
    await fleet.muster.start(fleet.muster.extender)
    for pod in members[10:]:
        await fleet.api.create(PODS, pod)
    await fleet.bound(GANG)
    assert len(racks(await fleet.placement(GANG))) == 1


async def reserve_in_vain(fleet: Cluster, gang: pods.Gang) -> JSON:
    """Have room reserved for a gang, none of whose pods is stored: validation refuses the first.

    Returns the gang's owner.
    """
    owner = await pods.create_owner(fleet.api, gang)
    pod = next(iter(pods.members(gang, owner)))
    pod["spec"]["containers"][0]["name"] = "No_Name"
    with pytest.raises(ApiFailed, match="No_Name"):
        await fleet.api.create(PODS, pod)
    return owner


async def test_an_extender_killed_between_a_reservation_and_its_pods_holds_nothing_for_them(
    fleet: Cluster,
) -> None:
    """The webhook has the places still, and another gang may have got them meanwhile."""
    late, rival = (pods.Gang(name, 16, required=names.RACK) for name in ("late", "rival"))
    owner = await reserve_in_vain(fleet, late)
    fleet.muster.extender.kill()
    await fleet.muster.start(fleet.muster.extender)
    assert all(map(is_placed, await make(fleet, rival)))
    await make(fleet, late, owner)
    await fleet.bound(rival, late)
    (its,), (mine,) = [racks(await fleet.placement(gang)) for gang in (rival, late)]
    assert its != mine


async def test_a_watch_that_breaks_between_a_reservation_and_its_pods_costs_nobody_room(
    real_plane: ControlPlane,
) -> None:
    """The pods are stored while nothing is heard, and are found in the list that follows."""
    late, rival = (pods.Gang(name, 16, required=names.RACK) for name in ("late", "rival"))
    async with (
        StoppingProxy(real_plane) as proxy,
        cluster(real_plane, reserves=True, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(2))
        owner = await reserve_in_vain(fleet, late)
        proxy.deafen()
        assert all(map(is_placed, await make(fleet, late, owner)))
        proxy.open()
        await make(fleet, rival)
        await fleet.bound(late, rival)
        (mine,), (its,) = [racks(await fleet.placement(gang)) for gang in (late, rival)]
        assert its != mine


async def test_a_plan_that_a_user_writes_is_taken_off(fleet: Cluster) -> None:
    members = [*pods.members(GANG, await pods.create_owner(fleet.api, GANG))]
    members[0]["metadata"]["annotations"][names.PLAN] = '{"id":"mine","node":"r0-h00"}'
    made = [await fleet.api.create(PODS, pod) for pod in members]
    assert '"mine"' not in made[0]["metadata"]["annotations"].get(names.PLAN, "")
    await fleet.bound(GANG)


@pytest.mark.parametrize("other", ["aaa-mesh", "zzz-mesh"])
async def test_pods_that_another_webhook_makes_larger_are_placed_as_they_are_then_or_gated(
    fleet: Cluster, other: str
) -> None:
    """A container with a GPU more is added, before Muster looks or after it did."""
    gang = pods.Gang(other, 4, gpus=4, required=names.RACK, labels={MESHED: "true"})
    async with other_webhook(fleet.plane, fleet.api, other, MESHED) as mesh:
        while not mesh.seen:  # until the API server calls it
            probe = pods.pod("probe", labels={MESHED: "true"})
            await fleet.api.create(f"{PODS}?dryRun=All", probe)
        made = await make(fleet, gang)
    before = other < "muster"
    assert [is_placed(pod) for pod in made] == [before] * 4
    await fleet.bound(gang)
    assert len(set((await fleet.placement(gang)).values())) == 4  # five GPUs of eight each


async def test_an_indexed_job_is_bound_without_a_write_to_its_pods(fleet: Cluster) -> None:
    container = {
        "name": "main", "image": "example.com/train", "resources": {"limits": {GPU: "8"}}
    }  # fmt: skip
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "indexed",
            "namespace": "default",
            "annotations": {names.TOPOLOGY_REQUIRED: names.RACK},
        },
        "spec": {
            "completionMode": "Indexed",
            "parallelism": 8,
            "completions": 8,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }
    await fleet.plane.start_controllers("job")
    try:
        await fleet.api.create(JOBS, job)
        found = await eight_bound(fleet)
        assert len({pod["spec"]["nodeName"].partition("-")[0] for pod in found}) == 1
        assert are_as_they_were_made(found)
    finally:
        await fleet.api.delete(JOBS)
        await fleet.api.delete(PODS)  # the controller takes its finalizers off
        await until(lambda: nobody_is_left(fleet))
        await fleet.plane.stop(CONTROLLERS)


async def eight_bound(fleet: Cluster) -> list[JSON]:
    async def are_bound() -> bool:
        return sum(map(is_bound, await fleet.list_pods())) == 8

    await until(are_bound)
    return await fleet.list_pods()


async def nobody_is_left(fleet: Cluster) -> bool:
    return not await fleet.list_pods()
