"""Past use on a real control plane: who used less lately goes first, also after a restart.

::

    cluster (32 GPUs on 4 hosts) ─┬─ heavy   entitled 8, borrowed 16 for a while
                                  └─ light   entitled 8

    ClusterQueue a ─┬─ LocalQueue default/busy    ran for a while
    (by use)        └─ LocalQueue default/quiet
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.dialects.kueueplane import KUEUE, kueue_plane
from support.extenders.queueplane import QUEUES, queue_plane
from support.extenders.realcluster import PODS, Cluster, cluster, until
from support.machine import quickyaml

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
GPU = "nvidia.com/gpu"
KUEUES = "kueue.x-k8s.io/queue-name"
USAGE = {"queueing": {"usage": {"halfLifeSeconds": 3600, "intervalSeconds": 1}}}
OBJECTS: list[JSON] = list(
    quickyaml.load_all("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: all}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  namespaceSelector: {}
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: all
      resources:
      - {name: cpu, nominalQuota: 1000}
      - {name: memory, nominalQuota: 10Ti}
      - {name: nvidia.com/gpu, nominalQuota: 32}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: busy, namespace: default}
spec: {clusterQueue: a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: quiet, namespace: default}
spec: {clusterQueue: a}
""")
)


def queue(name: str) -> JSON:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quotas": [{"resource": GPU, "entitled": 8}]},
    }


def blocker(host: str) -> JSON:
    """Return a pod that takes all GPUs of a host and belongs to nobody."""
    resources = {"limits": {GPU: "8"}, "requests": {GPU: "8"}}
    container = {"name": "main", "image": "example.invalid/serve:1", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"blocks-{host}"},
        "spec": {"nodeName": host, "schedulerName": "default-scheduler", "containers": [container]},
    }


async def who_is_first(fleet: Cluster, older: pods.Gang, younger: pods.Gang) -> None:
    """Have both wait for room that is enough for one; the younger one gets it."""
    hosts = [f"r0-h{number:02}" for number in range(4)]
    for host in hosts:
        await fleet.api.create(PODS, blocker(host))
    await fleet.submit(older)
    await fleet.stays_unbound(older)
    await fleet.submit(younger)
    await fleet.stays_unbound(younger)
    for host in hosts[:2]:
        await fleet.api.delete(f"{PODS}/blocks-{host}")
    await fleet.bound(younger)
    await fleet.stays_unbound(older)


async def ran(fleet: Cluster, gang: pods.Gang, path: str, *fields: str) -> JSON:
    """Run a gang until an average is written for it, then end it; return what was written."""
    await fleet.submit(gang)
    await fleet.bound(gang)
    written: JSON = {}

    async def is_written() -> bool:
        found: Any = (await fleet.api.get(path)).get("status", {})
        for field in fields:
            found = (found or {}).get(field, {})
        written.update(found or {})
        return GPU in written

    await until(is_written)
    for pod in (await fleet.api.get(PODS))["items"]:
        await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}")
    return written


async def restarted(fleet: Cluster) -> None:
    fleet.muster.extender.kill()
    await asyncio.sleep(0.5)
    await fleet.muster.start(fleet.muster.extender)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with queue_plane(minor) as it:
        yield it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kueues(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with kueue_plane(minor, OBJECTS) as it:
        yield it


async def test_who_borrowed_less_lately_goes_first_after_a_restart_too(plane: ControlPlane) -> None:
    async with cluster(plane, **USAGE) as fleet:  # type: ignore[arg-type]
        for name in ("heavy", "light"):
            await fleet.api.create(QUEUES, queue(name))
        await fleet.add_racks([0], hosts=4)
        past = pods.Gang("past", 3, labels={names.QUEUE: "heavy"})
        await ran(fleet, past, f"{QUEUES}/heavy", "averageUse", "borrowed")
        await restarted(fleet)
        older, younger = (
            pods.Gang(name, 2, labels={names.QUEUE: queue})
            for name, queue in (("older", "heavy"), ("younger", "light"))
        )
        await who_is_first(fleet, older, younger)
        await fleet.api.delete(QUEUES)


async def test_a_cluster_queue_goes_by_what_its_local_queues_used(kueues: ControlPlane) -> None:
    async with cluster(kueues, **USAGE) as fleet:  # type: ignore[arg-type]
        await fleet.add_racks([0], hosts=4)
        path = f"{KUEUE}/namespaces/default/localqueues/busy"
        fields = ("fairSharing", "admissionFairSharingStatus", "consumedResources")
        await ran(fleet, pods.Gang("past", 3, labels={KUEUES: "busy"}), path, *fields)
        await restarted(fleet)
        older, younger = (
            pods.Gang(name, 2, labels={KUEUES: queue})
            for name, queue in (("older", "busy"), ("younger", "quiet"))
        )
        await who_is_first(fleet, older, younger)
