"""Room that gangs give up for one gang goes to that gang, whatever else ends, comes or waits.

::

    n0 … n5     8 GPUs each; or n0 and n1 alone
    a           entitled to a third, borrows the rest: its gangs may give way
    b           entitled to the rest, or to 4: its gangs are those that others give way to

What gives way may take its time once its pods are deleted, some up to five minutes, and may be
submitted again in the moment in which it has gone. Where ``b`` is entitled to 4, its larger
gangs borrow: they are promised a start, and room for others is made on the nodes of that promise.
"""

import asyncio
from collections.abc import Coroutine

from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.roomsite import RoomSite

from muster.cluster.events import PodGone
from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Quota

RUN_TIMES = st.none() | st.integers(1, 60)
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (1, 4), (2, 4), (3, 4)))
GRACES = (30, 300, 30, 5)


class RoomMachine(RuleBasedStateMachine):
    """Gangs come and end; what gives way leaves member by member."""

    @initialize(
        first=st.lists(st.tuples(RUN_TIMES, st.booleans()), min_size=5, max_size=6),
        is_large=st.booleans(),
        borrows=st.booleans(),
    )
    def begin(self, first: list[tuple[int | None, bool]], *, is_large: bool, borrows: bool) -> None:
        nodes = 6 if is_large else 2
        lent = 16 if is_large else 4
        self.site = RoomSite(nodes, entitled=lent)
        self.site.queue("b", Quota(4 if borrows else 8 * nodes - lent))
        self.orders = self.site.orders
        self.count = 0
        self.there: list[GangKey] = []
        self.sizes: dict[GangKey, tuple[int, int]] = {}
        for run_time, is_halved in first[:nodes]:
            for size in ((1, 4), (1, 4)) if is_halved else ((1, 8),):
                self._add(size, "a", run_time)
        self._settle()

    def _settle(self) -> None:
        steps: Coroutine[object, object, None] = self.site.settle()
        asyncio.run(steps)

    @rule(size=SIZES, queue=st.sampled_from("aabb"), run_time=RUN_TIMES)
    def submit(self, size: tuple[int, int], queue: str, run_time: int | None) -> None:
        self._add(size, queue, run_time)
        self._settle()

    def _add(self, size: tuple[int, int], queue: str, run_time: int | None) -> None:
        self.count += 1
        known = None if run_time is None else float(run_time)
        key = self.site.gang(
            f"g{self.count}",
            size[0],
            gpus=size[1],
            queue=queue,
            grace=GRACES[self.count % len(GRACES)],
            max_run_time=known,
        )
        self.there.append(key)
        self.sizes[key] = size

    @rule(seconds=st.integers(1, 40))
    def pass_time(self, seconds: int) -> None:
        self.site.now += seconds
        self._settle()

    def _ending(self) -> list[GangKey]:
        """Return the gangs that run and may end by themselves."""
        return [
            key for key in self.there if self.site.runs(key)[0] and key not in self.orders.leaving
        ]

    @precondition(lambda self: self._ending())
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self._ending()))
        self.there.remove(key)
        self.site.end(key)
        self._settle()

    @precondition(lambda self: self.orders.leaving)
    @rule(data=st.data())
    def pods_are_deleted(self, data: st.DataObject) -> None:
        self.site.evict(data.draw(st.sampled_from(sorted(self.orders.leaving))))
        self._settle()

    @precondition(lambda self: self.orders.leaving)
    @rule(data=st.data(), is_listed=st.booleans(), again=st.just(0) | RUN_TIMES)
    def a_member_goes(self, data: st.DataObject, again: int | None, *, is_listed: bool) -> None:
        """A member of a gang that gives way has gone.

        ``is_listed``: the evictor has the planner look at the gang that gets the room. ``again``:
        how long the gang runs that is submitted in the place of one that has gone; 0: none is.
        """
        key = data.draw(st.sampled_from(sorted(self.orders.leaving)))
        members = self.site.state.members(key)
        self.site.engine.apply(PodGone(members[0]))
        preemptor = self.orders.leaving[key]
        if len(members) == 1:
            del self.orders.leaving[key]
            self.there.remove(key)
            if is_listed:
                self.site.worklist.look_again(preemptor)
            if again != 0:
                self._add(self.sizes[key], "a", again)
        self._settle()
        if preemptor in self.there and not self.orders.is_served(preemptor):
            assert self.site.runs(preemptor) == [True], f"{preemptor} did not get its room"

    @invariant()
    def others_gave_way_once_to_each(self) -> None:
        preemptors = [order.preemptor for order in self.orders.taken]
        assert len(preemptors) == len(set(preemptors))


RoomMachine.TestCase.settings = settings(settings.default, stateful_step_count=15, deadline=None)
TestRoomIsKept = RoomMachine.TestCase


HALVES = st.lists(st.tuples(st.booleans(), st.integers(30, 90)), min_size=2, max_size=3)


@given(
    running=HALVES,
    big=st.integers(2, 5),
    small=st.sampled_from((2, 4)),
    again=st.none() | st.integers(1, 60),
    is_listed=st.booleans(),
)
@settings(max_examples=60)
@example(running=[(False, 30)] * 3, big=5, small=2, again=1, is_listed=False)
def test_room_beside_a_promise_goes_to_the_gang_it_was_made_for(
    running: list[tuple[bool, int]],
    big: int,
    small: int,
    again: int | None,
    *,
    is_listed: bool,
) -> None:
    """Gang "big" borrows and is promised a start; "small", of its queue, is entitled to room now.

    ``running``: for each node whether one gang fills it or two have a half each, and how long they
    run. ``big``: members of 4 GPUs. ``again``: how long a gang runs that comes in the place of the
    one that gave way.
    """

    async def given_way() -> None:
        site = RoomSite(len(running), entitled=4)
        for number, (is_halved, seconds) in enumerate(running):
            for half in range(1 + is_halved):
                gpus, name = (4, f"n{number}-{half}") if is_halved else (8, f"n{number}")
                site.gang(name, 1, gpus=gpus, queue="a", max_run_time=float(seconds + half))
                await site.settle(site.now + 1)
        site.gang("big", big, gpus=4, queue="b", max_run_time=50.0)
        await site.settle(site.now + 1)
        key = site.gang("small", 1, gpus=small, queue="b")
        await site.settle(site.now + 1)
        for left in list(site.orders.leaving):
            site.leave(left)
            if is_listed:
                site.worklist.look_again(key)
            run_time = None if again is None else float(again)
            site.gang("again", 1, gpus=4, queue="a", max_run_time=run_time)
            await site.settle(site.now + 1)
            assert site.runs(key) == [True], left

    asyncio.run(given_way())
