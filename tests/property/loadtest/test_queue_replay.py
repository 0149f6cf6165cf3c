"""Any jobs on any rule: never more GPUs than there are, and EASY delays no first in the line."""

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st

from loadtest.queuereplay.figures import TOLERANCE_S
from loadtest.queuereplay.muster import Muster, TakeBack
from loadtest.queuereplay.replay import Log, Side, replay
from loadtest.queuereplay.rules import rules
from loadtest.queuereplay.submissions import ESTIMATES, Submission, submissions
from loadtest.traces.fleet import grid
from loadtest.traces.trace import Job

GPUS = 16
QUEUES = {"a": 8, "b": 6, "c": 2}
LONGEST = 40.0

drawn = st.lists(
    st.tuples(
        st.sampled_from((1, 1, 1, 2, 4, 8, 12, 16)),
        st.integers(0, 6),
        st.integers(1, int(LONGEST)),
        st.sampled_from(sorted(QUEUES)),
    ),
    min_size=1,
    max_size=25,
)


def jobs_of(rows: list[tuple[int, int, int, str]], estimates: str) -> list[Submission]:
    now, made = 0, []
    for number, (gpus, gap, runs, queue) in enumerate(rows):
        now += gap
        made.append(Job(f"j{number}", queue, gpus, float(now), float(runs)))
    return submissions(made, estimates, seed=0)


def most_in_use(jobs: list[Submission], log: Log) -> int:
    """Return the most GPUs that are in use at a time, counted from the runs alone."""
    runs = [(one.gpus, *run) for one in jobs for run in log.runs(one)]
    return max(sum(g for g, start, end in runs if start <= at < end) for _, at, _ in runs)


@given(rows=drawn, estimates=st.sampled_from(ESTIMATES))
def test_no_side_starts_a_job_before_its_submission_or_more_gpus_than_there_are(
    *, rows: list[tuple[int, int, int, str]], estimates: str
) -> None:
    jobs = jobs_of(rows, estimates)
    muster = Muster(grid(2), QUEUES)
    sides: dict[str, Side] = {**rules(GPUS, LONGEST), "Muster": muster}
    for name, side in sides.items():
        log = replay(jobs, side, GPUS)
        assert most_in_use(jobs, log) <= GPUS, name
        for one, start in zip(jobs, log.starts, strict=True):
            assert start >= one.job.arrival, name
            runs = [end - start for start, end in log.runs(one)]
            assert runs[-1] == one.job.duration, f"{name}: all is done in the last run"
    muster.state.validate()


@given(rows=drawn, take_back=st.sampled_from([TakeBack.ENTITLED, TakeBack.FAIR_SHARE]))
def test_no_job_gives_way_for_ever_and_what_is_kept_of_its_work_is_all_of_it(
    *, rows: list[tuple[int, int, int, str]], take_back: TakeBack
) -> None:
    """Jobs run for up to three hours, so some have written checkpoints."""
    slower = [(gpus, 60 * gap, 270 * runs, queue) for gpus, gap, runs, queue in rows]
    jobs = jobs_of(slower, "exact")
    muster = Muster(grid(2), QUEUES, take_back)
    log = replay(jobs, muster, GPUS)
    muster.state.validate()
    assert most_in_use(jobs, log) <= GPUS
    for one in jobs:
        kept = sum(run.kept for run in log.cut.get(one.number, ()))
        (start, end) = list(log.runs(one))[-1]
        assert kept + end - start == one.job.duration
        assert kept < one.job.duration


@settings(max_examples=150, deadline=None)
@given(drawn, st.sampled_from(ESTIMATES), st.sampled_from(["EASY-FCFS", "EASY-SAF"]))
def test_easy_starts_nobody_after_its_first_shadow_time(
    rows: list[tuple[int, int, int, str]], estimates: str, rule: str
) -> None:
    """No run is longer than its estimate, or than what is taken of a job without one."""
    log = replay(jobs_of(rows, estimates), rules(GPUS, LONGEST)[rule], GPUS)
    for number, promised in log.promised.items():
        assert log.starts[number] <= promised.at


@example(
    rows=[(1, 0, 27, "c"), (4, 1, 26, "a"), (4, 0, 26, "a"), (8, 1, 1, "a"), (4, 0, 23, "a")],
    late=29.0,
)
@given(rows=drawn, late=st.sampled_from([0.0, 1.0, 5.0, 29.0]))
def test_muster_keeps_what_it_promised_though_each_end_is_seen_some_seconds_late(
    *, rows: list[tuple[int, int, int, str]], late: float
) -> None:
    """Whoever waits is late by that, and no more. Runs are longer than ``slackSeconds``."""
    slower = [(gpus, 5 * gap, 10 * runs, queue) for gpus, gap, runs, queue in rows]
    jobs = [_seen_late(one, late) for one in jobs_of(slower, "exact")]
    log = replay(jobs, Muster(grid(2), QUEUES), GPUS)
    for number, promised in log.promised.items():
        if promised.is_firm:
            assert log.starts[number] <= promised.at + late + TOLERANCE_S


def _seen_late(one: Submission, seconds: float) -> Submission:
    return replace(one, job=replace(one.job, duration=one.job.duration + seconds))


@settings(max_examples=150, deadline=None)
@given(drawn)
def test_strict_fifo_lets_nobody_pass_and_best_effort_leaves_no_room_for_one_that_waits(
    rows: list[tuple[int, int, int, str]],
) -> None:
    jobs = jobs_of(rows, "exact")
    strict = replay(jobs, rules(GPUS, LONGEST)["StrictFIFO"], GPUS)
    assert strict.starts == sorted(strict.starts)
    free = replay(jobs, rules(GPUS, LONGEST)["BestEffortFIFO"], GPUS)
    for moment in {one.job.arrival for one in jobs}:
        used = sum(
            one.gpus
            for one, start in zip(jobs, free.starts, strict=True)
            if start <= moment < start + one.job.duration
        )
        waiting = [
            one.gpus
            for one, start in zip(jobs, free.starts, strict=True)
            if one.job.arrival <= moment < start
        ]
        assert all(gpus > GPUS - used for gpus in waiting)
