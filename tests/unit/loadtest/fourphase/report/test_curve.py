"""Muster beside a bare kube-scheduler over sizes: what is measured, and how it is counted."""

import pytest

from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.report import curve
from loadtest.fourphase.report.curve import Asked, AtSize
from loadtest.fourphase.report.outcome import Settings
from loadtest.fourphase.run import session
from loadtest.fourphase.site.turns import Drain, Flow, Load, Round, Turn

LOAD = Load(nodes=1000, gangs=2, size=50, limit_s=120)


def turn(rate: float, *, pods: int = 100, cpu_s: float = 1.0, makespan_s: float = 4.0) -> Turn:
    cpu = {"driver": 0.5, "kube-scheduler": cpu_s}
    return Turn(Drain(pods, rate, cpu), Flow(pods, makespan_s, creation_s=1.0))


def round_(bare: Turn, muster: Turn) -> Round:
    return Round(bare, muster, bare_first=True)


# --- which sizes, how many gangs ------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "sizes"),
    [
        (100, [100]),
        (1000, [1000]),
        (6000, [1000, 5000, 6000]),
        (130_000, [1000, 5000, 20_000, 130_000]),
    ],
)
def test_the_standard_sizes_are_taken_up_to_that_of_the_run(nodes: int, sizes: list[int]) -> None:
    assert [load.nodes for load in curve.loads(Asked(), nodes, "1.35")] == sizes


def test_sizes_that_are_named_are_measured_once_each_smallest_first() -> None:
    found = curve.loads(Asked((400, 50, 400)), 20, "1.35")
    assert [load.nodes for load in found] == [50, 400]


@pytest.mark.parametrize(
    ("nodes", "gangs"),
    [
        (1000, 3),  # no more hosts
        (5000, 8),  # 2,048 pods
        (20_000, 8),
        (130_000, 4),  # what a bare kube-scheduler binds in three quarters of a minute
    ],
)
def test_gangs_of_256_become_fewer_where_hosts_or_a_slow_bare_side_run_out(
    nodes: int, gangs: int
) -> None:
    (load,) = curve.loads(Asked((nodes,)), nodes, "1.35")
    assert (load.size, load.gangs) == (256, gangs)


@pytest.mark.parametrize("nodes", [2, 3, 10, 100, 511, 512, 130_000, 1_000_000])
def test_every_size_has_a_load_that_fits_and_gives_a_rate(nodes: int) -> None:
    (load,) = curve.loads(Asked((nodes,)), nodes, "1.35")
    assert 2 <= load.pods <= nodes


def test_gangs_of_another_size_are_as_many_pods() -> None:
    (load,) = curve.loads(Asked((5000,), gang=8), 5000, "1.35")
    assert (load.gangs, load.size) == (256, 8)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (Asked((1,)), "1 nodes: a rate needs two pods"),
        (Asked((50,), gang=51), "--gang-size 51: a pod takes a host, so between 1 and the 50"),
        (Asked((50,), gang=0), "--gang-size 0"),
        (Asked(rounds=0), "--rounds 0: must be at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_a_sentence(asked: Asked, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        curve.loads(asked, 100, "1.35")


def test_beside_the_stand_in_there_is_no_baseline() -> None:
    with pytest.raises(SpecError, match=r"needs --control-plane real: .* stand-in"):
        session.prepared(Settings(nodes=100, beside=Asked()))


def test_without_phases_what_belongs_to_them_is_refused() -> None:
    with pytest.raises(SpecError, match="--pods 300: belongs to the phases"):
        session.prepared(Settings(nodes=100, pods=300, real="1.35", beside=Asked(alone=True)))


def test_without_phases_a_cluster_may_be_too_small_for_them() -> None:
    work = session.prepared(Settings(nodes=10, real="1.35", beside=Asked(alone=True)))
    assert work.plan is None
    assert [(load.nodes, load.size) for load in work.sizes] == [(10, 5)]


# --- figures --------------------------------------------------------------------------------


def test_ratios_are_taken_within_rounds_and_then_their_median() -> None:
    # Medians of the sides alone would give 300/100.
    rounds = [(100, 150), (50, 300), (200, 600)]
    played = tuple(round_(turn(bare), turn(muster)) for bare, muster in rounds)
    figures = AtSize(LOAD, played).figures()
    assert figures["ratio"] == {"median": 3.0, "min": 1.5, "max": 6.0}
    assert [each["ratio"] for each in figures["rounds"]] == [1.5, 6.0, 3.0]
    assert figures["bare"]["pods_per_second"] == 100
    assert figures["muster"]["pods_per_second"] == 300
    assert figures["muster"]["pods_measured"] == 300


def test_the_whole_path_counts_pods_over_the_makespan() -> None:
    played = round_(turn(1, makespan_s=10), turn(1, makespan_s=4))
    figures = AtSize(LOAD, (played,)).figures()
    assert figures["bare"]["whole_path_pods_per_second"] == 10
    assert figures["muster"]["whole_path_pods_per_second"] == 25
    assert figures["ratio_whole_path"]["median"] == 2.5


def test_cpu_is_told_for_each_pod_that_was_measured() -> None:
    cut = turn(1, pods=40, cpu_s=8.0)
    figures = AtSize(LOAD, (round_(cut, turn(1, cpu_s=3.0)),)).figures()
    assert figures["bare"]["cpu_s_per_pod"]["kube-scheduler"] == 0.2
    assert figures["muster"]["cpu_s_per_pod"]["kube-scheduler"] == 0.03
    assert figures["rounds"][0]["bare"]["pods"] == 40


def test_a_size_that_failed_keeps_the_rounds_it_had() -> None:
    figures = AtSize(LOAD, (round_(turn(10), turn(20)),), "etcd ended early").figures()
    assert figures["ratio"]["median"] == 2
    assert figures["failure"] == "etcd ended early"


# --- how it ends ----------------------------------------------------------------------------


def report(*sizes: AtSize, good: bool = True) -> dict[str, object]:
    beside = {"sizes": [each.figures() for each in sizes]}
    return {"verdict": {"good": good}, "beside_bare": beside}


def test_the_exit_code_tells_a_finding_before_a_failure() -> None:
    fine = AtSize(LOAD, (round_(turn(1), turn(1)),))
    failed = AtSize(LOAD, (), "0 of 100 pods bound, none for 60 s")
    bad = Turn(turn(1).drain, turn(1).flow, ("node h: nvidia.com/gpu is given away twice",))
    found = AtSize(LOAD, (round_(turn(1), bad),))
    assert session.exit_code({"beside_bare": {"sizes": []}}) == 0
    assert session.exit_code(report(fine)) == 0
    assert session.exit_code(report(fine, failed)) == 2
    assert session.exit_code(report(failed, found)) == 1
    assert session.exit_code(report(failed, good=False)) == 1
    (line,) = session.failures(report(fine, failed))
    assert line.startswith("1,000 nodes beside a bare kube-scheduler: 0 of 100 pods bound")
