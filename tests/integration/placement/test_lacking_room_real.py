"""Gangs that lack nodes, on the real parts: members are woken, an autoscaler is asked.

::

    zone z ── block b ─┬─ r0 ── r0-h00 …      hosts of 8 GPUs
                       └─ r1 ── r1-h00 …
"""

from collections.abc import AsyncIterator, Awaitable

import pytest
import pytest_asyncio
from support.dialects.provisioning import CRDS, DEFINITION, REQUESTS, TEMPLATES, say
from support.extenders.realcluster import (
    PODS,
    Cluster,
    cluster,
    is_released,
    racks,
    refused,
    reported,
    until,
)

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names
from muster.kube.kinds.provisioning import CHECK_CAPACITY

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


async def test_a_gang_waits_for_the_first_nodes_of_a_cluster(real_plane: ControlPlane) -> None:
    async with cluster(real_plane) as fleet:
        gang = pods.Gang("train", 4, required=names.RACK)
        await fleet.submit(gang)
        await until(lambda: reported(fleet, "GangWaiting"))
        await fleet.add_racks([0], hosts=4)
        await fleet.bound(gang)


@pytest.mark.parametrize("capable", [True, False])
async def test_ungated_members_that_wait_are_woken_when_the_last_one_comes_and_when_room_comes(
    real_plane: ControlPlane, *, capable: bool
) -> None:
    """kube-scheduler by itself retries a refused pod after five minutes; a test waits for one."""
    async with cluster(real_plane, "with-bind", gated=False, node_cache_capable=capable) as fleet:
        await fleet.add_racks([0], hosts=4)
        first, second = (pods.Gang(name, 4, required=names.RACK) for name in ("first", "second"))
        await fleet.submit(first, but_last=True)
        await fleet.stays_unbound(first)
        await refused(fleet, first, 3)
        *_, last = pods.members(first)
        await fleet.api.create(PODS, last)
        await fleet.bound(first)
        await fleet.submit(second)
        await refused(fleet, second, 4)
        await fleet.stays_unbound(second)
        await fleet.add_racks([1], hosts=4)
        await fleet.bound(second)
        assert racks(await fleet.placement(second)) == {"r1"}


@pytest_asyncio.fixture(loop_scope="session")
async def scaled(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """A cluster that serves ProvisioningRequests; the test speaks for the autoscaler."""
    async with real_plane.api() as api:
        await api.create(CRDS, DEFINITION)
        try:
            await until(lambda: answers(api.get(REQUESTS)))
            settings = {"provisioningClass": CHECK_CAPACITY, "afterSeconds": 0}
            async with cluster(real_plane, autoscaler=settings) as fleet:
                yield fleet
        finally:
            await api.delete(f"{CRDS}/{DEFINITION['metadata']['name']}")


async def answers(call: Awaitable[JSON]) -> bool:
    try:
        await call
    except ApiFailed:
        return False
    return True


async def test_a_provisioning_request_brings_the_nodes_of_a_whole_gang(scaled: Cluster) -> None:
    await scaled.add_racks([0], hosts=2)
    gang = pods.Gang("train", 4, required=names.RACK)
    await scaled.submit(gang)

    async def asked() -> list[JSON]:
        items: list[JSON] = (await scaled.api.get(REQUESTS))["items"]
        return items

    async def is_asked() -> bool:
        return bool(await asked())

    async def is_cleared() -> bool:
        """Whether both are gone; the template goes after the request that names it."""
        return not await asked() and not (await scaled.api.get(TEMPLATES))["items"]

    await until(is_asked)
    (request,) = await asked()
    (pod_set,) = request["spec"]["podSets"]
    template = await scaled.api.get(f"{TEMPLATES}/{pod_set['podTemplateRef']['name']}")
    assert pod_set["count"] == gang.size
    assert template["template"]["spec"]["containers"][0]["resources"]["limits"] == {
        "nvidia.com/gpu": "8"
    }
    assert not any(map(is_released, await scaled.list_pods(gang)))
    await say(scaled.api, request["metadata"]["name"], "Provisioned", "CapacityIsFound")
    await until(lambda: reported(scaled, "GangProvisioningProvisioned"))
    await scaled.add_racks([1], hosts=4)
    await scaled.bound(gang)
    await until(is_cleared)


async def test_a_gang_released_unpinned_is_called_unschedulable_and_goes_when_nodes_come(
    real_plane: ControlPlane,
) -> None:
    """What Cluster Autoscaler and Karpenter act on is kube-scheduler's condition."""
    settings = {"releaseUnpinned": True, "afterSeconds": 0}
    async with cluster(real_plane, autoscaler=settings) as fleet:
        await fleet.add_racks([0], hosts=2)
        gang = pods.Gang("train", 4, required=names.RACK)
        await fleet.submit(gang)
        await refused(fleet, gang, 4)
        await fleet.stays_unbound(gang)
        await fleet.add_racks([1], hosts=4)
        await fleet.bound(gang)
        assert racks(await fleet.placement(gang)) == {"r1"}
