"""A gang's life on a real etcd, kube-apiserver and kube-scheduler.

::

    zone z ── block b ─┬─ r0 ── r0-h00 … r0-h15      hosts of 8 GPUs, 16 to a rack
                       ├─ r1 ── r1-h00 … r1-h15
                       └─ …
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, is_bound, racks
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client import pods
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

VARIANTS = ("recommended", "with-bind")


@pytest_asyncio.fixture(loop_scope="session", params=VARIANTS)
async def fleet(real_plane: ControlPlane, request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    """Muster and kube-scheduler, either shipped configuration; judged at the end."""
    async with cluster(real_plane, request.param) as it:
        yield it


async def test_a_gang_of_64_lands_on_one_rack(fleet: Cluster) -> None:
    await fleet.add_racks(range(4))
    gang = pods.Gang("train", 64, gpus=2, required=names.RACK)
    await fleet.submit(gang)
    await fleet.bound(gang)
    assert len(racks(await fleet.placement(gang))) == 1


async def test_neighbours_in_rank_order_share_hosts(fleet: Cluster) -> None:
    await fleet.add_racks(range(2))
    gang = pods.Gang("train", 16, gpus=4, required=names.RACK)
    await fleet.submit(gang)
    await fleet.bound(gang)
    placed = await fleet.placement(gang)
    for rank in range(0, 16, 2):
        assert placed[f"train-{rank}"] == placed[f"train-{rank + 1}"]


async def test_two_gangs_that_cannot_both_fit_do_not_deadlock(fleet: Cluster) -> None:
    # 16 hosts; each gang needs 12. Their pods are created in turn: a scheduler that goes pod by
    # pod gives 8 hosts to each and neither ever runs.
    await fleet.add_racks([0])
    gangs = [pods.Gang("left", 12), pods.Gang("right", 12)]
    owned = [list(pods.members(g, await pods.create_owner(fleet.api, g))) for g in gangs]
    for pair in zip(*owned, strict=True):
        await create_all(fleet.api, PODS, pair)

    async def winner() -> pods.Gang:
        while True:
            for gang in gangs:
                if len(await fleet.placement(gang)) == gang.size:
                    return gang
            await asyncio.sleep(0.1)

    first = await asyncio.wait_for(winner(), PATIENCE_S)
    (other,) = (gang for gang in gangs if gang is not first)
    await fleet.stays_unbound(other)
    await fleet.api.delete(PODS, labelSelector=f"{names.GANG}={first.name}")
    await fleet.bound(other)


async def test_a_gang_larger_than_free_space_waits_whole_then_goes_when_space_appears(
    fleet: Cluster,
) -> None:
    await fleet.add_racks([0])
    gang = pods.Gang("train", 20)
    await fleet.submit(gang)
    await fleet.stays_unbound(gang)
    await fleet.add_racks([1])
    await fleet.bound(gang)


async def test_a_gang_waits_for_its_last_member(fleet: Cluster) -> None:
    await fleet.add_racks([0])
    gang = pods.Gang("train", 8)
    await fleet.submit(gang, but_last=True)
    await fleet.stays_unbound(gang)
    *_, last = pods.members(gang)
    await fleet.api.create(PODS, last)
    await fleet.bound(gang)


async def test_pods_without_a_controller_are_placed_without_pinning_their_spec(
    fleet: Cluster,
) -> None:
    await fleet.add_racks(range(2))
    gang = pods.Gang("train", 8, required=names.RACK)
    await fleet.submit(gang, owned=False)
    await fleet.bound(gang)
    assert len(racks(await fleet.placement(gang))) == 1
    for pod in await fleet.list_pods(gang):
        assert "affinity" not in pod["spec"]


async def test_a_released_pod_of_a_controller_is_no_longer_tracked_field_by_field(
    fleet: Cluster,
) -> None:
    await fleet.add_racks([0])
    owned, bare = pods.Gang("owned", 2), pods.Gang("bare", 2)
    await fleet.submit(owned)
    await fleet.submit(bare, owned=False)
    await fleet.bound(owned, bare)
    assert all("managedFields" not in pod["metadata"] for pod in await fleet.list_pods(owned))
    assert all("managedFields" in pod["metadata"] for pod in await fleet.list_pods(bare))


async def test_ungated_pods_are_held_in_filter_until_their_gang_is_whole(
    real_plane: ControlPlane,
) -> None:
    # Nobody gates: the webhook is not there. Members come one by one and are turned away with a
    # fixed reason until the last one is there.
    async with cluster(real_plane, "with-bind", gated=False) as fleet:
        await fleet.add_racks(range(4))
        gang = pods.Gang("train", 64, gpus=2, required=names.RACK)
        await fleet.submit(gang, but_last=True)
        await fleet.stays_unbound(gang)
        *_, last = pods.members(gang)
        await fleet.api.create(PODS, last)
        await fleet.bound(gang)
        assert len(racks(await fleet.placement(gang))) == 1


async def test_a_single_pod_with_a_gpu_needs_no_gang(fleet: Cluster) -> None:
    await fleet.add_racks([0])
    await fleet.api.create(PODS, pods.pod("alone", gpus=1))
    for _ in range(600):
        (pod,) = await fleet.list_pods()
        if is_bound(pod):
            return
        await asyncio.sleep(0.1)
    pytest.fail(fleet.muster.extender.log_tail())


async def test_unmanaged_pods_are_untouched_and_do_not_depend_on_muster(fleet: Cluster) -> None:
    await fleet.add_racks([0])
    fleet.muster.extender.kill()
    plain = [pods.pod(f"web-{index}", labels={"app": "web"}) for index in range(8)]
    await create_all(fleet.api, PODS, plain)
    for _ in range(600):
        found = await fleet.list_pods()
        if all(is_bound(pod) for pod in found):
            break
        await asyncio.sleep(0.1)
    for pod in found:
        assert is_bound(pod)
        assert pod["metadata"].get("annotations", {}) == {}
        assert "schedulingGates" not in pod["spec"]
        assert "affinity" not in pod["spec"]
