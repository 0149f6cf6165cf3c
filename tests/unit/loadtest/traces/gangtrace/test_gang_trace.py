"""The replay of a trace: its stream, its order, the rules beside, the figures, and the bench.

The fleet of most tests, two aggregation groups::

            core
        agg-1    agg-2
        ├ r1     ├ r3     two hosts to a leaf,
        └ r2     └ r4     four GPUs to a host
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loadtest.benches import trace as bench_trace
from loadtest.benches.trace import Settings
from loadtest.traces.fleet import Fleet, Host
from loadtest.traces.gangtrace import figures
from loadtest.traces.gangtrace.audit import Audited
from loadtest.traces.gangtrace.figures import Fabric
from loadtest.traces.gangtrace.muster import Muster
from loadtest.traces.gangtrace.replay import Hosts, Log, replay
from loadtest.traces.gangtrace.rules import BestFit, FirstFit, Pool, Spread
from loadtest.traces.gangtrace.stream import Stream, StreamError, scaled, turning
from loadtest.traces.publisheddata import DataMissingError
from loadtest.traces.trace import Job, Trace, TraceError, read_philly
from muster.cli.main import main

DATA = Path(__file__).parents[5].parent / "shared" / "data"


def fleet(gpus: int = 4) -> Fleet:
    hosts = [Host(f"h{i}", "core", f"agg-{i // 4 + 1}", f"r{i // 2 + 1}", gpus) for i in range(8)]
    return Fleet("two groups", tuple(hosts))


def job(name: str, gpus: int, arrival: float, duration: float = 100.0) -> Job:
    return Job(name, "team", gpus, arrival, duration)


def stream(*jobs: Job) -> Stream:
    return Stream(jobs, warm=0, span=1000.0, speedup=1.0)


# --- the stream -----------------------------------------------------------------------------


def test_submissions_move_closer_until_the_load_is_as_asked() -> None:
    trace = Trace("t", (job("a", 4, 0.0), job("b", 8, 5000.0), job("c", 4, 9000.0)))
    turn = turning(trace, fleet(8), 0.5)
    assert turn.span * 0.5 * 64 == pytest.approx(4 * 100 + 8 * 100 + 4 * 100)
    counted = turn.jobs[turn.warm :]
    assert [each.duration for each in counted] == [100.0, 100.0, 100.0]
    assert 0.0 == counted[0].arrival < counted[1].arrival < counted[2].arrival < turn.span
    assert counted[1].arrival * turn.speedup == pytest.approx(5000.0)


def test_jobs_that_outlast_a_turn_are_there_from_the_beginning_with_what_is_left() -> None:
    trace = Trace("t", (job("long", 8, 0.0, 1000.0), job("short", 8, 100.0, 10.0)))
    turn = turning(trace, fleet(8), 1.0)
    warm = turn.jobs[: turn.warm]
    assert [each.name for each in warm] == [f"long.{turn}" for turn in range(7, 0, -1)]
    assert turn.span == pytest.approx(126.25)
    assert warm[0].duration == pytest.approx(1000.0 - 7 * 126.25)
    assert warm[-1].duration == pytest.approx(1000.0 - 126.25)
    assert all(each.arrival == 0.0 for each in warm)


def test_sizes_are_multiplied_in_a_share_of_the_jobs_drawn_by_seed() -> None:
    trace = Trace("t", tuple(job(f"j{i}", 2, float(i)) for i in range(200)))
    mixed = scaled(trace, 8, 0.25, seed=1)
    large = [each for each in mixed.jobs if each.large]
    assert {each.gpus for each in large} == {16}
    assert 30 < len(large) < 70
    assert mixed == scaled(trace, 8, 0.25, seed=1) != scaled(trace, 8, 0.25, seed=2)
    assert scaled(trace, 1, 1.0, seed=1) == trace


@pytest.mark.parametrize(("scale", "share"), [(0, 1.0), (2, 1.5), (2, -0.1)])
def test_a_scale_that_cannot_be_is_refused(scale: int, share: float) -> None:
    with pytest.raises(StreamError, match="--scale"):
        scaled(Trace("t", (job("a", 1, 0.0),)), scale, share, seed=0)


@pytest.mark.parametrize("load", [0.0, -1.0, float("nan"), float("inf")])
def test_a_load_that_cannot_be_is_refused(load: float) -> None:
    with pytest.raises(StreamError, match="--load"):
        turning(Trace("t", (job("a", 1, 0.0),)), fleet(), load)


def test_a_job_that_no_empty_fleet_could_take_is_named_with_its_size() -> None:
    """It would block the queue for ever."""
    with pytest.raises(StreamError, match=r"job big asks for 72 GPUs in 9 pods.* takes 8 of"):
        turning(Trace("t", (job("a", 1, 0.0), job("big", 72, 1.0))), fleet(8), 0.5)


# --- first come, first served ---------------------------------------------------------------


def test_nobody_overtakes_a_blocked_head() -> None:
    """One GPU is free all the time; the small job behind the large one must not have it.

    ::

        a  31 of 32 GPUs ├──────────┤
        b  whole host        waits   ├──────
        c  1 GPU             waits   ├──────
    """
    jobs = [job(f"a{i}", 4, 0.0) for i in range(7)] + [job("a7", 3, 0.0)]
    log = replay(stream(*jobs, job("b", 4, 10.0), job("c", 1, 20.0)), BestFit(fleet(), 0))
    assert log.starts[-2:] == [100.0, 100.0]


def test_a_blocked_head_is_looked_at_again_only_when_something_ended() -> None:
    full = [job(f"a{i}", 4, 0.0) for i in range(8)]
    late = [job(f"b{i}", 4, 1.0 + i) for i in range(5)]
    log = replay(stream(*full, *late), BestFit(fleet(), 0))
    assert log.looks == 8 + 1 + 5


def test_an_end_makes_room_for_an_arrival_of_the_same_instant() -> None:
    full = [job(f"a{i}", 4, 0.0) for i in range(8)]
    log = replay(stream(*full, job("b", 4, 100.0)), BestFit(fleet(), 0))
    assert log.starts[-1] == 100.0


class _Liar:
    """Puts every pod of every job on host 0 but the last, which it forgets."""

    def submitted(self, job: Job, now: float) -> None: ...

    def place(self, job: Job, now: float) -> Hosts:  # noqa: ARG002
        return (0,) * (job.pods - 1)

    def ended(self, job: Job, now: float) -> None: ...


def test_the_audit_finds_partial_gangs_and_overcommitted_hosts() -> None:
    audited = Audited(_Liar(), fleet())
    replay(stream(job("a", 24, 0.0), job("b", 24, 0.0)), audited)
    assert (audited.faults.partial, audited.faults.overcommitted) == (2, 2)


def test_the_audit_finds_who_overtakes() -> None:
    audited = Audited(BestFit(fleet(), 0), fleet())
    first, second = job("a", 1, 0.0), job("b", 1, 0.0)
    audited.submitted(first, 0.0)
    audited.submitted(second, 0.0)
    audited.place(second, 0.0)
    assert audited.faults.overtaken == 1


# --- the rules ------------------------------------------------------------------------------


def test_best_fit_takes_the_host_with_the_least_left_over() -> None:
    rule = FirstFit(fleet(), 0)
    assert rule.place(job("a", 4, 0.0), 0.0) == (0,)
    best = BestFit(fleet(), 3)
    (used,) = best.place(job("a", 2, 0.0), 0.0) or ()
    assert best.place(job("b", 1, 0.0), 0.0) == (used,)
    assert best.place(job("c", 4, 0.0), 0.0) != (used,)


def test_first_fit_goes_along_the_network_and_spread_to_the_emptiest() -> None:
    first = FirstFit(fleet(8), 0)
    assert first.place(job("a", 24, 0.0), 0.0) == (0, 1, 2)
    wide = Spread(fleet(8), 0)
    assert len(set(wide.place(job("a", 12, 0.0), 0.0) or ())) == 3


def test_a_rule_places_a_gang_whole_or_not_at_all() -> None:
    rule = BestFit(fleet(8), 0)
    for i in range(7):
        rule.place(job(f"a{i}", 8, 0.0), 0.0)
    free = rule.free.copy()
    assert rule.place(job("b", 16, 0.0), 0.0) is None
    assert (rule.free == free).all()


def test_the_pool_knows_no_hosts() -> None:
    pool = Pool(fleet())
    assert all(pool.place(job(f"a{i}", 3, 0.0), 0.0) == () for i in range(10))
    assert pool.place(job("b", 3, 0.0), 0.0) is None


# --- muster's side --------------------------------------------------------------------------


def test_the_planner_keeps_a_gang_in_one_leaf_where_best_fit_takes_any_hosts() -> None:
    side = Muster(fleet(8), check_every=1)
    gang = job("a", 16, 0.0)
    side.submitted(gang, 0.0)
    assert side.place(gang, 0.0) in ((0, 1), (2, 3), (4, 5), (6, 7))
    assert side.checked == 1


def test_what_has_ended_leaves_nothing_behind_in_the_model() -> None:
    side = Muster(fleet(8), check_every=1)
    log = replay(stream(job("a", 16, 0.0), job("b", 1, 0.0), job("c", 64, 1.0)), side)
    assert log.starts == [0.0, 0.0, 100.0]
    side.ended(job("c", 64, 1.0), 200.0)
    side.state.validate()
    assert list(side.state.gangs()) == []
    assert int(side.state.snapshot().nodes.free("nvidia.com/gpu").sum()) == 64


def test_a_lone_pod_joins_the_company_that_has_been_there_longest() -> None:
    """Two hosts are as full; what has run for long will run on, the other is soon empty.

    ::

        h  a a . .   since 0        ◄─ c goes here
        h  b b . .   since 9,000
    """
    side = Muster(fleet(), check_every=1)
    where = {}
    for number, name in enumerate(("a", "filler", "b")):
        each = job(name, 2, 0.0)
        side.submitted(each, 3000.0 * number)
        where[name] = side.place(each, 3000.0 * number)
    assert where["a"] == where["filler"] != where["b"]
    side.ended(job("filler", 2, 0.0), 9500.0)
    late = job("c", 1, 9600.0)
    side.submitted(late, 9600.0)
    assert side.place(late, 9600.0) == where["a"]


# --- figures --------------------------------------------------------------------------------


def test_the_ring_counts_the_step_from_the_last_rank_to_the_first() -> None:
    assert figures.crossings(["a", "a"]) == 0
    assert figures.crossings(["a", "a", "b"]) == 2
    assert figures.crossings(["a", "b", "a", "b"]) == 4


def test_the_fewest_domains_are_counted_from_the_largest_down() -> None:
    uneven = Fleet("u", tuple(Host(f"h{i}", "c", "p", "r1" if i < 3 else "r2") for i in range(4)))
    assert Fabric(uneven).fewest("leaf", job("a", 24, 0.0)) == 1
    assert Fabric(uneven).fewest("leaf", job("a", 32, 0.0)) == 2


def test_spread_is_counted_for_gangs_of_several_pods_against_the_fewest_possible() -> None:
    jobs = stream(job("a", 16, 0.0), job("b", 8, 0.0))
    log = Log([0.0, 5.0], [(0, 2), (4,)])
    (place,) = figures.gang_places(jobs, log, Fabric(fleet(8)), "leaf")
    assert (place.spread, place.crossings, place.at_once) == (2.0, 2, True)
    (place,) = figures.gang_places(jobs, log, Fabric(fleet(8)), "aggregation")
    assert (place.spread, place.crossings) == (1.0, 0)


def test_waits_leave_out_what_was_there_at_the_beginning() -> None:
    jobs = Stream((job("w", 8, 0.0), job("a", 8, 10.0), job("b", 16, 20.0)), 1, 100.0, 1.0)
    log = Log([50.0, 60.0, 70.0], [(0,), (0,), (0, 1)])
    assert figures.waits(jobs, log).tolist() == [50.0, 50.0]
    assert figures.waits(jobs, log, gangs=True).tolist() == [50.0]


def test_utilisation_counts_what_lies_inside_the_turn() -> None:
    jobs = Stream((job("a", 4, 0.0, 50.0), job("b", 4, 0.0, 500.0)), 0, 100.0, 1.0)
    used = figures.utilisation(jobs, Log([0.0, 60.0], [(0,), (1,)]), 8)
    assert used == pytest.approx((4 * 50 + 4 * 40) / 800)


def test_less_than_a_second_is_no_wait() -> None:
    assert figures.wait_ratio(0.0, 0.0) == figures.wait_ratio(0.4, 0.9) == 1.0
    assert figures.wait_ratio(30.0, 0.0) == 30.0
    assert figures.wait_figures(np.zeros(0))["p95"] == 0.0


# --- the bench ------------------------------------------------------------------------------

HEAD = "timestamp,duration,num_gpus,gpu_time,cluster\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """40 jobs of 1 to 32 GPUs; 12 hosts in 4 leaves of 2 groups."""
    sizes = (1, 1, 8, 16, 2, 1, 32, 4)
    rows = [
        f"2017-10-03 10:{i:02d}:00,{100 + 37 * i % 400},{sizes[i % 8]},0,vc{i % 3}\n"
        for i in range(40)
    ]
    trace = tmp_path / "trace.csv"
    trace.write_text(HEAD + "".join(rows), encoding="utf-8")
    hosts = [f"ip{i},G,P{i // 6},S{i // 3 % 2}\n" for i in range(12)]
    topology = tmp_path / "topo.csv"
    topology.write_text("ip,DSW,PSW,ASW\n" + "".join(hosts), encoding="utf-8")
    return trace, topology


def test_a_trace_and_a_topology_of_ones_own_are_replayed(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    trace, topology = files
    words = [f"--trace={trace}", f"--topology={topology}", "--load=0.9", "--json"]
    assert main(["bench", "trace", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == 40
    assert found["gpus"] == 96
    assert found["partial_gangs"] == found["overcommitted_hosts"] == found["overtaken_jobs"] == 0
    assert found["muster_spread_leaf"] < found["bestfit_spread_leaf"]
    assert found["floor_wait_p95"] <= found["muster_wait_p95"]


def test_the_same_seed_gives_the_same_figures(files: tuple[Path, Path]) -> None:
    settings = Settings(str(files[0]), str(files[1]), load=1.1, jobs=30, seed=5)
    first, second = bench_trace.run(settings), bench_trace.run(settings)
    assert {**first, "muster_seconds": 0} == {**second, "muster_seconds": 0}


def test_a_window_is_as_long_as_asked_for(files: tuple[Path, Path]) -> None:
    whole = read_philly(files[0], 0, largest=0)
    assert len(whole.jobs) == len(read_philly(files[0], 99, largest=0).jobs) == 40
    assert len(read_philly(files[0], 7, largest=0).jobs) == 7


@pytest.mark.parametrize("bad", ["100,0,0,vc", "nan,4,0,vc", "100,-8,0,vc", "100,many,0,vc"])
def test_a_job_without_gpus_or_with_a_run_time_that_is_none_is_named_by_its_line(
    tmp_path: Path, bad: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(HEAD + "2017-10-03 10:00:00," + bad + "\n", encoding="utf-8")
    with pytest.raises(TraceError, match=r"trace\.csv: line 2"):
        read_philly(path, 0, largest=0)


def test_named_data_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    settings = Settings("philly", "generated", data=tmp_path)
    with pytest.raises(DataMissingError, match=r"--trace philly: .* give --data DIR"):
        bench_trace.run(settings)


@pytest.mark.parametrize(
    ("word", "said"),
    [("--scale=64", "lower --scale"), ("--jobs=-3", "--jobs -3"), ("--load=0", "--load 0.0")],
)
def test_what_cannot_be_replayed_ends_in_words_and_not_in_a_traceback(
    files: tuple[Path, Path], capsys: pytest.CaptureFixture[str], word: str, said: str
) -> None:
    words = [f"--trace={files[0]}", f"--topology={files[1]}", word]
    assert main(["bench", "trace", *words]) == 1
    assert said in capsys.readouterr().err


def test_without_any_data_the_published_distributions_are_replayed() -> None:
    found = bench_trace.run(Settings("generated", "generated", jobs=60, load=0.5))
    assert found["jobs"] == 60
    assert found["partial_gangs"] == 0


def test_a_window_of_the_real_trace_on_the_real_fleet() -> None:
    if not (DATA / "philly" / "philly.csv").exists():
        pytest.skip(f"the published trace is not in {DATA}")
    settings = Settings("philly", "lingjun", jobs=400, data=DATA)
    found = bench_trace.run(replace(settings, load=0.5))
    assert found["hosts"] == 847
    assert found["partial_gangs"] == found["overcommitted_hosts"] == found["overtaken_jobs"] == 0
    assert found["verified_plans"] != 0
    assert found["muster_spread_leaf"] == 1.0
