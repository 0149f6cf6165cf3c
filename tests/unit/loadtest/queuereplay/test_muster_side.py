"""Muster's side of the replay: the extender's own planner in virtual time.

Two hosts of 8 GPUs, and a queue for each tenant.
"""

from dataclasses import replace

import pytest

from loadtest.queuereplay.muster import EPOCH, Muster, TakeBack
from loadtest.queuereplay.replay import CutRun, ReplayError, replay
from loadtest.queuereplay.submissions import Submission
from loadtest.traces.fleet import grid
from loadtest.traces.trace import Job
from muster.cluster.ids import GangKey
from muster.cluster.quota.queuespec import QueueName


def jobs(*rows: tuple[str, str, int, float, float]) -> list[Submission]:
    """Make jobs of name, queue, GPUs, submission, run time, with exact estimates."""
    return [
        Submission(number, Job(name, queue, gpus, at, runs), runs)
        for number, (name, queue, gpus, at, runs) in enumerate(rows)
    ]


def side(**entitled: int) -> Muster:
    return Muster(grid(2), entitled or {"a": 16})


def starts(made: list[Submission], muster: Muster) -> dict[str, float]:
    log = replay(made, muster, 16)
    muster.state.validate()
    return {one.job.name: log.starts[one.number] for one in made}


def test_gangs_start_whole_when_there_is_room_and_are_gone_when_they_end() -> None:
    made = jobs(("x", "a", 16, 0.0, 10.0), ("y", "a", 12, 1.0, 5.0), ("z", "a", 4, 2.0, 5.0))
    muster = side()
    assert starts(made, muster) == {"x": 0.0, "y": 10.0, "z": 10.0}
    for one in made[1:]:
        muster.ended(one, 15.0)
    muster.state.validate()
    assert not list(muster.state.gangs())
    assert not muster.state.has_pods


def test_a_gang_has_a_pod_for_each_host_and_its_estimate_as_longest_run_time() -> None:
    (one,) = jobs(("x", "a", 16, 0.0, 10.0))
    muster = side()
    muster.submitted(one, 0.0)
    view = muster.state.gang(GangKey("muster/replay/x"))
    assert view is not None
    assert len(view.waiting) == 2
    assert view.spec is not None
    assert (view.spec.min_count, view.spec.max_run_time) == (2, 10.0)
    assert view.spec.submitted_at == EPOCH


def test_a_queue_within_its_part_goes_before_one_that_borrows() -> None:
    """``a`` runs on the whole cluster; when it ends, ``b`` is entitled to half of it."""
    made = jobs(
        ("first", "a", 16, 0.0, 10.0),
        ("more", "a", 8, 1.0, 10.0),
        ("again", "a", 8, 2.0, 10.0),
        ("own", "b", 8, 3.0, 10.0),
    )
    found = starts(made, side(a=8, b=8))
    assert found == {"first": 0.0, "more": 10.0, "again": 20.0, "own": 10.0}


def test_of_two_within_their_parts_the_older_goes_first_whoever_uses_less() -> None:
    """Four GPUs are free at 10, and either of ``a`` and ``b`` may have them."""
    made = jobs(
        ("x", "a", 8, 0.0, 100.0),
        ("y", "c", 4, 0.0, 10.0),
        ("z", "c", 4, 0.0, 100.0),
        ("older", "a", 4, 1.0, 50.0),
        ("newer", "b", 2, 2.0, 50.0),
    )
    found = starts(made, side(a=12, b=3, c=1))
    assert (found["older"], found["newer"]) == (10.0, 60.0)


def test_a_queue_borrows_what_others_leave_and_is_charged_for_it() -> None:
    muster = side(a=8, b=8)
    made = jobs(("x", "a", 16, 0.0, 10.0))
    muster.submitted(made[0], 0.0)
    assert list(muster.start(0.0)) == made
    node = muster.state.charges.tree.find(QueueName("muster/a"))
    assert node is not None
    assert sum(node.usage.values()) == 16
    muster.ended(made[0], 10.0)
    assert sum(node.usage.values()) == 0


