"""Suspended jobs on a real control plane: made by the real Job controller once they have room.

::

    cluster (24 GPUs on 3 hosts) ─── waiting   entitled 16, at most 16, admission: Suspend
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.dialects.customkinds import install
from support.extenders.realcluster import EVENTS, PODS, Cluster, cluster, is_bound, until

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUEUES = "/apis/muster.dev/v1alpha1/queues"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
DEFINITION = Path(__file__).parents[3] / "manifests" / "crds" / "queues.yaml"
HOSTS = 3


def _queue() -> JSON:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": "waiting"},
        "spec": {
            "admission": "Suspend",
            "quotas": [{"resource": GPU, "entitled": 16, "limit": 16}],
        },
    }


def _spec(pods: int, queue: str) -> JSON:
    container = {"name": "main", "image": "example.com/a", "resources": {"limits": {GPU: "8"}}}
    return {
        "completionMode": "Indexed",
        "parallelism": pods,
        "completions": pods,
        "template": {
            "metadata": {"labels": {names.QUEUE: queue}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
            },
        },
    }


def _job(name: str, pods: int, queue: str = "waiting", **notes: str) -> JSON:
    meta = {"name": name, "namespace": "default", "annotations": notes}
    spec = _spec(pods, queue)
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _jobset(name: str, pods: int, **notes: str) -> JSON:
    driver = {"name": "driver", "replicas": 1, "template": {"spec": _spec(1, "waiting")}}
    workers = {
        "name": "workers",
        "replicas": 1,
        "template": {"metadata": {"annotations": notes}, "spec": _spec(pods, "waiting")},
    }
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicatedJobs": [driver, workers]},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with Muster's queues and JobSets."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await api.create(CRDS, yaml.safe_load(DEFINITION.read_text(encoding="utf-8")))
            await install(api, await asyncio.to_thread(crds.ensure), [_jobset("any", 1)])
            await until(lambda: _serves(api))
        yield it


async def _serves(api: Api) -> bool:
    try:
        await api.get(QUEUES)
        await api.get(JOBSETS)
    except ApiFailed:
        return False
    return True


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Three hosts of eight GPUs, a queue that suspends, and the real Job controller."""
    async with cluster(plane, webhook={"suspendsJobs": True}) as it:
        await it.api.create(QUEUES, _queue())
        await it.add_racks([0], hosts=HOSTS)
        await plane.start_controllers("job")
        try:
            await until(lambda: _suspends(it))
            yield it
        finally:
            for path in (JOBS, JOBSETS, PODS):
                await it.api.delete(path)
            await until(lambda: _is_empty(it))
            await plane.stop(CONTROLLERS)
            await it.api.delete(QUEUES)


async def _suspends(fleet: Cluster) -> bool:
    """Whether the webhook knows the queue."""
    made = await fleet.api.create(f"{JOBS}?dryRun=All", _job("probe", 1))
    return bool(made["spec"].get("suspend"))


async def _is_empty(fleet: Cluster) -> bool:
    return not await fleet.list_pods()


async def _is_suspended(fleet: Cluster, name: str, path: str = JOBS) -> bool:
    return bool((await fleet.api.get(f"{path}/{name}"))["spec"].get("suspend"))


async def _bound(fleet: Cluster, name: str) -> int:
    return sum(is_bound(p) and _is_of(p, name) for p in await fleet.list_pods())


def _is_of(pod: JSON, name: str) -> bool:
    return str(pod["metadata"]["name"]).startswith(f"{name}-")


async def _runs(fleet: Cluster, name: str, pods: int) -> None:
    async def all_bound() -> bool:
        return await _bound(fleet, name) == pods

    await until(all_bound)


async def _end(fleet: Cluster, name: str, path: str = JOBS) -> None:
    """Delete a job and its pods, as the garbage collector would."""
    await fleet.api.delete(f"{path}/{name}")
    for pod in await fleet.list_pods():
        if _is_of(pod, name):
            await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}")


