"""The rules beside the planner, on examples that are computed by hand.

A pool of 4 GPUs; a job is written as name, GPUs, submission, run time.
"""

import pytest

from loadtest.queuereplay.replay import Log, ReplayError, Side, replay
from loadtest.queuereplay.rules import Easy, Greedy, rules
from loadtest.queuereplay.submissions import Submission
from loadtest.traces.trace import Job

Row = tuple[str, int, float, float]


def jobs(*rows: Row, estimates: dict[str, float | None] | None = None) -> list[Submission]:
    known = estimates or {}
    return [
        Submission(number, Job(name, "team", gpus, at, runs), known.get(name, runs))
        for number, (name, gpus, at, runs) in enumerate(rows)
    ]


def run(rule: str, made: list[Submission], *, most_s: float = 1000.0) -> Log:
    return replay(made, rules(4, most_s)[rule], 4)


def starts(rule: str, made: list[Submission]) -> dict[str, float]:
    log = run(rule, made)
    return {one.job.name: log.starts[one.number] for one in made}


# One GPU stays free until ``big`` could start at 10, when ``a`` ends.
#
#     a     ███ ├──────10┤
#     big   ████         waits for a
#     long  █            runs beyond 10
#     short █            ends at 10
WAITING = (("a", 3, 0.0, 10.0), ("big", 4, 1.0, 5.0), ("long", 1, 2.0, 20.0), ("short", 1, 3.0, 7))


def test_in_strict_order_all_wait_behind_the_first() -> None:
    assert starts("StrictFIFO", jobs(*WAITING)) == {"a": 0, "big": 10, "long": 15, "short": 15}


def test_with_best_effort_who_does_not_fit_is_passed() -> None:
    assert starts("BestEffortFIFO", jobs(*WAITING)) == {"a": 0, "big": 22, "long": 2, "short": 10}


def test_easy_lets_pass_only_who_ends_before_the_shadow_time() -> None:
    log = run("EASY-FCFS", jobs(*WAITING))
    assert log.starts == [0, 10, 15, 3]
    assert log.promised[1].at == 10.0


def test_easy_lets_long_jobs_have_the_extra_gpus_that_the_first_will_not_need() -> None:
    """At 10 all 4 are free, ``big`` takes 3: one is extra, for one job and not for two.

    ::

        a    ███ ├──────10┤
        big  ███          ├─────15┤
        x    █    ├──────────────── runs beyond 10 on the extra GPU
    """
    made = jobs(("a", 2, 0.0, 10.0), ("big", 3, 1.0, 5.0), ("x", 1, 2.0, 50.0), ("y", 1, 2.0, 50.0))
    assert run("EASY-FCFS", made).starts == [0, 10, 2, 15]


def test_shadow_and_extra_count_all_that_ends_at_the_shadow_time() -> None:
    easy = Easy(4, lambda one: one.number, 1000.0)
    made = jobs(
        ("a", 1, 0, 10), ("b", 1, 0, 10), ("c", 2, 0, 20), ("big", 1, 0, 5), ("huge", 3, 0, 5)
    )
    for one in made[:3]:
        easy.submitted(one, 0.0)
    easy.start(0.0)
    assert easy.shadow(made[3]) == (10.0, 1)
    assert easy.shadow(made[4]) == (20.0, 1)


def test_saf_takes_the_smallest_area_first_among_those_that_may_pass() -> None:
    """One GPU is free until 10; ``x`` was first, ``y`` has the smaller area."""
    rows = (("a", 3, 0.0, 10.0), ("big", 4, 1.0, 5.0), ("x", 1, 2.0, 8.0), ("y", 1, 2.0, 3.0))
    assert run("EASY-FCFS", jobs(*rows)).starts == [0, 10, 2, 15]
    assert run("EASY-SAF", jobs(*rows)).starts == [0, 10, 15, 2]


