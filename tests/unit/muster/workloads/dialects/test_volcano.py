"""Volcano: PodGroups and Jobs.

Manifests after volcano.sh/docs (vcjob, podgroup, network topology) and volcano-sh/apis.
"""

import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube.names import BLOCK, DEFAULT_LEVELS, RACK
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import volcano, volcanojob
from muster.workloads.keys.levels import resolve
from muster.workloads.status import GangProgress

POD_GROUP = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: pg, namespace: team-a, creationTimestamp: 2026-01-02T03:04:05Z}
spec:
  minMember: 8
  minTaskMember: {master: 1, worker: 4}
  queue: research
"""
JOB = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  minAvailable: 5
  schedulerName: volcano
  queue: research
  tasks:
  - {name: master, replicas: 1, template: {spec: {containers: [{name: main}]}}}
  - {name: worker, replicas: 8, minAvailable: 4, template: {spec: {containers: [{name: main}]}}}
"""


def group_spec(text: str) -> GangSpec:
    spec = volcano.spec(read(text, volcano.PodGroup))
    assert spec is not None
    return resolve(spec, DEFAULT_LEVELS)


def job_spec(text: str) -> GangSpec:
    spec = volcanojob.spec(read(text, volcanojob.Job))
    assert spec is not None
    return resolve(spec, DEFAULT_LEVELS)


def with_topology(text: str, topology: str) -> str:
    return text.replace("  queue: research\n", f"  queue: research\n  {topology}\n")


@pytest.mark.parametrize("key", volcano.GROUP_NAMES)
def test_both_annotations_name_the_pod_group(key: str) -> None:
    tasks = {key: "pg", "volcano.sh/task-spec": "worker", "volcano.sh/task-index": "3"}
    member = pod(annotations=tasks)
    assert registry.member(member) == Member("volcano/team-a/pg", "worker", 3)
    assert registry.spec_from_pod(member) is None


def test_a_pod_group_has_a_minimum_for_the_whole_and_for_each_task() -> None:
    spec = group_spec(POD_GROUP)
    assert (spec.key, spec.min_count, spec.queue) == ("volcano/team-a/pg", 8, "research")
    assert spec.roles == (RoleSpec("master", 1), RoleSpec("worker", 4))
    assert spec.problems == ()


def test_task_minima_that_exceed_the_whole_count_for_nothing() -> None:
    """That is how Volcano says "any three of them"."""
    spec = group_spec(POD_GROUP.replace("minMember: 8", "minMember: 3"))
    assert (spec.min_count, spec.roles) == (3, ())


@pytest.mark.parametrize(
    ("topology", "required", "preferred"),
    [
        ("networkTopology: {mode: hard, highestTierAllowed: 1}", RACK, None),
        ("networkTopology: {mode: hard, highestTierAllowed: 2}", BLOCK, RACK),
        ("networkTopology: {mode: soft, highestTierAllowed: 2}", None, RACK),
        ("networkTopology: {mode: hard}", None, RACK),
        ("networkTopology: {mode: hard, highestTierName: block}", BLOCK, RACK),
    ],
)
def test_tiers_are_levels_counted_from_the_hosts(
    topology: str, required: str | None, preferred: str | None
) -> None:
    for spec in (
        group_spec(with_topology(POD_GROUP, topology)), job_spec(with_topology(JOB, topology))
    ):  # fmt: skip
        assert (spec.required_level, spec.preferred_level) == (required, preferred)


def test_a_tier_that_the_cluster_does_not_have_stays_to_be_refused() -> None:
    topology = "networkTopology: {mode: hard, highestTierAllowed: 7}"
    assert group_spec(with_topology(POD_GROUP, topology)).required_level == "tier 7"


PARTS = """subGroupPolicy:
  - {name: tensor-parallel, subGroupSize: 4, minSubGroups: 3,
     networkTopology: {mode: hard, highestTierAllowed: 1}}"""


def test_a_sub_group_policy_is_slices_and_so_many_of_them_are_a_minimum() -> None:
    spec = group_spec(with_topology(POD_GROUP, PARTS))
    assert (spec.slice_size, spec.slice_level, spec.min_count) == (4, RACK, 12)


PIPELINE = "\n  - {name: pp, subGroupSize: 8, networkTopology: {highestTierAllowed: 2}}"


def test_a_wider_division_of_the_same_members_is_slices_of_slices() -> None:
    spec = group_spec(with_topology(POD_GROUP, PARTS + PIPELINE))
    assert (spec.wider_slices, spec.slice_size, spec.slice_level) == (((BLOCK, 8),), 4, RACK)
    assert spec.problems == ()


def test_a_division_of_one_task_is_slices_of_that_task() -> None:
    selector = "labelSelector: {matchLabels: {volcano.sh/task-spec: worker}}, "
    labelled = PARTS.replace("subGroupSize", f"{selector}subGroupSize")
    spec = group_spec(with_topology(POD_GROUP, labelled))
    assert (spec.slice_size, spec.slice_roles, spec.problems) == (4, ("worker",), ())


def test_the_keys_of_the_labels_that_number_parts_change_nothing() -> None:
    keys = PARTS.replace("subGroupSize", "matchLabelKeys: [volcano.sh/partition-id], subGroupSize")
    assert group_spec(with_topology(POD_GROUP, keys)) == group_spec(with_topology(POD_GROUP, PARTS))


@pytest.mark.parametrize(
    "second", [PIPELINE.replace("8", "6"), PIPELINE.replace("subGroupSize: 8,", "")]
)
def test_divisions_that_do_not_nest_are_a_problem_and_not_forgotten(second: str) -> None:
    (problem,) = group_spec(with_topology(POD_GROUP, PARTS + second)).problems
    assert problem.startswith("spec.subGroupPolicy: tensor-parallel, pp: ")


