"""Kubernetes' own groups: Workload on 1.35, PodGroup from 1.36 on (KEP-4671, KEP-5832)."""

import msgspec
import pytest
from support.pods.manifest import read
from support.pods.wirepods import pod

from muster.kube import wire
from muster.kube.names import DEFAULT_LEVELS, RACK
from muster.workloads import registry
from muster.workloads.dialect import Member
from muster.workloads.dialects import native
from muster.workloads.keys.levels import resolve

POD_GROUP = """
apiVersion: scheduling.k8s.io/v1alpha2
kind: PodGroup
metadata: {name: workers, namespace: team-a}
spec:
  podGroupTemplateRef: {workload: {workloadName: train, podGroupTemplateName: workers}}
  schedulingPolicy: {gang: {minCount: 4}}
  schedulingConstraints: {topology: [{key: muster.dev/rack}]}
"""
WORKLOAD = """
apiVersion: scheduling.k8s.io/v1alpha1
kind: Workload
metadata: {name: train, namespace: team-a}
spec:
  podGroups:
  - {name: driver, policy: {basic: {}}}
  - {name: workers, policy: {gang: {minCount: 4}}}
"""


def with_spec(**fields: object) -> wire.Pod:
    plain = pod()
    return msgspec.structs.replace(plain, spec=msgspec.structs.replace(plain.spec, **fields))


def test_the_field_of_the_pod_names_the_pod_group() -> None:
    member = with_spec(scheduling_group=wire.SchedulingGroup(pod_group_name="workers"))
    assert registry.member(member) == Member("native/team-a/workers")
    assert registry.spec_from_pod(member) is None
    assert registry.names_a_group(member)


def test_a_pod_group_has_a_minimum_and_a_required_level() -> None:
    spec = resolve(native.spec(read(POD_GROUP, native.PodGroup)), DEFAULT_LEVELS)
    assert (spec.key, spec.min_count, spec.required_level) == ("native/team-a/workers", 4, RACK)
    assert spec.problems == ()


def test_a_basic_policy_lets_every_pod_go_when_it_comes() -> None:
    text = POD_GROUP.replace("{gang: {minCount: 4}}", "{basic: {}}")
    assert native.spec(read(text, native.PodGroup)).min_count == 1


def test_a_second_topology_term_is_a_problem() -> None:
    text = POD_GROUP.replace("[{key", "[{key: a/b}, {key")
    (problem,) = native.spec(read(text, native.PodGroup)).problems
    assert problem.startswith("spec.schedulingConstraints.topology: 2 terms")


def test_a_workload_describes_one_gang_for_each_of_its_pod_groups() -> None:
    driver, workers = native.workload_specs(read(WORKLOAD, native.Workload))
    assert (driver.key, driver.min_count) == ("native/team-a/train:driver", 1)
    assert (workers.key, workers.min_count) == ("native/team-a/train:workers", 4)


def test_replica_keys_make_gangs_of_their_own_that_copy_the_pod_group() -> None:
    def referring(key: str) -> Member | None:
        to = wire.WorkloadReference(name="train", pod_group="workers", pod_group_replica_key=key)
        return registry.member(with_spec(workload_ref=to))

    assert referring("") == Member("native/team-a/train:workers")
    template = "native/team-a/train:workers"
    assert referring("1") == Member("native/team-a/train:workers:1", template=template)


@pytest.mark.parametrize(
    "fields",
    [
        {"scheduling_group": wire.SchedulingGroup()},
        {"workload_ref": wire.WorkloadReference(name="train")},
        {},
    ],
)
def test_a_field_that_names_nothing_makes_no_member(fields: dict[str, object]) -> None:
    assert registry.member(with_spec(**fields)) is None


@pytest.mark.parametrize(
    ("line", "ends_whole"),
    [
        ("disruptionMode: {all: {}}", True),
        ("disruptionMode: PodGroup", True),
        ("disruptionMode: {single: {}}", False),
        ("disruptionMode: Pod", False),
        ("{}", False),
    ],
)
def test_a_group_ends_whole_where_its_disruption_mode_says_so(
    line: str, *, ends_whole: bool
) -> None:
    text = POD_GROUP if line == "{}" else f"{POD_GROUP}  {line}\n"
    assert native.spec(read(text, native.PodGroup)).ends_whole == ends_whole


@pytest.mark.parametrize(("word", "preempts"), [("Never", False), ("PreemptLowerPriority", True)])
def test_a_group_may_say_that_it_makes_nobody_give_way(word: str, *, preempts: bool) -> None:
    text = f"{POD_GROUP}  preemptionPolicy: {word}\n"
    assert native.spec(read(text, native.PodGroup)).preempts == preempts
    assert native.spec(read(POD_GROUP, native.PodGroup)).preempts
