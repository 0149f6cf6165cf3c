"""Gangs of every batch scheduler's dialect, whole through the extender.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

from collections.abc import AsyncIterator

import pytest
from support.dialects.gangcases import CASES
from support.dialects.kinds import (
    COSCHEDULING,
    JSON,
    KOORDINATOR,
    VOLCANO,
    cluster_with,
    create,
    described,
    member,
    waits,
)
from support.extenders.extenders import PODS, World, eventually, plan_of

from muster.kube import names

GROUP_OF_GANGS = "gang.scheduling.koordinator.sh/groups"


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with cluster_with() as running:
        yield running


def rack(node: str) -> str:
    return node.rpartition("-")[0]


@pytest.mark.parametrize("dialect", CASES)
async def test_a_gang_of_any_dialect_waits_for_its_last_member_and_goes_whole(
    cluster: World, dialect: str
) -> None:
    case = CASES[dialect]
    for obj in case.objects:
        await create(cluster.api, obj)
    *first, last = case.members()
    for made in first:
        await cluster.api.create(PODS, made)
    await waits(cluster, "m-0", "m-1")
    await cluster.api.create(PODS, last)
    placed = await cluster.released(["m-0", "m-1", "m-2"])
    assert len(set(placed.values())) == 3
    if case.required:
        assert {rack(node) for node in placed.values()} == {"r1"}


@pytest.mark.parametrize("dialect", CASES)
async def test_pods_that_come_before_the_object_that_describes_them_go_when_it_comes(
    cluster: World, dialect: str
) -> None:
    case = CASES[dialect]
    for made in case.members():
        await cluster.api.create(PODS, made)
    if case.objects:
        await waits(cluster, "m-0", "m-1", "m-2")
    for obj in case.objects:
        await create(cluster.api, obj)
    await cluster.released(["m-0", "m-1", "m-2"])


async def test_pods_with_different_replica_keys_are_different_gangs(cluster: World) -> None:
    (workload,) = CASES["native workload"].objects
    await create(cluster.api, workload)
    for n, key in enumerate(("0", "0", "0", "1", "1")):
        reference = {"name": "w", "podGroup": "g", "podGroupReplicaKey": key}
        await cluster.api.create(PODS, member(f"m-{n}", gpus=4, spec={"workloadRef": reference}))
    await cluster.released(["m-0", "m-1", "m-2"])
    await waits(cluster, "m-3", "m-4")


# -- minima --------------------------------------------------------------------------------------


async def test_eight_members_do_not_go_while_a_task_lacks_its_minimum(cluster: World) -> None:
    """minMember 8 with minTaskMember 1 + 4: eight workers are no start without their master."""
    group = {"minMember": 8, "minTaskMember": {"master": 1, "worker": 4}}
    await create(cluster.api, described(VOLCANO, "PodGroup", "pg", group))
    for n in range(8):
        await cluster.api.create(PODS, of_task(f"worker-{n}", "worker"))
    await waits(cluster, "worker-0", "worker-7")
    await cluster.api.create(PODS, of_task("master-0", "master"))
    await cluster.released(["master-0", *(f"worker-{n}" for n in range(8))])


def of_task(name: str, task: str) -> JSON:
    keys = {"scheduling.k8s.io/group-name": "pg", "volcano.sh/task-spec": task}
    return member(name, gpus=4, annotations=keys)


async def test_a_task_never_goes_without_its_minimum_even_where_the_total_would_fit(
    cluster: World,
) -> None:
    """Room for ten half-node members is there, but for only five masters of a whole node."""
    group = {"minMember": 8, "minTaskMember": {"master": 6, "worker": 2}}
    await create(cluster.api, described(VOLCANO, "PodGroup", "pg", group))
    for n in range(6):
        made = of_task(f"master-{n}", "master")
        made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
        await cluster.api.create(PODS, made)
    for n in range(4):
        await cluster.api.create(PODS, of_task(f"worker-{n}", "worker"))
    await waits(cluster, "master-0", "worker-0", "worker-3")


async def test_a_minimum_in_percent_is_taken_of_the_size_that_the_object_says(
    cluster: World,
) -> None:
    tasks = {"minAvailable": 6, "tasks": [{"name": "worker", "replicas": 6}]}
    job = described("batch.volcano.sh/v1alpha1", "Job", "train", tasks)
    job["metadata"]["annotations"] = {names.GANG_MIN: "50%"}
    await create(cluster.api, job)
    keys = {"volcano.sh/job-name": "train", "volcano.sh/task-spec": "worker"}
    for n in range(6):
        await cluster.api.create(PODS, member(f"m-{n}", annotations=keys))
    await cluster.settled()
    released = [plan_of(await cluster.pod(f"m-{n}")) is not None for n in range(6)]
    assert sum(released) == 5  # more than half of six, and all that there is room for


# -- several PodGroups as one unit ---------------------------------------------------------------


def bundle(name: str, minimum: int) -> JSON:
    both = {GROUP_OF_GANGS: '["default/actors", "default/learner"]'}
    return described(KOORDINATOR, "PodGroup", name, {"minMember": minimum}, **both)


def of_group(name: str, group: str) -> JSON:
    return member(name, labels={"pod-group.scheduling.sigs.k8s.io": group})


async def test_two_pod_groups_of_one_unit_go_together_or_not_at_all(cluster: World) -> None:
    await create(cluster.api, bundle("actors", 3))
    await create(cluster.api, bundle("learner", 2))
    for n in range(3):
        await cluster.api.create(PODS, of_group(f"actor-{n}", "actors"))
    await cluster.api.create(PODS, of_group("learner-0", "learner"))
    await waits(cluster, "actor-0", "actor-2", "learner-0")
    await cluster.api.create(PODS, of_group("learner-1", "learner"))
    everybody = ["actor-0", "actor-1", "actor-2", "learner-0", "learner-1"]
    placed = await cluster.released(everybody)
    assert len(set(placed.values())) == 5


async def test_a_unit_that_does_not_fit_leaves_all_its_parts_waiting(cluster: World) -> None:
    await create(cluster.api, bundle("actors", 3))
    await create(cluster.api, bundle("learner", 3))
    everybody = [*(("actors", n) for n in range(3)), *(("learner", n) for n in range(3))]
    for group, n in everybody:
        await cluster.api.create(PODS, of_group(f"{group}-{n}", group))
    await waits(cluster, "actors-0", "learner-0")


async def test_members_that_came_before_their_unit_was_known_belong_to_it(cluster: World) -> None:
    for n in range(3):
        await cluster.api.create(PODS, of_group(f"actor-{n}", "actors"))
    await create(cluster.api, bundle("actors", 3))
    await waits(cluster, "actor-0", "actor-1", "actor-2")
    for n in range(2):
        await cluster.api.create(PODS, of_group(f"learner-{n}", "learner"))
    await waits(cluster, "actor-0", "learner-0")
    await create(cluster.api, bundle("learner", 2))
    await cluster.released(["actor-0", "actor-1", "actor-2", "learner-0", "learner-1"])


# -- gates, schedulers, conflicts ----------------------------------------------------------------


@pytest.mark.parametrize("gate", ["admission", "topology", "elastic-job"])
async def test_nothing_is_planned_while_one_of_kueues_gates_stands(
    cluster: World, gate: str
) -> None:
    case = CASES["kueue"]
    name = f"kueue.x-k8s.io/{gate}"
    for made in case.members():
        made["spec"]["schedulingGates"].append({"name": name})
        await cluster.api.create(PODS, made)
    await waits(cluster, "m-0", "m-1", "m-2")
    lift = {"spec": {"schedulingGates": [{"$patch": "delete", "name": name}]}}
    kind = "application/strategic-merge-patch+json"
    for n in (0, 1):
        await cluster.api.patch(f"{PODS}/m-{n}", lift, kind=kind)
    await waits(cluster, "m-0", "m-1", "m-2")
    await cluster.api.patch(f"{PODS}/m-2", lift, kind=kind)
    await cluster.released(["m-0", "m-1", "m-2"])


async def told(cluster: World, reason: str) -> JSON:
    async def is_told() -> bool:
        return bool(await cluster.events(reason))

    await eventually(is_told)
    return (await cluster.events(reason))[0]


async def test_a_pod_of_two_dialects_is_told_and_the_documented_precedence_decides(
    cluster: World,
) -> None:
    """The gang of one by Muster's label goes; the PodGroup that asks for three is ignored."""
    await create(cluster.api, described(COSCHEDULING, "PodGroup", "pg", {"minMember": 3}))
    labels = {"scheduling.x-k8s.io/pod-group": "pg", names.GANG: "mine"}
    await cluster.api.create(
        PODS, member("torn", labels=labels, annotations={names.GANG_SIZE: "1"})
    )
    await cluster.released(["torn"])
    event = await told(cluster, "GroupConflict")
    assert "gang muster/default/mine; coscheduling/default/pg is ignored" in event["note"]


