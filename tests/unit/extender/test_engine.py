"""The clock that deadlines are compared with, and who hears of effects."""

from dataclasses import dataclass

from support.clusters.planners import Bench

from extender.engine import SteadyClock
from muster.cluster.effects import CapacityFreed, Effect, GangChanged


@dataclass
class Machine:
    """A machine whose wall clock can be set; its monotonic clock cannot."""

    wall: float = 1_000_000.0
    up: float = 500.0

    def runs(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds


def test_setting_the_wall_clock_moves_no_deadline() -> None:
    machine = Machine()
    clock = SteadyClock(lambda: machine.wall, lambda: machine.up)
    assert clock() == 1_000_000.0
    machine.runs(10.0)
    machine.wall -= 7_200.0
    assert clock() == 1_000_010.0
    machine.wall += 14_400.0
    machine.runs(5.0)
    assert clock() == 1_000_015.0


async def test_a_gang_left_alone_for_a_second_does_not_wait_for_a_clock_set_back() -> None:
    machine = Machine()
    bench = Bench()
    bench.engine.clock = SteadyClock(lambda: machine.wall, lambda: machine.up)
    bench.node("n1")
    key = bench.gang("train", 1)
    bench.worklist.defer(key, 1.0)
    await bench.planner.settle()
    assert not bench.released
    machine.wall -= 7_200.0
    machine.runs(2.0)
    await bench.planner.settle()
    assert bench.is_released(key)


def test_a_listener_hears_of_the_kinds_that_it_named_or_of_all() -> None:
    bench = Bench()
    gangs: list[Effect] = []
    room: list[Effect] = []
    everything: list[Effect] = []
    bench.engine.listen(gangs.append, GangChanged)
    bench.engine.listen(room.append, CapacityFreed)
    bench.engine.listen(everything.append)
    bench.node("n1")
    key = bench.gang("train", 1)
    assert room == [CapacityFreed()]
    assert gangs
    assert set(gangs) == {GangChanged(key)}
    assert everything == room + gangs
