"""kube-scheduler's own preemption, with Muster's ``preempt`` between it and the gangs.

::

    rack r0 ── r0-h00 pair-0   r0-h01 pair-1   r0-h02 duo-0 duo-1      (8 GPUs each)
"""

import pytest
from support.extenders.realcluster import Cluster, cluster, explained, is_bound

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


async def bound_to(fleet: Cluster, path: str) -> str:
    async def bound() -> bool:
        return is_bound(await fleet.api.get(path))

    await explained(fleet, bound)
    return str((await fleet.api.get(path))["spec"]["nodeName"])


async def gone(fleet: Cluster, gang: pods.Gang) -> None:
    async def none() -> bool:
        return not await fleet.list_pods(gang)

    await explained(fleet, none)


@pytest.mark.parametrize("capable", [True, False])
async def test_kube_scheduler_evicts_a_gang_whole_or_not_at_all(
    real_plane: ControlPlane, *, capable: bool
) -> None:
    """Three nodes would do; on two of them a partial gang would be left."""
    async with cluster(real_plane, spareCount=0, node_cache_capable=capable) as fleet:
        await fleet.add_racks([0], hosts=3)
        pair, duo = pods.Gang("pair", 2, gpus=8), pods.Gang("duo", 2, gpus=4)
        for gang in (pair, duo):
            await fleet.submit(gang)
            await fleet.bound(gang)
        shared = set((await fleet.placement(duo)).values())
        assert len(shared) == 1
        # Without a namespace controller a deleted namespace never goes: each run has its own.
        theirs = f"theirs-{capable}".lower()
        namespace = {"metadata": {"name": theirs, "labels": {names.MANAGED: "false"}}}
        await fleet.api.create("/api/v1/namespaces", namespace)
        await fleet.api.create(CLASSES, {"metadata": {"name": "vital"}, "value": 1_000_000})
        try:
            urgent = pods.pod("urgent", namespace=theirs, gpus=8, priority_class="vital")
            await fleet.api.create(f"/api/v1/namespaces/{theirs}/pods", urgent)
            path = f"/api/v1/namespaces/{theirs}/pods/urgent"
            assert await bound_to(fleet, path) in shared
            await gone(fleet, duo)
            assert len(await fleet.placement(pair)) == pair.size
        finally:
            await fleet.api.delete(f"/api/v1/namespaces/{theirs}/pods")
            for path in (f"{CLASSES}/vital", f"/api/v1/namespaces/{theirs}"):
                try:
                    await fleet.api.delete(path)
                except ApiFailed as error:
                    assert error.code in (404, 409), error  # noqa: PT017 - no answer otherwise
