"""The load test from end to end, small, as `muster loadtest` starts it."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.extenders.progress import but_progress
from support.machine.commandline import Refusal, muster_here

from loadtest.testbed.controlplane.assets import Minor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

TOO_MUCH = """
nodes: 40
patience: 3
classes:
  low: {priority: 1}
  high: {priority: 9}
phases:
  - name: fits
    title: Everybody has room
    arrivals: [{class: high, pods: 30, gangs: {10: 1}, figure: ours}]
  - name: does-not
    title: Equal classes never give way
    arrivals: [{class: high, pods: 30, gangs: {10: 1}, figure: ours}]
"""


def reported(out: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = muster_here("loadtest", "--json", "--out", str(out), *arguments)
    assert done.returncode == code, done.stdout[-2000:] + done.stderr
    told = f"muster loadtest: logs of all programs: {out / 'report-logs'}\n"
    assert but_progress(done.stderr) == (told if code else "")
    report: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((out / "report.json").read_text(encoding="utf-8")) == report
    return report


def assert_sound(report: dict[str, Any]) -> None:
    assert report["verdict"]["good"]
    phases = {phase["name"]: phase for phase in report["phases"]}
    for phase in phases.values():
        arriving = phase["arriving"]
        assert arriving["created"]["count"] == phase["pods_arriving"]
        assert arriving["bound"]["count"] == phase["pods_arriving"]
        assert phase["unplaced_gangs"] == []
    for process in ("kube-apiserver", "kube-scheduler", "extender", "webhook"):
        assert report["total"]["cpu_s"][process] > 0
        assert report["total"]["rss_mib"][process] > 10
    assert phases["start-up"]["utilisation"]["max"] == 1.0
    # 39,000 of 130,000 at full size; whole gangs make it a little more.
    assert phases["training"]["gave_way"]["pods"] >= round(0.3 * report["nodes"])
    assert phases["inference"]["gave_way"]["pods"] >= round(0.4 * report["nodes"])
    assert phases["inference"]["returned"]["pods"] > 0
    assert phases["churn"]["failed_nodes"] == round(0.01 * report["nodes"])
    assert phases["churn"]["drained_nodes"] == round(0.02 * report["nodes"])
    assert phases["churn"]["finished_gangs"] > 0
    assert phases["churn"]["left_drained_nodes"]["pods"] > 0


def test_all_phases_on_200_nodes_end_with_every_gang_whole(tmp_path: Path) -> None:
    report = reported(tmp_path, "--nodes", "200", "--seed", "1")
    assert_sound(report)
    assert report["command"] == "muster loadtest --nodes 200 --control-plane simulated --seed 1"
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "**Good:" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_gangs_that_find_no_room_are_told_and_end_with_code_1(tmp_path: Path) -> None:
    file = tmp_path / "phases.yaml"
    file.write_text(TOO_MUCH, encoding="utf-8")
    report = reported(tmp_path, "--nodes", "40", "--phases", str(file), code=1)
    verdict = report["verdict"]
    assert not verdict["good"]
    assert verdict["unplaced_gangs"]
    assert verdict["partial_gangs"] == []
    assert verdict["over_allocatable"] == []
    last = report["phases"][-1]
    assert set(verdict["unplaced_gangs"]) == set(last["unplaced_gangs"])
    assert last["gave_way"]["pods"] == 0
    (why,) = (note for note in report["notes"] if "gave" in note and "up when" in note)
    assert f"gang {last['unplaced_gangs'][0]}: 0 of " in why
    assert "waits at the gate " in why
    logs = {file.stem for file in (tmp_path / "report-logs").iterdir()}
    assert logs == {"extender", "kube-apiserver", "kube-scheduler", "webhook"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nodes", "3"), "muster loadtest: --nodes 3: too few"),
        (("--nodes", "50", "--pods", "9"), "muster loadtest: --pods 9: 50 nodes full of load"),
        (
            ("--nodes", "50", "--kubelets", "kwok"),
            "--kubelets kwok: only with --control-plane real",
        ),
        (("--nodes", "50", "--phases", "none.yaml"), "none.yaml: cannot be read"),
    ],
)
def test_a_wrong_argument_ends_with_a_sentence_before_anything_starts(
    tmp_path: Path, refusal: Refusal, arguments: tuple[str, ...], words: str
) -> None:
    assert words in refusal("loadtest", *arguments, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_all_phases_on_a_real_control_plane(tmp_path: Path, minor: Minor) -> None:
    plane = ("--control-plane", "real", "--kubernetes", minor)
    report = reported(tmp_path, *plane, "--nodes", "100", "--pods", "300")
    assert_sound(report)
    assert (report["kubernetes"], report["resident_pods"]) == (minor, 200)
    assert {"etcd", "kwok"} <= report["total"]["cpu_s"].keys()
    assert any(note.startswith("kwok") for note in report["notes"])
