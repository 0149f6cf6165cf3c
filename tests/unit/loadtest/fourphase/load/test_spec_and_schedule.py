"""Phases as data, and the load that is planned from them."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.fourphase.load.schedule import FEWEST_GANGS, gang_sizes, plan, scaled_share, shrunk
from loadtest.fourphase.load.spec import Arrival, SpecError, load

SMALL = """
nodes: 1000
classes:
  low: {priority: 1}
  high: {priority: 9}
phases:
  - name: only
    title: one phase
    arrivals:
      - {class: low, pods: 500, gangs: {32: 1}, figure: ours}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "phases.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def arrival(pods: int, gangs: dict[int, int], per_second: float = 0.0) -> Arrival:
    return Arrival(class_="low", pods=pods, gangs=gangs, figure="ours", per_second=per_second)


# --- the file -------------------------------------------------------------------------------


def test_the_shipped_phases_have_the_published_sizes_at_full_size() -> None:
    whole = plan(load(), 130_000)
    start, preparation, training, inference, _ = whole.phases
    assert (start.pods, preparation.pods, inference.pods) == (130_000, 65_000, 52_000)
    # What is free beside preparation, and the 39,000 pods that the published run preempted.
    assert training.pods == 130_000 - 65_000 + 39_000
    assert [phase.spec.arrivals[0].figure for phase in whole.phases] == [
        "primary", "secondary", "derived", "secondary", "ours",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("class: low", "class: middle", "phases[0].arrivals[0].class: 'middle' is no class"),
        ("pods: 500", "pods: 1001", "pods: 1001: a pod takes a host, so between 1 and nodes 1000"),
        ("pods: 500", "pods: many", "Expected `int`, got `str`"),
        ("{32: 1}", "{}", "gangs: none: give sizes and their weights"),
        ("{32: 1}", "{200000: 1}", "an Indexed Job has between 1 and 100000 pods"),
        ("{32: 1}", "{32: 0}", "gangs.32: weight 0: give at least 1"),
        ("figure: ours", "figure: mine", "Invalid enum value 'mine'"),
        ("figure: ours", "figure: ours, rate: 3", "unknown field `rate`"),
        ("figure: ours", "figure: ours, perSecond: -1", "perSecond: -1.0: at least 0"),
        ("figure: ours", "figure: ours, runs: 0", "runs: 0.0: seconds, more than 0"),
        ("title: one phase", "title: t\n    remove: [none]", "remove: 'none' is no class"),
        ("title: one phase", "title: t\n    finish: {low: 2}", "finish.low: 2.0: a share lies"),
        ("title: one phase", "title: t\n    drain: 0.5\n    fail: 0.5", "take every node"),
        ("title: one phase", "title: t\n    hold: -1", "hold: -1.0: seconds, at least 0"),
        ("name: only", "name: Only One", "name 'Only One': becomes part of pods' names"),
        ("  low: {", "  Low: {", "name 'Low': becomes part of pods' names"),
        ("nodes: 1000", "nodes: 0", "nodes: 0: give at least 1"),
        ("nodes: 1000", "nodes: 1000\npatience: 0", "patience: 0.0: seconds, more than 0"),
        ("priority: 9", "priority: 2000000000", "classes.high.priority: 2000000000: at most"),
        ("phases:", "phases: [", "not YAML"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = written(tmp_path, SMALL.replace(old, new))
    with pytest.raises(SpecError) as caught:
        load(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_two_phases_of_one_name_are_refused(tmp_path: Path) -> None:
    twice = SMALL + "  - {name: only, title: again}\n"
    with pytest.raises(SpecError, match="give each phase a name of its own"):
        load(written(tmp_path, twice))


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"missing\.yaml: cannot be read"):
        load(tmp_path / "missing.yaml")


# --- sizes ----------------------------------------------------------------------------------


@given(nodes=st.integers(20, 3000), seed=st.integers(0, 5))
def test_shares_hold_at_every_size(nodes: int, seed: int) -> None:
    small = plan(load(), nodes, seed=seed)
    for phase in small.phases:
        wanted = sum(each.pods for each in phase.spec.arrivals) * nodes / 130_000
        assert abs(phase.pods - wanted) <= 1
        assert all(gang.size >= 1 for gang in phase.gangs)
    assert small.phases[0].pods == nodes
    assert [gang.index for gang in small.gangs] == list(range(len(small.gangs)))
    assert len({gang.name for gang in small.gangs}) == len(small.gangs)


def test_the_same_seed_gives_the_same_load_and_another_seed_another() -> None:
    spec = load()
    assert plan(spec, 500, seed=3) == plan(spec, 500, seed=3)
    assert plan(spec, 500, seed=3).gangs != plan(spec, 500, seed=4).gangs


def test_a_change_to_one_phase_leaves_the_others_as_they_were() -> None:
    whole, first = load(), load()
    fewer = type(first)(nodes=first.nodes, classes=first.classes, phases=first.phases[1:])
    with_all = [[g.size for g in phase.gangs] for phase in plan(whole, 900).phases[1:]]
    assert with_all == [[g.size for g in phase.gangs] for phase in plan(fewer, 900).phases]


@given(
    pods=st.integers(1, 5000),
    gangs=st.dictionaries(st.integers(1, 2000), st.integers(1, 9), min_size=1),
    seed=st.integers(0, 9),
)
def test_gangs_use_up_the_pods_exactly(pods: int, gangs: dict[int, int], seed: int) -> None:
    assert sum(gang_sizes(arrival(pods, gangs), pods, random.Random(seed))) == pods


def test_gangs_keep_their_size_where_there_are_enough_of_them() -> None:
    assert shrunk({64: 1, 256: 2}, 256 * FEWEST_GANGS) == {64: 1, 256: 2}


def test_gangs_shrink_in_proportion_on_a_small_cluster() -> None:
    assert shrunk({64: 1, 256: 2}, 128 * FEWEST_GANGS) == {32: 1, 128: 2}


def test_a_gang_of_several_pods_stays_one_however_small_the_cluster() -> None:
    assert shrunk({1: 1, 4: 1, 1000: 1}, 16) == {1: 1, 2: 2}


def test_gangs_follow_each_other_at_the_rate_of_the_file() -> None:
    phase = plan(load(), 130_000).phases[0]
    assert phase.gangs[0].at == 0.0
    assert phase.gangs[10].at == pytest.approx(10 * 256 / 1000)


def test_a_share_of_nodes_that_is_asked_for_is_at_least_one() -> None:
    assert (scaled_share(0.01, 20), scaled_share(0.0, 20)) == (1, 0)


def test_a_cluster_too_small_for_phases_is_refused() -> None:
    with pytest.raises(SpecError, match="--nodes 19: too few"):
        plan(load(), 19)
