"""Kueue's queue objects under Muster alone, on a real control plane with Kueue's own definitions.

::

    cohort all ─┬─ ClusterQueue vision   spot 8, owned 8 and 8 borrowed   LocalQueue default/main
                └─ ClusterQueue speech   owned 8
    hosts of 8 GPUs: 1 spot, 3 owned
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.dialects.kueueplane import kueue_plane
from support.extenders.realcluster import EVENTS, Cluster, cluster, until
from support.machine import quickyaml

from loadtest.testbed.client import pods
from loadtest.testbed.client.nodes import create_nodes, node
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
OBJECTS: list[JSON] = list(
    quickyaml.load_all("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: spot}
spec: {nodeLabels: {kind: spot}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: owned}
spec: {nodeLabels: {kind: owned}}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: vision}
spec:
  cohort: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 1Ti}
      - {name: nvidia.com/gpu, nominalQuota: 8}
    - name: owned
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 1Ti}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 8}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: speech}
spec:
  cohort: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: owned
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: vision}
""")
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with the queues, before Muster begins."""
    async with kueue_plane(minor, OBJECTS) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """One host of spot and three of our own, all of 8 GPUs."""
    async with cluster(plane) as it:
        hosts = {"spot-0": "spot", "owned-0": "owned", "owned-1": "owned", "owned-2": "owned"}
        place = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r0"}
        await create_nodes(
            it.api, [node(host, {**place, "kind": kind}) for host, kind in hosts.items()]
        )
        yield it


async def test_a_gang_has_one_flavor_the_first_with_quota_and_borrows_from_the_cohort(
    fleet: Cluster,
) -> None:
    gangs = [pods.Gang(name, size, labels={QUEUE: "main"}) for name, size in (("a", 1), ("b", 2))]
    for gang in gangs:
        await fleet.submit(gang)
        await fleet.bound(gang)
    over = pods.Gang("over", 1, labels={QUEUE: "main"})
    await fleet.submit(over)

    async def says_why() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        return any("of flavor spot left" in event.get("note", "") for event in events)

    await until(says_why)
    await fleet.stays_unbound(over)
    assert {host.partition("-")[0] for host in (await fleet.placement(gangs[0])).values()} == {
        "spot"
    }
    assert {host.partition("-")[0] for host in (await fleet.placement(gangs[1])).values()} == {
        "owned"
    }


async def test_a_local_queue_of_another_namespace_means_nothing_here(fleet: Cluster) -> None:
    lost = pods.Gang("lost", 1, labels={QUEUE: "elsewhere"})
    await fleet.submit(lost)

    async def says_why() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        return any('no queue is named "elsewhere"' in event.get("note", "") for event in events)

    await until(says_why)
    await fleet.stays_unbound(lost)


async def test_once_kueue_writes_a_queues_status_its_gangs_are_only_placed(fleet: Cluster) -> None:
    full = pods.Gang("full", 3, labels={QUEUE: "main"})  # 24 GPUs; at most 16 of one flavor
    await fleet.submit(full)
    await fleet.stays_unbound(full)

    path = "/apis/kueue.x-k8s.io/v1beta1/clusterqueues/vision/status"
    await fleet.api.patch(path, {"status": {"pendingWorkloads": 7}})
    try:
        await fleet.bound(full)
    finally:  # as after Kueue was removed
        await fleet.api.patch(path, {"status": None})
