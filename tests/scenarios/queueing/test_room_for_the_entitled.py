"""The planner makes room: it orders evictions, and keeps the room for whom it was freed.

::

    n0 n1 n2 n3     8 GPUs each
    a               entitled 16: runs "old" and "new", two nodes each, and borrows 16 by that
    b               entitled 16: "owner" wants two nodes
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from support.clusters.backfillsites import NOW, Site

from extender.pendingpods import PendingPods
from extender.planning.evictionorders import EvictionOrder
from extender.planning.roommaker import RoomMaker
from muster.cluster.ids import GangKey
from muster.decisions.roomplan import NoRoom, WhyNoRoom
from muster.queueing.backfill.expectedends import LEAVING_S
from muster.queueing.preemption.policies import PreemptionPolicies


@dataclass
class Orders:
    """Takes orders, as the evictor does; the test ends the gangs."""

    taken: list[EvictionOrder] = field(default_factory=list)
    leaving: set[GangKey] = field(default_factory=set)
    spared: set[GangKey] = field(default_factory=set)
    is_full: bool = False

    def order(self, order: EvictionOrder) -> bool:
        if self.is_full:
            return False
        self.taken.append(order)
        self.leaving |= {victim.gang for victim in order.victims}
        return True

    def is_served(self, preemptor: GangKey) -> bool:
        return any(order.preemptor == preemptor for order in self.taken) and bool(self.leaving)

    def protected(self) -> Iterator[GangKey]:
        return iter(self.spared)

    def __contains__(self, gang: object) -> bool:
        return gang in self.leaving


class RoomSite(Site):
    """The drawn site, with everybody running but for ``owner``."""

    def __init__(self) -> None:
        super().__init__(4, entitled=16)
        self.orders = Orders()
        reporter, pace = self.planner._reporter, self.planner._pace
        policies = PreemptionPolicies()
        rooms = RoomMaker(self.engine, PendingPods(), self.orders, reporter, pace, policies)
        self.planner.rooms, self.planner.promises.leaving = rooms, self.orders

    async def begin(self) -> tuple[GangKey, GangKey]:
        old = self.gang("old", 2, queue="a")
        await self.settle()
        new = self.gang("new", 2, queue="a")
        await self.settle(NOW + 100)
        assert self.runs(old, new) == [True, True]
        return old, new

    def leave(self, key: GangKey) -> None:
        """End a gang that gives way; its members come again and wait."""
        self.end(key)
        self.orders.leaving.discard(key)


@pytest.fixture
def site() -> RoomSite:
    return RoomSite()


async def test_the_entitled_gang_has_the_gang_with_the_least_work_lost_give_way(
    site: RoomSite,
) -> None:
    old, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")

    await site.settle(NOW + 200)

    (order,) = site.orders.taken
    (victim,) = order.victims
    assert (order.preemptor, victim.gang, victim.members) == (owner, new, ())
    assert victim.lost_seconds == 16 * 100, "16 GPUs for 100 s; the old one has run for longer"
    promise = site.promise_of(owner)
    assert promise.is_firm
    assert promise.start == NOW + 200 + LEAVING_S
    assert promise.waits_for == (new,)
    assert site.runs(old, new, owner) == [True, True, False]


async def test_the_room_that_is_freed_is_kept_for_whom_it_was_freed(site: RoomSite) -> None:
    _, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    thief = site.gang("thief", 2, queue="a")

    site.leave(new)
    await site.settle(NOW + 210)

    assert site.runs(owner, thief) == [True, False]
    assert len(site.orders.taken) == 1


async def test_while_gangs_leave_no_others_are_ordered_away(site: RoomSite) -> None:
    await site.begin()
    site.gang("owner", 2, queue="b")

    for seconds in range(200, 300, 10):
        await site.settle(NOW + seconds)

    assert len(site.orders.taken) == 1


async def test_where_a_gang_that_should_leave_stays_another_one_is_asked(site: RoomSite) -> None:
    old, new = await site.begin()
    owner = site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    site.orders.leaving.clear()
    site.orders.spared.add(new)

    site.worklist.look_again(owner)
    await site.settle(NOW + 201)

    assert [order.victims[0].gang for order in site.orders.taken] == [new, old]


async def test_an_order_that_is_refused_is_tried_again_after_a_while(site: RoomSite) -> None:
    await site.begin()
    site.orders.is_full = True
    site.gang("owner", 2, queue="b")
    await site.settle(NOW + 200)
    assert not site.orders.taken

    site.orders.is_full = False
    await site.settle(NOW + 200 + site.config.backfill.refresh_seconds)

    assert len(site.orders.taken) == 1


async def test_nobody_gives_way_to_a_borrower_and_explain_knows_why(site: RoomSite) -> None:
    await site.begin()
    more = site.gang("more", 2, queue="a")

    await site.settle(NOW + 200)

    assert not site.orders.taken
    rooms = site.planner.rooms
    assert rooms is not None
    answer = rooms.answers[more]
    assert isinstance(answer, NoRoom)
    assert answer.reason is WhyNoRoom.NOBODY
    assert sum(count for _, count in answer.keeps) == 2


async def test_an_answer_is_forgotten_with_the_gang(site: RoomSite) -> None:
    _, new = await site.begin()
    first, rooms = site.gang("first", 2, queue="b"), site.planner.rooms
    assert rooms is not None
    await site.settle(NOW + 200)
    site.leave(new)
    await site.settle(NOW + 210)
    site.gang("second", 2, queue="b")

    await site.settle(NOW + 300)

    assert first not in rooms.answers