@pytest.mark.parametrize("order", [("ours", "theirs"), ("theirs", "ours")])
async def test_a_member_that_another_scheduler_has_keeps_its_gang_whole_and_is_told(
    cluster: World, order: tuple[str, str]
) -> None:
    await create(cluster.api, described(VOLCANO, "PodGroup", "pg", {"minMember": 2}))
    pods = {name: of_task(name, "worker") for name in order}
    pods["theirs"]["spec"] |= {"schedulerName": "somebody-elses", "schedulingGates": []}
    for name in order:
        await cluster.api.create(PODS, pods[name])
        await cluster.settled()
    event = await told(cluster, "ForeignScheduler")
    assert event["regarding"]["name"] == "theirs"
    assert "gang volcano/default/pg" in event["note"]
    await waits(cluster, "ours", "theirs")


async def test_a_gang_is_whole_when_the_other_scheduler_has_let_go_of_its_member(
    cluster: World,
) -> None:
    await create(cluster.api, described(VOLCANO, "PodGroup", "pg", {"minMember": 2}))
    theirs = of_task("theirs", "worker")
    theirs["spec"] |= {"schedulerName": "somebody-elses", "schedulingGates": []}
    await cluster.api.create(PODS, theirs)
    await cluster.settled()
    await cluster.api.delete(f"{PODS}/theirs")
    for n in range(2):
        await cluster.api.create(PODS, of_task(f"ours-{n}", "worker"))
    await cluster.released(["ours-0", "ours-1"])
    assert await cluster.events("ForeignScheduler") == []
