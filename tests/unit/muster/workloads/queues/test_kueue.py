"""Kueue's objects as queues. Manifests after kueue.sigs.k8s.io/docs (concepts)."""

import msgspec
import pytest
from support.pods.manifest import read

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec
from muster.cluster.specs.podconstraints import Operator, Requirement, Taint, TaintEffect
from muster.workloads.queues import kueue
from muster.workloads.queues.reading import (
    NO_NAMESPACE,
    FlavorGroup,
    FlavorReading,
    QueueAlias,
    QueueReading,
)

CLUSTER_QUEUE = """
metadata:
  name: team-a
  creationTimestamp: 2026-03-01T00:00:00Z
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: cpu, nominalQuota: 1500m}
      - {name: nvidia.com/gpu, nominalQuota: 8, borrowingLimit: 4, lendingLimit: 6}
    - name: a100
      resources:
      - {name: cpu, nominalQuota: 4}
      - {name: nvidia.com/gpu, nominalQuota: 0}
  - coveredResources: [memory]
    flavors:
    - name: ""
      resources:
      - {name: memory, nominalQuota: 2Gi}
"""
COHORT = """
metadata: {name: all}
spec:
  parentName: org
  fairSharing: {weight: 500m}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 16}
"""
LOCAL_QUEUE = """
metadata: {name: main, namespace: research}
spec: {clusterQueue: team-a}
"""
GPU = Cell("h100", "nvidia.com/gpu")


def of(*swaps: tuple[str, str]) -> QueueReading:
    return kueue.cluster_queue(read(CLUSTER_QUEUE, kueue.ClusterQueue, *swaps))


def spec_of(*swaps: tuple[str, str]) -> QueueSpec:
    (spec,) = of(*swaps).specs
    return spec


def with_field(line: str) -> QueueReading:
    return of(("  cohortName: all\n", f"  cohortName: all\n  {line}\n"))


def test_quotas_are_nominal_lent_and_borrowed_by_flavor_and_resource() -> None:
    spec = spec_of()
    assert spec.quotas == {
        Cell("h100", "cpu"): Quota(1500),
        GPU: Quota(8, lendable=6, borrowable=4),
        Cell("a100", "cpu"): Quota(4000),
        Cell("a100", "nvidia.com/gpu"): Quota(0),
        Cell("", "memory"): Quota(2 << 30),
    }
    assert (spec.name, spec.parent, spec.is_whole) == ("kueue/team-a", "kueue/cohort/all", False)
    assert (spec.weight, spec.is_strict, spec.is_open) == (1000, False, True)


def test_flavors_are_tried_in_their_order_and_uncovered_resources_are_forbidden() -> None:
    assert of().groups == {
        "kueue/team-a": (
            FlavorGroup(("cpu", "nvidia.com/gpu"), ("h100", "a100")),
            FlavorGroup(("memory",), ("",)),
        )
    }


def test_a_cohort_without_an_object_exists_without_quotas() -> None:
    assert of().implied == (QueueSpec("kueue/cohort/all"),)
    alone = of(("  cohortName: all\n", ""))
    assert (alone.specs[0].parent, alone.implied) == (None, ())


def test_a_queue_is_as_old_as_its_object() -> None:
    assert of().since == 1772323200.0


def test_the_older_version_says_cohort_for_cohort_name() -> None:
    assert spec_of(("cohortName", "cohort")).parent == "kueue/cohort/all"


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_admits_nobody(policy: str) -> None:
    reading = with_field(f"stopPolicy: {policy}")
    assert not reading.specs[0].is_open
    assert reading.problems == ()
    drains = (
        "spec.stopPolicy: HoldAndDrain: what runs is not ended; new gangs wait, as with Hold",
    )
    assert reading.unobeyed == (drains if policy == "HoldAndDrain" else ())


def test_a_queue_that_is_being_deleted_admits_nobody() -> None:
    stamp = "  creationTimestamp: 2026-03-01T00:00:00Z\n"
    ending = of((stamp, f"{stamp}  deletionTimestamp: 2026-04-01T00:00:00Z\n"))
    assert (ending.specs[0].is_open, ending.problems) == (False, ())


def test_a_strict_queue_and_the_weight_of_fair_sharing_are_obeyed() -> None:
    reading = with_field("queueingStrategy: StrictFIFO\n  fairSharing: {weight: 2.5}")
    (spec,) = reading.specs
    assert (spec.is_strict, spec.weight) == (True, 2500)
    assert with_field("fairSharing: {weight: 0}").specs[0].weight == 0
    assert with_field('fairSharing: {weight: "0.0000001"}').specs[0].weight == 1


def test_without_a_selector_no_namespace_may_use_a_queue() -> None:
    assert of().namespaces == {}
    nobody = of(("  namespaceSelector: {}\n", ""))
    assert nobody.namespaces == {"kueue/team-a": NO_NAMESPACE}


