"""Volcano's Queue. Manifests after volcano.sh/docs (queue resource management)."""

import pytest
from support.pods.manifest import read

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.preemptionpolicy import ReclaimFloor
from muster.cluster.quota.queuespec import QueueSpec, ShareFunction
from muster.workloads.queues import volcano
from muster.workloads.queues.preemption.volcanopolicy import volcano_preemption
from muster.workloads.queues.reading import QueueAlias, QueueReading

QUEUE = """
metadata: {name: vision}
spec:
  parent: research
  weight: 3
  priority: 7
  reclaimable: true
  capability: {cpu: 100, nvidia.com/gpu: 16}
  deserved: {cpu: 50, nvidia.com/gpu: 8}
  guarantee:
    resource: {nvidia.com/gpu: 2}
"""
GPU = Cell("", "nvidia.com/gpu")
POLICY = volcano_preemption(is_reclaimable=True)
ROOT = QueueSpec(
    "volcano/root", is_whole=True, is_cluster=True, shares=ShareFunction.WATER_FILLING,
    preemption=POLICY,
)  # fmt: skip


def of(*swaps: tuple[str, str]) -> QueueReading:
    return volcano.queue(read(QUEUE, volcano.Queue, *swaps))


def spec_of(*swaps: tuple[str, str]) -> QueueSpec:
    (spec,) = of(*swaps).specs
    return spec


def test_what_is_deserved_is_lent_but_for_the_guarantee_up_to_the_capability() -> None:
    assert spec_of().quotas == {
        Cell("", "cpu"): Quota(50_000, limit=100_000),
        GPU: Quota(8, lendable=6, limit=16),
    }


def test_a_queue_has_its_parent_weight_and_priority() -> None:
    reading = of()
    assert reading.specs[0] == QueueSpec(
        "volcano/vision",
        "volcano/research",
        spec_of().quotas,
        3000,
        7,
        is_whole=True,
        preemption=POLICY,
    )
    assert reading.aliases == (QueueAlias("vision", "volcano/vision"),)
    assert (reading.problems, reading.unobeyed) == ((), ())


def test_the_root_is_the_cluster_whether_it_has_an_object_or_not() -> None:
    assert of().implied == (ROOT,)
    assert spec_of(("  parent: research\n", "")).parent == "volcano/root"
    reading = volcano.queue(read("metadata: {name: root}", volcano.Queue))
    assert (reading.specs, reading.implied, reading.aliases) == ((ROOT,), (), ())


def test_the_numbers_of_the_root_are_those_of_the_nodes() -> None:
    reading = of(("name: vision", "name: root"))
    assert reading.specs[0].quotas == {}
    assert [text.partition(":")[0] for text in reading.unobeyed] == [
        "spec.capability",
        "spec.deserved",
        "spec.guarantee",
        "spec.parent",
    ]


def test_gangs_without_a_queue_go_to_the_one_called_default() -> None:
    assert [alias.text for alias in of(("name: vision", "name: default")).aliases] == [
        "default",
        "",
    ]


def test_a_queue_deserves_at_least_its_guarantee_and_at_most_its_capability() -> None:
    assert spec_of(("nvidia.com/gpu: 8", "nvidia.com/gpu: 1")).quotas[GPU].entitled == 2
    assert spec_of(("nvidia.com/gpu: 8", "nvidia.com/gpu: 99")).quotas[GPU].entitled == 16


def test_a_capability_of_no_cpu_is_no_limit_and_of_no_gpu_forbids_them() -> None:
    quotas = spec_of(("cpu: 100, nvidia.com/gpu: 16", "cpu: 0"), ("  guarantee:", "  ignored:"))
    assert quotas.quotas[Cell("", "cpu")] == Quota(50_000)
    assert quotas.quotas[GPU] == Quota(8)
    none = spec_of(("nvidia.com/gpu: 16", "nvidia.com/gpu: 0"), ("  guarantee:", "  ignored:"))
    assert none.quotas[GPU] == Quota(0, UNLIMITED, limit=0)


@pytest.mark.parametrize(
    ("state", "is_open"),
    [("Open", True), ("Closed", False), ("Closing", False), ("Unknown", False), ("", True)],
)
def test_only_an_open_queue_admits(state: str, *, is_open: bool) -> None:
    reading = volcano.queue(read(f"{QUEUE}status: {{state: '{state}'}}\n", volcano.Queue))
    assert (reading.specs[0].is_open, reading.problems) == (is_open, ())


def test_a_state_in_the_spec_counts_too() -> None:
    assert not spec_of(("parent: research", "parent: research\n  state: Closed")).is_open


def test_a_queue_that_dequeues_in_order_is_strict() -> None:
    assert spec_of(("weight: 3", "dequeueStrategy: fifo")).is_strict
    assert not spec_of(("weight: 3", "dequeueStrategy: traverse")).is_strict


def test_no_weight_is_weight_one() -> None:
    assert spec_of(("  weight: 3\n", "")).weight == 1000


@pytest.mark.parametrize(
    ("swap", "field"),
    [
        (("weight: 3", "weight: -3"), "spec.weight"),
        (("weight: 3", "weight: 70000"), "spec.weight"),
        (("priority: 7", "priority: -1"), "spec.priority"),
        (("cpu: 50", "cpu: some"), "spec.deserved[cpu]"),
        (("cpu: 50", "cpu: -50"), "spec.deserved[cpu]"),
        (("nvidia.com/gpu: 2", "nvidia.com/gpu: 17"), "spec.guarantee.resource[nvidia.com/gpu]"),
        (("weight: 3", "dequeueStrategy: lifo"), "spec.dequeueStrategy"),
        (("weight: 3", "state: Ajar"), "spec.state"),
    ],
)
def test_a_wrong_value_closes_the_queue_and_is_named(swap: tuple[str, str], field: str) -> None:
    reading = of(swap)
    assert [problem.partition(": ")[0] for problem in reading.problems] == [field]
    assert not reading.specs[0].is_open


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("affinity: {nodeGroupAffinity: {}}", "spec.affinity"),
        ("extendClusters: [{name: other}]", "spec.extendClusters"),
        ("type: large", "spec.type"),
        ("dra: {capability: {gpu: {count: 1}}}", "spec.dra"),
    ],
)
def test_what_is_not_obeyed_is_named(line: str, field: str) -> None:
    reading = of(("reclaimable: true", line))
    assert [text.partition(":")[0] for text in reading.unobeyed] == [field]


def test_the_hierarchy_of_annotations_is_not_obeyed() -> None:
    annotated = 'metadata: {name: vision, annotations: {volcano.sh/hierarchy: "root/a"}}'
    (text,) = of(("metadata: {name: vision}", annotated)).unobeyed
    assert text == "metadata.annotations[volcano.sh/hierarchy]: spec.parent makes the tree"


@pytest.mark.parametrize(("line", "gives"), [("true", True), ("false", False), ("null", True)])
def test_a_queue_is_reclaimable_unless_it_says_not(line: str, *, gives: bool) -> None:
    policy = spec_of(("reclaimable: true", f"reclaimable: {line}")).preemption
    assert policy.is_reclaimable == gives
    assert (policy.floor, policy.reaches_outside) == (ReclaimFloor.KEPT, False)
    assert (policy.within_queue, policy.reclaim) == ("LowerPriority", "Any")
