"""Room that gangs give up for one gang goes to that gang, whatever else ends, comes or waits.

::

    n0 … n5     8 GPUs each
    a           entitled 16, borrows the rest: its gangs may give way
    b           entitled 32: its gangs are those that others give way to
"""

import asyncio
from collections.abc import Coroutine

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.backfillsites import GPU
from support.clusters.roomsite import RoomSite

from muster.cluster.events import PodGone, QueueUpserted
from muster.cluster.ids import GangKey
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec

RUN_TIMES = st.none() | st.integers(1, 60)
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (1, 4), (2, 4)))


class RoomMachine(RuleBasedStateMachine):
    """Gangs come and end; what gives way leaves member by member."""

    @initialize(run_times=st.lists(RUN_TIMES, min_size=5, max_size=6))
    def begin(self, run_times: list[int | None]) -> None:
        self.site = RoomSite(6, entitled=16)
        own = QueueSpec(QueueName("muster/b"), QueueName("muster/cluster"), {GPU: Quota(32)})
        self.site.engine.apply(QueueUpserted(own, (Spelling("", "b"),)))
        self.orders = self.site.orders
        self.count = 0
        self.there: list[GangKey] = []
        for run_time in run_times:
            self._add((1, 8), "a", run_time)
        self._settle()

    def _settle(self) -> None:
        steps: Coroutine[object, object, None] = self.site.settle()
        asyncio.run(steps)

    @rule(size=SIZES, queue=st.sampled_from("aaab"), run_time=RUN_TIMES)
    def submit(self, size: tuple[int, int], queue: str, run_time: int | None) -> None:
        self._add(size, queue, run_time)
        self._settle()

    def _add(self, size: tuple[int, int], queue: str, run_time: int | None) -> None:
        self.count += 1
        known = None if run_time is None else float(run_time)
        key = self.site.gang(
            f"g{self.count}", size[0], gpus=size[1], queue=queue, max_run_time=known
        )
        self.there.append(key)

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
    def a_member_goes(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.orders.leaving)))
        members = self.site.state.members(key)
        self.site.engine.apply(PodGone(members[0]))
        preemptor = self.orders.leaving[key]
        if len(members) == 1:
            del self.orders.leaving[key]
            self.there.remove(key)
            self.site.worklist.look_again(preemptor)
        self._settle()
        if preemptor in self.there and not self.orders.is_served(preemptor):
            assert self.site.runs(preemptor) == [True], f"{preemptor} did not get its room"

    @invariant()
    def others_gave_way_once_to_each(self) -> None:
        preemptors = [order.preemptor for order in self.orders.taken]
        assert len(preemptors) == len(set(preemptors))


RoomMachine.TestCase.settings = settings(settings.default, stateful_step_count=15, deadline=None)
TestRoomIsKept = RoomMachine.TestCase