def test_a_selector_becomes_requirements() -> None:
    selector = (
        "namespaceSelector: {matchLabels: {team: a}, "
        "matchExpressions: [{key: stage, operator: NotIn, values: [test]}]}"
    )
    reading = of(("namespaceSelector: {}", selector))
    assert reading.namespaces == {
        "kueue/team-a": (
            Requirement("stage", Operator.NOT_IN, ("test",)),
            Requirement("team", Operator.IN, ("a",)),
        )
    }


@pytest.mark.parametrize("operator", ["Gt", "Like"])
def test_a_selector_that_cannot_be_read_closes_the_queue(operator: str) -> None:
    selector = f"namespaceSelector: {{matchExpressions: [{{key: a, operator: {operator}}}]}}"
    reading = of(("namespaceSelector: {}", selector))
    assert "In, NotIn, Exists or DoesNotExist" in reading.problems[0]
    assert not reading.specs[0].is_open


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (
            "preemption: {borrowWithinCohort: {policy: LowerPriority}}",
            "spec.preemption.borrowWithinCohort.policy",
        ),
        ("flavorFungibility: {whenCanBorrow: TryNextFlavor}", "spec.flavorFungibility.whenCanBo"),
        ("flavorFungibility: {whenCanPreempt: MayStopSearch}", "spec.flavorFungibility.whenCanP"),
        ("flavorFungibility: {whenCanPreempt: Preempt}", "spec.flavorFungibility.whenCanPreempt"),
        ("flavorFungibility: {preference: PreemptionOverBorrowing}", "spec.flavorFungibility.pref"),
        (
            "concurrentAdmissionPolicy: {migration: {mode: RetainFirstAdmission}}",
            "spec.concurrentAdmissionPolicy",
        ),
    ],
)
def test_what_is_not_obeyed_is_named(line: str, field: str) -> None:
    reading = with_field(line)
    assert len(reading.unobeyed) == 1
    assert reading.unobeyed[0].startswith(field)
    assert (reading.specs[0].is_open, reading.problems) == (True, ())


@pytest.mark.parametrize(
    "line",
    [
        "preemption: {reclaimWithinCohort: Never, withinClusterQueue: Never}",
        "flavorFungibility: {whenCanBorrow: MayStopSearch, whenCanPreempt: TryNextFlavor}",
        "flavorFungibility: {whenCanBorrow: Borrow, preference: BorrowingOverPreemption}",
        "admissionScope: {admissionMode: NoAdmissionFairSharing}",
        "stopPolicy: None",
        "queueingStrategy: BestEffortFIFO",
    ],
)
def test_the_defaults_are_obeyed(line: str) -> None:
    reading = with_field(line)
    assert (reading.unobeyed, reading.problems, reading.specs) == ((), (), of().specs)


@pytest.mark.parametrize(
    ("swap", "message"),
    [
        (("borrowingLimit: 4", "borrowingLimit: -4"), "resources[1].borrowingLimit"),
        (("nominalQuota: 8", "nominalQuota: eight"), "resources[1].nominalQuota"),
        (("cohortName: all", "cohortName: all\n  stopPolicy: Pause"), "spec.stopPolicy"),
        (("cohortName: all", "cohortName: all\n  queueingStrategy: Lifo"), "queueingStrategy"),
        (
            ("cohortName: all", "cohortName: all\n  preemption: {withinClusterQueue: Some}"),
            "spec.preemption.withinClusterQueue",
        ),
        (("cohortName: all", "cohortName: all\n  fairSharing: {weight: -1}"), "weight"),
        (("- name: a100", "- name: h100"), 'resources[0].name: "cpu" is not allowed: h100 has'),
    ],
)
def test_a_wrong_value_closes_the_queue_and_is_named(swap: tuple[str, str], message: str) -> None:
    reading = of(swap)
    assert message in reading.problems[0]
    assert not reading.specs[0].is_open


def test_a_second_quota_of_a_cell_does_not_replace_the_first() -> None:
    assert spec_of(("- name: a100", "- name: h100")).quotas[Cell("h100", "cpu")].entitled == 1500


def test_an_enormous_quota_is_unlimited() -> None:
    assert spec_of(("nominalQuota: 8", 'nominalQuota: "1e30"')).quotas[GPU].entitled == UNLIMITED


def test_limits_without_a_cohort_are_named_as_meaningless() -> None:
    reading = of(("  cohortName: all\n", ""))
    assert [text.rpartition(": ")[2] for text in reading.unobeyed] == [
        "means nothing without a cohort"
    ] * 2
    assert reading.specs[0].is_open


def test_a_wrong_type_fails_where_it_is_decoded() -> None:
    with pytest.raises(msgspec.ValidationError):
        of(("cohortName: all", "cohortName: [all]"))


