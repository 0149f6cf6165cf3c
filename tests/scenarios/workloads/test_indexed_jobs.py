"""Indexed Jobs whose pods come and go while the Job lives: waves, suspension, failed members.

::

    zone z ── block b ── rack r1 ── r1-0 r1-1 r1-2 r1-3     (8 GPUs each, one pod fills a host)

The test is the Job controller: it writes the Job, its pods and its status.
"""

from collections.abc import AsyncIterator, Iterable

import pytest
from support.extenders.extenders import PODS, World, plan_of, world

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import INDEX, pod
from muster.kube import names

JOBS = "/apis/batch/v1/namespaces/default/jobs"
PARALLELISM = 4


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 4})
        yield running


class Job:
    """An Indexed Job, ``parallelism`` of whose ``completions`` pods run at one time."""

    def __init__(self, cluster: World, made: JSON) -> None:
        self.cluster, self.name = cluster, made["metadata"]["name"]
        self.owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": self.name,
            "uid": made["metadata"]["uid"],
            "controller": True,
        }

    async def create(self, *pods: str, grace_s: int = 0) -> None:
        """Create pods named INDEX or INDEX-ATTEMPT."""
        for text in pods:
            index = {INDEX: text.partition("-")[0]}
            wanted = pod(
                f"{self.name}-{text}",
                gpus=8,
                labels=index,
                annotations=index,
                owner=self.owner,
                grace_s=grace_s,
            )
            wanted["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, wanted)

    async def run(self, *pods: str) -> dict[str, str]:
        """Wait until these pods are released, and bind them; returns their nodes."""
        placed = await self.cluster.released([f"{self.name}-{text}" for text in pods])
        for name, node in placed.items():
            await self.cluster.bind(name, node)
        return placed

    async def succeed(self, *pods: str, total: int | None = None) -> None:
        """Let pods succeed; ``total`` is what the Job's status says then."""
        for text in pods:
            path = f"{PODS}/{self.name}-{text}/status"
            await self.cluster.api.patch(path, {"status": {"phase": "Succeeded"}})
        if total is not None:
            status = {"status": {"succeeded": total}}
            await self.cluster.api.patch(f"{JOBS}/{self.name}/status", status)

    async def waiting(self, *pods: str) -> list[str]:
        """Return which of these pods were looked at and not released."""
        await self.cluster.settled()
        plans = {text: plan_of(await self.cluster.pod(f"{self.name}-{text}")) for text in pods}
        return [text for text, plan in plans.items() if plan is None]


async def job(cluster: World, *, completions: int) -> Job:
    container = {"name": "main", "image": "example.com/train"}
    made = await cluster.api.create(
        JOBS,
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "train", "namespace": "default"},
            "spec": {
                "completionMode": "Indexed",
                "parallelism": PARALLELISM,
                "completions": completions,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            },
        },
    )
    return Job(cluster, made)


def indexes(numbers: Iterable[int], suffix: str = "") -> list[str]:
    return [f"{number}{suffix}" for number in numbers]


async def test_an_index_whose_turn_comes_takes_the_place_of_the_one_that_succeeded(
    cluster: World,
) -> None:
    train = await job(cluster, completions=8)
    await train.create(*indexes(range(4)))
    placed = await train.run(*indexes(range(4)))
    await train.succeed("2", total=1)
    await train.create("4")
    assert await train.run("4") == {"train-4": placed["train-2"]}


async def test_after_a_whole_wave_succeeded_the_next_one_goes(cluster: World) -> None:
    train = await job(cluster, completions=8)
    await train.create(*indexes(range(4)))
    await train.run(*indexes(range(4)))
    await train.succeed(*indexes(range(4)), total=4)
    await train.create(*indexes(range(4, 8)))
    assert len(set((await train.run(*indexes(range(4, 8)))).values())) == PARALLELISM


async def test_the_last_index_goes_alone_though_the_pods_that_succeeded_were_deleted(
    cluster: World,
) -> None:
    train = await job(cluster, completions=5)
    await train.create(*indexes(range(4)))
    await train.run(*indexes(range(4)))
    await train.succeed(*indexes(range(4)), total=4)
    for index in range(4):
        await cluster.api.delete(f"{PODS}/train-{index}")
    await train.create("4")
    await train.run("4")


async def test_a_job_resumed_in_its_second_wave_begins_again_as_a_whole(cluster: World) -> None:
    # Four indexes are done. The other four were deleted by the suspension, and meanwhile
    # somebody took a host: three of four would fit.
    train = await job(cluster, completions=8)
    await train.create(*indexes(range(4)))
    await train.run(*indexes(range(4)))
    await train.succeed(*indexes(range(4)), total=4)
    taken = await cluster.api.create(PODS, pod("somebody", gpus=8))
    await cluster.bind("somebody", "r1-0")
    await train.create(*indexes(range(4, 8)))
    assert await train.waiting(*indexes(range(4, 8))) == indexes(range(4, 8))
    await cluster.api.delete(f"{PODS}/{taken['metadata']['name']}")
    await train.run(*indexes(range(4, 8)))


async def test_a_job_resumed_while_its_old_pods_still_end_waits_for_room_for_all_of_it(
    cluster: World,
) -> None:
    train = await job(cluster, completions=4)
    await train.create(*indexes(range(4)), grace_s=600)
    await train.run(*indexes(range(4)))
    for index in range(4):
        await cluster.api.delete(f"{PODS}/train-{index}", grace_s=None)  # deleted, not gone
    fresh = indexes(range(4), "-again")
    await train.create(*fresh)
    assert await train.waiting(*fresh) == fresh
    for index in range(3):
        await cluster.api.delete(f"{PODS}/train-{index}")  # its kubelet is done with it
        assert await train.waiting(*fresh) == fresh
    await cluster.api.delete(f"{PODS}/train-3")
    await train.run(*fresh)


async def test_a_member_that_is_deleted_is_replaced_while_the_others_run(cluster: World) -> None:
    train = await job(cluster, completions=4)
    await train.create(*indexes(range(4)), grace_s=600)
    placed = await train.run(*indexes(range(4)))
    await cluster.api.delete(f"{PODS}/train-1", grace_s=None)
    await train.create("1-again")
    assert await train.waiting("1-again") == ["1-again"]
    await cluster.api.delete(f"{PODS}/train-1")
    assert await train.run("1-again") == {"train-1-again": placed["train-1"]}
