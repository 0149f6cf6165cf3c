"""Gangs that name no queue are given room of lower priorities, several at the same time.

::

    n0 n1 n2 n3     8 GPUs each, full of gangs low0 … low3 of priority 1 that run for ever
    high0, high1    one node each, priority 5

Victims leave when the test has them leave.
"""

import pytest
from support.clusters.backfillsites import NOW
from support.clusters.roomsite import RoomSite
from support.machine.cyclicgarbage import only_cycles

from extender.planning.promises.promisetries import MOST_TRIED
from muster.cluster.ids import GangKey


async def _full(racks: int = 1) -> tuple[RoomSite, list[GangKey]]:
    """The clock goes on while the planner looks, as a real one does."""
    site = RoomSite(4, racks=racks, without_queues=True)
    site.lapse = 1e-6
    low = [site.gang(f"low{number}", 1, priority=1) for number in range(4)]
    await site.settle()
    assert all(site.runs(*low))
    return site, low


async def test_a_further_gang_is_given_room_while_others_leave_for_the_first() -> None:
    site, low = await _full()
    high = [site.gang(f"high{n}", 1, at=1.0 + n, priority=5) for n in range(3)]

    await site.settle(NOW + 5)

    assert [order.preemptor for order in site.orders.taken] == high
    assert len(site.orders.leaving) == 3
    assert {promise.gang for promise in site.planner.promises} == set(high)
    thief = site.gang("thief", 1, at=0.5, priority=5)
    for victim in list(site.orders.leaving):
        site.leave(victim)
    await site.settle(NOW + 6)
    assert all(site.runs(*high))
    assert site.runs(thief) == [False], "the room was freed for others"
    assert sum(site.runs(*low)) == 1


async def test_a_further_gang_leaves_the_first_one_its_room() -> None:
    """big gets n0 to n2. small gets n3, and not one of those once they are free."""
    site, low = await _full()
    big = site.gang("big", 3, at=1.0, priority=5)
    small = site.gang("small", 1, at=2.0, priority=5)
    await site.settle(NOW + 5)
    wanted = {order.preemptor: [one.gang for one in order.victims] for order in site.orders.taken}
    assert sorted(wanted[big] + wanted[small]) == low

    for victim in wanted[big]:
        site.leave(victim)
        await site.settle(site.now + 1)

    assert site.runs(big, small) == [True, False]
    site.leave(*wanted[small])
    await site.settle(site.now + 1)
    assert site.runs(big, small) == [True, True]


async def test_room_that_a_higher_priority_needs_goes_to_it_and_the_others_wait_on() -> None:
    """Four gangs wait, then one of priority 9 comes for the whole cluster."""
    site, low = await _full()
    high = [site.gang(f"high{n}", 1, at=1.0 + n, priority=5) for n in range(2)]
    await site.settle(NOW + 5)
    whole = site.gang("whole", 4, at=3.0, priority=9)
    await site.settle(NOW + 6)
    for _ in range(10):
        for victim in list(site.orders.leaving):
            site.leave(victim)
        await site.settle(site.now + 30)
    assert site.runs(whole, *high) == [True, False, False]
    assert not any(site.runs(*low))


@pytest.mark.parametrize("waiting", [1, 6])
async def test_a_gang_behind_others_that_get_nothing_has_its_turn_though_no_event_comes(
    waiting: int,
) -> None:
    """top (9) runs on one node for ever, so none of the big gangs can have four; small ones can.

    Room is freed elsewhere in between, and everybody is looked at too early.
    """
    site = RoomSite(4, without_queues=True)
    site.lapse = 1e-6
    top = site.gang("top", 1, priority=9)
    low = [site.gang(f"low{number}", 1, priority=1) for number in range(3)]
    await site.settle()
    assert all(site.runs(top, *low))
    for number in range(MOST_TRIED):
        site.gang(f"big{number}", 4, at=1.0 + number, priority=5)
    await site.settle(NOW + 1)
    small = [
        site.gang(f"small{number}", 1, at=10.0 + number, priority=5) for number in range(waiting)
    ]
    for after in (2, 3, 5, 8):
        site.worklist.freed()
        await site.settle(NOW + after)
    assert not site.orders.taken

    for after in range(10, 200, 5):
        for victim in list(site.orders.leaving):
            site.leave(victim)
        await site.settle(NOW + after)

    assert sum(site.runs(*small)) == min(waiting, 3)


async def test_each_gang_keeps_the_room_that_was_made_for_it_however_late_the_others_leave() -> (
    None
):
    """wide leaves two nodes for one gang. Promises of the other gangs are on neither of them."""
    site = RoomSite(4, without_queues=True)
    site.lapse = 1e-6
    low = [site.gang(f"low{number}", 1, priority=1) for number in range(2)]
    wide = site.gang("wide", 2, priority=1, at=5.0)
    await site.settle()
    assert all(site.runs(*low, wide))
    high = [site.gang(f"high{number}", 1, at=10.0 + number, priority=5) for number in range(3)]
    await site.settle(NOW + 20)
    nodes = {key: {str(node) for node in _nodes(site, key)} for key in (*low, wide)}
    left = {
        o.preemptor: set().union(*(nodes[v.gang] for v in o.victims)) for o in site.orders.taken
    }
    assert set(left) == set(high)

    for after in range(25, 120, 5):
        await site.settle(NOW + after)
        for key in high:
            assert set(site.promise_of(key).nodes) <= left[key]


async def test_room_that_was_made_for_a_gang_is_not_for_members_above_anothers_minimum() -> None:
    """One of two members of rich (9) runs, the other waits, beside small (5) for the last node."""
    site = RoomSite(2, without_queues=True)
    site.lapse = 1e-6
    low = site.gang("low", 1, priority=1)
    await site.settle()
    rich = site.gang("rich", 2, at=1.0, priority=9, min_count=1)
    await site.settle(NOW + 1)
    assert len(site.view(rich).bound) == 1
    small = site.gang("small", 1, at=2.0, priority=5)
    await site.settle(NOW + 5)
    assert [order.preemptor for order in site.orders.taken] == [small]

    site.leave(low)
    await site.settle(NOW + 6)

    assert site.runs(small) == [True]
    assert len(site.view(rich).bound) == 1


def _nodes(site: RoomSite, key: GangKey) -> list[str]:
    snapshot = site.state.snapshot()
    return [snapshot.nodes.name(int(snapshot.pods.node[row])) for row in site.view(key).bound]


async def test_nothing_of_the_cluster_is_left_to_the_cycle_collector() -> None:
    """It does not see what the extender has frozen since: megabytes of each plan would stay."""
    site, _ = await _full()
    for number in range(3):
        site.gang(f"high{number}", 1, at=1.0 + number, priority=5)
    with only_cycles() as left:
        await site.settle(NOW + 5)
        site.leave(next(iter(site.orders.leaving)))
        await site.settle(NOW + 6)
    assert len(site.orders.taken) == 3
    assert not [kind for kind in left if kind.__module__.startswith("muster.cluster")]