def test_a_cohort_has_quotas_on_top_of_what_its_children_lend() -> None:
    reading = kueue.cohort(read(COHORT, kueue.Cohort))
    (spec,) = reading.specs
    assert (spec.name, spec.parent, spec.weight) == ("kueue/cohort/all", "kueue/cohort/org", 500)
    assert (spec.quotas, spec.is_whole) == ({GPU: Quota(16)}, False)
    assert reading.implied == (QueueSpec("kueue/cohort/org"),)
    assert reading.aliases == ()


def test_a_cohort_that_is_its_own_parent_implies_no_other() -> None:
    reading = kueue.cohort(read(COHORT, kueue.Cohort, ("org", "all")))
    assert (reading.specs[0].parent, reading.implied) == (reading.specs[0].name, ())


def local(*swaps: tuple[str, str]) -> QueueReading:
    return kueue.local_queue(read(LOCAL_QUEUE, kueue.LocalQueue, *swaps))


def test_a_local_queue_is_a_name_in_its_namespace() -> None:
    assert local().aliases == (QueueAlias("main", "kueue/team-a", "research"),)
    assert (local().specs, local().problems, local().unobeyed) == ((), (), ())


def test_gangs_without_a_queue_belong_to_the_local_queue_called_default() -> None:
    assert [alias.text for alias in local(("main", "default")).aliases] == ["default", ""]


def test_a_stopped_local_queue_is_a_closed_name() -> None:
    reading = local(("team-a}", "team-a, stopPolicy: HoldAndDrain}"))
    assert [alias.is_open for alias in reading.aliases] == [False]
    assert reading.unobeyed[0].startswith("spec.stopPolicy: HoldAndDrain")


def test_a_local_queue_needs_a_cluster_queue() -> None:
    reading = local(("clusterQueue: team-a", ""))
    assert reading.problems == ('spec.clusterQueue: "" is not allowed: the name of a ClusterQueue',)
    assert not reading.aliases[0].is_open


def test_checks_are_read_with_their_flavors_and_only_workloads_wait_for_them() -> None:
    text = "admissionChecksStrategy: {admissionChecks: [{name: a}, {name: b, onFlavors: [spot]}]}"
    reading = with_field(text)
    assert not reading.unobeyed
    assert len(reading.unobeyed_without_workloads) == 2
    rules = (kueue.AdmissionCheckRule("a"), kueue.AdmissionCheckRule("b", ("spot",)))
    strategy = kueue.AdmissionChecksStrategy(rules)
    spec = kueue.ClusterQueueSpec(admission_checks=("old",), admission_checks_strategy=strategy)
    found = kueue.admission_checks(kueue.ClusterQueue(spec=spec))
    assert found == {"old": (), "a": (), "b": ("spot",)}


def test_the_weight_of_a_local_queue_is_that_of_its_name() -> None:
    reading = local(("team-a}", "team-a, fairSharing: {weight: 500m}}"))
    assert [alias.weight for alias in reading.aliases] == [500]
    (said,) = reading.unobeyed_without_past
    assert said.startswith("spec.fairSharing.weight: 500m: past use does not count here")


def test_a_cluster_queue_may_go_by_what_its_local_queues_used() -> None:
    reading = with_field("admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}")
    assert [spec.goes_by_users for spec in reading.specs] == [True]
    (said,) = reading.unobeyed_without_past
    assert said.startswith(
        "spec.admissionScope.admissionMode: UsageBasedAdmissionFairSharing: past"
    )
    plain = with_field("admissionScope: {admissionMode: NoAdmissionFairSharing}")
    assert [spec.goes_by_users for spec in plain.specs] == [False]
    assert not plain.unobeyed_without_past


def test_a_flavor_is_nodes_by_labels_and_taints() -> None:
    text = """
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
  nodeTaints: [{key: spot, value: "true", effect: NoSchedule}]
  topologyName: rails
"""
    reading = kueue.resource_flavor(read(text, kueue.ResourceFlavor))
    taint = Taint("spot", "true", TaintEffect.NO_SCHEDULE)
    assert reading.flavors == (FlavorReading("h100", {"gpu": "h100"}, (taint,)),)
    assert reading.unobeyed == (
        "spec.topologyName: rails: levels are those of Muster's own configuration",
    )
    wrong = kueue.resource_flavor(read(text, kueue.ResourceFlavor, ("NoSchedule", "Never")))
    assert (wrong.flavors, len(wrong.problems)) == ((), 1)


def test_a_priority_class_has_a_number_that_counts_in_queues() -> None:
    text = "{metadata: {name: urgent}, value: 700}"
    assert kueue.workload_priority_class(read(text, kueue.WorkloadPriorityClass)).priorities == {
        "urgent": 700
    }
    too_much = read(text, kueue.WorkloadPriorityClass, ("700", "4000000000"))
    reading = kueue.workload_priority_class(too_much)
    assert (reading.priorities, len(reading.problems)) == ({}, 1)
