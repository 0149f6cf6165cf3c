"""ElasticQuotas of scheduler-plugins. Manifests after its manifests/capacityscheduling."""

import pytest
from support.pods.manifest import read

from muster.cluster.quota.availability import available
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.workloads.queues import elasticquota
from muster.workloads.queues.preemption.quotapolicies import QUOTA_PREEMPTION
from muster.workloads.queues.reading import QueueAlias, QueueReading

QUOTA = """
metadata: {name: quota, namespace: team-a}
spec:
  min: {cpu: 4, nvidia.com/gpu: 4}
  max: {cpu: 6, memory: 8Gi, nvidia.com/gpu: 8}
"""
GPU = Cell("", "nvidia.com/gpu")


def of(*swaps: tuple[str, str]) -> QueueReading:
    return elasticquota.elastic_quota(read(QUOTA, elasticquota.ElasticQuota, *swaps))


def test_min_is_taken_back_and_max_is_the_most() -> None:
    reading = of()
    quotas = {
        Cell("", "cpu"): Quota(4000, limit=6000),
        GPU: Quota(4, limit=8),
        Cell("", "memory"): Quota(limit=8 << 30),
        Cell("", "ephemeral-storage"): Quota(limit=0),
    }
    assert reading.specs == (
        QueueSpec(
            "elasticquota/team-a/quota", "elasticquota/*", quotas, preemption=QUOTA_PREEMPTION
        ),
    )
    assert reading.problems == ()


def test_it_is_for_all_gangs_of_its_namespace_that_name_no_queue() -> None:
    assert of().aliases == (QueueAlias("", "elasticquota/team-a/quota", "team-a"),)


def test_without_a_max_nothing_is_forbidden() -> None:
    reading = of(("  max:", "  ignored:"))
    assert reading.specs[0].quotas == {Cell("", "cpu"): Quota(4000), GPU: Quota(4)}


def test_all_namespaces_together_have_what_their_min_add_up_to() -> None:
    tree = QuotaTree()
    for reading in (of(), of(("team-a", "team-b"))):
        for spec in (*reading.implied, *reading.specs):
            tree.put(spec)
    node = tree.find(of().specs[0].name)
    assert node is not None
    assert available(node, GPU) == 8
    tree.charge(of(("team-a", "team-b")).specs[0].name, {GPU: 3})
    assert available(node, GPU) == 5


@pytest.mark.parametrize(
    ("swap", "field"),
    [
        (("min: {cpu: 4", "min: {cpu: 7"), "spec.min[cpu]"),
        (("min: {cpu: 4", "min: {cpu: -4"), "spec.min[cpu]"),
        (("memory: 8Gi", "memory: much"), "spec.max[memory]"),
    ],
)
def test_a_wrong_value_closes_the_queue_and_is_named(swap: tuple[str, str], field: str) -> None:
    reading = of(swap)
    assert [problem.partition(": ")[0] for problem in reading.problems] == [field]
    assert not reading.specs[0].is_open
