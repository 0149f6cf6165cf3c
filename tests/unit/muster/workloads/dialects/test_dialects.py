"""Whose member a pod is, and what its gang asks for, dialect by dialect."""

from datetime import UTC, datetime
from typing import TypeVar

import msgspec
import pytest
from support.pods.wirepods import pod

from muster.cluster.events import GangGone, GangUpserted
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube import names, wire
from muster.workloads import registry
from muster.workloads.dialect import NO_RANK, Member
from muster.workloads.dialects import batchjob, coscheduling, jobset
from muster.workloads.gangobjects import GangObjects

INDEX = "batch.kubernetes.io/job-completion-index"
BATCH = ("batch/v1", "Job", "train")


T = TypeVar("T")
OF_A_JOBSET = (
    "namespace: a, ownerReferences: "
    "[{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: s, controller: true}]"
)


def read(text: str, kind: type[T]) -> T:
    return msgspec.yaml.decode(text.encode(), type=kind)


# -- Muster's labels -----------------------------------------------------------------------------


def test_a_gang_by_label_says_everything_on_its_pods() -> None:
    keys = {
        "muster.dev/gang": "llama",
        "muster.dev/gang-size": "64",
        "muster.dev/gang-min": "75%",
        "muster.dev/role": "worker",
        "muster.dev/topology-required": "block",
        "muster.dev/topology-preferred": "rack",
        "muster.dev/queue": "research",
        INDEX: "5",
    }
    member = pod(labels=keys)
    assert registry.member(member) == Member("muster/team-a/llama", "worker", 5)
    assert registry.spec_from_pod(member) == GangSpec(
        key="muster/team-a/llama",
        namespace="team-a",
        name="llama",
        dialect="muster",
        min_count=48,
        size=64,
        required_level=names.BLOCK,
        preferred_level=names.RACK,
        queue="research",
        written=tuple(
            (field, f"metadata.labels[muster.dev/{key}]")
            for field, key in (
                ("size", "gang-size"),
                ("min_count", "gang-min"),
                ("required_level", "topology-required"),
                ("preferred_level", "topology-preferred"),
            )
        ),
    )


def test_a_contradiction_that_slipped_past_becomes_a_problem_of_the_gang() -> None:
    spec = registry.spec_from_pod(
        pod(
            labels={"muster.dev/gang": "g", "muster.dev/gang-size": "x", "muster.dev/gang-min": "2"}
        )
    )
    assert spec is not None
    assert (spec.min_count, spec.size) == (2, None)
    assert "a whole number from 1 to 1000000" in spec.problems[0]


# -- coscheduling --------------------------------------------------------------------------------

POD_GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: nginx
  namespace: team-a
  creationTimestamp: 2026-01-02T03:04:05Z
  annotations: {muster.dev/topology-preferred: rack}
spec: {minMember: 3, scheduleTimeoutSeconds: 10}
"""


def test_a_pod_group_says_what_its_labelled_pods_need() -> None:
    member = pod(labels={"scheduling.x-k8s.io/pod-group": "nginx"})
    spec = coscheduling.spec(read(POD_GROUP, coscheduling.PodGroup))
    assert registry.member(member) == Member("coscheduling/team-a/nginx")
    assert registry.spec_from_pod(member) is None
    assert (spec.key, spec.min_count, spec.size) == ("coscheduling/team-a/nginx", 3, None)
    assert spec.preferred_level == names.RACK
    assert spec.submitted_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize("count", [0, -3, 2**40])
def test_a_pod_group_that_no_gang_can_be_is_a_problem(count: int) -> None:
    group = coscheduling.PodGroup(spec=coscheduling.PodGroupSpec(min_member=count))
    assert f'spec.minMember: "{count}" is not allowed' in coscheduling.spec(group).problems[0]


def test_topology_on_a_pod_of_a_pod_group_is_reported_as_unread() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "g", "muster.dev/topology-required": "rack"}
    (text,) = registry.unread(pod(labels=labels))
    assert text == 'muster.dev/topology-required "rack" is not read here: put it on the PodGroup'


# -- Jobs ----------------------------------------------------------------------------------------

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a}
spec:
  completionMode: Indexed
  parallelism: 8
  completions: 20
  template:
    metadata:
      annotations: {muster.dev/topology-required: muster.dev/rack, muster.dev/gang-min: "50%"}
    spec: {containers: [{name: main}]}
"""


