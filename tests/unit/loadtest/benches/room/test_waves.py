"""The load of `muster bench waves`, and what it refuses."""

import pytest

from loadtest.benches.room.waves import WaveSettings, plan


def test_each_wave_fills_the_cluster_with_whole_gangs_five_seconds_after_the_one_before() -> None:
    load = plan(WaveSettings(nodes=40, size=5))
    waves = {priority: [g for g in load.gangs if g.priority == priority] for priority in PRIORITIES}
    assert [sum(gang.size for gang in wave) for wave in waves.values()] == [40, 40, 40]
    assert [{gang.at for gang in wave} for wave in waves.values()] == [{0.0}, {5.0}, {10.0}]
    assert [gang.index for gang in load.gangs] == list(range(24))


def test_the_waves_leave_the_last_one_first_so_that_the_others_come_back() -> None:
    load = plan(WaveSettings())
    assert [phase.spec.remove for phase in load.phases] == [("wave2",), ("wave1",), ("wave0",)]


@pytest.mark.parametrize(("nodes", "size"), [(10, 5), (40, 7), (40, 0)])
def test_gangs_that_do_not_fill_the_cluster_are_refused(nodes: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"--nodes {nodes} --size {size}: a wave fills all nodes"):
        WaveSettings(nodes, size)


PRIORITIES = (1, 1_000, 1_000_000)
