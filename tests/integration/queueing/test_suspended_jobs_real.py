"""Suspended jobs on a real control plane: made by the real Job controller once they have room.

::

    cluster (24 GPUs on 3 hosts) ─── waiting   entitled 16, at most 16, admission: Suspend
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.apiservers.apiproxy import Keeps, Stop, StoppingProxy
from support.dialects.customkinds import install
from support.extenders.owningkinds import made_of, pods_of, ray_job, train_job
from support.extenders.queueplane import QUEUES, queue_plane, serves
from support.extenders.realcluster import (
    EVENTS,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    until,
)
from support.pods.jobs import of_kind

from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.kube import names
from muster.workloads.dialects.jobset import GLOBAL_INDEX, NAME_LABEL, ROLE_LABEL
from muster.workloads.keys.ranks import COMPLETION_INDEX

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
OTHERS = {
    "PyTorchJob": "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs",
    "MPIJob": "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs",
    "RayCluster": "/apis/ray.io/v1/namespaces/default/rayclusters",
}
RAYJOBS = "/apis/ray.io/v1/namespaces/default/rayjobs"
TRAINJOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
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


def _member(jobset: str, role: str, number: int) -> JSON:
    """A pod as the JobSet and Job controllers make it."""
    labels = {
        NAME_LABEL: jobset,
        ROLE_LABEL: role,
        GLOBAL_INDEX: str(number),
        names.QUEUE: "waiting",
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": role, "uid": role, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{jobset}-{role}-0-0",
            "namespace": "default",
            "labels": {**labels, names.QUEUE: "waiting"},
            "annotations": {COMPLETION_INDEX: "0"},
            "ownerReferences": [job],
        },
        "spec": _spec(1, "waiting")["template"]["spec"],
    }


def _other(kind: str) -> JSON:
    """A job of one or two pods of a kind of another project."""
    made = {**of_kind(kind, queue="waiting")}
    made["metadata"] |= {"name": "other", "namespace": "default"}
    spec = made["spec"]
    spec.pop("suspend", None)
    for replica in spec.get("pytorchReplicaSpecs", spec.get("mpiReplicaSpecs", {})).values():
        replica["replicas"] = 1
    for group in spec.get("workerGroupSpecs", ()):
        group["replicas"] = 1
    return made


def _ray(name: str, pods: int) -> JSON:
    """A RayJob whose pods end at once when they are deleted."""
    meta = {"name": name, "namespace": "default", "labels": {names.QUEUE: "waiting"}}
    spec = ray_job(pods, queue="waiting", terminationGracePeriodSeconds=0)
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": meta, "spec": spec}


def _train(name: str, nodes: int) -> JSON:
    """A TrainJob that names its queue itself."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "default", "labels": {names.QUEUE: "waiting"}},
        "spec": train_job(nodes, queue=""),
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with Muster's queues and JobSets."""
    async with queue_plane(minor) as it:
        async with it.api() as api:
            objects = [_jobset("any", 1), *map(_other, OTHERS), _ray("any", 2), _train("any", 2)]
            await install(api, await asyncio.to_thread(crds.ensure), objects)
            await until(lambda: serves(api, JOBSETS, RAYJOBS, TRAINJOBS, *OTHERS.values()))
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(plane: ControlPlane) -> AsyncIterator[StoppingProxy]:
    """Between Muster and the API server."""
    async with StoppingProxy(plane) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane, proxy: StoppingProxy) -> AsyncIterator[Cluster]:
    """Three hosts of eight GPUs, a queue that suspends, and the real Job controller."""
    webhook = {"suspendsJobs": True}
    async with cluster(plane, proxy_port=proxy.port, reserves=True, webhook=webhook) as it:
        await it.api.create(QUEUES, _queue())
        await it.add_racks([0], hosts=HOSTS)
        await plane.start_controllers("job")
        try:
            await until(lambda: _suspends(it))
            yield it
        finally:
            for path in (JOBS, RAYJOBS, TRAINJOBS, JOBSETS, PODS, *OTHERS.values()):
                await it.api.delete(path)
            await until(it.is_empty)
            await plane.stop(CONTROLLERS)
            await it.api.delete(QUEUES)


