"""Members that count from 0 in each task have ranks of the whole Job, whatever came first.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

import pytest
from support.dialects.kinds import JSON, cluster_with, create, member
from support.extenders.extenders import PODS, World, plan_of

KIND = "batch.volcano.sh/v1alpha1"
TASKS = (("leader", 1), ("worker", 3))


async def job(cluster: World) -> None:
    template = {"spec": {"containers": [{"name": "main"}]}}
    tasks = [{"name": name, "replicas": count, "template": template} for name, count in TASKS]
    meta = {"name": "train", "namespace": "default"}
    made: JSON = {"apiVersion": KIND, "kind": "Job", "metadata": meta, "spec": {"tasks": tasks}}
    await create(cluster.api, made)


async def pods(cluster: World) -> list[str]:
    """Create the members in the order of their ranks, and return their names."""
    names = []
    for task, count in TASKS:
        for index in range(count):
            keys = {"volcano.sh/job-name": "train", "volcano.sh/task-spec": task}
            keys["volcano.sh/task-index"] = str(index)
            names.append(f"train-{task}-{index}")
            await cluster.api.create(PODS, member(names[-1], annotations=keys, labels=keys))
    return names


@pytest.mark.parametrize("job_first", [True, False])
async def test_ranks_are_complete_and_each_is_one_members(
    job_first: bool,  # noqa: FBT001 - a table
) -> None:
    async with cluster_with([(KIND, "Job")]) as cluster:
        if job_first:
            await job(cluster)
        names = await pods(cluster)
        await cluster.settled()
        if not job_first:
            await job(cluster)
        await cluster.released(names)
        plans = [plan_of(await cluster.pod(name)) for name in names]
        assert [plan and plan["rank"] for plan in plans] == [0, 1, 2, 3]
