"""How gangs are counted: some at a time, and for a part of the time alone."""

import time

from support.clusters.builders import apply, fleet, gang, gang_key, plan, state

from extender.planning.waitcauses import TO_BE_PLANNED
from extender.timeslice import Pace
from extender.watchover.census import GANGS_PER_STEP, PERIOD_S, RESTS, Census, rest_after
from muster.cluster.ids import GangKey


async def test_each_gang_is_counted_once_and_shown_however_many_there_are() -> None:
    """One of them is planned, the others wait."""
    names = [f"g{number}" for number in range(3 * GANGS_PER_STEP + 1)]
    cluster = state(fleet("rack r1: n1 n2"), *(gang(name, 1) for name in names))
    apply(cluster, plan("g0", {"g0-0": "n1"}))
    shown: list[GangKey] = []
    census = Census(
        cluster,
        lambda view: TO_BE_PLANNED if len(view.waiting) else None,
        [lambda view: shown.append(view.key)],
        lambda: None,
        Pace(time.monotonic),
    )

    await census.take()

    assert shown == [gang_key(name) for name in names]
    assert {phase: count for phase, count in census.gangs.items() if count} == {
        "Admitted": len(names) - 1,
        "Planned": 1,
    }
    assert (census.queue.gangs[TO_BE_PLANNED], census.queue.pods[TO_BE_PLANNED]) == (
        len(names) - 1,
        len(names) - 1,
    )
    assert census.holds["assumed"] == 1


def test_a_count_that_takes_long_is_made_more_seldom() -> None:
    assert rest_after(0.1) == PERIOD_S
    assert rest_after(10) == RESTS * 10