async def _suspends(fleet: Cluster) -> bool:
    """Whether the webhook knows the queue."""
    made = await fleet.api.create(f"{JOBS}?dryRun=All", _job("probe", 1))
    return bool(made["spec"].get("suspend"))


async def _is_suspended(fleet: Cluster, name: str, path: str = JOBS) -> bool:
    return bool((await fleet.api.get(f"{path}/{name}"))["spec"].get("suspend"))


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
    await fleet.runs("first", 2)
    await _event(fleet, "first", "Resumed", "all of its 2 pods have room")
    await fleet.api.create(JOBS, _job("second", 2))
    await _event(fleet, "second", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
    assert await _is_suspended(fleet, "second")
    row = await fleet.muster.get("/v1/queues/waiting")
    (waiting,) = row["waiting"]
    assert (waiting["gang"], waiting["place"], waiting["members"]) == ("job/default/second", 1, 2)

    await fleet.end(f"{JOBS}/first")

    await fleet.runs("second", 2)


async def test_a_job_is_resumed_with_as_many_pods_as_have_room_and_never_with_fewer_than_it_takes(
    fleet: Cluster,
) -> None:
    await fleet.api.create(JOBS, _job("first", 1))
    await fleet.runs("first", 1)
    least = {names.MIN_PARALLELISM: "2"}
    await fleet.api.create(JOBS, _job("elastic", 4, **least))
    await _event(fleet, "elastic", "Waiting", "queue muster/waiting has 8 nvidia.com/gpu left")
    assert await _is_suspended(fleet, "elastic")

    await fleet.end(f"{JOBS}/first")

    await fleet.runs("elastic", 2)
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
    await fleet.runs("other", 1)
    assert await _is_suspended(fleet, "mine")


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_a_suspended_jobset_is_resumed_smaller_once_though_the_extender_is_killed_at_that(
    fleet: Cluster, proxy: StoppingProxy, keeps: Keeps
) -> None:
    stop = proxy.stop_at("PATCH", "/jobsets/train", keeps=keeps)
    made = await fleet.api.create(JOBSETS, _jobset("train", 3, **{names.MIN_PARALLELISM: "1"}))
    assert made["spec"]["suspend"] is True
    async with asyncio.timeout(PATIENCE_S):
        await stop.reached.wait()  # planned and charged
    fleet.muster.extender.kill()
    proxy.open()
    assert await _is_suspended(fleet, "train", JOBSETS) == (keeps == "request")

    await fleet.muster.start(fleet.muster.extender)

    async def resumed() -> bool:
        return not await _is_suspended(fleet, "train", JOBSETS)

    await until(resumed)
    found = await fleet.api.get(f"{JOBSETS}/train")
    driver, workers = (job["template"]["spec"] for job in found["spec"]["replicatedJobs"])
    assert (driver["parallelism"], workers["parallelism"], workers["completions"]) == (1, 1, 1)
    await fleet.api.create(JOBS, _job("late", 1))  # the room of pods that have not come is held
    await _event(fleet, "late", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
    for number, role in enumerate(("driver", "workers")):
        await fleet.api.create(PODS, _member("train", role, number))
    await fleet.runs("train", 2)
    assert await _is_suspended(fleet, "late")
    await fleet.end(f"{JOBSETS}/train")
    await fleet.runs("late", 1)


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_a_rayjob_is_resumed_once_and_its_cluster_of_a_new_name_takes_its_room(
    fleet: Cluster, proxy: StoppingProxy, keeps: Keeps
) -> None:
    # KubeRay does not run here: the test makes the RayCluster and its pods.
    stop = proxy.stop_at("PATCH", "/rayjobs/tune", keeps=keeps)
    made = await fleet.api.create(RAYJOBS, _ray("tune", 2))
    assert made["spec"]["suspend"] is True
    await _killed_at(fleet, proxy, stop)
    assert await _is_suspended(fleet, "tune", RAYJOBS) == (keeps == "request")

    await fleet.muster.start(fleet.muster.extender)

    await until(lambda: _is_running(fleet, "tune", RAYJOBS))
    cluster = made_of(await fleet.api.get(f"{RAYJOBS}/tune"), "tune-x7k2p")
    made = await fleet.api.create(OTHERS["RayCluster"], cluster)
    assert "suspend" not in made["spec"], "its RayJob decides for it"
    await fleet.api.create(JOBS, _job("late", 1))
    await _event(fleet, "late", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
    for pod in pods_of(cluster):
        await fleet.api.create(PODS, pod)
    await fleet.runs("tune-x7k2p", 2)
    assert await _is_suspended(fleet, "late")
    await fleet.api.delete(f"{RAYJOBS}/tune")
    await fleet.end(f"{OTHERS['RayCluster']}/tune-x7k2p")
    await fleet.runs("late", 1)


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_a_trainjob_is_resumed_once_with_the_room_that_its_jobset_needs(
    fleet: Cluster, proxy: StoppingProxy, keeps: Keeps
) -> None:
    # Trainer does not run here: the test makes the JobSet, suspended as its TrainJob, and pods.
    stop = proxy.stop_at("PATCH", "/trainjobs/tune", keeps=keeps)
    train = await fleet.api.create(TRAINJOBS, _train("tune", 2))
    assert train["spec"]["suspend"] is True
    assert train["spec"]["labels"] == {names.QUEUE: "waiting"}
    jobset = made_of(train, "tune", terminationGracePeriodSeconds=0)
    made = await fleet.api.create(JOBSETS, jobset)
    assert names.SUSPENDED_BY not in made["metadata"].get("annotations", {})
    await _killed_at(fleet, proxy, stop)
    assert await _is_suspended(fleet, "tune", TRAINJOBS) == (keeps == "request")
    assert await _is_suspended(fleet, "tune", JOBSETS), "Trainer resumes it"

    await fleet.muster.start(fleet.muster.extender)

    await until(lambda: _is_running(fleet, "tune", TRAINJOBS))
    await fleet.api.patch(f"{JOBSETS}/tune", {"spec": {"suspend": False}})
    await fleet.api.create(JOBS, _job("late", 1))
    await _event(fleet, "late", "Waiting", "queue muster/waiting has 0 nvidia.com/gpu left")
    for pod in pods_of(jobset):
        await fleet.api.create(PODS, pod)
    await fleet.runs("tune", 2)
    assert await _is_suspended(fleet, "late")
    await fleet.api.delete(f"{TRAINJOBS}/tune")
    await fleet.end(f"{JOBSETS}/tune")
    await fleet.runs("late", 1)


async def _killed_at(fleet: Cluster, proxy: StoppingProxy, stop: Stop) -> None:
    """Kill the extender when its PATCH has come as far as ``stop``."""
    async with asyncio.timeout(PATIENCE_S):
        await stop.reached.wait()
    fleet.muster.extender.kill()
    proxy.open()


async def _is_running(fleet: Cluster, name: str, path: str) -> bool:
    return not await _is_suspended(fleet, name, path)


async def test_kinds_of_other_projects_are_suspended_and_resumed_by_their_own_schemas(
    fleet: Cluster,
) -> None:
    for kind, path in OTHERS.items():
        made = await fleet.api.create(path, _other(kind))
        spec = made["spec"] if kind == "RayCluster" else made["spec"]["runPolicy"]
        assert spec["suspend"] is True, kind
        await _event(fleet, "other", "Resumed", "have room")
        found = await fleet.api.get(f"{path}/other")
        spec = found["spec"] if kind == "RayCluster" else found["spec"]["runPolicy"]
        assert spec["suspend"] is False, kind
        assert found["metadata"]["annotations"].keys() == {names.RESUMED_AT}, kind
        await fleet.api.delete(f"{path}/other")
        await _forgotten(fleet)


async def _forgotten(fleet: Cluster) -> None:
    """Delete the Events, so that the next are found, and wait until the queue is empty."""
    await fleet.api.delete(EVENTS)

    async def is_free() -> bool:
        uses = (await fleet.muster.get("/v1/queues/waiting"))["queue"]["uses"]
        return all(use["used"] == "0" for use in uses if use["resource"] == GPU)

    await until(is_free)
