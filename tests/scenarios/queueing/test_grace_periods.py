"""Gangs whose pods may take long to end: who waits for their room is promised when it is free.

::

    n0 n1 n2 n3     8 GPUs each
    a               entitled 16: runs "old" and "new", two nodes each, and borrows 16 by that
    b               entitled 16: "owner" wants two nodes

Pods of "new" may take ten minutes to end: they write a checkpoint.
"""

import pytest
from support.clusters.backfillsites import NOW
from support.clusters.roomsite import RoomSite

from muster.cluster.ids import GangKey

LONG_S = 600
ORDERED = NOW + 200


@pytest.fixture
def site() -> RoomSite:
    return RoomSite()


async def ordered(site: RoomSite) -> tuple[GangKey, GangKey]:
    """Have "new" give way to "owner"; return both."""
    site.gang("old", 2, queue="a")
    await site.settle(NOW)
    new = site.gang("new", 2, queue="a", grace=LONG_S)
    await site.settle(NOW + 100)
    owner = site.gang("owner", 2, queue="b")
    await site.settle(ORDERED)
    assert site.orders.leaving == {new: owner}
    return new, owner


async def test_room_is_promised_for_when_those_who_leave_are_killed(site: RoomSite) -> None:
    new, owner = await ordered(site)
    assert site.promised(owner) == ORDERED + LONG_S

    site.evict(new)

    for seconds in (1, 60, LONG_S - 1):
        await site.settle(ORDERED + seconds)
        assert site.promised(owner) == ORDERED + LONG_S, "it does not move while they leave"
    promise = site.promise_of(owner)
    assert (promise.waits_for, promise.overruns) == ((new,), ())
    site.leave(new)
    await site.settle(ORDERED + LONG_S)
    assert site.runs(owner) == [True]


async def test_those_who_are_there_after_they_were_killed_are_named_and_waited_for(
    site: RoomSite,
) -> None:
    new, owner = await ordered(site)
    site.evict(new)

    await site.settle(ORDERED + LONG_S + 10)
    assert site.promised(owner) == site.now + 60, "a minute at least"
    assert site.promise_of(owner).overruns == (new,)
    await site.settle(ORDERED + LONG_S + 300)
    assert site.promised(owner) == site.now + 300, "as long again as they are late"

    site.leave(new)
    await site.settle(site.now + 1)
    assert site.runs(owner) == [True]


async def test_a_kill_is_seen_a_moment_late() -> None:
    site = RoomSite(slack_seconds=30.0)
    new, owner = await ordered(site)
    site.evict(new)
    await site.settle(ORDERED + LONG_S + 10)
    assert site.promised(owner) == ORDERED + LONG_S + 30
    assert site.promise_of(owner).overruns == ()


async def test_a_gang_waits_for_the_pod_that_is_killed_first() -> None:
    """Both nodes are left by pods that are being deleted, n1 much sooner."""
    site = RoomSite(2, without_queues=True)
    low = [
        site.gang(f"low{number}", 1, grace=grace, at=1.0 + number)
        for number, grace in enumerate((LONG_S, 40))
    ]
    await site.settle(NOW)
    for key in low:
        site.evict(key)
    waits = site.gang("waits", 1, at=10.0)
    await site.settle(NOW + 1)
    promise = site.promise_of(waits)
    assert (promise.start, promise.nodes) == (NOW + 40, (site.node_of(low[1]),))


async def test_a_further_gang_keeps_its_room_however_long_others_take_to_leave_it() -> None:
    site = RoomSite(2, without_queues=True)
    site.lapse = 1e-6
    low = [site.gang(f"low{number}", 1, priority=1, grace=LONG_S) for number in range(2)]
    await site.settle(NOW)
    high = [site.gang(f"high{n}", 1, at=1.0 + n, priority=5) for n in range(2)]
    await site.settle(NOW + 5)
    assert sorted(site.orders.leaving) == low
    for key in low:
        site.evict(key)

    await site.settle(NOW + 300)

    assert {promise.gang for promise in site.planner.promises} == set(high)
    further = next(whom for whom in high if site.promise_of(whom).start > NOW + 30)
    (victim,) = site.orders.giving_to(further)
    site.leave(victim)
    thief = site.gang("thief", 1, at=0.5, priority=5)
    await site.settle(NOW + 301)
    assert site.runs(further, thief) == [True, False]
