"""A load test that a signal ends in the middle: it tells what it has, and leaves nothing behind.

::

    40 hosts:  30 pods come ─► all whole, held for minutes ─► signal ─► verdict, report, 128 + n
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.extenders.progress import but_progress

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

HELD = """
nodes: 40
patience: 60
classes:
  high: {priority: 9}
phases:
  - name: stays
    title: Everybody has room, for long
    hold: 200
    arrivals: [{class: high, pods: 30, gangs: {10: 1}, figure: ours}]
  - name: never
    title: Nobody gets as far
    arrivals: [{class: high, pods: 10, gangs: {10: 1}, figure: ours}]
"""


def children_of(pid: int) -> list[str]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for file in files for child in file.read_text().split()]


def test_a_signal_in_a_phase_ends_the_run_with_a_report_of_what_was_done(tmp_path: Path) -> None:
    file = tmp_path / "phases.yaml"
    file.write_text(HELD, encoding="utf-8")
    words = ["loadtest", "--nodes", "40", "--phases", str(file), "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "muster.cli.main", *words]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if "30 pods bound" in line:  # said after half a minute
                break
        children = children_of(run.pid)
        run.send_signal(signal.SIGTERM)
        told, complaints = run.communicate()
    assert run.returncode == 128 + signal.SIGTERM
    logs = tmp_path / "out" / "report-logs"
    assert but_progress(complaints) == (
        "muster loadtest: SIGTERM: ending with what there is; "
        "once more ends without a report\n"
        f"muster loadtest: logs of all programs: {logs}\n"
    )
    assert "**Ended early: 30 pods bound in " in told
    assert "; nothing wrong until then.**" in told
    report = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert report["ended_early"]
    assert report["verdict"]["good"]
    (phase,) = report["phases"]
    assert phase["name"] == "stays"
    assert phase["ended_early"]
    assert phase["arriving"]["bound"]["count"] == 30
    assert len(children) >= 4
    assert not [child for child in children if Path(f"/proc/{child}").exists()]


def test_a_signal_before_the_load_ends_without_a_report(tmp_path: Path) -> None:
    words = ["loadtest", "--nodes", "40", "--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-m", "muster.cli.main", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    ) as run:  # fmt: skip
        assert run.stderr is not None
        assert "starting simulated API server" in run.stderr.readline()
        run.send_signal(signal.SIGINT)
        told, complaints = run.communicate()
    assert run.returncode == 128 + signal.SIGINT
    assert told == ""
    assert "muster loadtest: SIGINT: ending with what there is" in complaints
    assert "muster loadtest: there is nothing to report yet\n" in complaints
    assert not (tmp_path / "out" / "report.json").exists()