async def _event(fleet: Cluster, name: str, reason: str, text: str) -> None:
    async def said() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        found = [e for e in events if e["regarding"]["name"] == name and e["reason"] == reason]
        return any(text in event.get("note", "") for event in found)

    await until(said)


async def test_of_two_suspended_jobs_with_room_for_one_only_one_is_resumed(
    fleet: Cluster,
) -> None:
    first = await fleet.api.create(JOBS, _job("first", 2))
    assert first["spec"]["suspend"] is True
    assert first["metadata"]["annotations"][names.SUSPENDED_BY] == names.MUSTER
    await _runs(fleet, "first", 2)
    await _event(fleet, "first", "Resumed", "all of its 2 pods have room")
    await fleet.api.create(JOBS, _job("second", 2))
    await _event(fleet, "second", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
    assert await _is_suspended(fleet, "second")
    row = await fleet.muster.get("/v1/queues/waiting")
    (waiting,) = row["waiting"]
    assert (waiting["gang"], waiting["place"], waiting["members"]) == ("job/default/second", 1, 2)

    await _end(fleet, "first")

    await _runs(fleet, "second", 2)


async def test_a_job_is_resumed_with_as_many_pods_as_have_room_and_never_with_fewer_than_it_takes(
    fleet: Cluster,
) -> None:
    await fleet.api.create(JOBS, _job("first", 1))
    await _runs(fleet, "first", 1)
    least = {names.MIN_PARALLELISM: "2"}
    await fleet.api.create(JOBS, _job("elastic", 4, **least))
    await _event(fleet, "elastic", "Waiting", "queue muster/waiting has 8 nvidia.com/gpu left")
    assert await _is_suspended(fleet, "elastic")

    await _end(fleet, "first")

    await _runs(fleet, "elastic", 2)
    await _event(fleet, "elastic", "Resumed", "2 of the 4 pods that it asks for have room")
    job = await fleet.api.get(f"{JOBS}/elastic")
    assert (job["spec"]["parallelism"], job["spec"]["completions"]) == (2, 2)
    assert job["metadata"]["annotations"][names.ASKED_PARALLELISM] == "4"
    assert names.SUSPENDED_BY not in job["metadata"]["annotations"]


async def test_what_its_author_suspends_stays_suspended(fleet: Cluster) -> None:
    mine = _job("mine", 1)
    mine["spec"]["suspend"] = True
    made = await fleet.api.create(JOBS, mine)
    assert names.SUSPENDED_BY not in made["metadata"].get("annotations", {})
    await fleet.api.create(JOBS, _job("other", 1))
    await _runs(fleet, "other", 1)
    assert await _is_suspended(fleet, "mine")


async def test_a_suspended_jobset_is_resumed_smaller_by_the_extender_that_comes_after_a_killed_one(
    fleet: Cluster,
) -> None:
    await fleet.api.create(JOBS, _job("first", 2))
    await _runs(fleet, "first", 2)
    made = await fleet.api.create(JOBSETS, _jobset("train", 3, **{names.MIN_PARALLELISM: "1"}))
    assert made["spec"]["suspend"] is True
    await _event(fleet, "train", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")

    fleet.muster.extender.kill()
    await _end(fleet, "first")
    await fleet.muster.start(fleet.muster.extender)

    async def resumed() -> bool:
        return not await _is_suspended(fleet, "train", JOBSETS)

    await until(resumed)
    found = await fleet.api.get(f"{JOBSETS}/train")
    driver, workers = (job["template"]["spec"] for job in found["spec"]["replicatedJobs"])
    assert (driver["parallelism"], workers["parallelism"], workers["completions"]) == (1, 1, 1)
    await _event(fleet, "train", "Resumed", "1 of the 3 pods that it asks for have room")
    fleet.muster.extender.kill()  # its pods have not come: their room is held again
    await fleet.muster.start(fleet.muster.extender)
    await fleet.api.create(JOBS, _job("late", 1))
    await _event(fleet, "late", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
