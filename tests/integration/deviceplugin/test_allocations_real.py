"""What a device plugin says of its node, on a real etcd, kube-apiserver and kube-scheduler.

::

    zone z ─ block b ─ rack r ── h     4 GPUs GPU-0 … GPU-3; the test is its device plugin
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.devices.nodefacts import given, tell, topology
from support.extenders.extenders import plan_of
from support.extenders.realcluster import PODS, Cluster, cluster, reported, until

from loadtest.testbed.client.nodes import create_all, node
from loadtest.testbed.client.pods import Gang
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JSON = dict[str, Any]
THREE, ONE = Gang("three", 1, gpus=3), Gang("one", 1, gpus=1)


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Give a cluster of the one node; judged at the end."""
    async with cluster(real_plane) as it:
        resources = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}
        labels = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r"}
        await create_all(it.api, "/api/v1/nodes", [node("h", labels, resources)])
        await tell(it.api, "h", topology=topology(4))
        yield it


async def devices(fleet: Cluster, name: str) -> list[str]:
    """Return the devices that a bound pod's plan names."""
    plan = plan_of(await fleet.api.get(f"{PODS}/{name}"))
    assert plan is not None
    found: list[str] = plan["devices"]["h"]
    return found


async def condition(fleet: Cluster, name: str) -> JSON:
    """Return what a pod says of its devices."""
    pod = await fleet.api.get(f"{PODS}/{name}")
    found = pod["status"].get("conditions", [])
    return next((c for c in found if c["type"] == names.DEVICES_HEALTHY), {})


async def test_what_the_kubelet_gave_is_kept_clear_and_a_bad_device_is_reported(
    fleet: Cluster,
) -> None:
    await fleet.submit(THREE)
    await fleet.bound(THREE)
    assert await devices(fleet, "three-0") == ["GPU-0", "GPU-1", "GPU-2"]
    uid = (await fleet.api.get(f"{PODS}/three-0"))["metadata"]["uid"]
    # The kubelet did otherwise than planned: GPU-0 is what is left, over a restart, too.
    await tell(fleet.api, "h", allocations=given(**{uid: ["GPU-1", "GPU-2", "GPU-3"]}))
    fleet.muster.extender.kill()
    await fleet.muster.start(fleet.muster.extender)
    await fleet.submit(ONE)
    await fleet.bound(ONE)
    assert await devices(fleet, "one-0") == ["GPU-0"]

    await tell(fleet.api, "h", topology=topology(4, {"GPU-3": "XID 79"}))
    await until(lambda: _says(fleet, "three-0", "False"))
    told_of = await condition(fleet, "three-0")
    assert told_of["message"] == "device GPU-3 of node h is unhealthy: XID 79"
    assert told_of["lastTransitionTime"]
    assert await condition(fleet, "one-0") == {}
    await until(lambda: reported(fleet, "DeviceUnhealthy"))

    await tell(fleet.api, "h", topology=topology(4))
    await until(lambda: _says(fleet, "three-0", "True"))
    assert {pod["spec"]["nodeName"] for pod in await fleet.list_pods()} == {"h"}


async def _says(fleet: Cluster, name: str, status: str) -> bool:
    return (await condition(fleet, name)).get("status") == status
