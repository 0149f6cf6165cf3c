"""What the watches bring, and the report made of it: three forms that say the same.

Twenty hosts in four blocks of five, one rack each::

    block-0 ├ z0-b0-r0  h0 … h4      block-2 ├ z0-b2-r0  h0 … h4
    block-1 ├ z0-b1-r0  h0 … h4      block-3 ├ z0-b3-r0  h0 … h4
"""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loadtest import fourphase
from loadtest.fourphase.driver.driver import PhaseLog
from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.report import charts, page, summary, topology
from loadtest.fourphase.report.outcome import Outcome, Settings
from loadtest.fourphase.report.verdict import Verdict
from loadtest.fourphase.run.run import prepare
from loadtest.fourphase.site import site
from loadtest.fourphase.site.columns import Samples
from loadtest.fourphase.site.gangowner import Book
from loadtest.fourphase.site.watches import Seen, Watching
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.pods import Gang, members
from loadtest.testbed.standins.reflector import Change
from loadtest.traces.fleet import nodes
from muster.kube import names

GOOD = Verdict((), (), (), (), pods=0, nodes=20)


class World:
    """A plan of 20 nodes, and a watch that is fed by hand at times of one's own."""

    def __init__(self) -> None:
        self.settings = Settings(nodes=20)
        self.plan = prepare(self.settings)
        self.book = Book(self.plan.gangs, 20)
        self.fleet = site.fleet(20)
        self.watching = Watching(self.fleet)
        self.time = 0.0
        self.watching.now = lambda: self.time  # type: ignore[method-assign]
        self.objects: dict[str, dict[str, Any]] = {}
        for node in nodes(self.fleet):
            self.watching.on_node(Change.PRESENT, node)

    def gang(self, index: int) -> Seen:
        """Create all pods of a gang."""
        seen = self.watching.expect(self.book.submit(index))
        made = members(Gang(seen.name, seen.size))
        for pod in made:
            pod["metadata"]["uid"] = pod["metadata"]["name"]
            self.tell(pod)
        return seen

    def tell(self, pod: dict[str, Any]) -> None:
        self.objects[pod["metadata"]["name"]] = pod
        self.watching.on_pod(Change.PRESENT, pod)

    def bind(self, name: str, host: int) -> None:
        pod = self.objects[name]
        pod["spec"] = {**pod["spec"], "nodeName": self.fleet.hosts[host].name}
        self.tell(pod)

    def phase(self, name: str, phase: str) -> None:
        self.objects[name]["status"] = {"phase": phase}
        self.tell(self.objects[name])

    def gone(self, name: str) -> None:
        self.watching.on_pod(Change.GONE, self.objects[name])

    def outcome(self, verdict: Verdict = GOOD) -> Outcome:
        log = PhaseLog(self.plan.phases[0], began=0.0, ended=10.0, arrived=9.0)
        log.withdrawn = [(4.0, 8)]
        samples = Samples()
        for at in range(11):
            cpu = {"cpu_s kube-apiserver": at / 2, "rss_mib kube-apiserver": 100.0 + at}
            gangs = {"gangs_whole": at, "gangs_waiting": 1, "gangs_outside": 0, "gangs_partial": 2}
            samples.add({"at": at, "utilisation": at / 10, **gangs, **cpu})
        return Outcome(
            settings=self.settings,
            command="muster loadtest --nodes 20 --control-plane simulated --seed 0",
            plan=self.plan,
            residents=0,
            watching=self.watching,
            samples=samples,
            logs=[log],
            verdict=verdict,
            seconds=10.0,
        )


@pytest.fixture
def world() -> World:
    return World()


# --- watching -------------------------------------------------------------------------------


def test_a_gang_is_whole_with_its_last_member(world: World) -> None:
    seen = world.gang(0)
    assert (seen.size, seen.present) == (2, 2)
    world.bind(f"{seen.name}-0", 0)
    assert not seen.whole
    assert world.watching.never_whole() == [seen.name]
    world.bind(f"{seen.name}-1", 1)
    assert seen.whole
    assert world.watching.never_whole() == []
    assert (world.watching.used, world.watching.bound, world.watching.created) == (2, 2, 2)


