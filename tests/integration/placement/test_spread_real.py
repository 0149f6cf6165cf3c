"""topologySpread with minDomains on a real kube-scheduler.

::

    zone z ── block b ─┬─ r0 ── r0-h00 r0-h01      8 GPUs each, two members fill a host
                       └─ r1 ── r1-h00 r1-h01

kube-scheduler counts spread domains among the nodes that a pod's node affinity allows: a pod
pinned to one node has one domain, fewer than two, so it would be refused beside its sibling
on that node. So such pods are nominated, not pinned.
"""

from collections import Counter

import pytest
from support.extenders.realcluster import PODS, cluster

from loadtest.testbed.client import pods
from loadtest.testbed.client.nodes import create_all
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("variant", ["recommended", "with-bind"])
async def test_a_gang_with_two_domains_at_least_is_bound_over_two_racks(
    real_plane: ControlPlane, variant: str
) -> None:
    gang = pods.Gang("wide", 8, gpus=4)
    spread = {
        "maxSkew": 1,
        "minDomains": 2,
        "topologyKey": names.RACK,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {names.GANG: gang.name}},
    }
    async with cluster(real_plane, variant) as fleet:  # type: ignore[arg-type]
        await fleet.add_racks(range(2), hosts=2)
        members = list(pods.members(gang, await pods.create_owner(fleet.api, gang)))
        for member in members:
            member["spec"]["topologySpreadConstraints"] = [spread]
        await create_all(fleet.api, PODS, members)
        await fleet.bound(gang)
        placed = await fleet.placement(gang)
        assert Counter(node.partition("-")[0] for node in placed.values()) == {"r0": 4, "r1": 4}
        for pod in await fleet.list_pods(gang):
            assert "affinity" not in pod["spec"]
            assert (
                f'"node":"{pod["spec"]["nodeName"]}"' in pod["metadata"]["annotations"][names.PLAN]
            )
