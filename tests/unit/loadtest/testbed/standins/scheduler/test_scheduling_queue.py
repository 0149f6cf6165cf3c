"""The scheduler stand-in's queue: no pod is lost, none sleeps through its event."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from loadtest.testbed.standins.scheduler.objects import PodInfo, pod_info
from loadtest.testbed.standins.scheduler.queue import (
    EXTENDER,
    UNSCHEDULABLE_AT_MOST,
    ClusterEvent,
    Place,
    QueuedPod,
    SchedulingQueue,
)

FIT = frozenset({"NodeResourcesFit"})


def info(name: str, *, priority: int = 0, gated: bool = False, note: str = "") -> PodInfo:
    spec: dict[str, Any] = {"priority": priority, "schedulerName": "s", "containers": []}
    if gated:
        spec["schedulingGates"] = [{"name": "g"}]
    metadata = {"uid": name, "name": name, "namespace": "default", "annotations": {"note": note}}
    return pod_info({"metadata": metadata, "spec": spec})


def popped(queue: SchedulingQueue, now: float) -> str | None:
    queued = queue.pop(now)
    return queued.pod.name if queued else None


def test_a_pod_rejected_two_thousand_times_waits_no_longer_than_the_limit() -> None:
    queue = SchedulingQueue(initial=1.0, longest=10.0)
    queue.add(info("stubborn"), 0.0)
    for attempt in range(2_000):
        queued = queue.pop(attempt * 20.0)
        assert queued is not None
        queue.fail(queued, attempt * 20.0)
        queue.flush(attempt * 20.0 + 10.0)
        assert queued.place is Place.ACTIVE


def test_priority_goes_first_then_the_order_of_arrival() -> None:
    queue = SchedulingQueue()
    for i, (name, priority) in enumerate((("a", 0), ("b", 0), ("high", 9))):
        queue.add(info(name, priority=priority), float(i))
    assert [popped(queue, 5.0) for _ in range(4)] == ["high", "a", "b", None]


def test_the_queue_tells_who_waits_where_and_why_the_longest_waiting_first() -> None:
    queue = SchedulingQueue()
    for at, name in enumerate(("rejected", "waiting", "later")):
        queue.add(info(name), float(at))
    rejected = queue.pop(3.0)
    assert rejected is not None
    queue.reject(rejected, FIT, 4.0)
    told = queue.look(10.0, 2)
    assert told["places"] == dict.fromkeys(Place, 0) | {Place.ACTIVE: 2, Place.UNSCHEDULABLE: 1}
    assert told["rejected_by"] == {"NodeResourcesFit": 1}
    waiting, later = told["pods"]  # of three the two that came to their places first
    assert (waiting["pod"], waiting["for_seconds"]) == ("default/waiting", 9.0)
    assert (later["pod"], later["place"]) == ("default/later", "active")
    *_, last = queue.look(10.0, 3)["pods"]
    assert last == {
        "pod": "default/rejected",
        "place": "unschedulable",
        "for_seconds": 6.0,
        "attempts": 1,
        "rejected_by": ["NodeResourcesFit"],
    }


def test_a_gated_pod_waits_for_its_gate_only() -> None:
    queue = SchedulingQueue()
    queue.add(info("a", gated=True), 0.0)
    queue.event(ClusterEvent.NODE_ADDED, 1.0)
    assert popped(queue, 1.0) is None
    queue.update(info("a"), 2.0)
    assert popped(queue, 2.0) == "a"


def rejected(plugins: frozenset[str]) -> SchedulingQueue:
    """A queue whose one pod was rejected at time 0."""
    queue = SchedulingQueue()
    queue.add(info("a"), 0.0)
    queued = queue.pop(0.0)
    assert queued
    queue.reject(queued, plugins, 0.0)
    return queue


def test_only_an_event_that_a_rejecting_plugin_asked_for_wakes_a_pod() -> None:
    queue = rejected(FIT)
    queue.event(ClusterEvent.POD_ASSIGNED, 20.0)
    assert popped(queue, 20.0) is None
    queue.event(ClusterEvent.POD_DELETED, 20.0)
    assert popped(queue, 20.0) == "a"


def test_an_extender_asks_for_every_event() -> None:
    for event in ClusterEvent:
        queue = rejected(frozenset({EXTENDER}))
        queue.event(event, 20.0)
        assert popped(queue, 20.0) == "a"


def test_an_update_of_its_own_wakes_what_an_extender_rejected_and_nothing_else() -> None:
    for plugins, expected in ((FIT, None), (frozenset({EXTENDER}), "a")):
        queue = rejected(plugins)
        queue.update(info("a", note="patched"), 20.0)
        assert popped(queue, 20.0) == expected


def test_an_event_during_the_cycle_is_not_lost() -> None:
    queue = SchedulingQueue()
    queue.add(info("a"), 0.0)
    queued = queue.pop(0.0)
    assert queued
    queue.event(ClusterEvent.POD_DELETED, 0.1)
    queue.reject(queued, FIT, 0.2)
    assert queue.place("a") is Place.BACKOFF


def test_back_off_doubles_up_to_its_longest_and_errors_wait_for_it() -> None:
    queue = SchedulingQueue(initial=1.0, longest=10.0)
    queue.add(info("a"), 0.0)
    now = 0.0
    for wait in (1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        queued = queue.pop(now)
        assert queued
        queue.fail(queued, now)
        queue.flush(now + wait - 0.01)
        assert popped(queue, now + wait - 0.01) is None
        now += wait
        queue.flush(now)


def test_a_rejected_pod_that_was_woken_is_taken_early_when_nothing_else_is_active() -> None:
    queue = rejected(FIT)
    queue.event(ClusterEvent.NODE_ADDED, 0.1)
    assert queue.place("a") is Place.BACKOFF
    assert popped(queue, 0.1) == "a"


def test_nobody_sleeps_longer_than_five_minutes() -> None:
    queue = rejected(FIT)
    queue.flush(UNSCHEDULABLE_AT_MOST - 1)
    assert popped(queue, UNSCHEDULABLE_AT_MOST - 1) is None
    queue.flush(UNSCHEDULABLE_AT_MOST)
    assert popped(queue, UNSCHEDULABLE_AT_MOST) == "a"


class QueueMachine(RuleBasedStateMachine):
    """Anything may happen in any order: each pod is in exactly one place, and comes out again."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SchedulingQueue()
        self.now = 0.0
        self.alive: set[str] = set()
        self.flying: dict[str, QueuedPod] = {}
        self.made = 0

    @rule(gated=st.booleans(), priority=st.integers(0, 3))
    def add(self, gated: bool, priority: int) -> None:  # noqa: FBT001
        name = f"p{self.made}"
        self.made += 1
        self.alive.add(name)
        self.queue.add(info(name, gated=gated, priority=priority), self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), note=st.text("ab", max_size=2))
    def ungate_or_patch(self, data: st.DataObject, note: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        self.queue.update(info(name, note=note), self.now)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.alive)))
        self.alive.discard(name)
        self.queue.delete(name)

    @rule()
    def pop(self) -> None:
        queued = self.queue.pop(self.now)
        if queued:
            assert queued.pod.name in self.alive
            assert queued.pod.name not in self.flying
            self.flying[queued.pod.name] = queued

    @precondition(lambda self: self.flying)
    @rule(
        data=st.data(), error=st.booleans(), plugin=st.sampled_from(["NodeResourcesFit", EXTENDER])
    )
    def end_cycle(self, data: st.DataObject, error: bool, plugin: str) -> None:  # noqa: FBT001
        queued = self.flying.pop(data.draw(st.sampled_from(sorted(self.flying))))
        if error:
            self.queue.fail(queued, self.now)
        else:
            self.queue.reject(queued, frozenset({plugin}), self.now)

    @rule(event=st.sampled_from(ClusterEvent))
    def event(self, event: ClusterEvent) -> None:
        self.queue.event(event, self.now)

    @rule(seconds=st.sampled_from([0.1, 1.0, 11.0, 400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.queue.flush(self.now)

    @invariant()
    def nobody_is_lost(self) -> None:
        assert len(self.queue) == len(self.alive)
        for name in self.alive:
            assert self.queue.place(name) is not None
        for name in self.flying.keys() & self.alive:
            assert self.queue.place(name) is Place.IN_FLIGHT

    def teardown(self) -> None:
        """After everything has ended and enough time, every ungated pod comes out once."""
        for name, queued in self.flying.items():
            if name in self.alive:
                self.queue.fail(queued, self.now)
        self.now += 2 * UNSCHEDULABLE_AT_MOST
        self.queue.flush(self.now)
        out = set()
        while queued := self.queue.pop(self.now):
            out.add(queued.pod.name)
        waiting = {n for n in self.alive if self.queue.place(n) is not Place.GATED}
        assert out == waiting


TestQueue = QueueMachine.TestCase
