"""Promised starts while others give way: room that is made for one gang delays no promise.

::

    n0 … n3     8 GPUs each
    a, b, c     entitled to 16, 8 and 0; all gangs have one priority

As in ``test_promises``: every gang ends when it said, or earlier, and no node is lost. What gives
way is gone within the time that it counts with, and is submitted again or not. The start of a gang
to which others give way is a guess: it is when they have gone.
"""

import asyncio
from collections.abc import Coroutine

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.roomsite import RoomSite

from muster.cluster.ids import GangKey
from muster.cluster.quota.cells import Quota
from muster.cluster.specs.podconstraints import GRACE_S

ENTITLED = {"a": 16, "b": 8, "c": 0}
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (1, 4), (3, 4), (1, 2), (5, 2)))
RUN_TIMES = st.none() | st.integers(1, 200)


class PromiseMachine(RuleBasedStateMachine):
    """Gangs come, end, and give way; time passes from end to end."""

    @initialize(sizes=st.lists(st.tuples(SIZES, RUN_TIMES), min_size=2, max_size=6))
    def begin(self, sizes: list[tuple[tuple[int, int], int | None]]) -> None:
        self.site = RoomSite(4, entitled=0, learn=False)
        for name, gpus in ENTITLED.items():
            self.site.queue(name, Quota(gpus))
        self.count = 0
        self.run_times: dict[GangKey, float | None] = {}
        self.began: dict[GangKey, float] = {}
        self.first: dict[GangKey, float] = {}
        #: when each that gives way was asked to
        self.asked: dict[GangKey, float] = {}
        for size, known in sizes:
            self._add(size, "c", known)
        self.settle()

    def _add(self, size: tuple[int, int], queue: str, known: int | None) -> None:
        self.count += 1
        run_time = None if known is None else float(known)
        key = self.site.gang(
            f"g{self.count}", size[0], gpus=size[1], queue=queue, max_run_time=run_time
        )
        self.run_times[key] = run_time

    def settle(self) -> None:
        steps: Coroutine[object, object, None] = self.site.settle()
        asyncio.run(steps)
        now = self.site.now
        for key in self.site.orders.leaving:
            self.asked.setdefault(key, now)
        for key in self.run_times:
            if key not in self.began and self.site.runs(key) == [True]:
                self.began[key] = now
                assert now <= self.first.get(key, now), (key, self.first[key], now)
        for promise in self.site.planner.promises:
            if promise.is_made:
                self.first.pop(promise.gang, None)
            elif promise.is_firm:
                first = self.first.setdefault(promise.gang, promise.start)
                assert promise.start <= first, (promise, first)

    @rule(size=SIZES, queue=st.sampled_from("aabbc"), known=RUN_TIMES)
    def submit(self, size: tuple[int, int], queue: str, known: int | None) -> None:
        self._add(size, queue, known)
        self.settle()

    def ends(self) -> list[tuple[float, GangKey]]:
        """Return when those that run are gone at the latest."""
        found = []
        for key, began in self.began.items():
            run_time = self.run_times.get(key)
            if key in self.asked:
                found.append((self.asked[key] + GRACE_S, key))
            elif run_time is not None:
                found.append((began + run_time, key))
        return sorted(found)

    def end(self, key: GangKey) -> None:
        del self.began[key], self.run_times[key]
        if self.asked.pop(key, None) is None:
            self.site.end(key)
            return
        preemptor = self.site.orders.leaving[key]
        self.site.leave(key)
        self.site.worklist.look_again(preemptor)

    @precondition(lambda self: self.began)
    @rule(data=st.data(), again=st.booleans())
    def end_early(self, data: st.DataObject, *, again: bool) -> None:
        key = data.draw(st.sampled_from(sorted(self.began)))
        self.end(key)
        if again:
            self._add((1, 8), "c", None)
        self.settle()

    @rule(seconds=st.integers(1, 100))
    def pass_time(self, seconds: int) -> None:
        self.site.run_to(self.site.now + seconds, self)

    @invariant()
    def the_model_adds_up(self) -> None:
        if hasattr(self, "site"):
            self.site.state.validate()


TestPromises = PromiseMachine.TestCase
TestPromises.settings = settings(stateful_step_count=25, deadline=None)
