"""Promised starts under random gangs, ends and times: each is kept.

Every gang ends when it said, or earlier; no node is lost; all have one priority, and those in
queues are within their entitlement. Then nothing may move their promises to a later time. (A
promise to a gang without a queue gives way to those.)
"""

import asyncio
from collections.abc import Coroutine

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.clusters.backfillsites import Site

from muster.cluster.ids import GangKey
from muster.kube.names import RACK

QUEUES = st.sampled_from(("a", "b", ""))
SIZES = st.sampled_from(((1, 8), (2, 8), (3, 8), (4, 8), (1, 2), (2, 4), (5, 2)))


class PromiseMachine(RuleBasedStateMachine):
    """Gangs come and end; time passes from end to end."""

    @initialize(nodes=st.integers(2, 4), racks=st.integers(1, 2))
    def begin(self, nodes: int, racks: int) -> None:
        self.site = Site(nodes, racks=racks, without_queues=True, learn=False)
        self.run_times: dict[GangKey, float | None] = {}
        self.first: dict[GangKey, float] = {}
        self.count = 0
        self.placed: dict[GangKey, float] = {}

    def _run(self, steps: Coroutine[object, object, None]) -> None:
        asyncio.run(steps)

    def settle(self) -> None:
        self._run(self.site.settle())
        now = self.site.now
        for promise in self.site.planner.promises:
            if not promise.is_firm:
                continue
            self.first.setdefault(promise.gang, promise.first_start)
            assert promise.first_start == self.first[promise.gang]
            assert promise.start <= promise.first_start, promise
        for key in self.run_times:
            if key not in self.placed and self.site.runs(key) == [True]:
                self.placed[key] = now
                assert now <= self.first.get(key, now), (key, self.first[key], now)

    @rule(size=SIZES, queue=QUEUES, known=st.none() | st.integers(1, 60), rack=st.booleans())
    def submit(self, size: tuple[int, int], queue: str, known: int | None, *, rack: bool) -> None:
        members, gpus = size
        self.count += 1
        key = self.site.gang(
            f"g{self.count}",
            members,
            gpus=gpus,
            queue=queue,
            max_run_time=None if known is None else float(known),
            required_level=RACK if rack else None,
        )
        self.run_times[key] = None if known is None else float(known)
        self.settle()

    def _running(self) -> list[GangKey]:
        return sorted(key for key in self.placed if key in self.run_times)

    @precondition(lambda self: self._running())
    @rule(data=st.data())
    def end_early(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(self._running()))
        self.end(key)
        self.settle()

    def ends(self) -> list[tuple[float, GangKey]]:
        """Return when those that run are gone at the latest."""
        return [
            (self.placed[key] + run_time, key)
            for key in self._running()
            if (run_time := self.run_times[key]) is not None
        ]

    def end(self, key: GangKey) -> None:
        del self.run_times[key]
        self.site.end(key)

    @rule(seconds=st.integers(1, 50))
    def pass_time(self, seconds: int) -> None:
        self.site.run_to(self.site.now + seconds, self)

    @invariant()
    def the_model_adds_up(self) -> None:
        if hasattr(self, "site"):
            self.site.state.validate()


TestPromises = PromiseMachine.TestCase
TestPromises.settings = settings(stateful_step_count=40)