def test_a_finished_gang_counts_as_whole_and_uses_nothing(world: World) -> None:
    seen = world.gang(0)
    for rank in range(2):
        world.bind(f"{seen.name}-{rank}", rank)
        world.phase(f"{seen.name}-{rank}", "Succeeded")
        world.gone(f"{seen.name}-{rank}")
    assert seen.whole
    assert (world.watching.used, seen.present, seen.bound) == (0, 0, 0)


def test_a_pod_that_succeeded_without_a_node_frees_nothing(world: World) -> None:
    seen = world.gang(0)
    world.phase(f"{seen.name}-0", "Succeeded")
    world.gone(f"{seen.name}-0")
    assert (world.watching.used, seen.bound) == (0, 0)


def test_a_lost_member_leaves_a_gap_that_its_substitute_fills(world: World) -> None:
    seen = world.gang(0)
    for rank in range(2):
        world.bind(f"{seen.name}-{rank}", rank)
    lost = world.fleet.hosts[1].name
    assert world.watching.victims([lost]) == [(seen, f"{seen.name}-1")]
    world.watching.lose(seen, f"{seen.name}-1")
    assert not seen.whole  # from the moment it is lost, whenever the watch sees it go
    substitute = f"{seen.name}-1-x0"
    world.watching.expect_substitute(seen, substitute)
    world.gone(f"{seen.name}-1")
    assert not seen.whole
    pod = world.objects[f"{seen.name}-0"]
    world.tell({**pod, "metadata": {**pod["metadata"], "name": substitute, "uid": "x"}, "spec": {}})
    world.bind(substitute, 2)
    assert seen.whole
    assert world.watching.victims([world.fleet.hosts[2].name]) == [(seen, substitute)]
    assert seen.members()[-1] == substitute


def test_hosts_are_in_use_while_a_pod_on_them_is_not_done(world: World) -> None:
    seen, hosts = world.gang(0), world.fleet.hosts
    for rank in range(2):
        world.bind(f"{seen.name}-{rank}", rank)
    assert world.watching.in_use() == {hosts[0].name, hosts[1].name}
    assert world.watching.host_of(f"{seen.name}-1") == hosts[1].name
    world.phase(f"{seen.name}-1", "Succeeded")
    assert world.watching.in_use() == {hosts[0].name}
    world.gone(f"{seen.name}-0")
    assert world.watching.in_use() == set()


def test_the_same_event_twice_changes_nothing(world: World) -> None:
    seen = world.gang(0)
    world.bind(f"{seen.name}-0", 0)
    world.tell(world.objects[f"{seen.name}-0"])
    world.gone(f"{seen.name}-0")
    world.gone(f"{seen.name}-0")
    assert (world.watching.used, world.watching.bound, seen.present, seen.bound) == (0, 1, 1, 0)


def test_a_pod_seen_on_another_node_is_told(world: World) -> None:
    seen = world.gang(0)
    world.bind(f"{seen.name}-0", 0)
    world.bind(f"{seen.name}-0", 1)
    assert world.watching.bound_twice == [f"pod {seen.name}-0: bound to a second node at 0.0 s"]


def test_pods_that_nobody_expected_are_no_part_of_the_load(world: World) -> None:
    world.tell({"metadata": {"name": "resident-0000001", "namespace": "default", "uid": "r"}})
    assert world.watching.created == 0


# --- topology -------------------------------------------------------------------------------


def test_racks_and_spread_are_found_afterwards(world: World) -> None:
    seen = world.gang(0)
    world.time = 1.0
    world.bind(f"{seen.name}-0", 0)
    world.time = 2.0
    world.bind(f"{seen.name}-1", 7)
    world.time = 3.0
    world.gone(f"{seen.name}-0")
    found = topology.figures(world.watching, {"one": 1.5, "both": 2.5, "left": 3.5})
    assert [rack["rack"] for rack in found["racks"]] == [f"z0-b{b}-r0" for b in range(4)]
    assert [each["used"] for each in found["maps"]] == [
        [8, 0, 0, 0],
        [8, 8, 0, 0],
        [0, 8, 0, 0],
    ]
    assert found["spread"] == [{"size": 2, "gangs": 1, "racks_mean": 2.0, "racks_fewest": 1}]


