"""Koordinator's ElasticQuotas. Manifests after koordinator.sh/docs (multi hierarchy quotas)."""

import pytest
from support.pods.manifest import read

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec
from muster.workloads.queues import koordinator
from muster.workloads.queues.elasticquota import ElasticQuota
from muster.workloads.queues.preemption.quotapolicies import KOORDINATOR_PREEMPTION
from muster.workloads.queues.reading import QueueAlias, QueueReading

PREFIX = "quota.scheduling.koordinator.sh/"
QUOTA = f"""
metadata:
  name: vision
  namespace: research
  labels:
    {PREFIX}is-parent: "false"
    {PREFIX}parent: research
    {PREFIX}allow-lent-resource: "true"
  annotations: {{}}
spec:
  min: {{cpu: 4, nvidia.com/gpu: 4}}
  max: {{cpu: 40, nvidia.com/gpu: 8}}
"""
GPU = Cell("", "nvidia.com/gpu")
ROOT = QueueSpec("koordinator/koordinator-root-quota", is_whole=True, is_cluster=True,
    preemption=KOORDINATOR_PREEMPTION,
)  # fmt: skip


def of(*swaps: tuple[str, str]) -> QueueReading:
    return koordinator.koordinator_quota(read(QUOTA, ElasticQuota, *swaps))


def annotated(key: str, value: str) -> QueueReading:
    return of(("annotations: {}", f"annotations: {{{PREFIX}{key}: '{value}'}}"))


def test_the_tree_is_in_the_labels() -> None:
    reading = of()
    quotas = {Cell("", "cpu"): Quota(4000, limit=40_000), GPU: Quota(4, limit=8)}
    assert reading.specs == (
        QueueSpec(
            "koordinator/vision",
            "koordinator/research",
            quotas,
            8000,
            is_whole=True,
            preemption=KOORDINATOR_PREEMPTION,
        ),
    )
    assert (reading.implied, reading.problems, reading.unobeyed) == ((), (), ())


def test_a_quota_without_a_parent_is_below_the_cluster() -> None:
    reading = of((f"    {PREFIX}parent: research\n", ""))
    assert reading.specs[0].parent == ROOT.name
    assert reading.implied == (ROOT,)


def test_the_root_is_the_cluster() -> None:
    reading = of(("name: vision", "name: koordinator-root-quota"))
    assert (reading.specs, reading.aliases, reading.implied) == ((ROOT,), (), ())


def test_the_root_of_a_tree_stands_by_itself_with_its_own_numbers() -> None:
    reading = of((f"{PREFIX}parent: research", f'{PREFIX}is-root: "true"'))
    assert (reading.specs[0].parent, reading.specs[0].is_cluster) == (None, False)
    assert reading.specs[0].quotas[GPU].entitled == 4


def test_what_is_not_lent_is_kept() -> None:
    lent = f'{PREFIX}allow-lent-resource: "true"'
    kept = of((lent, lent.replace("true", "false"))).specs[0].quotas[GPU]
    assert (kept.entitled, kept.lendable) == (4, 0)


def test_gangs_name_a_quota_wherever_they_are() -> None:
    assert of().aliases == (QueueAlias("vision", "koordinator/vision"),)


def test_a_quota_called_like_its_namespace_is_for_the_gangs_in_it() -> None:
    assert of(("namespace: research", "namespace: vision")).aliases[1:] == (
        QueueAlias("", "koordinator/vision", "vision"),
    )


def test_a_quota_is_for_the_namespaces_that_it_lists() -> None:
    assert [(a.text, a.namespace) for a in annotated("namespaces", '["a", "b"]').aliases] == [
        ("vision", ""),
        ("", "a"),
        ("", "b"),
    ]
    wrong = annotated("namespaces", "a, b")
    assert (len(wrong.problems), wrong.specs[0].is_open) == (1, False)


def test_gangs_without_a_quota_belong_to_the_default_one() -> None:
    reading = of(("name: vision", "name: koordinator-default-quota"))
    assert [(alias.text, alias.namespace) for alias in reading.aliases] == [
        ("koordinator-default-quota", ""),
        ("", ""),
    ]


def test_a_parent_holds_no_gangs() -> None:
    assert of(('is-parent: "false"', 'is-parent: "true"')).aliases == ()


def test_the_weight_is_that_of_the_accelerator_else_of_the_cpu() -> None:
    both = annotated("shared-weight", '{"cpu": "40", "nvidia.com/gpu": 3}')
    assert both.specs[0].weight == 3000
    (text,) = both.unobeyed
    assert text.endswith("/shared-weight]: a queue has one weight, that of nvidia.com/gpu")
    only = annotated("shared-weight", '{"cpu": "2500m"}')
    assert (only.specs[0].weight, only.unobeyed) == (2500, ())


def test_without_limits_and_weights_the_weight_is_one() -> None:
    assert of(("  max:", "  ignored:")).specs[0].weight == 1000


@pytest.mark.parametrize("value", ["much", '{"cpu": "-1"}', '["cpu"]'])
def test_a_wrong_weight_closes_the_queue(value: str) -> None:
    reading = annotated("shared-weight", value)
    assert (len(reading.problems), reading.specs[0].is_open) == (1, False)


def test_a_flag_is_true_or_false() -> None:
    reading = of(('is-parent: "false"', 'is-parent: "maybe"'))
    assert "is-parent" in reading.problems[0]
    assert not reading.specs[0].is_open
