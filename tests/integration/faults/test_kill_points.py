"""The extender killed at each step of a gang's life, and started again.

::

    members come ─► plan ─► held ─► PATCH 1 … PATCH n ─► filter ─► bound ─► the watch tells it
         ▲                   ▲         ▲   ▲           ▲         ▲          ▲
     one missing         no PATCH      │ done, reply   │     Binding kept   nothing came back
                         sent          │ lost          │     back, or done
                                  half are sent    nobody asks  and its reply lost

Each test ends with the independent checker: no gang in part, no room given away twice.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.apiservers.apiproxy import Keeps, Stop, StoppingProxy
from support.extenders.realcluster import (
    JSON,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    is_released,
    racks,
)

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

GANG = pods.Gang("train", 16, required=names.RACK)
RELEASE = ("PATCH", "/pods/train-")
VARIANTS = ("recommended", "with-bind")
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
    "preemptionPolicy": "Never",
}


@asynccontextmanager
async def stoppable(
    plane: ControlPlane, variant: str = "recommended", **extender: object
) -> AsyncIterator[tuple[Cluster, StoppingProxy]]:
    """Two racks of 16 hosts, either just large enough, behind a proxy."""
    async with (
        StoppingProxy(plane) as proxy,
        cluster(plane, variant, proxy_port=proxy.port, spareCount=0, **extender) as fleet,  # type: ignore[arg-type]
    ):
        await fleet.add_racks(range(2))
        yield fleet, proxy


async def killed_at(fleet: Cluster, proxy: StoppingProxy, stop: Stop) -> int:
    """Kill the extender there and open the way again; returns how many pods are released."""
    async with asyncio.timeout(PATIENCE_S):
        await stop.reached.wait()
    fleet.muster.extender.kill()
    proxy.open()
    return sum(is_released(pod) for pod in await fleet.list_pods(GANG))


async def goes_on(fleet: Cluster) -> None:
    """Start the extender again; the gang is bound whole, and a rival gets the other rack."""
    await fleet.muster.start(fleet.muster.extender)
    await fleet.bound(GANG)
    rival = pods.Gang("rival", 16, required=names.RACK)
    await fleet.submit(rival)
    await fleet.bound(rival)
    (mine,), (its,) = racks(await fleet.placement(GANG)), racks(await fleet.placement(rival))
    assert mine != its


async def test_killed_before_the_plan(real_plane: ControlPlane) -> None:
    async with stoppable(real_plane) as (fleet, _):
        await fleet.submit(GANG, but_last=True)
        fleet.muster.extender.kill()
        *_, last = pods.members(GANG)
        await fleet.api.create(PODS, last)
        await goes_on(fleet)


async def test_killed_after_the_hold_before_the_first_patch(real_plane: ControlPlane) -> None:
    async with stoppable(real_plane) as (fleet, proxy):
        stop = proxy.stop_at(*RELEASE)
        await fleet.submit(GANG)
        assert await killed_at(fleet, proxy, stop) == 0
        await goes_on(fleet)


@pytest.mark.parametrize(("keeps", "released"), [("request", 7), ("reply", 8)])
async def test_killed_at_the_eighth_patch_sent_or_done_and_not_answered(
    real_plane: ControlPlane, keeps: Keeps, released: int
) -> None:
    async with stoppable(real_plane, releaseConcurrency=1) as (fleet, proxy):
        stop = proxy.stop_at(*RELEASE, 8, keeps=keeps)
        await fleet.submit(GANG)
        assert await killed_at(fleet, proxy, stop) == released
        await goes_on(fleet)


async def test_killed_when_the_last_patch_is_done_and_not_answered(
    real_plane: ControlPlane,
) -> None:
    async with stoppable(real_plane, releaseConcurrency=1) as (fleet, proxy):
        fleet.plane.program(SCHEDULER).suspend()
        stop = proxy.stop_at(*RELEASE, GANG.size, keeps="reply")
        await fleet.submit(GANG)
        assert await killed_at(fleet, proxy, stop) == GANG.size
        fleet.plane.program(SCHEDULER).resume()
        await goes_on(fleet)


async def test_killed_after_kube_scheduler_has_bound_before_the_extender_hears_of_it(
    real_plane: ControlPlane,
) -> None:
    async with stoppable(real_plane) as (fleet, proxy):
        fleet.plane.program(SCHEDULER).suspend()
        await fleet.submit(GANG)
        await fleet.released(GANG)
        proxy.deafen()
        fleet.plane.program(SCHEDULER).resume()
        await fleet.bound(GANG)
        fleet.muster.extender.kill()
        proxy.open()
        await goes_on(fleet)


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_killed_after_filter_at_its_own_binding_sent_or_done_and_not_answered(
    real_plane: ControlPlane, keeps: Keeps
) -> None:
    async with stoppable(real_plane, "with-bind") as (fleet, proxy):
        stop = proxy.stop_at("POST", "/binding", 4, keeps=keeps)
        await fleet.submit(GANG)
        # The first are bound while the last are being released.
        assert 4 <= await killed_at(fleet, proxy, stop) <= GANG.size
        await goes_on(fleet)


async def pinned_nodes(fleet: Cluster, gang: pods.Gang) -> dict[str, str]:
    """Map each released member to the first node that its required affinity names."""
    return {
        pod["metadata"]["name"]: _first_node(pod)
        for pod in await fleet.list_pods(gang)
        if is_released(pod)
    }


def _first_node(pod: JSON) -> str:
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