def test_a_large_fleet_is_drawn_once_at_its_emptiest() -> None:
    maps: list[dict[str, Any]] = [{"used": [3, 1]}, {"used": [1, 1]}, {"used": [4, 4]}]
    assert page.worth_drawing(maps, 1000) == maps
    assert page.worth_drawing(maps, 1001) == [maps[1]]
    assert page.worth_drawing([], 5000) == []


# --- the report -----------------------------------------------------------------------------


def reported(world: World, verdict: Verdict = GOOD) -> dict[str, Any]:
    seen = world.gang(0)
    for rank in range(seen.size):
        world.time += 1.5
        world.bind(f"{seen.name}-{rank}", rank)
    return world.outcome(verdict).figures()


def test_the_report_tells_what_was_seen(world: World) -> None:
    report = reported(world)
    phase = report["phases"][0]
    assert phase["arriving"]["created"]["count"] == 2
    assert phase["create_to_bound_s"] == {
        "medium": {"p50": 1.5, "p90": 3.0, "p99": 3.0, "max": 3.0}
    }
    assert phase["gang_start_s"]["max"] == 3.0
    assert phase["gave_way"] == {"gangs": 1, "pods": 8, "per_second": 2.0}
    assert phase["cpu_s"] == {"kube-apiserver": 4.5}
    assert report["total"]["rss_mib"] == {"kube-apiserver": 110.0}
    assert phase["gangs_at_samples"]["most_between"] == 2
    assert json.loads(json.dumps(report)) == report


def test_the_summary_names_the_command_the_verdict_and_who_made_room(world: World) -> None:
    text = summary.markdown(reported(world))
    assert "    muster loadtest --nodes 20 --control-plane simulated --seed 0\n" in text
    assert "**Good: 2 pods bound" in text
    assert "the load generator withdrew whole gangs" in text
    assert "(secondary figure)" in text


def test_findings_come_first_and_the_verdict_is_not_good(world: World) -> None:
    bad = replace(
        GOOD, over_allocatable=("node a: cpu is given away twice",), unplaced_gangs=("g",)
    )
    report = reported(world, bad)
    text = summary.markdown(report)
    assert "**NOT good: 2 pods bound in 10.0 s; 2 findings.**" in text
    assert "- node a: cpu is given away twice\n- gang g: not placed\n" in text
    assert 'class="verdict bad"' in page.html(report)


@pytest.mark.parametrize(
    ("verdict", "words", "kind"),
    [
        (GOOD, "nothing wrong until then", "early"),
        (replace(GOOD, bound_twice=("pod a: twice",)), "NOT good: 1 findings", "bad"),
    ],
)
def test_a_run_that_was_ended_says_so_in_verdict_and_phase(
    world: World, verdict: Verdict, words: str, kind: str
) -> None:
    outcome = replace(world.outcome(verdict), early=True)
    outcome.logs[0].cut = True
    report = outcome.figures()
    text = summary.markdown(report)
    assert f"**Ended early: 0 pods bound in 10.0 s; {words}.**" in text
    assert re.search(r"\| ended early +\|", text)
    assert f'class="verdict {kind}"' in page.html(report)


@pytest.mark.parametrize(
    "field", ["over_allocatable", "partial_gangs", "bound_twice", "unplaced_gangs"]
)
def test_any_finding_spoils_the_verdict(field: str) -> None:
    assert GOOD.good
    assert not replace(GOOD, **{field: ("it",)}).good


def test_the_page_is_well_formed_and_needs_nothing_from_outside(
    world: World, tmp_path: Path
) -> None:
    fourphase.write(reported(world), tmp_path)
    text = (tmp_path / fourphase.PAGE_FILE).read_text(encoding="utf-8")
    body = text[text.index("<body>") : text.index("</html>")]
    drawn = ET.fromstring(body)  # noqa: S314  our own page
    assert len(drawn.findall(".//svg")) == 7
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
    assert json.loads((tmp_path / fourphase.JSON_FILE).read_text())["nodes"] == 20


