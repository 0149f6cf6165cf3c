"""What the report says of fleet and trace: counted from what the watch saw.

Three jobs on two hosts of 8 GPUs; the first was there before and is not counted in the waits.
"""

from typing import Any

import pytest

from loadtest.fourphase.driver.driver import PhaseLog
from loadtest.fourphase.load.pools import Ask
from loadtest.fourphase.load.replayreport import Replayed
from loadtest.fourphase.load.schedule import GangPlan, LoadPlan, PhasePlan
from loadtest.fourphase.load.spec import Phase, PriorityClass, Spec
from loadtest.fourphase.report import setting, topology
from loadtest.fourphase.site.columns import Samples
from loadtest.fourphase.site.gangowner import Book
from loadtest.fourphase.site.watches import Watching
from loadtest.testbed.client.pods import Gang, members
from loadtest.testbed.standins.reflector import Change
from loadtest.traces.fleet import Fleet, Host, nodes

FLEET = Fleet("two", (Host("h0", "z", "b", "r0"), Host("h1", "z", "b", "r1")), "drawn by hand")
PLAYED = Replayed("philly", "somewhere", 2, 1, 1, 0.7, 100.0, 2.0, 10.0, 3, 4)


def gang(index: int, size: int, gpus: int) -> GangPlan:
    ask = Ask(gpus, room=gpus)
    return GangPlan(index, f"g{index}", 0, "jobs", 1, size, 0.0, 0.0, 1.0, ask)


class World:
    """Gangs that are bound by hand at times of one's own."""

    def __init__(self) -> None:
        gangs = (gang(0, 1, 8), gang(1, 1, 1), gang(2, 2, 2))
        phase = Phase(name="philly", title="t")
        spec = Spec(nodes=2, classes={"jobs": PriorityClass(priority=1)}, phases=(phase,))
        phases = (PhasePlan(0, phase, gangs, 0, 0),)
        self.plan = LoadPlan(2, 0, 1.0, spec, phases, replayed=PLAYED)
        self.book, self.watching, self.time = Book(gangs, 16), Watching(FLEET), 0.0
        self.watching.now = lambda: self.time  # type: ignore[method-assign]
        for node in nodes(FLEET):
            self.watching.on_node(Change.PRESENT, node)

    def run(self, index: int, at: float, *bound: tuple[float, str]) -> None:
        """Create a gang's pods at a time, and bind each at a time to a host."""
        seen = self.watching.expect(self.book.submit(index))
        made = list(members(Gang(seen.name, seen.size, gpus=seen.ask.gpus)))
        for pod in made:
            self.time = at
            pod["metadata"]["uid"] = pod["metadata"]["name"]
            self.watching.on_pod(Change.PRESENT, pod)
        for pod, (when, host) in zip(made, bound, strict=True):
            self.time = when
            pod["spec"] = {**pod["spec"], "nodeName": host}
            self.watching.on_pod(Change.PRESENT, pod)

    def told(self) -> dict[str, Any]:
        samples = Samples()
        for at in range(21):
            samples.add({"at": at, "utilisation": 0.5 if at <= 10 else 1.0})
        log = PhaseLog(self.plan.phases[0], began=0.0, ended=20.0, stuck=["g9"])
        found = setting.of_trace(self.plan, self.watching, samples, [log])
        assert found is not None
        return found


@pytest.fixture
def world() -> World:
    made = World()
    made.run(0, 0.0, (9.0, "h0"))
    made.run(1, 1.0, (1.5, "h1"))
    made.run(2, 2.0, (2.5, "h1"), (6.0, "h1"))
    return made


def test_waits_are_those_of_the_jobs_that_arrive_in_both_times(world: World) -> None:
    told = world.told()
    assert told["started"] == {"jobs": 2, "gangs": 1}
    assert told["wait_s"]["jobs"] == {"p50": 0.5, "p90": 4.0, "p99": 4.0, "max": 4.0}
    assert told["wait_s"]["gangs"]["p50"] == 4.0
    assert told["wait_trace_s"]["gangs"]["p50"] == 400.0
    assert told["unplaced"] == ["g9"]
    assert (told["left_out_too_large"], told["rounded_up_to_whole_gpus"]) == (3, 4)


def test_gpus_in_use_are_counted_while_jobs_arrive_only(world: World) -> None:
    assert world.told()["utilisation"] == {"mean": 0.5, "max": 0.5}
    assert world.watching.used_gpus == 8 + 1 + 2 * 2


def test_a_rack_is_as_full_as_its_gpus_and_spread_knows_what_fits_on_a_host(world: World) -> None:
    found = topology.figures(world.watching, {"then": 9.5})
    assert [(rack["hosts"], rack["gpus"]) for rack in found["racks"]] == [(1, 8), (1, 8)]
    assert found["maps"][0]["used"] == [8, 5]
    # Two pods of two GPUs fit on one host: one rack is the fewest, not two.
    assert found["spread"] == [{"size": 2, "gangs": 1, "racks_mean": 1.0, "racks_fewest": 1.0}]


def test_fleet_and_trace_are_told_with_seed_and_source(world: World) -> None:
    report = {"fleet": setting.of_fleet("grid", FLEET, 7), "trace": world.told()}
    text = "\n".join(setting.lines(report))
    for words in (
        "Fleet grid, seed 7: 2 hosts, 16 GPUs; zones 1, blocks 1, racks 2. Source: drawn by hand.",
        "Trace philly, seed 0: 2 jobs, 1 of several pods",
        "Source: somewhere.",
        "not placed: 1",
        "3 jobs were left out",
        "4 tasks asked for a part of a GPU",
    ):
        assert words in text
    ((head, rows),) = setting.tables(report)  # hosts are all alike: no table of models
    assert head == setting.WAIT_HEAD
    assert len(rows) == 4
    assert len(list(setting.lines(report | {"trace": None}))) == 1


def test_without_a_trace_there_is_nothing_to_tell(world: World) -> None:
    plain = LoadPlan(2, 0, 1.0, world.plan.spec, world.plan.phases)
    assert setting.of_trace(plain, world.watching, Samples(), []) is None
