"""The figures of a log that is written by hand; the cluster has 16 GPUs.

::

    warm   8 GPUs  ├──────10            was there from the beginning: not counted
    first  16 GPUs ·········10 ├────30  a big gang, waits for 8 s from 2 on
    last   1 GPU                  20├── 24
"""

from dataclasses import replace

import pytest

from loadtest.queuereplay.figures import Outcome, outcome
from loadtest.queuereplay.replay import CHECKPOINT_S, CutRun, Log, StartPromise
from loadtest.queuereplay.submissions import ESTIMATES, Submission, submissions
from loadtest.queuereplay.workloads import Workload
from loadtest.traces.fleet import grid
from loadtest.traces.gangtrace.stream import Stream
from loadtest.traces.trace import Job

JOBS = (
    Job("warm", "a", 8, 0.0, 10.0),
    Job("first", "a", 16, 2.0, 20.0),
    Job("last", "b", 1, 20.0, 4.0),
)
WORKLOAD = Workload(Stream(JOBS, 1, 25.0, 1.0), grid(2), {"a": 8, "b": 8})
SUBMITTED = [Submission(number, job, job.duration) for number, job in enumerate(JOBS)]


def figures(log: Log, jobs: list[Submission] = SUBMITTED) -> Outcome:
    return outcome(WORKLOAD, jobs, log)


def test_waits_are_those_of_the_jobs_that_are_not_there_from_the_beginning() -> None:
    found = figures(Log([0.0, 10.0, 30.0]))
    assert found.mean_wait == (8.0 + 10.0) / 2
    assert found.big_gang_p95 == 8.0
    assert found.bounded_slowdown == pytest.approx((28.0 / 20.0 + 14.0 / 10.0) / 2)


def test_utilisation_is_what_runs_until_the_last_arrival() -> None:
    assert figures(Log([0.0, 10.0, 30.0])).utilisation == (8 * 10 + 16 * 10) / (16 * 20)


def test_work_that_is_lost_counts_as_wait_and_not_as_use() -> None:
    """The big gang gives way after 5 s, before its first checkpoint, and begins anew at 20."""
    log = Log([0.0, 10.0, 40.0], cut={1: [CutRun(10.0, 15.0)]}, again={1: 20.0})
    found = figures(log)
    assert found.mean_wait == ((40.0 - 20.0 - 2.0) + 20.0) / 2
    assert found.utilisation == (8 * 10) / (16 * 20)
    assert (found.gave_way, found.lost) == (1, 16 * 5 / (8 * 10 + 16 * 20 + 4))
    assert list(log.runs(SUBMITTED[1])) == [(10.0, 15.0), (20.0, 40.0)]


def test_a_job_that_gave_way_goes_on_from_its_last_checkpoint() -> None:
    run = CutRun(100.0, 100.0 + 2 * CHECKPOINT_S + 5.0)
    assert (run.kept, run.lost) == (2 * CHECKPOINT_S, 5.0)
    long = Submission(0, Job("long", "a", 8, 0.0, 3 * CHECKPOINT_S), None)
    log = Log([100.0], cut={0: [run]}, again={0: 50_000.0})
    assert log.end(long) == 50_000.0 + CHECKPOINT_S


@pytest.mark.parametrize(("at", "broken"), [(10.0, 0), (9.9, 1), (12.0, 0)])
def test_a_promise_is_broken_when_the_job_starts_later(at: float, broken: int) -> None:
    found = figures(Log([0.0, 10.0, 30.0], {1: StartPromise(at)}))
    assert (found.promises, found.broken, found.overrun) == (1, broken, 0)


def test_a_promise_is_not_broken_when_a_job_without_an_estimate_runs_beyond_it() -> None:
    unknown = [replace(SUBMITTED[0], estimate=None), *SUBMITTED[1:]]
    found = figures(Log([0.0, 10.0, 30.0], {1: StartPromise(9.0)}), unknown)
    assert (found.broken, found.overrun) == (0, 1)
    itself = [SUBMITTED[0], replace(SUBMITTED[1], estimate=None), SUBMITTED[2]]
    assert figures(Log([0.0, 10.0, 30.0], {1: StartPromise(9.0)}), itself).broken == 1
    ended = [replace(SUBMITTED[0], estimate=None), *SUBMITTED[1:]]
    assert figures(Log([0.0, 15.0, 31.0], {1: StartPromise(12.0)}), ended).broken == 1


@pytest.mark.parametrize(("expected", "broken"), [(8.0, 0), (9.9, 0), (10.0, 1), (16.0, 1)])
def test_a_promise_is_not_broken_when_a_job_without_an_estimate_ran_for_longer_than_was_learned(
    expected: float, broken: int
) -> None:
    """The warm job runs until 10 and the promised start is at 12: what it delayed came later."""
    unknown = [replace(SUBMITTED[0], estimate=None), *SUBMITTED[1:]]
    promise = StartPromise(12.0, expected={0: expected})
    found = figures(Log([0.0, 15.0, 35.0], {1: promise}), unknown)
    assert (found.broken, found.overrun) == (broken, 1 - broken)


def test_a_promise_that_gives_way_to_the_entitled_is_not_broken_by_them() -> None:
    found = figures(Log([0.0, 10.0, 30.0], {1: StartPromise(9.0, is_firm=False)}))
    assert (found.broken, found.overrun, found.yielded) == (0, 0, 1)


def test_estimates_are_exact_or_up_to_five_times_or_absent_for_three_in_ten() -> None:
    jobs = [Job(f"j{i}", "t", 1, float(i), 100.0) for i in range(2_000)]
    exact, over, absent = (submissions(jobs, kind, seed=1) for kind in ESTIMATES)
    assert {one.estimate for one in exact} == {100.0}
    drawn = [one.estimate or 0.0 for one in over]
    assert 100.0 <= min(drawn) < 101.0
    assert 499.0 < max(drawn) <= 500.0
    assert sum(drawn) / len(drawn) == pytest.approx(300.0, rel=0.03)
    assert {one.estimate for one in absent} == {None, 100.0}
    assert sum(one.estimate is None for one in absent) == pytest.approx(600, abs=60)
    assert over == submissions(jobs, "over", seed=1) != submissions(jobs, "over", seed=2)
