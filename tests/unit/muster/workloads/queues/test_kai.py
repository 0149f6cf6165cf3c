"""KAI's Queue. Manifests after docs/queues/README.md of KAI-Scheduler."""

import pytest
from support.pods.manifest import read

from muster.cluster.quota.cells import UNLIMITED, Cell, Quota
from muster.cluster.quota.queuespec import QueueSpec, ShareFunction
from muster.workloads.queues import kai
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.kaipolicy import kai_preemption
from muster.workloads.queues.reading import QueueAlias, QueueReading

QUEUE = """
metadata: {name: ml-team}
spec:
  parentQueue: research-team
  priority: 200
  resources:
    cpu: {quota: 2000, limit: -1, overQuotaWeight: 2}
    memory: {quota: 4096, limit: 8192, overQuotaWeight: 2}
    gpu: {quota: 2, limit: 4, overQuotaWeight: 2}
"""
GPU, CPU, MEMORY = (Cell("", name) for name in ("nvidia.com/gpu", "cpu", "memory"))


def of(*swaps: tuple[str, str]) -> QueueReading:
    return kai.queue(read(QUEUE, kai.Queue, *swaps))


def spec_of(*swaps: tuple[str, str]) -> QueueSpec:
    (spec,) = of(*swaps).specs
    return spec


def test_cpu_is_in_thousandths_memory_in_megabytes_and_gpus_in_devices() -> None:
    assert spec_of().quotas == {
        CPU: Quota(2000),
        MEMORY: Quota(4_096_000_000, limit=8_192_000_000),
        GPU: Quota(2, limit=4),
    }


def test_a_queue_has_its_parent_weight_and_priority() -> None:
    reading = of()
    spec = QueueSpec(
        "kai/ml-team", "kai/research-team", spec_of().quotas, 2000, 200, is_whole=True,
        preemption=kai_preemption("", "", QueueFindings()),
    )  # fmt: skip
    assert (reading.specs, reading.implied) == ((spec,), ())
    assert reading.aliases == (QueueAlias("ml-team", "kai/ml-team"),)
    assert (reading.problems, reading.unobeyed) == ((), ())


def test_a_queue_without_a_parent_is_below_the_cluster() -> None:
    reading = of(("  parentQueue: research-team\n", ""))
    assert reading.specs[0].parent == "kai/*"
    assert reading.implied == (
        QueueSpec("kai/*", is_whole=True, is_cluster=True, shares=ShareFunction.TWO_PHASES),
    )


def test_what_is_not_written_is_nothing_and_minus_one_is_unlimited() -> None:
    spec = kai.queue(read("metadata: {name: bare}", kai.Queue)).specs[0]
    assert spec.quotas == dict.fromkeys((CPU, MEMORY, GPU), Quota(0, limit=0))
    assert (spec.priority, spec.weight, spec.is_open) == (100, 0, True)
    assert spec_of(("quota: 2,", "quota: -1,")).quotas[GPU].entitled == UNLIMITED


def test_parts_of_devices_and_of_megabytes_are_rounded_up_from_the_decimal() -> None:
    assert spec_of(("quota: 2,", "quota: 0.5,")).quotas[GPU].entitled == 1
    assert spec_of(("quota: 4096", "quota: 0.1")).quotas[MEMORY].entitled == 100_000


def test_gangs_without_a_queue_go_to_the_default_queue() -> None:
    assert [alias.text for alias in of(("ml-team", "default-queue")).aliases] == [
        "default-queue",
        "",
    ]


def test_a_lending_limit_keeps_the_rest_of_the_quota() -> None:
    assert spec_of(("limit: 4", "limit: 4, lendingLimit: 0")).quotas[GPU].lendable == 0
    assert spec_of(("limit: 4", "limit: 4, lendingLimit: 1")).quotas[GPU].lendable == 1


@pytest.mark.parametrize(
    ("swap", "field"),
    [
        (("quota: 2,", "quota: -2,"), "spec.resources.gpu.quota"),
        (("limit: 4", "limit: -0.5"), "spec.resources.gpu.limit"),
        (("limit: 4", "limit: .inf"), "spec.resources.gpu.limit"),
        (("limit: 4", "limit: .nan"), "spec.resources.gpu.limit"),
        (("limit: 4", "limit: 4, lendingLimit: 3"), "spec.resources.gpu.lendingLimit"),
        (("limit: 4", "limit: 4, lendingLimit: -1"), "spec.resources.gpu.lendingLimit"),
        (("priority: 200", "priority: 99999999999"), "spec.priority"),
        (
            ("limit: -1, overQuotaWeight: 2", "limit: -1, overQuotaWeight: -2"),
            "spec.resources.cpu.overQuotaWeight",
        ),
    ],
)
def test_a_wrong_value_closes_the_queue_and_is_named(swap: tuple[str, str], field: str) -> None:
    reading = of(swap)
    assert [problem.partition(": ")[0] for problem in reading.problems] == [field]
    assert not reading.specs[0].is_open


def test_an_enormous_number_is_unlimited() -> None:
    assert spec_of(("limit: 8192", "limit: 1.0e+300")).quotas[MEMORY].limit == UNLIMITED


def test_weights_of_cpu_and_memory_that_differ_are_not_obeyed() -> None:
    (text,) = of(("limit: -1, overQuotaWeight: 2", "limit: -1, overQuotaWeight: 5")).unobeyed
    assert text == ("spec.resources.cpu.overQuotaWeight: a queue has one weight, that of GPUs: 2")


def test_a_queue_without_least_run_times_has_those_above_it() -> None:
    policy = spec_of().preemption
    assert (policy.preempt_min_run, policy.reclaim_min_run) == (None, None)
    assert (policy.firm_from, policy.within_queue, policy.reclaim) == (100, "LowerPriority", "Any")


def test_least_run_times_are_read_as_go_writes_them() -> None:
    times = "priority: 200\n  preemptMinRuntime: 1h30m\n  reclaimMinRuntime: 0s"
    policy = spec_of(("priority: 200", times)).preemption
    assert (policy.preempt_min_run, policy.reclaim_min_run) == (5400.0, 0.0)


@pytest.mark.parametrize("field", ["preemptMinRuntime", "reclaimMinRuntime"])
def test_a_least_run_time_that_is_no_duration_closes_the_queue(field: str) -> None:
    reading = of(("priority: 200", f"priority: 200\n  {field}: soon"))
    (problem,) = reading.problems
    assert problem.startswith(f'spec.{field}: "soon" is not allowed: a duration')
    assert not reading.specs[0].is_open
