"""The load test in which Muster has lower priorities give way, small, judged by its own verdict.

::

    60 nodes    one: 60 low pods fill them      two: 30 high pods, for which low gives way
"""

import json
from pathlib import Path

import pytest
from support.machine.commandline import muster_here

pytestmark = [pytest.mark.slow, pytest.mark.timeout(360)]

PHASES = """
nodes: 60
patience: 30
classes:
  low: {priority: 1}
  high: {priority: 9}
phases:
  - name: one
    title: Low priority fills the cluster
    arrivals: [{class: low, pods: 60, gangs: {6: 1, 4: 1}, perSecond: 40, figure: ours}]
  - name: two
    title: High priority makes it give way
    arrivals: [{class: high, pods: 30, gangs: {6: 1, 3: 1}, perSecond: 20, figure: ours}]
    remove: [high]
  - name: three
    title: Who gave way comes back
    remove: [low]
"""


@pytest.mark.parametrize("gated", [False, True])
def test_low_priority_gives_way_by_musters_decision_whole_and_comes_back(
    tmp_path: Path, *, gated: bool
) -> None:
    file, out = tmp_path / "phases.yaml", tmp_path / "out"
    file.write_text(PHASES, encoding="utf-8")
    words = ["--nodes", "60", "--phases", str(file), "--out", str(out), "--making-room", "--json"]
    words += ["--gated", "--beside-withdrawal"] if gated else []
    done = muster_here("loadtest", *words)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    report = json.loads(done.stdout)
    assert report["making_room"] is True
    assert "by Muster's decision" in report["notes"][0]
    one, two, _ = report["phases"]
    assert two["unplaced_gangs"] == one["unplaced_gangs"] == []
    assert one["gave_way"]["gangs"] == 0
    assert 30 <= two["gave_way"]["pods"] <= 45, "what the high class needs, in whole gangs"
    assert two["returned"]["pods"] == two["gave_way"]["pods"]
    assert "--making-room" in report["command"]
    assert ("--gated" in report["command"]) == report["gated"] == gated
    if gated:
        beside = report["beside_withdrawal"]
        assert beside["verdict"]["good"]
        assert [phase["name"] for phase in beside["phases"]] == ["one", "two", "three"]
        there = beside["phases"][1]
        assert there["placed_after_s"] == two["placed_after_s"]
        assert 30 <= there["withdrawn"]["pods"] <= 45, "the generator withdraws as much"
        assert "## Beside withdrawal" in (out / "report.md").read_text(encoding="utf-8")
    every = report["pods_gated"] == report["total"]["pods_created"]["count"]
    assert every == gated, "without reservations every pod waits at its gate"