def test_a_run_in_which_nothing_happened_still_has_a_report(world: World) -> None:
    samples = Samples()
    gangs = dict.fromkeys(("whole", "waiting", "outside", "partial"), 0.0)
    samples.add({"at": 0.0, "utilisation": 0.0, **{f"gangs_{k}": v for k, v in gangs.items()}})
    report = replace(world.outcome(), samples=samples, logs=[], seconds=0.0).figures()
    assert report["total"]["pods_bound"]["count"] == 0
    body = page.html(report).partition("<body>")[2].partition("</body>")[0]
    assert len(ET.fromstring(body).findall(".//svg")) == 6  # noqa: S314  our own page
    assert "0 pods bound" in summary.markdown(report)


def test_the_first_failure_of_many_tasks_is_the_one_that_is_told() -> None:
    refused = ApiFailed(403, "no")
    assert fourphase.first(refused) is refused
    assert fourphase.first(ExceptionGroup("g", [ExceptionGroup("h", [refused])])) is refused


# --- plots ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("width", "step"), [(0.7, 1.0), (1.0, 1.0), (1.2, 2.0), (30, 50.0), (0.04, 0.05), (0, 1.0)]
)
def test_steps_of_an_axis_are_round(width: float, step: float) -> None:
    assert charts.round_step(width) == pytest.approx(step)


def test_an_axis_ends_above_the_highest_value() -> None:
    assert charts.upto([1.0, None, 417.0]) == 500.0
    assert charts.upto([]) == 1.0


def test_a_logarithmic_axis_has_a_tick_for_each_decade() -> None:
    axis = charts.Axis("s", 0.01, 10.0, log=True)
    assert axis.ticks() == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert axis.place(0.1) == pytest.approx(1 / 3)
    assert axis.place(0.0) == 0.0


def test_a_gap_in_a_line_lifts_the_pen() -> None:
    line = charts.Line("a", [0, 1, 2, 3], [1.0, 2.0, None, 1.0])
    drawn = charts.plot(charts.Axis("x", 0, 3), charts.Axis("y", 0, 2), [line])
    path = re.search(r'd="([^"]+)"', drawn)
    assert path
    assert re.sub(r"[0-9. ]", "", path[1]) == "MLM"


def test_only_an_empty_rack_has_the_first_shade_and_only_a_full_one_the_last() -> None:
    shades = [charts.shade(charts.Cell("b", "r", 16, used)) for used in range(17)]
    assert shades == sorted(shades)
    assert [used for used, shade in enumerate(shades) if shade == 0] == [0]
    assert [used for used, shade in enumerate(shades) if shade == charts.SHADES - 1] == [16]


def test_names_are_escaped(world: World) -> None:
    report = reported(world)
    report["phases"][0]["title"] = "<b>&"
    assert "&lt;b&gt;&amp;" in page.html(report)


# --- what may stand on the nodes ------------------------------------------------------------


def test_resident_pods_are_what_a_full_cluster_lacks() -> None:
    assert site.resident_count(None, 200) == 0
    assert site.resident_count(1000, 200) == 800
    with pytest.raises(SpecError, match="--pods 100: 200 nodes full of load have 200 to 20200"):
        site.resident_count(100, 200)


def test_large_fleets_have_zones_and_blocks_of_about_512_hosts() -> None:
    hosts = site.fleet(130_000).hosts
    assert len(hosts) == 130_000
    assert len({host.zone for host in hosts}) == 4
    blocks = {host.block for host in hosts}
    assert 500 <= len(hosts) / len(blocks) <= 512


def test_gangs_carry_the_keys_that_muster_reads(world: World) -> None:
    world.gang(0)
    pod = next(iter(world.objects.values()))
    assert pod["metadata"]["annotations"][names.GANG_SIZE] == "2"
