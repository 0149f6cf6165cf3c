"""Training takes the GPUs that pods of a Deployment share, on a real control plane.

::

    host A   8 GPUs   shared-0 … shared-3     half a GPU each, a Deployment of four replicas
    host B   8 GPUs   dedicated-0             8 GPUs, a Deployment beside it
    host C   8 GPUs                           free

A training Job of two pods with eight GPUs each needs A and C.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import EVENTS, PODS, Cluster, cluster, host_job, is_bound, until

from loadtest.testbed.client.nodes import GPU, create_nodes, node
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICASETS = "/apis/apps/v1/namespaces/default/replicasets"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
FEATURES = {
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
}
HALF = {"gpu-fraction": "0.5"}
ALL = {GPU: "8"}


def _deployment(name: str, replicas: int, limits: JSON, annotations: JSON) -> JSON:
    labels = {"app": name}
    container = {"name": "main", "image": "example.com/a", "resources": {"limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
            },
        },
    }


def _training(name: str) -> JSON:
    job = host_job(name)
    job["spec"]["template"]["spec"]["priorityClassName"] = "training"
    return job


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with a priority for training."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await api.create(
                PRIORITIES,
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": "training"},
                    "value": 1000,
                },
            )
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Three hosts, the controllers that make pods, and room made for gangs of no queue."""
    promised = {"withoutQueues": True}
    async with cluster(plane, makingRoom={"enabled": True}, backfill=promised) as it:
        await _hosts(it, "a", "b", "c")
        await plane.start_controllers("job", "deployment", "replicaset")
        try:
            yield it
        finally:
            for path in (DEPLOYMENTS, REPLICASETS, JOBS, PODS):
                await it.api.delete(path)
            await until(it.is_empty)
            await plane.stop(CONTROLLERS)


async def _hosts(fleet: Cluster, *hosts: str) -> None:
    await create_nodes(fleet.api, [node(f"host-{host}", FEATURES) for host in hosts])


async def _uids(fleet: Cluster, name: str, *, bound: bool) -> set[str]:
    pods = await fleet.pods_of(name)
    return {pod["metadata"]["uid"] for pod in pods if is_bound(pod) is bound}


async def _said(fleet: Cluster, reason: str) -> str:
    events = (await fleet.api.get(EVENTS))["items"]
    return " | ".join(event.get("note", "") for event in events if event["reason"] == reason)


async def test_pods_that_share_a_gpu_end_for_training_and_the_dedicated_one_stays(
    fleet: Cluster,
) -> None:
    await fleet.api.create(DEPLOYMENTS, _deployment("shared", 4, {}, HALF))
    await fleet.runs("shared", 4)
    await fleet.api.create(DEPLOYMENTS, _deployment("dedicated", 1, ALL, {}))
    await fleet.runs("dedicated", 1)
    shared = await _uids(fleet, "shared", bound=True)
    dedicated = await _uids(fleet, "dedicated", bound=True)

    await fleet.api.create(JOBS, _training("first"))

    await fleet.runs("first", 2)
    assert await _uids(fleet, "dedicated", bound=True) == dedicated

    async def made_again() -> bool:
        return len(await _uids(fleet, "shared", bound=False)) == len(shared)

    await until(made_again)
    assert not await _uids(fleet, "shared", bound=False) & shared

    await fleet.api.create(JOBS, _training("second"))

    async def nobody() -> bool:
        said = await _said(fleet, "NobodyGivesWay")
        return "1: it serves requests on devices of its own (makingRoom.services)" in said

    await until(nobody)
    await fleet.end(f"{JOBS}/second")
    await _hosts(fleet, "d")

    await fleet.runs("shared", 4)
    assert await _uids(fleet, "dedicated", bound=True) == dedicated
