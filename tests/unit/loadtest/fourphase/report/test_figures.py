"""Percentiles, rates and columns against what can be counted by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.fourphase.report import figures
from loadtest.fourphase.site.columns import PodColumns, Samples

seconds = st.lists(st.integers(0, 4000).map(lambda ms: ms / 250), max_size=60)


def test_a_percentile_is_a_value_below_which_that_share_lies() -> None:
    found = figures.percentiles(np.arange(1.0, 101.0))
    assert found == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}


def test_percentiles_of_nothing_are_nothing() -> None:
    assert figures.percentiles(np.array([math.nan])) == {}


@given(seconds)
def test_percentiles_are_values_in_order(values: list[float]) -> None:
    found = list(figures.percentiles(np.array(values)).values())
    assert found == sorted(found)
    assert all(round(value, 4) in {round(v, 4) for v in values} for value in found)


def test_a_rate_runs_from_the_first_to_the_last() -> None:
    found = figures.rate(np.array([10.0, 10.5, 11.0, math.nan, 12.0]))
    assert (found.count, found.per_second) == (4, pytest.approx(1.5))


def test_the_best_second_is_any_second_not_one_of_a_grid() -> None:
    # 0.9, 1.0 and 1.1 lie in two seconds of a grid.
    assert figures.rate(np.array([0.9, 1.0, 1.1, 5.0])).best_second == 3


@given(seconds)
def test_the_best_second_against_counting(times: list[float]) -> None:
    best = max((sum(t <= other < t + 1.0 for other in times) for t in times), default=0)
    found = figures.rate(np.array(times))
    assert found.count == len(times)
    assert found.best_second == best or len(times) < 2


def test_one_pod_or_none_has_no_rate() -> None:
    assert figures.rate(np.array([3.0])) == figures.Rate(1, 0.0, 1)
    assert figures.rate(np.empty(0)) == figures.Rate(0, 0.0, 0)


@given(seconds, st.floats(0.25, 5.0))
def test_a_histogram_loses_nothing(times: list[float], width: float) -> None:
    bins = figures.histogram(np.array([*times, math.nan]), 16.0, width)
    assert bins.sum() * width == pytest.approx(len(times))


# --- columns --------------------------------------------------------------------------------


def columns(*rows: tuple[int, float, float]) -> PodColumns:
    pods = PodColumns()
    for gang, created, bound in rows:
        row = pods.add(gang, 1)
        pods.note("created", row, created)
        if not math.isnan(bound):
            pods.note("bound", row, bound)
    return pods


def test_latency_is_told_for_each_class_and_unbound_pods_have_none() -> None:
    pods = columns((0, 1.0, 2.0), (0, 1.0, 4.0), (1, 1.0, 1.5), (1, 1.0, math.nan))
    classes = np.array([0, 1], np.int32)
    found = figures.by_class(pods, classes, ["low", "high", "none"], np.ones(4, np.bool_))
    assert {name: waits.tolist() for name, waits in found.items()} == {
        "low": [1.0, 3.0],
        "high": [0.5],
    }


def test_a_gang_starts_with_its_last_member_and_a_partial_one_never() -> None:
    pods = columns((0, 1.0, 2.0), (0, 1.5, 4.0), (1, 1.0, 1.5), (1, 1.0, math.nan))
    blocks = np.array([[0, 2], [2, 2]])
    assert figures.start_ups(pods, blocks, np.array([True, True])).tolist() == [3.0]


def test_columns_grow_and_keep_what_they_had() -> None:
    pods = PodColumns()
    for index in range(5):
        first = pods.add(index, 700)
        assert first == 700 * index
        pods.note("created", first, float(index))
    assert pods.gang[::700].tolist() == [0, 1, 2, 3, 4]
    assert pods.time("created")[::700].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert np.isnan(pods.time("created")).sum() == 5 * 699


def test_only_the_first_time_of_a_thing_counts() -> None:
    pods = PodColumns()
    pods.add(0, 1)
    assert pods.note("bound", 0, 1.0)
    assert not pods.note("bound", 0, 2.0)
    assert pods.time("bound").tolist() == [1.0]


def test_pods_that_are_done_or_gone_are_on_no_node() -> None:
    pods = PodColumns()
    pods.add(0, 4)
    for row, node in enumerate((7, 7, 7, 8)):
        pods.place(row, node)
    pods.note("done", 1, 1.0)
    pods.note("gone", 2, 1.0)
    assert pods.on_nodes(np.array([7], np.int32)).tolist() == [0]


def test_samples_may_lack_a_column_for_a_while() -> None:
    samples = Samples()
    samples.add({"at": 0.0, "a": 1.0})
    samples.add({"at": 1.0, "b": 2.0})
    for index in range(2000):
        samples.add({"at": 2.0 + index, "a": 3.0, "b": float(index)})
    assert samples.column("a")[:3].tolist()[::2] == [1.0, 3.0]
    assert math.isnan(samples.column("a")[1])
    assert math.isnan(samples.column("b")[0])
    assert samples.column("b")[-1] == 1999.0
    assert samples.column("c").tolist() == []


def test_utilisation_is_weighted_by_time() -> None:
    samples = Samples()
    for at, share in ((0.0, 0.0), (1.0, 1.0), (3.0, 1.0)):
        samples.add({"at": at, "utilisation": share})
    found = figures.utilisation(samples, np.ones(3, np.bool_))
    assert found == {"mean": pytest.approx(2.5 / 3, abs=1e-4), "max": 1.0}
