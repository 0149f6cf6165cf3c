"""The demonstration from end to end, as `make demo` starts it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.machine.commandline import Refusal, muster

from loadtest.testbed.controlplane.assets import Minor

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data"
TOPOLOGY, TRACE = DATA / "lingjun_topo" / "topo.csv", DATA / "philly" / "philly.csv"
needs_data = pytest.mark.skipif(not TOPOLOGY.exists(), reason="the published data is not here")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def demo(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return muster("demo", *arguments, **environment)


def figures(*arguments: str) -> dict[str, Any]:
    done = demo("--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def assert_sound(found: dict[str, Any]) -> None:
    assert found["partial_gangs"] == 0
    assert found["double_allocations"] == 0
    assert found["findings"] == []
    assert found["gangs_placed"] > 0
    assert found["gangs_within_required_domain"] == found["gangs_placed"]
    assert found["gangs_submitted"] == found["gangs_placed"] + found["gangs_pending"]
    assert found["pods_per_second"] > 0
    assert 0 <= found["gang_wait_p50_s"] <= found["gang_wait_p95_s"]


def test_jobs_on_a_small_fleet_are_placed_whole() -> None:
    found = figures("--hosts", "60", "--jobs", "60", "--seed", "1")
    assert_sound(found)
    assert (found["hosts"], found["control_plane"]) == (60, "simulated")


def test_the_report_without_colour_draws_gangs_as_letters() -> None:
    done = demo("--hosts", "40", "--jobs", "15", NO_COLOR="1")
    assert done.returncode == 0, done.stderr
    assert "agg-3" in done.stdout
    assert "\x1b[" not in done.stdout
    assert "partial gangs      0" in done.stdout


def test_a_wrong_argument_ends_with_a_sentence_and_no_traceback(refusal: Refusal) -> None:
    assert refusal("demo", "--hosts", "2").strip() == (
        "muster demo: hosts: 2 is too few for three groups of leaves: give at least 10"
    )


@needs_data
def test_the_real_topology_and_the_real_trace() -> None:
    found = figures("--topology", str(TOPOLOGY), "--trace", str(TRACE), "--jobs", "150")
    assert_sound(found)
    assert found["hosts"] == 847


@pytest.mark.integration
def test_the_real_control_plane(minor: Minor) -> None:
    plane = ("--control-plane", "real", "--kubernetes", minor)
    found = figures(*plane, "--hosts", "100", "--jobs", "80")
    assert_sound(found)
    assert (found["control_plane"], found["kubernetes"]) == ("real", minor)
