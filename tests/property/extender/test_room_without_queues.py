"""Room for random gangs that name no queue: several get it at once, each by its priority alone.

::

    n0 … n4     8 GPUs each, in one or two racks
    gangs       priority 1, 3 or 5; some say how long they run

Once all have left that were to, each gang for which they did so runs at the next look. Only a gang
of a higher priority that came later may have taken its room. In the end nobody waits who could have
room: no turn is lost, whatever happens before it.
"""

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.roomsite import RoomSite

from extender.planning.evictionorders import EvictionOrder
from muster.cluster.ids import GangKey
from muster.decisions.roomplan import NoRoom
from muster.kube.names import RACK

PRIORITIES = st.sampled_from((1, 3, 5))
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (5, 8), (1, 4), (2, 4), (3, 2)))


class LawlessMachine(RuleBasedStateMachine):
    """Gangs come, end and give way."""

    @initialize(racks=st.integers(1, 2), first=st.lists(SIZES, min_size=3, max_size=6))
    def begin(self, racks: int, first: list[tuple[int, int]]) -> None:
        """Fill the cluster with gangs of the lowest priority."""
        self.site = RoomSite(5, racks=racks, learn=False, without_queues=True)
        self.site.lapse = 1e-6  # as a real clock, it goes on while the planner looks
        self.count = 0
        self.priorities: dict[GangKey, int] = {}
        #: by gang for which others leave or left, the highest priority of those that came since
        self.since: dict[GangKey, int] = {}
        for size in first:
            self._create(size, 1)
        self._settle()

    def _settle(self, seconds: float = 1.0) -> None:
        known = len(self.site.orders.taken)
        asyncio.run(self.site.settle(self.site.now + seconds))
        for order in self.site.orders.taken[known:]:
            self._check(order)
            self.since[order.preemptor] = -1

    def _check(self, order: EvictionOrder) -> None:
        """Only a strictly lower priority gives way."""
        for victim in order.victims:
            assert self.priorities[victim.gang] < self.priorities[order.preemptor], order

    def _create(
        self,
        size: tuple[int, int],
        priority: int,
        known: int | None = None,
        *,
        rack: bool = False,
    ) -> None:
        members, gpus = size
        self.count += 1
        key = self.site.gang(
            f"g{self.count}",
            members,
            gpus=gpus,
            priority=priority,
            at=self.site.now,
            max_run_time=None if known is None else float(known),
            required_level=RACK if rack else None,
        )
        self.priorities[key] = priority
        for one, highest in self.since.items():
            self.since[one] = max(highest, priority)

    @rule(size=SIZES, priority=PRIORITIES, known=st.none() | st.integers(1, 90), rack=st.booleans())
    def arrive(
        self, size: tuple[int, int], priority: int, known: int | None, *, rack: bool
    ) -> None:
        self._create(size, priority, known, rack=rack)
        self._settle()

    @rule(sizes=st.lists(SIZES, min_size=2, max_size=5), priority=PRIORITIES)
    def arrive_together(self, sizes: list[tuple[int, int]], priority: int) -> None:
        for size in sizes:
            self._create(size, priority)
        self._settle()

    @precondition(lambda self: self.site.orders.leaving)
    @rule(choice=st.integers(0, 99), again=st.booleans())
    def leave(self, choice: int, *, again: bool) -> None:
        """A gang that gives way has left; its controller may make its members again."""
        leaving = list(self.site.orders.leaving)
        key = leaving[choice % len(leaving)]
        self.site.leave(key)
        if again:
            self.site.member(key, 0, gpus=1, priority=self.priorities[key], at=1.0)
        self._settle()
        if not self.site.orders.leaving:
            self._nobody_ended_in_vain()

    def _nobody_ended_in_vain(self) -> None:
        for preemptor, highest in self.since.items():
            if preemptor in self.priorities and highest <= self.priorities[preemptor]:
                assert self.site.runs(preemptor) == [True], (preemptor, self.site.orders.taken)
        self.since.clear()

    @precondition(lambda self: any(self.site.runs(*self.priorities)))
    @rule(choice=st.integers(0, 99))
    def end(self, choice: int) -> None:
        """A gang ends that does not give way."""
        running = [
            key
            for key in self.priorities
            if self.site.runs(key) == [True] and key not in self.site.orders.leaving
        ]
        if running:
            key = running[choice % len(running)]
            self.site.end(key)
            del self.priorities[key]
            self._settle()

    @rule(seconds=st.sampled_from((1.0, 10.0, 20.0, 60.0)))
    def wait(self, seconds: float) -> None:
        self._settle(seconds)

    def teardown(self) -> None:
        """Nothing comes any more; all that are to leave do so."""
        if not hasattr(self, "site"):
            return
        for _ in range(20):
            for key in list(self.site.orders.leaving):
                self.site.leave(key)
            self._settle(20.0)
            if not self.site.orders.leaving and not self.site.worklist.not_before:
                break
        asyncio.run(self._nobody_could_have_room())

    async def _nobody_could_have_room(self) -> None:
        planner, rooms = self.site.planner, self.site.planner.rooms
        assert rooms is not None
        for key in self.priorities:
            if self.site.runs(key) == [False] and len(self.site.view(key).waiting):
                view, snapshot = self.site.view(key), self.site.state.snapshot()
                answer = await rooms.answer(view, planner.question(key), snapshot)
                assert isinstance(answer, NoRoom), (key, answer, planner.why(view))

    @invariant()
    def each_gang_gives_way_to_one_that_waits(self) -> None:
        if not hasattr(self, "site"):
            return
        self.site.state.validate()
        for key, preemptor in self.site.orders.leaving.items():
            assert self.site.runs(key) == [True]
            assert preemptor != key


TestLawless = LawlessMachine.TestCase
TestLawless.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
