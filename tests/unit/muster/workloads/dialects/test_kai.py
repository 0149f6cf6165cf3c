"""KAI Scheduler's PodGroups and keys.

Manifests after KAI-Scheduler's docs (batch, topology) and pkg/apis/scheduling/v2alpha2.
"""

import numpy as np
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.cluster.specs.gangspec import GangSpec, RoleSpec, number, ranks
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
    found = kai.spec(read(text, kai.PodGroup))
    assert found is not None
    return resolve(found, DEFAULT_LEVELS)


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


RACKED = "topologyConstraint: {requiredTopologyLevel: muster.dev/rack}"


def test_a_required_level_of_a_part_is_slices_of_its_members() -> None:
    spec = spec_of(POD_GROUP.replace("minMember: 4,", f"minMember: 4, {RACKED},"))
    assert (spec.slice_size, spec.slice_level, spec.slice_roles) == (4, RACK, ("followers",))
    assert (spec.required_level, spec.problems) == (BLOCK, ())
    assert spec.numbered_roles == (("followers", 4), ("leader", 0))
    assert spec.rank_runs == ((1, 4), (1, 1))


def parts(*rows: tuple[str, int | None, str, str]) -> GangSpec:
    """Return the gang of sub-groups: (name, minimum, parent, last part of a required level)."""
    groups = [
        kai.SubGroup(
            name=name,
            min_member=minimum,
            parent=parent or None,
            topology_constraint=kai.TopologyConstraint(
                required_topology_level=level and f"muster.dev/{level}"
            ),
        )
        for name, minimum, parent, level in rows
    ]
    found = kai.spec(kai.PodGroup(spec=kai.PodGroupSpec(sub_groups=tuple(groups))))
    assert found is not None
    return resolve(found, DEFAULT_LEVELS)


def test_parts_of_one_size_are_slices_one_each() -> None:
    spec = parts(("router", 1, "", ""), ("a", 2, "", "rack"), ("b", 2, "", "rack"))
    assert (spec.slice_size, spec.slice_level, spec.slice_roles) == (2, RACK, ("a", "b"))
    assert spec.problems == ()


def test_parts_of_parts_are_slices_of_slices_and_stand_beside_each_other() -> None:
    spec = parts(
        ("one", None, "", "block"), ("two", None, "", "block"),
        ("a", 2, "one", "rack"), ("b", 2, "two", "rack"),
        ("c", 2, "one", "rack"), ("d", 2, "two", "rack"),
    )  # fmt: skip
    assert (spec.wider_slices, spec.slice_size, spec.slice_level) == (((BLOCK, 4),), 2, RACK)
    assert (spec.slice_roles, spec.problems) == (("a", "b", "c", "d"), ())
    assert [name for name, _ in spec.numbered_roles] == ["a", "c", "b", "d"]


def test_a_level_of_a_part_with_all_members_is_the_gangs() -> None:
    spec = parts(("all", None, "", "rack"), ("a", 1, "all", ""), ("b", 3, "all", ""))
    assert (spec.required_level, spec.slice_size, spec.problems) == (RACK, None, ())


def test_parts_of_one_level_may_be_of_different_sizes() -> None:
    spec = parts(("a", 2, "", "rack"), ("b", 3, "", "rack"))
    assert (spec.slice_size, spec.slice_level, spec.slice_roles) == (3, RACK, ("a", "b"))
    numbers = np.array([number(spec, role, n) for role in "ab" for n in range(4)], dtype=np.int32)
    assert (ranks(spec, numbers) // 3).tolist() == [0] * 4 + [1] * 4


def test_parts_that_do_not_nest_are_a_problem_and_not_forgotten() -> None:
    (problem,) = parts(("a", 2, "", "rack"), ("b", 3, "", "block")).problems
    assert problem.startswith("spec.subGroups: a, b: ")


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
