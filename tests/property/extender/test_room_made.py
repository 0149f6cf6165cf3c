"""Room that is made under random gangs, ends and orders: nobody ends in vain.

::

    n0 … n3     8 GPUs each, in one or two racks
    a, b, c     entitled to 16, 8 and 0; all gangs have one priority

Victims leave when the machine likes, some at once and others long after their deletion. Once all
have left, the gang for which the last one did so runs at the next look, whoever else waits.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.roomsite import RoomSite

from extender.planning.evictionorders import EvictionOrder
from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Quota
from muster.cluster.resumable import run
from muster.kube.names import RACK
from muster.queueing.backfill.expectedends import ExpectedEnd, certain_ends, expected_ends

ENTITLED = {"a": 16, "b": 8, "c": 0}
GRACES = (30, 300, 30, 5)
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (4, 8), (1, 4), (2, 4), (4, 2)))
FIRST = st.tuples(
    st.sampled_from(((1, 8), (1, 8), (1, 4), (2, 8))), st.sampled_from("cca"), st.booleans()
)


def _facts(end: ExpectedEnd) -> tuple[object, ...]:
    return end.at, end.gang, end.rows.tolist(), end.is_overrun, end.is_certain


class RoomMachine(RuleBasedStateMachine):
    """Gangs come and end, give way and come again."""

    @initialize(racks=st.integers(1, 2), first=st.lists(FIRST, min_size=3, max_size=6))
    def begin(self, racks: int, first: list[tuple[tuple[int, int], str, bool]]) -> None:
        """Fill the cluster with gangs most of which borrow."""
        self.site = RoomSite(4, entitled=0, racks=racks, learn=False)
        for name, gpus in ENTITLED.items():
            self.site.queue(name, Quota(gpus))
        self.count = 0
        self.gangs: dict[GangKey, str] = {}
        #: GPUs of the least number of members that come together
        self.least: dict[GangKey, int] = {}
        for size, queue, elastic in first:
            self.submit(size, queue, None, rack=False, elastic=elastic)

    def _settle(self, seconds: float = 0.0) -> None:
        known = len(self.site.orders.taken)
        self._run(self.site.settle(self.site.now + seconds))
        for order in self.site.orders.taken[known:]:
            self._check(order)

    def _run(self, steps: Coroutine[object, object, None]) -> None:
        asyncio.run(steps)

    @rule(
        size=SIZES,
        queue=st.sampled_from("aabbc"),
        known=st.none() | st.integers(1, 90),
        rack=st.booleans(),
        elastic=st.booleans(),
    )
    def arrive(
        self, size: tuple[int, int], queue: str, known: int | None, *, rack: bool, elastic: bool
    ) -> None:
        self.submit(size, queue, known, rack=rack, elastic=elastic)

    def submit(
        self, size: tuple[int, int], queue: str, known: int | None, *, rack: bool, elastic: bool
    ) -> None:
        self._create(size, queue, known, rack=rack, elastic=elastic)
        self._settle()

    def _create(
        self,
        size: tuple[int, int],
        queue: str,
        known: int | None = None,
        *,
        rack: bool = False,
        elastic: bool = False,
    ) -> None:
        members, gpus = size
        self.count += 1
        key = self.site.gang(
            f"g{self.count}",
            members,
            gpus=gpus,
            queue=queue,
            grace=GRACES[self.count % len(GRACES)],
            max_run_time=None if known is None else float(known),
            required_level=RACK if rack and not elastic else None,
            min_count=1 if elastic else members,
        )
        self.gangs[key], self.least[key] = queue, gpus * (1 if elastic else members)

    @precondition(lambda self: any(self.site.runs(*self.gangs)))
    @rule(choice=st.integers(0, 99))
    def end(self, choice: int) -> None:
        """A gang ends that does not give way."""
        leaving = self.site.orders.leaving
        running = [
            key for key in self.gangs if self.site.runs(key) == [True] and key not in leaving
        ]
        if running:
            key = running[choice % len(running)]
            self.site.end(key)
            del self.gangs[key]
            self._settle()

    @precondition(lambda self: self.site.orders.leaving)
    @rule(choice=st.integers(0, 99), again=st.booleans(), thief=st.sampled_from(" abc"))
    def leave(self, choice: int, thief: str, *, again: bool) -> None:
        """A gang that gives way has left; its controller may make its members again.

        ``thief``: the queue of a gang that comes in the same moment, and is looked at first.
        """
        leaving = list(self.site.orders.leaving)
        key = leaving[choice % len(leaving)]
        preemptor = self.site.orders.leaving[key]
        if thief.strip():
            self._create((1, 8), thief)
        self.site.leave(key)
        if again and not self.site.state.members(key):
            self.site.member(key, 0, gpus=1, at=1.0)
        self._settle(1.0)
        if preemptor in self.gangs and not self.site.orders.leaving:
            assert self.site.runs(preemptor) == [True], (preemptor, self.site.orders.taken)

    @precondition(lambda self: self.site.orders.leaving)
    @rule(choice=st.integers(0, 99))
    def evict(self, choice: int) -> None:
        """The pods of a gang that gives way are deleted."""
        leaving = list(self.site.orders.leaving)
        self.site.evict(leaving[choice % len(leaving)])
        self._settle()

    @rule(seconds=st.sampled_from((1.0, 10.0, 20.0, 60.0)))
    def wait(self, seconds: float) -> None:
        self._settle(seconds)

    @invariant()
    def each_gang_gives_way_to_one(self) -> None:
        if not hasattr(self, "site"):
            return
        self.site.state.validate()
        for key, preemptor in self.site.orders.leaving.items():
            assert self.site.runs(key) == [True]
            assert preemptor != key

    @invariant()
    def what_goes_for_others_is_known_without_reading_all_that_runs(self) -> None:
        if not hasattr(self, "site"):
            return
        snapshot, going = self.site.state.snapshot(), self.site.orders.going()
        every = run(expected_ends(snapshot, self.site.now, lambda _: 1e6, going))
        certain = certain_ends(snapshot, self.site.now, going)
        sought = [end for end in every if end.is_certain]
        assert [_facts(end) for end in certain] == [_facts(end) for end in sought]
        twice = Counter(row for end in every for row in end.rows.tolist() if end.gang)
        assert max(twice.values(), default=1) == 1

    def _check(self, order: EvictionOrder) -> None:
        """No queue is left with less than its own by those who give way to gangs of others."""
        for victim in order.victims:
            queue = self.gangs[victim.gang]
            if queue != self.gangs[order.preemptor]:
                assert self._stays(queue) >= ENTITLED[queue], order

    def _stays(self, queue: str) -> int:
        """Return the GPUs that a queue has with those that come and without those that go."""
        going, coming = self.site.orders.going(), self.site.orders.coming()
        total = sum(self.least[key] for key in coming if self.gangs.get(key) == queue)
        pods = self.site.state.snapshot().pods
        for key in [key for key, of in self.gangs.items() if of == queue]:
            view = self.site.state.gang(key)
            rows = [] if view is None else [*view.bound.tolist(), *view.released.tolist()]
            members = going.get(key, ())
            stay = [row for row in rows if members and pods.uid(row) not in members]
            for row in rows if key not in going else stay:
                kind = self.site.state.snapshot().classes[int(pods.pod_class[row])]
                total += kind.request("nvidia.com/gpu")
        return total


TestRoom = RoomMachine.TestCase
TestRoom.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
