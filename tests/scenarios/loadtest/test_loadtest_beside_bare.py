"""Muster and a bare kube-scheduler in turns, small: the sizes of a curve, and the whole command."""

import json
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.extenders.progress import but_progress
from support.machine.commandline import Refusal, muster_here

from loadtest.fourphase.report import curve
from loadtest.fourphase.site.turns import Load
from loadtest.testbed.client.observer import BindingObserver
from loadtest.testbed.client.pods import pod
from loadtest.testbed.controlplane.assets import DEFAULT_MINOR, Assets
from loadtest.testbed.controlplane.controlplane import API_SERVER, ControlPlane
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

ONE_PHASE = """
nodes: 20
classes:
  high: {priority: 9}
phases:
  - name: fits
    title: Everybody has room
    arrivals: [{class: high, pods: 16, gangs: {4: 1}, figure: ours}]
    remove: [high]
"""


@asynccontextmanager
async def broken() -> AsyncIterator[Plane]:
    """A control plane whose etcd ends at once."""
    false = Path("/bin/false")
    async with ControlPlane(assets=Assets(false, false, false, false)) as plane:
        yield plane


def silent(_words: str) -> None:
    """Tell nobody."""


def real() -> AbstractAsyncContextManager[Plane]:
    return curve.control_plane(DEFAULT_MINOR)


@pytest.mark.integration
async def test_a_side_that_takes_too_long_is_cut_and_measured_with_what_was_bound() -> None:
    """Five hosts take one gang of four and, on the bare side, one pod of the other."""
    load = Load(nodes=5, gangs=2, size=4, limit_s=5.0)
    told: list[curve.AtSize] = []
    await curve.measure([load], 1, real, silent, told.append)
    found = told[-1]
    assert found.failure == ""
    (played,) = found.rounds
    assert (played.bare.drain.pods, played.bare.flow.pods) == (5, 5)
    assert (played.muster.drain.pods, played.muster.flow.pods) == (4, 4)
    assert played.muster.findings == ()


@pytest.mark.integration
async def test_a_size_that_fails_leaves_the_others_and_its_own_rounds_before() -> None:
    """The first size has a broken etcd, the second loses its API server after one round."""
    dying: list[Plane] = []

    @asynccontextmanager
    async def mortal() -> AsyncIterator[Plane]:
        async with real() as plane:
            dying.append(plane)
            yield plane

    def say(words: str) -> None:
        if words == "round 2 of 2" and dying:
            dying.pop().kill(API_SERVER)

    opened = iter((broken, mortal, real))
    sizes = [Load(nodes, gangs=2, size=2) for nodes in (6, 8, 10)]
    told: dict[int, list[curve.AtSize]] = {load.nodes: [] for load in sizes}

    def keep(size: curve.AtSize) -> None:
        told[size.load.nodes].append(size)

    await curve.measure(sizes, 2, lambda: next(opened)(), say, keep)  # noqa: PLW0108  the next one each time
    found = [each[-1] for each in told.values()]
    assert [len(each.rounds) for each in found] == [0, 1, 2]
    assert "etcd ended before it was ready" in found[0].failure
    assert found[1].failure
    assert found[2].failure == ""
    assert [each.bare_first for each in found[2].rounds] == [True, False]
    # What is kept on the way, should a signal end it there.
    assert [len(each.rounds) for each in told[10]] == [1, 2, 2]
    assert [each.failure for each in told[10]] == ["broken off after round 1 of 2", "", ""]


async def test_the_observer_waits_no_longer_than_its_limit() -> None:
    async with (
        SimulatedPlane() as plane,
        plane.api("admin") as api,
        BindingObserver(api) as observer,
    ):
        made = pod("a")
        made["spec"]["nodeName"] = "host"
        await api.create("/api/v1/namespaces/default/pods", made)
        await observer.wait_for(1)
        assert len(await observer.wait_for(2, limit_s=0.2)) == 1


# --- the command ----------------------------------------------------------------------------


def loadtest(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return muster_here("loadtest", "--json", "--out", str(out), *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--beside-bare",), "needs --control-plane real"),
        (("--no-phases",), "--no-phases: belongs to --beside-bare"),
        (("--rounds", "2"), "--rounds: belongs to --beside-bare"),
        (("--beside-bare", "1k"), "'1k': numbers of nodes with commas between them"),
        (("--beside-bare", "--control-plane", "real", "--gang-size", "51"), "--gang-size 51"),
    ],
)
def test_a_wrong_wish_ends_with_a_sentence_before_anything_starts(
    tmp_path: Path, refusal: Refusal, arguments: tuple[str, ...], words: str
) -> None:
    out = ("--out", str(tmp_path / "out"))
    assert words in refusal("loadtest", "--nodes", "50", *arguments, *out)
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_the_curve_of_100_nodes_on_a_real_control_plane(tmp_path: Path) -> None:
    beside = "--beside-bare 40,100 --gang-size 8 --rounds 1 --no-phases"
    done = loadtest(tmp_path, "--nodes", "100", "--control-plane", "real", *beside.split())
    assert (done.returncode, but_progress(done.stderr)) == (0, "")
    report: dict[str, Any] = json.loads(done.stdout)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == report
    assert report["command"].endswith(beside)
    small, large = report["beside_bare"]["sizes"]
    assert (small["nodes"], small["gangs"], large["nodes"], large["gangs"]) == (40, 5, 100, 12)
    for size in (small, large):
        assert [each["first"] for each in size["rounds"]] == ["bare"]
        assert size["muster"]["pods_measured"] == size["bare"]["pods_measured"] == size["pods"]
        assert {"etcd", "kube-apiserver", "kube-scheduler"} <= set(size["bare"]["cpu_s_per_pod"])
        assert size["findings"] == []
    assert "<svg" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.integration
def test_phases_and_curve_stand_in_one_report(tmp_path: Path) -> None:
    file = tmp_path / "phases.yaml"
    file.write_text(ONE_PHASE, encoding="utf-8")
    beside = ("--beside-bare", "--gang-size", "5", "--rounds", "1")
    cluster = ("--nodes", "20", "--control-plane", "real", "--phases", str(file))
    done = loadtest(tmp_path, *cluster, *beside)
    assert (done.returncode, but_progress(done.stderr)) == (0, "")
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["verdict"]["good"]
    assert report["phases"][0]["arriving"]["bound"]["count"] == 16
    assert [size["nodes"] for size in report["beside_bare"]["sizes"]] == [20]
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "**Good:" in markdown
    assert "## Beside a bare kube-scheduler" in markdown