BORROWED = (("x", "a", 8, 0.0, 9000.0), ("y", "a", 8, 0.0, 9000.0), ("own", "b", 8, 4000.0, 60.0))


@pytest.mark.parametrize(
    ("take_back", "entitled", "start"),
    [
        (TakeBack.NOTHING, {"a": 8, "b": 8}, 9000.0),
        (TakeBack.ENTITLED, {"a": 8, "b": 8}, 4000.0),
        (TakeBack.ENTITLED, {"a": 4, "b": 4, "idle": 8}, 9000.0),
        (TakeBack.FAIR_SHARE, {"a": 8, "b": 8}, 4000.0),
        (TakeBack.FAIR_SHARE, {"a": 4, "b": 4, "idle": 8}, 4000.0),
        (TakeBack.FAIR_SHARE, {"a": 8, "b": 4, "idle": 4}, 9000.0),
    ],
)
def test_who_borrows_gives_way_as_far_as_queues_take_back(
    take_back: TakeBack, entitled: dict[str, int], start: float
) -> None:
    """``own`` asks for 8 of 16 GPUs: half of what there is while a third queue is idle."""
    muster = Muster(grid(2), entitled, take_back)
    log = replay(jobs(*BORROWED), muster, 16)
    muster.state.validate()
    assert log.starts == [0.0, 0.0, start]


def test_who_gave_way_starts_again_and_works_for_what_was_left_at_its_checkpoint() -> None:
    """Of the hour and 400 s that it ran, the hour is kept: 5400 of 9000 s are left at 4060."""
    made = jobs(*BORROWED)
    log = replay(made, Muster(grid(2), {"a": 8, "b": 8}, TakeBack.ENTITLED), 16)
    ((number, cut),) = log.cut.items()
    assert cut == [CutRun(0.0, 4000.0)]
    assert log.again == {number: 4060.0}
    assert log.end(made[number]) == 4060.0 + 5400.0
    assert log.end(made[1 - number]) == 9000.0


def test_of_two_that_borrow_the_one_with_a_fresh_checkpoint_gives_way() -> None:
    """At 7300, ``x`` wrote one 100 s ago; ``y`` wrote its last one 3,300 s ago."""
    made = jobs(
        ("x", "a", 8, 0.0, 9000.0), ("y", "a", 8, 400.0, 9000.0), ("own", "b", 8, 7300.0, 60.0)
    )
    log = replay(made, Muster(grid(2), {"a": 8, "b": 8}, TakeBack.ENTITLED), 16)
    assert list(log.cut) == [0]


def test_the_first_promise_of_a_start_is_noted() -> None:
    """``big`` waits for both hosts, and ``x`` ends at 200."""
    made = jobs(("x", "a", 8, 0.0, 200.0), ("big", "a", 16, 10.0, 100.0))
    log = replay(made, side(), 16)
    assert log.starts == [0.0, 200.0]
    assert {number: one.at for number, one in log.promised.items()} == {1: 200.0}


def test_a_promise_notes_when_gangs_without_an_estimate_were_taken_to_end() -> None:
    """Five runs of 50 s are learned; ``long-6`` takes 90, and ``big`` counts on 50."""
    past = [(f"long-{number}", "a", 1, 0.0, 50.0) for number in range(1, 6)]
    made = jobs(*past, ("long-6", "a", 8, 100.0, 90.0), ("big", "a", 16, 110.0, 10.0))
    made[5] = replace(made[5], estimate=None)
    log = replay(made, side(), 16)
    assert log.starts[5:] == [100.0, 190.0]
    assert dict(log.promised[6].expected) == {5: 150.0}
    assert log.promised[6].at < 190.0


def test_a_gang_that_can_never_start_ends_the_replay() -> None:
    with pytest.raises(ReplayError, match="job x: 24 GPUs do not start on an idle fleet"):
        replay(jobs(("x", "a", 24, 0.0, 1.0)), side(), 24)
