"""Indexed Jobs run by the real Job controller, placed by Muster, bound by kube-scheduler.

::

    zone z ── block b ── r0 ── r0-h00 … r0-h03      8 GPUs each, one pod fills a host

No kubelet runs: the test says when pods succeed, and when deleted ones are really gone.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from support.extenders.realcluster import PATIENCE_S, PODS, Cluster, cluster, is_bound, is_released

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PARALLELISM = 4


def train(completions: int) -> JSON:
    container = {
        "name": "main",
        "image": "example.com/train",
        "resources": {"limits": {GPU: "8"}},
    }
    template = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 600,
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "completionMode": "Indexed",
            "parallelism": PARALLELISM,
            "completions": completions,
            "template": {"spec": template},
        },
    }


def is_leaving(pod: JSON) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def runs(pod: JSON) -> bool:
    return is_bound(pod) and not is_leaving(pod) and pod["status"]["phase"] == "Pending"


def is_waiting(pod: JSON) -> bool:
    return not is_released(pod) and not is_leaving(pod)


@asynccontextmanager
async def controlled(fleet: Cluster, job: JSON) -> AsyncIterator[None]:
    """Run the Job controller on ``job`` inside the block; afterwards nothing of it is left."""
    await fleet.plane.start_controllers("job")
    try:
        await fleet.api.create(JOBS, job)
        yield
    finally:
        await fleet.api.delete(JOBS)
        await fleet.api.delete(PODS)  # the controller takes its finalizers off
        await pods(fleet, lambda _: True, 0)
        await fleet.plane.stop(CONTROLLERS)


async def pods(fleet: Cluster, which: Callable[[JSON], bool], count: int) -> list[JSON]:
    """Wait until exactly ``count`` pods are so; returns them."""
    async with asyncio.timeout(PATIENCE_S):
        while len(found := [pod for pod in await fleet.list_pods() if which(pod)]) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.1)  # the controller tells nobody
    return found


async def succeed(fleet: Cluster, found: list[JSON]) -> None:
    for pod in found:
        path = f"{PODS}/{pod['metadata']['name']}/status"
        await fleet.api.patch(path, {"status": {"phase": "Succeeded"}})


async def end(fleet: Cluster, found: list[JSON]) -> None:
    for pod in found:
        await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}")


async def test_eight_indexes_run_four_at_a_time_to_the_end(real_plane: ControlPlane) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=PARALLELISM)
        async with controlled(fleet, train(8)):
            first = await pods(fleet, runs, PARALLELISM)
            await succeed(fleet, first[:1])  # its place is taken while the others run
            second = await pods(fleet, runs, PARALLELISM)
            await succeed(fleet, second)
            await succeed(fleet, await pods(fleet, runs, 3))
            await pods(fleet, lambda pod: pod["status"]["phase"] == "Succeeded", 8)


async def test_a_resumed_job_is_placed_as_one_gang_when_its_old_pods_have_gone(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=PARALLELISM)
        async with controlled(fleet, train(8)):
            await succeed(fleet, await pods(fleet, runs, PARALLELISM))
            await pods(fleet, runs, PARALLELISM)
            await fleet.api.patch(f"{JOBS}/train", {"spec": {"suspend": True}})
            old = await pods(fleet, is_leaving, PARALLELISM)
            await fleet.api.patch(f"{JOBS}/train", {"spec": {"suspend": False}})
            await pods(fleet, is_waiting, PARALLELISM)
            await end(fleet, old[1:])
            await pods(fleet, is_leaving, 1)
            await asyncio.sleep(1.0)  # several planning cycles: three of four would fit
            assert len([p for p in await fleet.list_pods() if is_waiting(p)]) == PARALLELISM
            await end(fleet, old[:1])
            await pods(fleet, runs, PARALLELISM)


async def test_the_last_index_of_a_gang_by_label_goes_when_the_others_are_gone(
    real_plane: ControlPlane,
) -> None:
    job = train(PARALLELISM + 1)
    labels = {names.GANG: "train", names.GANG_SIZE: str(PARALLELISM)}
    job["spec"]["template"]["metadata"] = {"labels": labels}
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=PARALLELISM)
        async with controlled(fleet, job):
            first = await pods(fleet, runs, PARALLELISM)
            await succeed(fleet, first)
            await end(fleet, first)
            await pods(fleet, runs, 1)
            assert (await fleet.api.get(f"{JOBS}/train"))["status"]["succeeded"] == PARALLELISM
