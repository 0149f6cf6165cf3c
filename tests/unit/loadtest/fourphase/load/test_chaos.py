"""Faults as data, from both places where they are asked for, and what is told of them."""

import argparse
import itertools
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.cli import loadtest as command
from loadtest.fourphase.faults import aftermath
from loadtest.fourphase.faults.faults import REPEAT_S, Record, as_new, due, next_pause
from loadtest.fourphase.load import chaosargs
from loadtest.fourphase.load.chaos import HABITS, PROXIED, Fault, Kind, refusal
from loadtest.fourphase.load.spec import Spec, SpecError, load
from loadtest.fourphase.report import charts, figures
from loadtest.testbed.client.nodes import node
from muster.kube.watching.listwatch import Timing

PHASES = """
nodes: 40
classes:
  low: {priority: 1}
phases:
  - name: one
    title: First
    arrivals: [{class: low, pods: 20, gangs: {4: 1}, figure: ours}]
    chaos: CHAOS
  - name: two
    title: Second
"""


def spec(tmp_path: Path, chaos: str = "[]") -> Spec:
    file = tmp_path / "phases.yaml"
    file.write_text(PHASES.replace("CHAOS", chaos), encoding="utf-8")
    return load(file)


def asked(spec: Spec, *words: str, real: bool = True) -> dict[str, list[Fault]]:
    made = chaosargs.with_faults(spec, words, real=real)
    return {phase.name: list(phase.chaos) for phase in made.phases}


# --- where they are asked for -----------------------------------------------------------------


def test_a_file_says_what_strikes_when_and_for_how_long(tmp_path: Path) -> None:
    made = spec(tmp_path, "[{kind: gone-storm, at: 0.1, lasts: 7}, {kind: kill-extender}]")
    storm, kill = made.phases[0].chaos
    assert (storm.kind, storm.strikes_at, storm.seconds) == (Kind.GONE_STORM, 0.1, 7)
    assert (kill.strikes_at, kill.seconds) == (0.5, None)
    assert chaosargs.kinds(made) == {Kind.GONE_STORM, Kind.KILL_EXTENDER}


def test_a_word_names_a_phase_or_means_all_and_adds_to_the_file(tmp_path: Path) -> None:
    made = spec(tmp_path, "[{kind: clock-step}]")
    found = asked(made, "conflicts,kill-extender@two", "gone-storm@one:0.25")
    assert [fault.kind for fault in found["one"]] == ["clock-step", "conflicts", "gone-storm"]
    assert [fault.kind for fault in found["two"]] == ["conflicts", "kill-extender"]
    assert [fault.strikes_at for fault in found["one"]] == [0.5, 0.0, 0.25]


def test_without_a_word_nothing_is_changed(tmp_path: Path) -> None:
    made = spec(tmp_path)
    assert chaosargs.with_faults(made, (), real=False) == made
    assert chaosargs.kinds(load()) == frozenset()


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("", "'' is no fault: there are kill-extender, leader-change"),
        ("flood@one", "--chaos flood@one: 'flood' is no fault: there are kill-extender"),
        ("conflicts@three", "'three' is no phase: there are one, two"),
        ("conflicts@", "'' is no phase: there are one, two"),
        ("conflicts@one:half", "'half' is no share of the phase's pods: give 0 to 1"),
        ("conflicts@one:", "'' is no share of the phase's pods: give 0 to 1"),
        ("conflicts@one:1.5", "--chaos conflicts@one:1.5: 1.5: a share of the phase's pods"),
        ("conflicts@one:nan", "--chaos conflicts@one:nan: nan: a share of the phase's pods"),
    ],
)
def test_a_wrong_word_is_refused_in_a_sentence(tmp_path: Path, word: str, told: str) -> None:
    with pytest.raises(SpecError, match=re.escape(told)):
        asked(spec(tmp_path), word)


