"""Kubernetes' own groups read from nothing but what Kubernetes defines, on both minors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from support.apiservers.eventually import eventually
from support.extenders.realcluster import (
    JSON,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    is_bound,
    is_released,
)

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, native_gangs
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SCHEDULING = "/apis/scheduling.k8s.io"
TELLING = {"conditions": {"afterSeconds": 1}}
POLICY = {"gang": {"minCount": 3}}


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def fleet(minor: Minor) -> AsyncIterator[tuple[Minor, Cluster]]:
    """A control plane with native gangs on, Muster beside it, four hosts with 8 GPUs."""
    options = native_gangs(minor, rbac=RBAC)
    async with ControlPlane(options) as plane, cluster(plane, **TELLING) as it:
        await it.add_racks([0], hosts=4)
        yield minor, it


async def describe(minor: Minor, fleet: Cluster) -> None:
    """Create what says that gangs a and b need three members each."""
    if minor == "1.35":
        spec = {"podGroups": [{"name": "workers", "policy": POLICY}]}
        path = f"{SCHEDULING}/v1alpha1/namespaces/default/workloads"
        await fleet.api.create(path, {"metadata": {"name": "train"}, "spec": spec})
        return
    path = f"{SCHEDULING}/v1alpha2/namespaces/default/podgroups"
    for name in ("a", "b"):
        group = {"metadata": {"name": name}, "spec": {"schedulingPolicy": POLICY}}
        await fleet.api.create(path, group)


def member(minor: Minor, name: str, gang: str) -> dict[str, Any]:
    made = pods.pod(name, gpus=8)
    reference = {"name": "train", "podGroup": "workers", "podGroupReplicaKey": gang}
    native = {"workloadRef": reference}
    made["spec"] |= native if minor == "1.35" else {"schedulingGroup": {"podGroupName": gang}}
    return made


async def test_each_native_gang_goes_whole_or_not_at_all(fleet: tuple[Minor, Cluster]) -> None:
    minor, it = fleet
    await describe(minor, it)
    for name in ("a-0", "b-0", "a-1", "b-1", "a-2"):
        await it.api.create(PODS, member(minor, name, name[0]))
    async with asyncio.timeout(PATIENCE_S):
        while await bound(it) != {"a-0", "a-1", "a-2"}:  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)  # several planning cycles and scheduling attempts
    assert await bound(it) == {"a-0", "a-1", "a-2"}, "two of three are not enough"
    released = {pod["metadata"]["name"] for pod in await it.list_pods() if is_released(pod)}
    assert released == {"a-0", "a-1", "a-2"}


async def bound(fleet: Cluster) -> set[str]:
    return {pod["metadata"]["name"] for pod in await fleet.list_pods() if is_bound(pod)}


async def test_the_pod_group_of_a_gang_that_waits_says_why_until_it_is_placed(
    fleet: tuple[Minor, Cluster],
) -> None:
    """Only 1.36 has an object for the gang itself: 1.35's Workload describes many."""
    minor, it = fleet
    if minor == "1.35":
        pytest.skip("there is no PodGroup in 1.35")
    path = f"{SCHEDULING}/v1alpha2/namespaces/default/podgroups"
    spec = {"schedulingPolicy": {"gang": {"minCount": 6}}}
    await it.api.create(path, {"metadata": {"name": "large"}, "spec": spec})
    for index in range(6):
        await it.api.create(PODS, member(minor, f"large-{index}", "large"))

    def said(status: str) -> Callable[[JSON], bool]:
        return lambda group: any(
            (c["type"], c["status"]) == ("PodGroupScheduled", status)
            for c in group.get("status", {}).get("conditions", ())
        )

    waits = await eventually(it.api, f"{path}/large", said("False"), seconds=PATIENCE_S)
    [condition] = waits["status"]["conditions"]
    assert condition["reason"] == "Unschedulable"
    assert "native/default/large waits: not enough room; " in condition["message"]
    await it.add_racks([1], hosts=6)
    await eventually(it.api, f"{path}/large", said("True"), seconds=PATIENCE_S)
    await it.api.delete(PODS)
    async with asyncio.timeout(PATIENCE_S):
        while await bound(it):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)
