"""A PodGroup that an operator made does not overrule the object that it was made of.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

from collections.abc import AsyncIterator

import pytest
from support.dialects.kinds import COSCHEDULING, JSON, VOLCANO, cluster_with, create, member, waits
from support.extenders.extenders import PODS, World

MPI, RAY = "kubeflow.org/v2beta1", "ray.io/v1"
KINDS = [(MPI, "MPIJob"), (RAY, "RayCluster"), (VOLCANO, "PodGroup"), (COSCHEDULING, "PodGroup")]
POD = {"spec": {"containers": [{"name": "main"}]}}


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with cluster_with(KINDS) as running:
        yield running


async def made(cluster: World, api_version: str, kind: str, name: str, spec: JSON) -> JSON:
    meta = {"name": name, "namespace": "default"}
    found = {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
    return await create(cluster.api, found)


async def group(
    cluster: World, api_version: str, name: str, minimum: int, owner: JSON | None
) -> None:
    """Create a PodGroup, as an operator does or, without ``owner``, a user."""
    meta: JSON = {"name": name, "namespace": "default"}
    if owner is not None:
        keys = {key: owner["metadata"][key] for key in ("name", "uid")}
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        meta["ownerReferences"] = [reference | keys]
    found = {"apiVersion": api_version, "kind": "PodGroup", "metadata": meta}
    await create(cluster.api, found | {"spec": {"minMember": minimum}})


def names_group(api_version: str, name: str) -> JSON:
    """Return the keys by which pods name a PodGroup."""
    if api_version == VOLCANO:
        return {"annotations": {"scheduling.k8s.io/group-name": name}}
    return {"labels": {"scheduling.x-k8s.io/pod-group": name}}


async def mpi_job(cluster: World) -> JSON:
    replicas = {"Launcher": {"replicas": 1, "template": POD}}
    replicas |= {"Worker": {"replicas": 2, "template": POD}}
    spec = {"mpiReplicaSpecs": replicas, "launcherCreationPolicy": "WaitForWorkersReady"}
    return await made(cluster, MPI, "MPIJob", "train", spec)


def mpi_worker(number: int, keys: JSON) -> JSON:
    labels = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/job-role": "worker",
        "training.kubeflow.org/replica-index": str(number),
    }
    labels |= keys.get("labels", {})
    return member(f"m-{number}", gpus=8, labels=labels, annotations=keys.get("annotations"))


@pytest.mark.parametrize("name", ["train", "named-otherwise"])
@pytest.mark.parametrize("scheduler", [VOLCANO, COSCHEDULING])
async def test_workers_do_not_wait_for_a_launcher_that_waits_for_them(
    cluster: World, scheduler: str, name: str
) -> None:
    job = await mpi_job(cluster)
    await group(cluster, scheduler, name, 3, job)  # launcher and workers
    for number in range(2):
        worker = mpi_worker(number, names_group(scheduler, name))
        await cluster.api.create(PODS, worker)
    await cluster.released(["m-0", "m-1"])


async def test_a_group_that_is_seen_after_its_pods_gives_way_too(cluster: World) -> None:
    job = await mpi_job(cluster)
    for number in range(2):
        await cluster.api.create(PODS, mpi_worker(number, names_group(VOLCANO, "later")))
    await waits(cluster, "m-0", "m-1")
    await group(cluster, VOLCANO, "later", 3, job)
    await cluster.released(["m-0", "m-1"])


async def test_a_group_that_a_user_made_of_a_jobs_pods_decides(cluster: World) -> None:
    await mpi_job(cluster)
    await group(cluster, COSCHEDULING, "mine", 3, None)
    for number in range(2):
        await cluster.api.create(PODS, mpi_worker(number, names_group(COSCHEDULING, "mine")))
    await waits(cluster, "m-0", "m-1")


async def test_a_cluster_that_was_scaled_down_does_not_wait_for_what_its_group_remembers(
    cluster: World,
) -> None:
    workers = {"groupName": "w", "replicas": 2, "template": POD}
    spec = {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [workers]}
    ray = await made(cluster, RAY, "RayCluster", "c", spec)
    await group(cluster, VOLCANO, "ray-c-pg", 5, ray)
    for number, role in enumerate(("head", "worker", "worker")):
        labels = {"ray.io/cluster": "c", "ray.io/node-type": role}
        labels["ray.io/group"] = "headgroup" if role == "head" else "w"
        keys = names_group(VOLCANO, "ray-c-pg")["annotations"]
        pod = member(f"m-{number}", gpus=8, labels=labels, annotations=keys)
        await cluster.api.create(PODS, pod)
    await cluster.released(["m-0", "m-1", "m-2"])