def test_an_indexed_job_is_a_gang_of_the_pods_that_run_at_one_time() -> None:
    spec = batchjob.spec(read(JOB, batchjob.Job))
    assert spec is not None
    assert (spec.key, spec.min_count, spec.size) == ("job/team-a/train", 4, 8)
    assert (spec.required_level, spec.problems) == (names.RACK, ())
    member = pod(labels={INDEX: "7"}, owner=BATCH)
    assert registry.member(member) == Member("job/team-a/train", "", 7)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("completionMode: Indexed", "completionMode: NonIndexed"),
        ("parallelism: 8", "parallelism: 0"),
        ("muster.dev/gang-min", "muster.dev/gang"),
        ("namespace: team-a", OF_A_JOBSET),
    ],
)
def test_a_job_that_makes_no_gang_of_its_own_describes_none(old: str, new: str) -> None:
    assert batchjob.spec(read(JOB.replace(old, new), batchjob.Job)) is None


def test_pods_of_a_job_without_indices_go_one_by_one() -> None:
    alone = pod("train-x", owner=BATCH)
    assert registry.member(alone) is None
    assert registry.member_or_single(alone) == Member("pod/team-a/train-x")
    spec = registry.spec_from_pod(alone)
    assert spec is not None
    assert (spec.key, spec.min_count, spec.size) == ("pod/team-a/train-x", 1, 1)


def test_a_job_of_another_api_group_is_not_a_batch_job() -> None:
    volcano = pod(labels={INDEX: "0"}, owner=("batch.volcano.sh/v1alpha1", "Job", "train"))
    assert registry.member(volcano) is None


# -- JobSets -------------------------------------------------------------------------------------

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: pre, namespace: team-a}
spec:
  replicatedJobs:
  - name: driver
    replicas: 1
    template: {spec: {template: {spec: {}}}}
  - name: workers
    replicas: 4
    template:
      spec:
        parallelism: 16
        completions: 16
        template: {metadata: {annotations: {muster.dev/topology-required: block}}, spec: {}}
