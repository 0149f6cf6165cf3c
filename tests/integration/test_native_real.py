"""Kubernetes' own groups on a real API server of 1.35: Workload and ``spec.workloadRef``."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.realcluster import PATIENCE_S, PODS, Cluster, cluster, is_bound, is_released

from loadtest import pods
from loadtest.controlplane import ControlPlane, Options
from loadtest.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

WORKLOADS = "/apis/scheduling.k8s.io/v1alpha1/namespaces/default/workloads"
NATIVE = Options(
    rbac=RBAC,
    feature_gates=("GenericWorkload=true",),
    runtime_config=("scheduling.k8s.io/v1alpha1=true",),
)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def fleet() -> AsyncIterator[Cluster]:
    """A control plane with the feature on, Muster beside it, four hosts with 8 GPUs."""
    async with ControlPlane(NATIVE) as plane, cluster(plane) as it:
        await it.add_racks([0], hosts=4)
        yield it


def member(name: str, replica: str) -> dict[str, Any]:
    made = pods.pod(name, gpus=8, labels={"replica": replica})
    reference = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": replica}
    made["spec"]["workloadRef"] = reference
    return made


async def test_each_replica_of_a_workloads_pod_group_goes_whole(fleet: Cluster) -> None:
    workload = {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "train"},
        "spec": {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 3}}}]},
    }
    await fleet.api.create(WORKLOADS, workload)
    for name, replica in (("a-0", "0"), ("b-0", "1"), ("a-1", "0"), ("b-1", "1"), ("a-2", "0")):
        await fleet.api.create(PODS, member(name, replica))
    async with asyncio.timeout(PATIENCE_S):
        while set(await bound(fleet)) != {"a-0", "a-1", "a-2"}:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)  # several planning cycles and scheduling attempts
    assert set(await bound(fleet)) == {"a-0", "a-1", "a-2"}, "two of three are not enough"
    gates = {pod["metadata"]["name"]: is_released(pod) for pod in await fleet.list_pods()}
    assert not gates["b-0"]
    assert not gates["b-1"]


async def bound(fleet: Cluster) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in await fleet.list_pods()
        if is_bound(pod)
    }
