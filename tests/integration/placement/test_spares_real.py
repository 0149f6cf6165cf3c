"""Hot spares on the real control plane.

::

    zone z ── block b ─┬─ r0 ── r0-h00 … r0-h09      hosts of 8 GPUs
                       └─ r1 ── r1-h00 … r1-h09
"""

import pytest
from support.extenders.realcluster import PODS, Cluster, cluster, racks, recreate

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


async def uids(fleet: Cluster, gang: pods.Gang) -> dict[str, str]:
    found = await fleet.list_pods(gang)
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in found}


async def test_two_nodes_of_a_running_gang_are_lost_and_its_spare_takes_one_of_the_members(
    real_plane: ControlPlane,
) -> None:
    """Whoever else waits for the two nodes that are free does not get the hot spare."""
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0, 1], hosts=10)
        gang = pods.Gang("train", 8, required=names.RACK, spares="1")
        await fleet.submit(gang)
        await fleet.bound(gang)
        placed, before = await fleet.placement(gang), await uids(fleet, gang)
        (rack,) = racks(placed)
        filler, late = pods.Gang("filler", 10, required=names.RACK), pods.Gang("late", 2)
        await fleet.submit(filler)
        await fleet.bound(filler)
        await fleet.submit(late)
        await fleet.stays_unbound(late)
        for name in ("train-2", "train-5"):
            await fleet.api.delete(f"/api/v1/nodes/{placed[name]}")
            await fleet.api.delete(f"{PODS}/{name}")
        await recreate(fleet, gang, 2, 5)
        await fleet.bound(gang)
        again, after = await fleet.placement(gang), await uids(fleet, gang)
        assert racks(again) == {rack}
        moved = {name for name in before if after[name] != before[name]}
        assert moved == {"train-2", "train-5"}
        assert {again[name] for name in moved}.isdisjoint(placed.values())
        assert all(again[name] == placed[name] for name in before if name not in moved)
        await fleet.stays_unbound(late)
