"""What breaks while gangs are placed, and that nothing is lost, doubled or left half done."""

import asyncio
from urllib.parse import urlsplit

import pytest
from support.proxy import Proxy
from support.realcluster import Cluster, cluster, is_released, racks

from kube import names
from loadtest import pods
from loadtest.controlplane import API_SERVER, SCHEDULER, ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

VARIANTS = ("recommended", "with-bind")
CUTS = 6
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
    "preemptionPolicy": "Never",
}


async def pinned_nodes(fleet: Cluster, gang: pods.Gang) -> dict[str, str]:
    """Map each released member to the first node that its required affinity names."""
    return {
        pod["metadata"]["name"]: _first_node(pod)
        for pod in await fleet.list_pods(gang)
        if is_released(pod)
    }


def _first_node(pod: dict) -> str:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = terms[0]["matchFields"]
    (name,) = field["values"]
    return str(name)


@pytest.mark.parametrize("variant", VARIANTS)
async def test_an_extender_killed_between_plan_and_bind_finds_its_plan_again(
    real_plane: ControlPlane, variant: str
) -> None:
    async with cluster(real_plane, variant) as fleet:
        await fleet.add_racks(range(4))
        gang = pods.Gang("train", 64, gpus=2, required=names.RACK)
        fleet.plane.program(SCHEDULER).suspend()
        await fleet.submit(gang)
        await fleet.released(gang)
        planned = await pinned_nodes(fleet, gang)
        fleet.muster.extender.kill()
        fleet.plane.program(SCHEDULER).resume()
        await fleet.stays_unbound(gang)
        await fleet.muster.start(fleet.muster.extender)
        await fleet.bound(gang)
        assert await fleet.placement(gang) == planned


@pytest.mark.parametrize("variant", VARIANTS)
async def test_an_extender_killed_in_the_middle_of_releasing_completes_that_gang_first(
    real_plane: ControlPlane, variant: str
) -> None:
    # One rack is free. The gang is half released when the extender dies; a rival for the same rack,
    # of higher priority, is complete before it comes back.
    async with cluster(real_plane, variant, releaseConcurrency=1) as fleet:
        await fleet.add_racks([0])
        gang = pods.Gang("train", 128, gpus=1, required=names.RACK)
        await fleet.submit(gang, but_last=True)
        *_, last = pods.members(gang)
        await fleet.api.create("/api/v1/namespaces/default/pods", last)
        await fleet.released(gang, 1)
        fleet.muster.extender.kill()
        half = len(await pinned_nodes(fleet, gang))
        assert 0 < half < gang.size
        await fleet.api.create(PRIORITY_CLASSES, URGENT)
        rival = pods.Gang("rival", 16, required=names.RACK, priority_class="urgent")
        await fleet.submit(rival)
        await fleet.muster.start(fleet.muster.extender)
        await fleet.bound(gang)
        assert racks(await fleet.placement(gang)) == {"r0"}
        await fleet.stays_unbound(rival)
        await fleet.api.delete(f"{PRIORITY_CLASSES}/urgent")


async def test_watches_cut_under_load_lose_no_pod(real_plane: ControlPlane) -> None:
    async with (
        Proxy(urlsplit(real_plane.url).port or 0) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(16))
        gangs = [pods.Gang(f"g{index}", 64, gpus=2, required=names.RACK) for index in range(8)]

        async def cut() -> None:
            for _ in range(CUTS):
                await asyncio.sleep(0.3)
                proxy.cut()

        async with asyncio.TaskGroup() as group:
            group.create_task(cut())
            for gang in gangs:
                await fleet.submit(gang)
        await fleet.bound(*gangs)
        for gang in gangs:
            assert len(racks(await fleet.placement(gang))) == 1


async def test_an_extender_cut_off_for_a_while_catches_up(real_plane: ControlPlane) -> None:
    async with (
        Proxy(urlsplit(real_plane.url).port or 0) as proxy,
        cluster(real_plane, proxy_port=proxy.port) as fleet,
    ):
        await fleet.add_racks(range(2))
        proxy.block()
        gang = pods.Gang("train", 16, required=names.RACK)
        gone = pods.Gang("gone", 16, required=names.RACK)
        await fleet.submit(gone)
        await fleet.api.delete("/api/v1/namespaces/default/pods")
        await fleet.submit(gang)
        await fleet.stays_unbound(gang)
        proxy.unblock()
        await fleet.bound(gang)


async def test_an_api_server_killed_while_releasing_comes_back_to_a_whole_gang(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane, releaseConcurrency=1) as fleet:
        await fleet.add_racks([0])
        gang = pods.Gang("train", 128, gpus=1, required=names.RACK)
        await fleet.submit(gang)
        await fleet.released(gang, 1)
        fleet.plane.kill(API_SERVER)
        await fleet.plane.start(API_SERVER)
        await fleet.bound(gang)
