"""A ClusterQueue reclaims its quota through Muster, on a real control plane without Kueue.

::

    cohort all (32 GPUs on 4 hosts) ─┬─ vision   nominal 16, says nothing of preemption
                                     └─ speech   nominal 16, reclaimWithinCohort: Any
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.dialects.kueueplane import kueue_plane
from support.extenders.realcluster import EVENTS, Cluster, cluster, until
from support.machine import quickyaml

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
QUEUE = "kueue.x-k8s.io/queue-name"
ROOM = {"enabled": True, "queues": ["kueue"]}
OBJECTS: list[JSON] = list(
    quickyaml.load_all("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: f}
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
    - name: f
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 1Ti}
      - {name: nvidia.com/gpu, nominalQuota: 16}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: speech}
spec:
  cohort: all
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: f
      resources:
      - {name: cpu, nominalQuota: 100}
      - {name: memory, nominalQuota: 1Ti}
      - {name: nvidia.com/gpu, nominalQuota: 16}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: vision, namespace: default}
spec: {clusterQueue: vision}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: speech, namespace: default}
spec: {clusterQueue: speech}
""")
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with the queues, before Muster begins."""
    async with kueue_plane(minor, OBJECTS) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs."""
    async with cluster(plane, makingRoom=ROOM) as it:
        await it.add_racks([0], hosts=4)
        yield it


def _gang(name: str, queue: str) -> pods.Gang:
    """Two pods that fill a host each."""
    return pods.Gang(name, 2, labels={QUEUE: queue})


async def _notes(fleet: Cluster, reason: str) -> list[str]:
    events = (await fleet.api.get(EVENTS))["items"]
    return [event.get("note", "") for event in events if event["reason"] == reason]


async def test_a_cluster_queue_takes_its_nominal_quota_back_from_a_borrower_and_no_more(
    fleet: Cluster,
) -> None:
    """Speech borrows nothing by eviction: its second gang would be above its nominal quota."""
    gangs = [_gang("first", "vision"), _gang("second", "vision")]
    for gang in gangs:
        await fleet.submit(gang)
        await fleet.bound(gang)
    owner, more = _gang("owner", "speech"), _gang("more", "speech")
    await fleet.submit(owner)

    await fleet.bound(owner)

    assert sorted([await fleet.bound_of(gang.name) for gang in gangs]) == [0, 2]
    await fleet.submit(more)

    async def says_why() -> bool:
        why = "the queue would use more than it is entitled to"
        return any(why in note for note in await _notes(fleet, "NobodyGivesWay"))

    await until(says_why)
    await fleet.stays_unbound(more)
    assert [note for note in await _notes(fleet, "FieldNotObeyed") if "preemption" in note] == []