@pytest.mark.parametrize(
    ("chaos", "told"),
    [
        ("[{kind: flood}]", "Invalid enum value 'flood'"),
        ("[{kind: conflicts, often: 3}]", "unknown field `often`"),
        ("[{kind: conflicts, at: 2}]", r"phases\[0\].chaos\[0\].at: 2.0: a share"),
        ("[{kind: conflicts, lasts: 0}]", r"phases\[0\].chaos\[0\].lasts: 0.0: seconds, more"),
        ("[{kind: kill-extender, lasts: 3}]", "lasts: kill-extender is done as soon as"),
    ],
)
def test_a_wrong_file_is_refused_in_a_sentence(tmp_path: Path, chaos: str, told: str) -> None:
    with pytest.raises(SpecError, match=told):
        spec(tmp_path, chaos)


def test_what_a_control_plane_cannot_bear_is_refused_with_the_reason(tmp_path: Path) -> None:
    made = spec(tmp_path, "[{kind: restart-api-server}]")
    with pytest.raises(SpecError, match=r"phase one: restart-api-server: .* would come back empty"):
        asked(made, real=False)
    assert asked(made, real=True)["one"]
    refused = {kind: refusal(kind, real=False) for kind in Kind}
    assert [kind for kind, why in refused.items() if why] == [Kind.RESTART_API_SERVER]
    assert not any(refusal(kind, real=True) for kind in Kind)


def test_every_kind_has_its_habits_and_what_the_server_can_do_itself_is_not_proxied() -> None:
    assert set(HABITS) == set(Kind)
    assert PROXIED[False] < PROXIED[True]


def test_the_command_that_repeats_a_run_has_its_faults() -> None:
    parser = argparse.ArgumentParser()
    command.register(parser.add_subparsers())
    words = ["loadtest", "--nodes", "50", "--chaos", "conflicts", "--chaos", "gone-storm@one:0.1"]
    told = command._command(parser.parse_args(words))
    assert "--chaos conflicts,gone-storm@one:0.1" in told
    assert command._command(parser.parse_args(told.split()[1:])) == told


# --- when they strike ---------------------------------------------------------------------------


@given(at=st.floats(0, 1), pods=st.integers(0, 1000))
def test_a_fault_strikes_once_its_share_is_bound_and_always_when_all_are(
    at: float, pods: int
) -> None:
    fault = Fault(kind=Kind.KILL_EXTENDER, at=at)
    struck = [due(fault, bound, pods) for bound in range(pods + 1)]
    assert struck == sorted(struck)
    assert struck[-1]
    assert struck.count(False) == min(pods, math.ceil(at * pods))


@given(slow=st.floats(0.0, 20.0), jitter=st.floats(0.5, 1.0))
def test_a_storm_lets_a_watch_through_however_slow_the_machine_is(
    slow: float, jitter: float
) -> None:
    """Each of the watches needs ``slow`` seconds to bring its first event.

    ::

        cut  1 s  cut   2 s    cut       4 s         cut             8 s               cut
         │         │            │                     │                                 │
         └ waits, opened ✗      └ waits longer, opened ✗ └ waits longer still, opened ───┴► an event
    """
    longest_wait, first_wait = Timing().back_off_s[1], Timing().back_off_s[0]
    cut, pause, opened, failures = 0.0, REPEAT_S, 0.0, 0
    for _ in range(12):
        cut, pause = cut + pause, next_pause(pause, progress=False)
        if opened + slow < cut:
            assert next_pause(pause, progress=True) == REPEAT_S
            return
        if opened < cut:
            failures += 1
            opened = cut + jitter * min(longest_wait, first_wait * 2 ** (failures - 1))
    pytest.fail(f"a watch that takes {slow} s to bring something is always cut before")


