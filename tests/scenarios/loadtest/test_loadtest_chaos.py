"""The load test under faults, small, judged by its own verdict: every gang whole, nothing doubled.

::

    phase one: 60 low pods come for 1.5 s      phase two: 30 high pods, for which low gives way
               └── half bound: a fault                    └── and another
"""

import json
from pathlib import Path
from typing import Any

import pytest
from support.extenders.progress import but_progress, ends_of_logs
from support.machine.commandline import Refusal, muster_here

from loadtest.testbed.controlplane.assets import Minor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PHASES = """
nodes: 60
patience: 30
classes:
  low: {priority: 1}
  high: {priority: 9}
phases:
  - name: one
    title: Low priority fills the cluster
    arrivals: [{class: low, pods: 60, gangs: GANGS, perSecond: 40, figure: ours}]
    chaos: CHAOS
  - name: two
    title: High priority makes it give way
    arrivals: [{class: high, pods: 30, gangs: {6: 1, 3: 1}, perSecond: 20, figure: ours}]
    remove: [high]
"""


def words(
    folder: Path, *arguments: str, chaos: str = "[]", gangs: str = "{6: 1, 4: 1}"
) -> list[str]:
    """Return the command's arguments."""
    file = folder / "phases.yaml"
    file.write_text(PHASES.replace("CHAOS", chaos).replace("GANGS", gangs), encoding="utf-8")
    load = ("--nodes", "60", "--phases", str(file), "--out", str(folder / "out"))
    return ["loadtest", *load, "--json", *arguments]


def survived(folder: Path, *arguments: str, **shape: str) -> dict[str, dict[str, Any]]:
    """Run, expect a good verdict; return what is told of each fault, by kind and phase."""
    done = muster_here(*words(folder, *arguments, **shape))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    report = json.loads(done.stdout)
    waited = {phase["name"]: phase["unplaced_gangs"] for phase in report["phases"]}
    assert not any(waited.values()), f"{waited}\n{report['faults']}\n{ends_of_logs(folder / 'out')}"
    assert but_progress(done.stderr) == ""
    assert report["verdict"]["good"]
    phases = {phase["name"]: phase for phase in report["phases"]}
    for fault in report["faults"]:
        phase = phases[fault["phase"]]
        assert phase["began"] <= fault["struck_s"] <= fault["over_s"] <= phase["ended"]
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count('<g class="mark">') == 3 * len(report["faults"])  # plots over time
    text = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert all(f"| {fault['kind']}" in text for fault in report["faults"])
    return {f"{fault['kind']}@{fault['phase']}": fault for fault in report["faults"]}


def assert_planning_went_on(fault: dict[str, Any]) -> None:
    assert fault["longest_gap_s"] >= fault["next_bound_after_s"] > 0
    assert fault["ready_again_after_s"] > 0


def test_a_killed_extender_finds_its_place_again_and_lost_nodes_tear_no_gang(
    tmp_path: Path,
) -> None:
    found = survived(tmp_path, "--chaos", "kill-extender@one,node-failures@two")
    assert set(found) == {"kill-extender@one", "node-failures@two"}
    assert_planning_went_on(found["kill-extender@one"])
    lost = found["node-failures@two"]
    assert lost["over_s"] - lost["struck_s"] >= 5.0
    assert lost["told"].startswith("z0-")


def test_a_change_of_leaders_between_slow_answers_conflicts_and_cut_watches(
    tmp_path: Path,
) -> None:
    chaos = "[{kind: leader-change}, {kind: slow-responses}, {kind: watch-drops, at: 0.1}]"
    # Pods on their own are released by a PATCH each, which answers can be slow to.
    found = survived(tmp_path, "--chaos", "conflicts", chaos=chaos, gangs="{6: 1, 1: 6}")
    assert set(found) == {
        "leader-change@one", "slow-responses@one", "watch-drops@one", "conflicts@one",
        "conflicts@two",
    }  # fmt: skip
    before, after = found["leader-change@one"]["told"].split(" to ")
    assert before != after
    assert not found["slow-responses@one"]["told"].startswith("0 ")
    assert found["watch-drops@one"]["told"] != "0 times"


def test_a_storm_of_410s_while_the_clock_jumps(tmp_path: Path) -> None:
    found = survived(tmp_path, "--chaos", "gone-storm@one,clock-step@one,clock-step@two:1")
    assert set(found) == {"gone-storm@one", "clock-step@one", "clock-step@two"}
    times = int(found["gone-storm@one"]["told"].removesuffix(" times"))
    assert 2 <= times <= 4, "once a second for three seconds; a busy machine sleeps longer"


@pytest.mark.parametrize(
    ("chaos", "message"),
    [
        ("restart-api-server@two", "phase two: restart-api-server: the simulated API"),
        ("flood", "--chaos flood: 'flood' is no fault"),
    ],
)
def test_a_fault_that_cannot_be_made_is_refused_before_anything_starts(
    tmp_path: Path, refusal: Refusal, chaos: str, message: str
) -> None:
    assert message in refusal(*words(tmp_path, "--chaos", chaos))
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_a_killed_extender_and_a_killed_api_server_on_a_real_control_plane(
    tmp_path: Path, minor: Minor
) -> None:
    plane = ("--control-plane", "real", "--kubernetes", minor)
    found = survived(tmp_path, *plane, "--chaos", "kill-extender@two,restart-api-server@one")
    assert_planning_went_on(found["kill-extender@two"])
    assert found["restart-api-server@one"]["next_bound_after_s"] is not None


@pytest.mark.integration
def test_faults_between_muster_and_a_real_api_server(tmp_path: Path, minor: Minor) -> None:
    # The list of so many nodes has more than the 128 KiB from which on an API server packs answers.
    plane = ("--control-plane", "real", "--kubernetes", minor, "--nodes", "240")
    chaos = "[{kind: gone-storm}, {kind: slow-responses}, {kind: conflicts}]"
    found = survived(tmp_path, *plane, "--chaos", "watch-drops@two", chaos=chaos)
    assert len(found) == 4
