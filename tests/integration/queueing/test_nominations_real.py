"""The freed room is kept from a pod that is not Muster's, on a real control plane.

::

    two hosts of 192 CPUs and 8 GPUs     low    a Job: on each host a pod with 8 GPUs and 150 CPUs
                                         other  a pod with 100 CPUs, and no GPU: it waits for CPUs
                                         high   a Job as low is, of a higher priority

Without a nomination ``other`` takes CPUs as soon as ``low`` ends: kube-scheduler knows of no pod
that they are for.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, host_job, is_bound, until

from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ROOM = {"enabled": True, "nominate": True}
_SETTLED_S = 2.0  # several scheduling attempts


def _job(name: str, priority: str = "") -> JSON:
    job = host_job(name)
    pod = job["spec"]["template"]["spec"]
    pod["containers"][0]["resources"]["requests"] = {"cpu": "150"}
    if priority:
        pod["priorityClassName"] = priority
    return job


def _other() -> JSON:
    container = {
        "name": "main",
        "image": "example.com/a",
        "resources": {"requests": {"cpu": "100"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other-0", "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with a high priority."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            high = {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": "high"},
                "value": 1000,
            }
            await api.create(PRIORITIES, high)
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Two hosts and the Job controller; room is made for gangs of no queue."""
    promised = {"withoutQueues": True}
    async with cluster(plane, makingRoom=ROOM, backfill=promised) as it:
        await it.add_racks([0], hosts=2)
        await plane.start_controllers("job")
        try:
            yield it
        finally:
            for path in (JOBS, PODS):
                await it.api.delete(path)
            await until(it.is_empty)
            await plane.stop(CONTROLLERS)


async def test_a_pod_of_no_gang_and_lower_priority_does_not_take_the_room_that_others_leave(
    fleet: Cluster,
) -> None:
    await fleet.api.create(JOBS, _job("low"))
    await fleet.runs("low", 2)
    await fleet.api.create(PODS, _other())
    await asyncio.sleep(_SETTLED_S)
    assert await fleet.bound_of("other") == 0

    await fleet.api.create(JOBS, _job("high", "high"))

    await fleet.runs("high", 2)
    assert await fleet.bound_of("other") == 0
    for pod in await fleet.pods_of("high"):
        assert is_bound(pod)
        assert not pod["status"].get("nominatedNodeName")  # the API server clears it
    await fleet.end(f"{JOBS}/high")
    await fleet.runs("other", 1)
