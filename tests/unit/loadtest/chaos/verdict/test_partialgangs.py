"""Who must have been rolled back, and who must not have been touched.

::

    job of 3, all needed:   0 s first member bound ── 1 s second bound ── the third never
"""

import pytest

from loadtest.chaos.simulation.jobs import Job
from loadtest.chaos.verdict.partialgangs import PartialGangJudge
from loadtest.chaos.verdict.records import PodRecord

PATIENCE_S = 30.0
LONG_S = 500.0


def job(*, owned: bool = True) -> Job:
    return Job(
        name="g", size=3, minimum=3, gpus=8, required="", seen=True, scheduler="", owned=owned,
        grouped=False, urgent=False, lone=False, held=False, life_s=60.0,
    )  # fmt: skip


def members(bound: int, released: int = 0) -> list[PodRecord]:
    """Return three pods: some bound, some released, the others waiting."""
    return [
        PodRecord(
            uid=str(rank), name=f"g-{rank}", gang="g", node="n" if rank < bound else "",
            phase="Running" if rank < bound else "Pending", gated=rank >= bound + released,
            blocked=False, going=False, target="n" if rank < bound + released else "",
            requests={},
        )
        for rank in range(3)
    ]  # fmt: skip


def stands(partials: PartialGangJudge, gang: Job, pods: list[PodRecord], until: float) -> float:
    """Look at the start and at the end; return for how long it is overdue."""
    partials.look(gang, pods, 0.0)
    partials.look(gang, pods, until)
    return partials.overdue(gang, until, calm_since=0.0, process_since=0.0)


def test_a_partial_gang_that_stands_longer_than_the_patience_is_overdue() -> None:
    assert stands(PartialGangJudge(PATIENCE_S), job(), members(2), LONG_S) == LONG_S
    assert not stands(PartialGangJudge(PATIENCE_S), job(), members(2), PATIENCE_S)


@pytest.mark.parametrize(
    ("gang", "pods", "patience"),
    [
        (job(), members(2), None),
        (job(owned=False), members(2), PATIENCE_S),
        (job(), members(2, released=1), PATIENCE_S),
        (job(), members(3), PATIENCE_S),
    ],
    ids=["never asked for", "no controller", "kube-scheduler's turn", "whole"],
)
def test_who_need_not_be_rolled_back(
    gang: Job, pods: list[PodRecord], patience: float | None
) -> None:
    assert not stands(PartialGangJudge(patience), gang, pods, LONG_S)


def test_a_gang_that_is_whole_or_was_seen_to_run_may_not_be_evicted() -> None:
    partials, gang = PartialGangJudge(PATIENCE_S), job()
    whole, partial = members(3), members(2)
    assert partials.wrongly_evicted(gang, whole[0], whole, 0.0)
    partials.look(gang, whole, 0.0)
    partials.look(gang, partial, 100.0)
    assert partials.wrongly_evicted(gang, partial[0], partial, 0.0)
    assert not partials.wrongly_evicted(gang, partial[0], partial, process_since=99.0)
    assert not partials.wrongly_evicted(gang, partial[2], partial, 0.0), "it holds nothing"
