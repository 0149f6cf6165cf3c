"""What a ClusterQueue says of preemption, and what is named where nobody makes room."""

import pytest

from muster.cluster.quota.preemptionpolicy import (
    BorrowWithin,
    PreemptionPolicy,
    ReclaimFloor,
    ReclaimWithin,
    WithinQueue,
)
from muster.workloads.queues.findings import QueueFindings
from muster.workloads.queues.preemption.kueuepolicy import (
    BorrowWithinCohort,
    ClusterQueuePreemption,
    preemption,
)


def of(
    within: str = "", reclaim: str = "", borrow: str = "", threshold: int | None = None
) -> tuple[PreemptionPolicy, QueueFindings]:
    """Return what is read, and what is found wrong."""
    findings = QueueFindings()
    written = ClusterQueuePreemption(reclaim, BorrowWithinCohort(borrow, threshold), within)
    return preemption(written, findings), findings


def test_every_policy_is_never_where_nothing_is_written() -> None:
    found, findings = of()
    assert not found.evicts
    assert found.borrow is BorrowWithin.NEVER
    assert (found.floor, found.reaches_outside) == (ReclaimFloor.ZERO, False)
    assert (findings.problems, findings.unobeyed, findings.unobeyed_without_room) == ([], [], [])


@pytest.mark.parametrize("word", list(WithinQueue))
def test_within_cluster_queue_has_three_words(word: WithinQueue) -> None:
    assert of(within=word)[0].within_queue is word


@pytest.mark.parametrize("word", ["Never", "LowerPriority", "Any"])
def test_reclaim_within_cohort_has_three_words(word: str) -> None:
    assert of(reclaim=word)[0].reclaim is ReclaimWithin(word)


def test_borrow_within_cohort_means_nothing_without_reclaiming() -> None:
    without, findings = of(borrow="LowerPriority", threshold=3)
    assert not without.borrows
    (text,) = findings.unobeyed
    assert text.endswith("policy: LowerPriority: means nothing without reclaimWithinCohort")
    found, _ = of(reclaim="Any", borrow="LowerPriority", threshold=3)
    assert found.borrows
    assert (found.may_borrow_from(3), found.may_borrow_from(4)) == (True, False)


@pytest.mark.parametrize("field", ["within", "reclaim", "borrow"])
def test_a_wrong_word_is_a_problem_and_nobody_gives_way(field: str) -> None:
    found, findings = of(**{field: "LowerOrEqualPriority"})
    (problem,) = findings.problems
    assert "LowerOrEqualPriority" in problem
    assert "Never, LowerPriority" in problem
    assert not found.evicts


def test_where_nobody_makes_room_each_policy_that_would_be_obeyed_is_named() -> None:
    _, findings = of("LowerPriority", "Any", "LowerPriority")
    assert [text.partition(": ")[0] for text in findings.unobeyed_without_room] == [
        "spec.preemption.withinClusterQueue",
        "spec.preemption.reclaimWithinCohort",
        "spec.preemption.borrowWithinCohort.policy",
    ]
    assert findings.unobeyed == []
