"""Fleets and traces end to end on the simulated control plane, as `muster loadtest` starts them."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.machine.commandline import Refusal, muster_here

from loadtest.fourphase.driver import fleets
from loadtest.fourphase.run import replay

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def reported(out: Path, *arguments: str) -> dict[str, Any]:
    done = muster_here("loadtest", "--json", "--out", str(out), *arguments)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["verdict"]["good"]
    for phase in report["phases"]:
        assert phase["unplaced_gangs"] == []
        replaced = phase["replaced_pods"] if report["faults"] else 0  # of gangs that it brought
        assert phase["arriving"]["bound"]["count"] == phase["pods_arriving"] + replaced
    return report


@pytest.fixture
def data() -> str:
    for file in (fleets.LINGJUN, fleets.OPENB_MACHINES, replay.TRACES["philly"].file):
        if not (DATA / file).exists():
            pytest.skip(f"{file} is not in {DATA}")
    return str(DATA)


def test_all_phases_on_a_mixed_fleet_fill_every_pool_and_end_whole(tmp_path: Path) -> None:
    report = reported(tmp_path, "--nodes", "60", "--fleet", "mixed", "--seed", "1")
    assert report["command"].endswith("--fleet mixed --seed 1")
    fleet = report["fleet"]
    assert (fleet["hosts"], fleet["gpus"], fleet["nvlink_domains"]) == (60, 420, 1)
    assert report["phases"][0]["utilisation"]["max"] == 1.0
    first = report["topology"]["maps"][0]
    racks = report["topology"]["racks"]
    assert [rack["gpus"] for rack in racks] == first["used"]  # every rack of the fleet is full
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    for words in ("Fleet mixed, seed 1", "NVIDIA-GB200"):
        assert words in page
        assert words in text
    assert f"{racks[0]['rack']}: " in page


def test_all_phases_on_a_cut_lingjun(tmp_path: Path, data: str) -> None:
    report = reported(tmp_path, "--nodes", "40", "--fleet", "lingjun", "--data", data)
    racks = report["topology"]["racks"]
    assert sum(rack["hosts"] for rack in racks) == 40
    assert max(rack["hosts"] for rack in racks) <= 8
    assert report["fleet"]["blocks"] == 3


def test_all_phases_on_openb_with_residents_leave_hosts_without_gpus_idle(
    tmp_path: Path, data: str
) -> None:
    wanted = ("--nodes", "60", "--pods", "600", "--fleet", "openb", "--data", data)
    report = reported(tmp_path, *wanted)
    idle = [each["hosts"] for each in report["fleet"]["models"] if not each["gpus_per_host"]]
    assert report["phases"][0]["pods_arriving"] == 60 - sum(idle)
    assert report["phases"][0]["utilisation"]["max"] == 1.0


def test_a_philly_trace_starts_every_gang_on_a_lingjun_fleet(tmp_path: Path, data: str) -> None:
    asked = ("--trace", "philly", "--jobs", "60", "--speed", "2000", "--data", data)
    report = reported(tmp_path, "--nodes", "40", "--fleet", "lingjun", *asked)
    trace = report["trace"]
    assert trace["started"]["jobs"] == trace["jobs"] == 60 - trace["left_out_too_large"]
    assert trace["started"]["gangs"] == trace["gangs"]
    assert trace["wait_trace_s"]["jobs"]["max"] == pytest.approx(
        2000 * trace["wait_s"]["jobs"]["max"], rel=1e-2
    )
    assert 0.0 < trace["utilisation"]["mean"] <= trace["utilisation"]["max"] <= 1.0
    assert trace["unplaced"] == []
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Trace philly, seed 0: 60 jobs" in text


@pytest.mark.parametrize("speed", ["2000", "20000"])  # jobs end before who was lost is replaced
def test_a_trace_goes_on_through_faults(tmp_path: Path, data: str, speed: str) -> None:
    asked = ("--trace", "philly", "--jobs", "60", "--speed", speed, "--data", data)
    chaos = ("--chaos", "kill-extender@philly:0.2,node-failures@philly:0.4,conflicts")
    report = reported(tmp_path, "--nodes", "40", *asked, *chaos)
    assert (
        "--chaos kill-extender@philly:0.2,node-failures@philly:0.4,conflicts" in report["command"]
    )
    assert {fault["kind"] for fault in report["faults"]} == {
        "kill-extender", "node-failures", "conflicts",
    }  # fmt: skip
    trace = report["trace"]
    assert trace["started"]["jobs"] == trace["jobs"]


def test_an_openb_trace_runs_on_the_machines_it_ran_on(tmp_path: Path, data: str) -> None:
    asked = ("--trace", "openb", "--jobs", "80", "--speed", "60", "--load", "0.9")
    report = reported(tmp_path, "--nodes", "60", "--fleet", "openb", *asked, "--data", data)
    trace = report["trace"]
    assert (trace["gangs"], trace["load"]) == (0, 0.9)
    assert trace["started"]["jobs"] == trace["jobs"]
    assert trace["rounded_up_to_whole_gpus"] > 0
    models = Counter(each["gpus_per_host"] for each in report["fleet"]["models"])
    assert len(models) > 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--fleet", "lingjun", "--data", "nowhere"), "--fleet lingjun: nowhere/"),
        (("--fleet", "openb", "--data", "nowhere"), "--fleet openb: nowhere/"),
        (("--trace", "philly", "--data", "nowhere"), "--trace philly: nowhere/"),
        (("--speed", "9"), "--speed: belongs to --trace"),
        (("--trace", "openb", "--phases", "x.yaml"), "--phases and --trace openb: give one"),
    ],
)
def test_what_is_absent_or_contradicts_is_told_in_a_sentence(
    tmp_path: Path, refusal: Refusal, arguments: tuple[str, ...], words: str
) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert words in refusal("loadtest", "--nodes", "60", *arguments, *out)
    assert not (tmp_path / "out").exists()
