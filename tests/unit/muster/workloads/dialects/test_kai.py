"""KAI Scheduler's PodGroups and keys.

Manifests after KAI-Scheduler's docs (batch, topology) and pkg/apis/scheduling/v2alpha2.
"""

from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.kube.names import BLOCK, DEFAULT_LEVELS, RACK
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import batchjob, kai
from muster.workloads.keys.levels import resolve

POD_GROUP = """
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg, namespace: team-a}
spec:
  minMember: 5
  queue: team-a
  topologyConstraint:
    topology: fabric
    requiredTopologyLevel: muster.dev/block
    preferredTopologyLevel: muster.dev/rack
  subGroups:
  - {name: workers}
  - {name: leader, minMember: 1, parent: workers}
  - {name: followers, minMember: 4, parent: workers}
"""


def spec_of(text: str) -> GangSpec:
    return resolve(kai.spec(read(text, kai.PodGroup)), DEFAULT_LEVELS)


def test_the_annotation_names_the_pod_group_and_the_label_the_sub_group() -> None:
    member = pod(
        annotations={"pod-group-name": "pg"}, labels={"kai.scheduler/subgroup-name": "leader"}
    )
    assert registry.member(member) == Member("kai/team-a/pg", "leader")
    assert registry.spec_from_pod(member) is None


def test_the_leaves_of_the_tree_are_roles() -> None:
    spec = spec_of(POD_GROUP)
    assert (spec.min_count, spec.queue) == (5, "team-a")
    assert spec.roles == (RoleSpec("leader", 1), RoleSpec("followers", 4))
    assert (spec.required_level, spec.preferred_level) == (BLOCK, RACK)
    assert spec.problems == ()


def test_the_leaves_minima_are_a_minimum_where_none_is_written() -> None:
    assert spec_of(POD_GROUP.replace("  minMember: 5\n", "")).min_count == 5


def test_a_required_level_of_a_part_is_a_problem_and_not_forgotten() -> None:
    text = POD_GROUP.replace(
        "minMember: 4,", "minMember: 4, topologyConstraint: {requiredTopologyLevel: rack},"
    )
    assert spec_of(text).problems[0].startswith("spec.subGroups: followers: ")


def test_the_required_level_of_the_only_sub_group_is_the_gangs() -> None:
    text = """
metadata: {name: pg, namespace: team-a}
spec:
  subGroups:
  - {name: all, minMember: 4, topologyConstraint: {requiredTopologyLevel: muster.dev/rack}}
"""
    spec = spec_of(text)
    assert (spec.min_count, spec.required_level, spec.problems) == (4, RACK, ())


JOB = """
metadata:
  name: train
  namespace: team-a
  annotations:
    kai.scheduler/batch-min-member: "6"
    kai.scheduler/topology-required-placement: muster.dev/block
    kai.scheduler/segment-size: "4"
    kai.scheduler/segment-topology-required-placement: muster.dev/rack
  labels: {kai.scheduler/queue: research}
spec:
  completionMode: Indexed
  parallelism: 8
  completions: 8
  template: {spec: {containers: [{name: main}]}}
"""


def test_a_job_takes_kais_annotations_from_itself() -> None:
    spec = batchjob.spec(read(JOB, batchjob.Job))
    assert spec is not None
    spec = resolve(spec, DEFAULT_LEVELS)
    assert (spec.size, spec.min_count, spec.queue) == (8, 6, "research")
    assert (spec.required_level, spec.slice_size, spec.slice_level) == (BLOCK, 4, RACK)
