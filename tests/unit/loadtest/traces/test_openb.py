"""The openb bench: what it reads, its bound, the rules it compares with, and the results."""

import csv
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from loadtest.benches import openb as bench_openb
from loadtest.traces import openb
from loadtest.traces.openb import OpenbError, Trace
from loadtest.traces.openb_bound import ceiling, fewest_devices
from loadtest.traces.openb_rules import BestFit, Fgd, FirstFit
from loadtest.traces.openb_variants import variant
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

DATA = Path(__file__).parents[4].parent / "shared" / "data" / "openb"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the published trace is not here")
SLACK = 0.3
"""Points a mean over a few seeds of our shuffle may lie off the published mean over ten."""

TASKS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
a,4000,1024,1,500,
b,8000,1024,2,1000,T4|P100
c,1000,512,0,0,
"""
MACHINES = """sn,cpu_milli,memory_mib,gpu,model
m1,64000,262144,4,T4
m2,96000,393216,8,G2
"""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    (tmp_path / openb.NODES_FILE).write_text(MACHINES, encoding="utf-8")
    path = tmp_path / "tasks.csv"
    path.write_text(TASKS, encoding="utf-8")
    return path


# --- reading ------------------------------------------------------------------------------


def test_a_trace_is_read_with_the_node_list_beside_it(tasks: Path) -> None:
    trace = openb.read(tasks)
    assert trace.tasks[1] == Shape(8000, 1024, 2, DEVICE, frozenset({"T4", "P100"}))
    assert trace.tasks[2] == Shape(1000, 512, 0, 0)
    assert trace.capacity == 12 * DEVICE


def test_a_trace_without_the_column_of_models_asks_for_any_model(tasks: Path) -> None:
    rows = [line.rsplit(",", 1)[0] for line in TASKS.splitlines()]
    tasks.write_text("\n".join(rows), encoding="utf-8")
    assert all(not shape.models for shape in openb.read(tasks).tasks)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (TASKS.replace("8000", "eight"), "line 3, column cpu_milli: 'eight'"),
        (TASKS.replace("500", "1500"), r"line 2: .*1\.\.1000"),
        (TASKS.splitlines()[0], "no tasks"),
    ],
)
def test_what_cannot_be_read_is_named_by_file_line_and_column(
    tasks: Path, text: str, what: str
) -> None:
    tasks.write_text(text, encoding="utf-8")
    with pytest.raises(OpenbError, match=what):
        openb.read(tasks)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OpenbError, match=r"nowhere\.csv: No such file"):
        openb.read(tmp_path / "nowhere.csv")


# --- the protocol ---------------------------------------------------------------------------


def test_arrivals_are_every_task_once_and_then_draws_up_to_the_demand(tasks: Path) -> None:
    trace = openb.read(tasks)
    order = openb.arrivals(trace, 42)
    assert set(order[:3]) == set(trace.tasks)
    demand = [shape.gpu for shape in order]
    assert sum(demand) >= openb.ARRIVAL * trace.capacity > sum(demand[:-1])


def test_a_seed_gives_the_same_arrivals_and_the_same_order_of_nodes_again(tasks: Path) -> None:
    trace = openb.read(tasks)
    assert openb.arrivals(trace, 7) == openb.arrivals(trace, 7) != openb.arrivals(trace, 8)
    assert openb.empty_stock(trace, 7).models == openb.empty_stock(trace, 7).models


# --- variants -------------------------------------------------------------------------------

MIXED = Trace(
    (
        *[Shape(4000, 10, 0, 0)] * 100,
        *[Shape(4000, 10, 1, 500)] * 400,
        *[Shape(4000, 10, 1, DEVICE)] * 400,
        *[Shape(8000, 10, 8, DEVICE)] * 10,
    ),
    (openb.Machine(1000, 1000, 8, "T4"),),
)
PICKY = tuple(
    Shape(4000, 10, 1, milli, frozenset({"T4"})) for milli in (500, DEVICE) for _ in range(3)
)


def share(trace: Trace, kind: Callable[[Shape], bool]) -> float:
    """Return the percentage of the demand for GPUs that comes from a kind of tasks."""
    return 100 * sum(t.gpu for t in trace.tasks if kind(t)) / sum(t.gpu for t in trace.tasks)


def test_each_variant_moves_the_share_that_it_is_named_after() -> None:
    fractional = variant(MIXED, "gpushare60")
    assert share(fractional, lambda task: task.fractional) == pytest.approx(60, abs=4)  # drawn
    assert sum(1 for task in fractional.tasks if task.devices) == 810
    several = variant(MIXED, "multigpu50")
    assert share(several, lambda task: task.devices > 1) == pytest.approx(50, abs=1)
    picky = variant(MIXED, "gpuspec33", PICKY)
    assert sum(1 for task in picky.tasks if task.models) == round(0.33 * 810)
    cpu = variant(MIXED, "cpu200")
    assert sum(1 for task in cpu.tasks if not task.devices) == round(2 * 789 / 7064 * 810)


def test_one_name_is_one_list_of_tasks() -> None:
    assert variant(MIXED, "gpushare40") == variant(MIXED, "gpushare40")


@pytest.mark.parametrize(
    ("name", "words"),
    [("gpu40", "allowed: cpu, gpushare"), ("gpushare101", "0 to 100"), ("gpuspec20", "not enough")],
)
def test_a_variant_that_is_none_is_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(OpenbError, match=words):
        variant(MIXED, name)


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["cpu250", "gpushare40", "multigpu50", "gpuspec33"])
def test_variants_nobody_was_shown_go_three_quarters_of_the_way_too(name: str) -> None:
    path = DATA / "csv" / "openb_pod_list_default.csv"
    ours, fgd = (bench_openb.run(path, policy, 1, name) for policy in ("muster", "fgd"))
    reached, before, top = ours["allocation_mean"], fgd["allocation_mean"], ours["ceiling"]
    assert isinstance(reached, float)
    assert isinstance(before, float)
    assert isinstance(top, float)
    assert reached >= before + 0.75 * (top - before)


# --- the bound ------------------------------------------------------------------------------


def test_two_halves_share_a_device_and_three_fifths_do_not() -> None:
    assert fewest_devices([500], np.array([10.0])) == pytest.approx(5.0)
    assert fewest_devices([600], np.array([10.0])) == pytest.approx(10.0)


def test_patterns_are_mixed_where_that_needs_fewer_devices() -> None:
    # 700 + 300 in five devices, the other five 300s three to a device
    assert fewest_devices([300, 700], np.array([10.0, 5.0])) == pytest.approx(5 + 5 / 3)


def test_a_size_that_nobody_asks_for_costs_nothing() -> None:
    assert fewest_devices([200, 900], np.array([0.0, 3.0])) == pytest.approx(3.0)


def test_small_requests_fill_the_holes_of_large_ones_for_nothing() -> None:
    assert fewest_devices([100, 900], np.array([3.0, 10.0])) == pytest.approx(10.0)


def test_without_fractional_requests_nothing_need_be_wasted() -> None:
    trace = Trace((Shape(1, 1, 1, DEVICE),), (openb.Machine(1, 1, 1, ""),))
    assert ceiling(trace) == 100.0


@needs_data
@pytest.mark.parametrize(
    ("variant", "known"),
    [("default", 96.2), ("cpu100", 96.2), ("gpuspec20", 96.2), ("gpushare60", 91.8),
     ("multigpu30", 97.1)],
)  # fmt: skip
def test_the_ceilings_of_the_published_traces(variant: str, known: float) -> None:
    found = ceiling(openb.read(DATA / "csv" / f"openb_pod_list_{variant}.csv"))
    assert found == pytest.approx(known, abs=0.05)


# --- the rules ------------------------------------------------------------------------------


def two_nodes() -> NodeStock:
    """A large free node, then a small one with a device half used."""
    return NodeStock(
        cpu=np.array([96_000, 8000]),
        memory=np.array([1000, 1000]),
        holes=np.array([[DEVICE, DEVICE], [500, 0]]),
        models=["G2", "T4"],
        capacity=3 * DEVICE,
    )


HALF = Shape(4000, 10, 1, 500)


def test_first_fit_takes_the_first_node_and_there_the_tightest_device() -> None:
    room = two_nodes()
    assert FirstFit(room).place(HALF)
    assert room.holes.tolist() == [[500, DEVICE], [500, 0]]


def test_best_fit_takes_the_node_with_least_left() -> None:
    room = two_nodes()
    assert BestFit(room).place(HALF)
    assert room.holes[1].tolist() == [0, 0]


def test_fgd_does_not_break_a_device_that_the_popular_request_needs_whole() -> None:
    room = two_nodes()
    assert Fgd(room, [Shape(4000, 10, 1, DEVICE)] * 9 + [HALF]).place(HALF)
    assert room.holes[1].tolist() == [0, 0]


@pytest.mark.parametrize("make", [FirstFit, BestFit, lambda s: Fgd(s, [HALF])])
def test_a_rule_refuses_what_fits_nowhere(make: bench_openb.Make) -> None:
    room = two_nodes()
    assert not make(room).place(Shape(4000, 10, 1, 500, frozenset({"A10"})))  # type: ignore[call-arg]
    assert not make(room).place(Shape(4000, 10, 4, DEVICE))  # type: ignore[call-arg]
    assert room.changed == []


# --- the results ----------------------------------------------------------------------------


def published(variant: str, policy: str) -> float:
    """Return the mean allocation at 130 % arrival over the ten published seeds."""
    path = DATA / "results" / "analysis_allo_discrete.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [
            float(row["130"])
            for row in csv.DictReader(file)
            if row["workload"] == f"openb_pod_list_{variant}" and policy in row["sc_policy"]
        ]
    assert len(rows) == 10
    return sum(rows) / 10


def measured(variant: str, policy: str, seeds: int = 1) -> float:
    path = DATA / "csv" / f"openb_pod_list_{variant}.csv"
    found = bench_openb.run(path, policy, seeds)["allocation_mean"]
    assert isinstance(found, float)
    return found


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(("policy", "name"), [("bestfit", "BestFit"), ("fgd", "FGD")])
def test_the_published_results_are_reproduced(policy: str, name: str) -> None:
    assert measured("default", policy, 2) == pytest.approx(published("default", name), abs=SLACK)


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("variant", ["default", "cpu100", "gpuspec20", "gpushare60", "multigpu30"])
def test_three_quarters_of_the_way_from_fgd_to_the_ceiling_are_gone(variant: str) -> None:
    top = ceiling(openb.read(DATA / "csv" / f"openb_pod_list_{variant}.csv"))
    fgd = published(variant, "FGD")
    assert measured(variant, "muster") >= fgd + 0.75 * (top - fgd)


def test_the_bench_reports_every_key_it_promises(tasks: Path) -> None:
    found = bench_openb.run(tasks, "muster", 2)
    assert {
        "allocation_mean",
        "allocation_min",
        "allocation_max",
        "per_seed",
        "decisions_per_second",
        "ceiling",
    } <= set(found)


def test_a_bench_without_seeds_is_refused(tasks: Path) -> None:
    with pytest.raises(ValueError, match="--seeds 0"):
        bench_openb.run(tasks, "muster", 0)
