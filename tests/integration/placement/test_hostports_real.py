"""Pods that the webhook puts on their host's network, planned with the ports that they get there.

::

    block b ── r0 ─┬─ r0-h00   8 GPUs    by GPUs two pods of four go on a host,
                   └─ r0-h01   8 GPUs    by their port one does
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, is_released

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

PORT = 2222
FABRIC = """
apiVersion: muster.dev/v1alpha1
kind: FabricProfile
metadata: {name: on-host}
spec:
  version: "1"
  summary: the host's network and nothing else
  sources: [{what: host ports, where: kubernetes pkg/apis/core/v1/defaults.go}]
  inject: {hostNetwork: true}
"""
CLUSTER = """
apiVersion: muster.dev/v1alpha1
kind: ClusterProfile
metadata: {name: train-eu}
spec:
  fabrics: [{profile: on-host, pods: accelerated}]
"""


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(
    real_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cluster]:
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "fabric.yaml").write_text(FABRIC)
    (folder / "cluster.yaml").write_text(CLUSTER)
    injection = {
        "clusterProfile": str(folder / "cluster.yaml"),
        "fabrics": [str(folder / "fabric.yaml")],
    }
    async with cluster(real_plane, reserves=True, webhook={"injection": injection}) as it:
        await it.add_racks(range(1), hosts=2)
        yield it


async def make(fleet: Cluster, gang: pods.Gang) -> list[JSON]:
    members = [*pods.members(gang, await pods.create_owner(fleet.api, gang))]
    for pod in members:
        pod["spec"]["containers"][0]["ports"] = [{"containerPort": PORT}]
    return await asyncio.gather(*(fleet.api.create(PODS, pod) for pod in members))


def taken(pod: JSON) -> list[int]:
    return [port["hostPort"] for port in pod["spec"]["containers"][0]["ports"]]


async def test_a_gang_that_fits_by_gpus_and_not_by_ports_waits_whole(fleet: Cluster) -> None:
    gang = pods.Gang("four", 4, gpus=4)
    made = await make(fleet, gang)
    assert [taken(pod) for pod in made] == [[PORT]] * 4
    assert not any(map(is_released, made))
    await fleet.stays_unbound(gang)


async def test_a_gang_with_one_pod_for_each_host_is_made_with_its_places_and_bound(
    fleet: Cluster,
) -> None:
    gang = pods.Gang("two", 2, gpus=4)
    assert all(map(is_released, await make(fleet, gang)))
    await fleet.bound(gang)
    assert len(set((await fleet.placement(gang)).values())) == 2