# -- Jobs ----------------------------------------------------------------------------------------


def test_a_job_is_one_gang_of_all_its_tasks() -> None:
    spec = job_spec(JOB)
    assert (spec.key, spec.size, spec.min_count) == ("volcano-job/team-a/train", 9, 5)
    assert spec.roles == (RoleSpec("master", 1), RoleSpec("worker", 4))
    assert spec.queue == "research"


def test_a_job_that_says_no_minimum_needs_all_its_pods() -> None:
    spec = job_spec(JOB.replace("  minAvailable: 5\n", "").replace(", minAvailable: 4", ""))
    assert (spec.size, spec.min_count) == (9, 9)


PARTITIONED = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  queue: research
  tasks:
  - name: worker
    replicas: 12
    partitionPolicy:
      totalPartitions: 4
      partitionSize: 3
      minPartitions: 2
      networkTopology: {mode: hard, highestTierAllowed: 1}
    template: {spec: {containers: [{name: main}]}}
"""


def test_a_minimum_follows_from_the_partitions_that_are_needed() -> None:
    spec = job_spec(PARTITIONED)
    assert (spec.size, spec.min_count, spec.slice_size) == (12, 6, 3)
    assert spec.roles == (RoleSpec("worker", 6),)


@pytest.mark.parametrize(
    ("replicas", "minimum", "partitions", "needed"),
    [(4, None, None, 4), (4, 3, None, 3), (6, None, (3, 1), 3), (6, 5, (3, 1), 5), (6, 0, None, 0)],
)
def test_defaults_are_those_of_volcanos_admission(
    replicas: int, minimum: int | None, partitions: tuple[int, int] | None, needed: int
) -> None:
    policy = None
    if partitions is not None:
        size, least = partitions
        policy = volcanojob.Partition(partition_size=size, min_partitions=least)
    task = volcanojob.Task(
        name="t", replicas=replicas, min_available=minimum, partition_policy=policy
    )
    other = volcanojob.Task(name="other", replicas=1)
    spec = volcanojob.spec(volcanojob.Job(spec=volcanojob.JobSpec(tasks=(task, other))))
    assert spec is not None
    assert spec.min_count == needed + 1


def test_a_division_of_one_task_of_a_job_leaves_the_others_alone() -> None:
    leader = "  - {name: leader, replicas: 1, template: {spec: {containers: [{name: main}]}}}\n"
    spec = job_spec(PARTITIONED.replace("  tasks:\n", f"  tasks:\n{leader}"))
    assert (spec.slice_size, spec.slice_roles, spec.min_count) == (3, ("worker",), 7)
    assert spec.numbered_roles == (("leader", 0), ("worker", 3))
    assert spec.rank_runs == ((1, 1), (1, 12))


def test_a_task_that_depends_on_another_is_not_waited_for() -> None:
    later = JOB.replace("replicas: 8,", "replicas: 8, dependsOn: {name: [master]},")
    spec = job_spec(later)
    assert (spec.size, spec.min_count, spec.roles) == (9, 1, (RoleSpec("master", 1),))


def test_the_pods_of_a_job_are_members_of_the_job_and_not_of_its_pod_group() -> None:
    controllers = {
        "scheduling.k8s.io/group-name": "train-4f1c",
        "volcano.sh/job-name": "train",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "2",
    }
    member = pod(annotations=controllers, owner=("batch.volcano.sh/v1alpha1", "Job", "train"))
    assert registry.member(member) == Member("volcano-job/team-a/train", "worker", 2)
    assert registry.conflicts(member) == []


OWNED = POD_GROUP.replace(
    "namespace: team-a,",
    "namespace: team-a, ownerReferences: "
    "[{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: train, controller: true}],",
)


def test_the_pod_group_of_a_job_stands_for_the_jobs_gang() -> None:
    group = read(OWNED, volcano.PodGroup)
    assert volcano.spec(group) is None
    assert volcano.gang_of(group) == "volcano-job/team-a/train"
    assert volcano.gang_of(read(POD_GROUP, volcano.PodGroup)) == "volcano/team-a/pg"


# -- status --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("progress", "phase"),
    [
        (GangProgress(), "Inqueue"),
        (GangProgress(present=8), "Inqueue"),
        (GangProgress(present=8, bound=7), "Inqueue"),
        (GangProgress(present=9, bound=8), "Running"),
        (GangProgress(present=9, bound=5, succeeded=4), "Running"),
        (GangProgress(present=9, succeeded=9), "Completed"),
        (GangProgress(present=9, succeeded=8, failed=1), "Completed"),
        (GangProgress(present=9, failed=9), "Inqueue"),
    ],
)
def test_phases_follow_the_gang_as_volcanos_scheduler_would_write_them(
    progress: GangProgress, phase: str
) -> None:
    group = read(POD_GROUP, volcano.PodGroup)
    assert volcano.wanted(group, progress)["phase"] == phase


def test_only_what_changes_is_written() -> None:
    said = f"{{type: Scheduled, status: 'True', reason: {volcano.READY}}}"
    status = f"status: {{phase: Running, running: 8, conditions: [{said}]}}\n"
    group = read(POD_GROUP + status, volcano.PodGroup)
    (watched,) = volcano.Volcano.watched
    assert watched.status is not None
    assert watched.status.change(group, GangProgress(present=8, bound=8)) == {}
    assert watched.status.change(group, GangProgress(present=9, bound=9)) == {"running": 9}