def test_saf_counts_gpus_times_seconds() -> None:
    rows = (("a", 2, 0.0, 10.0), ("big", 4, 1.0, 5.0), ("x", 2, 2.0, 5.0), ("y", 1, 2.0, 8.0))
    assert run("EASY-SAF", jobs(*rows)).starts == [0, 10, 15, 2]


def test_the_shortest_goes_first_by_its_true_run_time() -> None:
    rows = (("a", 4, 0.0, 10.0), ("x", 4, 1.0, 8.0), ("y", 4, 2.0, 3.0))
    made = jobs(*rows, estimates={"y": 99.0})
    assert run("SJF", made).starts == [0, 13, 10]


def test_easy_takes_of_a_job_without_an_estimate_that_it_runs_for_the_longest_time() -> None:
    """Then nobody knows that ``a`` ends at 10: ``long`` may pass. Without its own it may not."""
    promised = run("EASY-FCFS", jobs(*WAITING, estimates={"a": None}), most_s=100.0)
    assert promised.promised[1].at == 100.0
    assert promised.starts[2] == 2.0
    unknown = run("EASY-FCFS", jobs(*WAITING, estimates={"long": None, "short": None}))
    assert unknown.starts == [0, 10, 15, 15]


def test_a_job_that_ends_early_lets_the_first_start_before_its_promise() -> None:
    log = run("EASY-FCFS", jobs(*WAITING, estimates={"a": 30.0}))
    assert log.promised[1].at == 30.0
    assert log.starts[1] < 30.0


class Cheat(Greedy):
    """Starts what it is given, twice where ``again``."""

    def __init__(self, *, again: bool) -> None:
        super().__init__(100, lambda one: one.number)
        self.again = again
        self.last: list[Submission] = []

    def start(self, now: float) -> list[Submission]:
        found = [*super().start(now), *(self.last if self.again else [])]
        self.last = found
        return found


@pytest.mark.parametrize("again", [False, True])
def test_a_side_that_starts_more_than_fits_or_twice_is_an_error(*, again: bool) -> None:
    rows: list[Row] = [("a", 1, 0.0, 10.0), ("b", 1 if again else 4, 1.0, 10.0)]
    cheat: Side = Cheat(again=again)
    with pytest.raises(ReplayError, match=r"job \w: started at 1 s with"):
        replay(jobs(*rows), cheat, 4)


def test_a_job_that_never_starts_is_named() -> None:
    with pytest.raises(ReplayError, match=r"job b: 5 GPUs do not start on an idle fleet"):
        run("EASY-SAF", jobs(("a", 1, 0.0, 1.0), ("b", 5, 0.0, 1.0)))


class Restless(Greedy):
    """Stops the first job that runs as soon as it has started."""

    def start(self, now: float) -> list[Submission]:
        self.started = list(super().start(now))
        return self.started

    def give_way(self, now: float) -> list[Submission]:
        for one in self.started:
            self.ended(one, now)
            self.submitted(one, now)
        return self.started


def test_a_job_that_is_stopped_and_started_again_without_end_is_named() -> None:
    with pytest.raises(ReplayError, match=r"job a: gave way 11 times at 3 s, and each time"):
        replay(jobs(("a", 1, 3.0, 10.0)), Restless(4, lambda one: one.number), 4)


class StopsAll(Greedy):
    """Stops every job that was submitted, whether it runs or not."""

    def submitted(self, one: Submission, now: float) -> None:
        super().submitted(one, now)
        self.last = one

    def give_way(self, now: float) -> list[Submission]:  # noqa: ARG002  a Side has it
        return [self.last]


def test_a_side_that_stops_a_job_that_does_not_run_is_an_error() -> None:
    side = StopsAll(4, lambda one: one.number)
    with pytest.raises(ReplayError, match="job a: gave way at 3 s and did not run"):
        replay(jobs(("a", 5, 3.0, 10.0)), side, 4)
