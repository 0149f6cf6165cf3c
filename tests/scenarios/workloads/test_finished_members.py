"""Members that finished count, whether their pods are still there or not.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1

The test is the controllers: it writes JobSet, child Job, pods and their statuses.
"""

from collections.abc import AsyncIterator

import pytest
from support.dialects.kinds import JSON, cluster_with, create, waits
from support.extenders.extenders import PODS, World

from loadtest.testbed.client.pods import INDEX, pod
from muster.kube import names
from muster.workloads.dialects.jobset import ATTEMPT_LABEL, GLOBAL_INDEX, NAME_LABEL, ROLE_LABEL

JOBSET = "jobset.x-k8s.io/v1alpha2"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LABELS = {NAME_LABEL: "s", ROLE_LABEL: "w", ATTEMPT_LABEL: "0", GLOBAL_INDEX: "0"}
BY_LABEL = {names.GANG: "g", names.GANG_SIZE: "4"}


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with cluster_with([(JOBSET, "JobSet")]) as running:
        yield running


class Workers:
    """Pods of four GPUs of one Job, four of which run at one time."""

    def __init__(self, cluster: World, labels: dict[str, str], completions: int) -> None:
        self.cluster, self.labels = cluster, labels
        container = {"name": "main", "image": "example.com/train"}
        template: JSON = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        template["metadata"] = {"labels": labels}
        self.spec: JSON = {"parallelism": 4, "completions": completions, "template": template}
        self.spec["completionMode"] = "Indexed"

    async def made(self) -> None:
        meta = {"name": "s-w-0", "namespace": "default", "labels": self.labels}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": self.spec}
        found = await self.cluster.api.create(JOBS, job)
        uid = found["metadata"]["uid"]
        self.owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "s-w-0", "uid": uid}

    async def begin(self, *indexes: int) -> None:
        for index in indexes:
            own = {INDEX: str(index)}
            wanted = pod(f"m-{index}", gpus=4, labels=self.labels | own, annotations=own)
            wanted["metadata"]["ownerReferences"] = [{**self.owner, "controller": True}]
            wanted["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, wanted)

    async def run(self, *indexes: int) -> None:
        placed = await self.cluster.released([f"m-{index}" for index in indexes])
        for name, node in placed.items():
            await self.cluster.bind(name, node)

    async def succeed(self, *indexes: int, total: int) -> None:
        for index in indexes:
            path = f"{PODS}/m-{index}/status"
            await self.cluster.api.patch(path, {"status": {"phase": "Succeeded"}})
        await self.cluster.api.patch(f"{JOBS}/s-w-0/status", {"status": {"succeeded": total}})

    async def delete(self, *indexes: int) -> None:
        for index in indexes:
            await self.cluster.api.delete(f"{PODS}/m-{index}")


async def workers(cluster: World, kind: str, completions: int) -> Workers:
    found = Workers(cluster, LABELS if kind == "JobSet" else BY_LABEL, completions)
    if kind == "JobSet":
        replicated = {"name": "w", "replicas": 1, "template": {"spec": found.spec}}
        meta = {"name": "s", "namespace": "default"}
        jobset: JSON = {"apiVersion": JOBSET, "kind": "JobSet", "metadata": meta}
        await create(cluster.api, jobset | {"spec": {"replicatedJobs": [replicated]}})
    await found.made()
    return found


@pytest.mark.parametrize("kind", ["JobSet", "label"])
async def test_the_last_index_goes_though_those_that_succeeded_were_deleted(
    cluster: World, kind: str
) -> None:
    found = await workers(cluster, kind, completions=5)
    await found.begin(0, 1, 2, 3)
    await found.run(0, 1, 2, 3)
    await found.succeed(0, 1, 2, 3, total=4)
    await found.delete(0, 1, 2, 3)
    await found.begin(4)
    await found.run(4)


@pytest.mark.parametrize("kind", ["JobSet", "label"])
async def test_after_a_suspension_those_that_are_left_begin_again_as_a_whole(
    cluster: World, kind: str
) -> None:
    found = await workers(cluster, kind, completions=6)
    await found.begin(0, 1, 2, 3)
    await found.run(0, 1, 2, 3)
    await found.succeed(0, 1, total=2)
    await found.begin(4, 5)
    await found.run(4, 5)
    await found.succeed(4, total=3)
    await found.delete(*range(6))
    await found.begin(2, 3)
    await waits(cluster, "m-2", "m-3")  # three indexes are left
    await found.begin(5)
    await found.run(2, 3, 5)