"""


def jobset_spec(text: str) -> GangSpec:
    spec = jobset.spec(read(text, jobset.JobSet))
    assert spec is not None
    return spec


def test_a_jobset_is_one_gang_with_a_role_for_each_replicated_job() -> None:
    spec = jobset_spec(JOBSET)
    assert (spec.key, spec.size, spec.min_count) == ("jobset/team-a/pre", 65, 65)
    assert spec.roles == (RoleSpec("driver", 1), RoleSpec("workers", 64))
    assert (spec.required_level, spec.problems) == (names.BLOCK, ())


def test_a_role_may_need_fewer_than_it_has() -> None:
    spec = jobset_spec(
        JOBSET.replace("annotations: {", 'annotations: {muster.dev/gang-min: "75%", ')
    )
    assert spec.roles == (RoleSpec("driver", 1), RoleSpec("workers", 48))
    assert (spec.size, spec.min_count) == (65, 49)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("spec:\n  rep", "spec:\n  startupPolicy: {startupPolicyOrder: InOrder}\n  rep"),
        ("replicas: 4", "replicas: 4\n    dependsOn: [{name: driver, status: Ready}]"),
    ],
)
def test_a_stage_that_is_created_later_is_not_waited_for(old: str, new: str) -> None:
    spec = jobset_spec(JOBSET.replace(old, new))
    assert (spec.size, spec.min_count) == (65, 1)
    assert spec.roles == (RoleSpec("driver", 1),)


def test_with_exclusive_topology_only_the_leaders_can_be_waited_for() -> None:
    exclusive = "annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}"
    spec = jobset_spec(JOBSET.replace("name: pre,", f"name: pre, {exclusive},"))
    assert (spec.size, spec.min_count) == (65, 5)
    by_selector = exclusive.replace("}", ', alpha.jobset.sigs.k8s.io/node-selector: "true"}')
    assert jobset_spec(JOBSET.replace("name: pre,", f"name: pre, {by_selector},")).min_count == 65


def test_templates_that_contradict_each_other_are_a_problem() -> None:
    driver = "template: {spec: {template: {metadata: {annotations: {%s}}, spec: {}}}}"
    text = JOBSET.replace(
        "template: {spec: {template: {spec: {}}}}",
        driver % "muster.dev/topology-required: rack",
    )
    (problem,) = jobset_spec(text).problems
    assert problem.startswith("template workers: muster.dev/topology-required: ")


def test_each_restart_of_a_jobset_is_a_gang_of_its_own() -> None:
    again = jobset_spec(JOBSET + "status: {restarts: 2}\n")
    labels = {
        "jobset.sigs.k8s.io/jobset-name": "pre",
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/restart-attempt": "2",
        "jobset.sigs.k8s.io/job-global-index": "3",
        INDEX: "7",
    }
    member = registry.member(pod(labels=labels, owner=("batch/v1", "Job", "pre-workers-2")))
    assert member == Member(again.key, "workers", 3 * 16384 + 7)


def test_ranks_of_a_jobset_follow_job_then_completion_index() -> None:
    def rank(job: str, index: str) -> int:
        labels = {"jobset.sigs.k8s.io/jobset-name": "j", INDEX: index}
        labels["jobset.sigs.k8s.io/job-global-index"] = job
        member = registry.member(pod(labels=labels))
        assert member is not None
        return member.rank

    assert [rank("0", "0"), rank("0", "20000")] == [0, 20000]
    order = [rank("0", "0"), rank("0", "15"), rank("1", "0"), rank("1", "1"), rank("131071", "0")]
    assert order == sorted(order)
    assert [rank("200000", "0"), rank("1", "20000"), rank("x", "0")] == [NO_RANK] * 3


# -- precedence ----------------------------------------------------------------------------------


def test_the_most_explicit_dialect_speaks_and_the_others_are_reported() -> None:
    labels = {
        "muster.dev/gang": "g",
        "muster.dev/gang-size": "2",
        "scheduling.x-k8s.io/pod-group": "pg",
        INDEX: "0",
    }
    torn = pod(labels=labels, owner=BATCH)
    member = registry.member(torn)
    assert member is not None
    assert member.key == "muster/team-a/g"
    assert registry.conflicts(torn) == [
        "pod belongs to gang muster/team-a/g; coscheduling/team-a/pg is ignored"
    ]


def test_a_label_over_an_owner_is_no_conflict() -> None:
    labels = {"muster.dev/gang": "g", "muster.dev/gang-size": "2", INDEX: "0"}
    assert registry.conflicts(pod(labels=labels, owner=BATCH)) == []


# -- objects -------------------------------------------------------------------------------------


def gang(key: str) -> GangSpec:
    return GangSpec(key=key, namespace="n", name="x", dialect="d", min_count=1)


def test_an_object_that_begins_a_new_gang_ends_its_old_one() -> None:
    objects, first, second = GangObjects(), gang("jobset/n/x"), gang("jobset/n/x@1")
    assert objects.upserted("u", first) == [GangUpserted(first)]
    assert objects.upserted("u", first) == [GangUpserted(first)]
    assert objects.upserted("u", second) == [GangUpserted(second), GangGone(first.key)]
    assert objects.upserted("u", None) == [GangGone(second.key)]
    assert objects.gone("u") == []


def test_a_relist_ends_the_gangs_of_objects_that_are_no_longer_there() -> None:
    objects = GangObjects()
    for uid in ("a", "b", "c"):
        objects.upserted(uid, gang(f"job/n/{uid}"))
    assert objects.retain(["b"]) == [GangGone("job/n/a"), GangGone("job/n/c")]


def test_an_empty_pod_is_nobodys_member() -> None:
    assert registry.member(wire.Pod()) is None


@pytest.mark.parametrize(
    ("status", "minimum"),
    [
        ("{}", 4),
        ("{succeeded: 16}", 4),  # four indexes are left, and half of eight is four
        ("{succeeded: 17}", 3),
        ('{succeeded: 16, failedIndexes: "2,4-5"}', 1),
        ('{failedIndexes: "5-2,x,1-99999999999"}', 4),  # no ranges: nothing is taken away
        ("{succeeded: 20}", 1),
        ("{succeeded: 99}", 1),
    ],
)
def test_no_more_pods_of_a_job_are_waited_for_than_it_has_indexes_left(
    status: str, minimum: int
) -> None:
    spec = batchjob.spec(read(f"{JOB}status: {status}\n", batchjob.Job))
    assert spec is not None
    assert (spec.min_count, spec.size, spec.min_is_remaining) == (minimum, 8, True)


def test_a_jobset_says_how_many_indexes_each_of_its_jobs_has() -> None:
    waves = JOBSET.replace("parallelism: 16", "parallelism: 4")
    assert jobset_spec(JOBSET).rank_runs == jobset_spec(waves).rank_runs == ((1, 1), (4, 16))