def test_a_node_comes_back_as_its_kubelet_would_register_it() -> None:
    made = node("host-1", {"rack": "r1"})
    made["metadata"] |= {"uid": "u", "resourceVersion": "7", "creationTimestamp": "x"}
    made["spec"] = {"unschedulable": True, "podCIDR": "10.0.0.0/24"}
    again = as_new(made)
    assert again["metadata"] == {"name": "host-1", "labels": made["metadata"]["labels"]}
    assert again["spec"] == {"podCIDR": "10.0.0.0/24"}
    assert again["status"] == made["status"]


# --- what is told of them ---------------------------------------------------------------------


def record(struck: float, ready_again: float | None = None) -> Record:
    return Record(Kind.KILL_EXTENDER, "one", struck, struck + 2, ready_again, "extender")


def test_what_followed_is_counted_from_the_moment_it_struck() -> None:
    bound = np.array([9.0, 1.0, np.nan, 4.0])
    first, second, last = aftermath.figures([record(1.0, 3.5), record(4.0), record(9.0)], bound)
    assert (first["next_bound_after_s"], first["ready_again_after_s"]) == (3.0, 2.5)
    assert (second["next_bound_after_s"], second["ready_again_after_s"]) == (5.0, None)
    assert last["next_bound_after_s"] is None
    rows = aftermath.rows([first, second, last])
    assert rows[0][:4] == ["kill-extender", "one", "1.0 s", "2.0 s"]
    assert rows[0][4:] == ["3.00 s", "3.00 s", "2.50 s", "extender"]
    assert rows[1][6] == "was ready"
    assert rows[2][4:6] == ["none was", "none was"]
    assert {len(row) for row in rows} == {len(aftermath.HEAD)}


@given(
    times=st.lists(st.integers(0, 100), max_size=20),
    struck=st.integers(0, 100),
    lasted=st.integers(0, 50),
)
def test_the_longest_gap_is_that_between_neighbours_up_to_the_first_when_all_is_well(
    times: list[int], struck: int, lasted: int
) -> None:
    bound, well = sorted(times), struck + lasted
    found = aftermath.longest_gap(np.array(bound, np.float64), struck, well)
    after = [at for at in bound if at > well]
    if not after:
        assert found is None
        return
    steps = [struck, *(at for at in bound if struck < at <= well), after[0]]
    assert found == max(b - a for a, b in itertools.pairwise(steps))


def test_the_page_for_users_tells_every_kind() -> None:
    text = (Path(__file__).parents[5] / "docs" / "loadtest.md").read_text(encoding="utf-8")
    for kind in Kind:
        assert f"| `{kind}` |" in text


def test_replicas_that_had_to_be_started_again_are_told_only_if_there_were_any() -> None:
    assert aftermath.notes(0) == []
    assert "started again: 3." in aftermath.notes(3)[0]


def test_a_counter_that_began_anew_with_its_process_goes_on_counting() -> None:
    cpu = np.array([1.0, 3.0, np.nan, 0.5, 2.5])
    every = np.ones(5, np.bool_)
    assert figures.increase(cpu, every) == 2.0 + 0.5 + 2.0
    assert figures.increase(cpu[:1], every[:1]) == 0.0
    assert figures.increase(cpu[2:3], every[:1]) == 0.0


def test_a_fault_is_a_mark_on_the_plot_where_it_struck_as_long_as_it_lasted() -> None:
    x, y = charts.Axis("seconds", 0.0, 100.0), charts.Axis("pods", 0.0, 1.0)
    drawn = charts.plot(x, y, [], marks=[charts.Mark("a < b", 25.0, 50.0)])
    svg = ET.fromstring(drawn[drawn.index("<svg") :])  # noqa: S314  our own
    (mark,) = svg.findall(".//g[@class='mark']")
    title, veil, stroke = mark
    assert title.text == "a < b at 25.0 s"
    whole = charts.WIDTH - 62 - 12  # between the margins
    assert float(veil.attrib["width"]) == pytest.approx(whole / 4, abs=0.1)
    assert stroke.attrib["x1"] == stroke.attrib["x2"] == veil.attrib["x"]
