"""Whatever comes of pods that were expected: nothing is left of those that never came.

::

    rack r0 ── n0 n1 n2        8 GPUs each, one member fills a host
    rack r1 ── n3 n4 n5

Gangs a and b of three and four; pods come with their place, gated, or not at all, are lost, come
again; nodes go and return; time passes. Feed, planner and reservations are the real ones.
"""

import asyncio
import json
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry
from support.clusters.feeds import feed_of

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.planning.bindtimes import BindTimes
from extender.planning.holding import PlanHolder
from extender.planning.planner import Planner
from extender.planning.worklist import WorkList
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from extender.reservations.expectedrows import ExpectedRows
from extender.reservations.reservations import ReservationParts, Reservations
from extender.timeslice import Pace
from loadtest.queuereplay.planner import UNRESTRICTED
from loadtest.testbed.client.nodes import node
from loadtest.testbed.client.pods import Gang, members, owner_reference
from muster.apiwire import reservation
from muster.apiwire.reservation import ReservedPlace
from muster.cluster.ids import PodUid
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.translation import translate
from muster.kube.translation.planseal import PlanKeys
from muster.kube.writing.events import EventRecorder
from muster.queueing.reservationterms import KEEP_S

GANGS = {"a": Gang("a", 3, required=names.RACK), "b": Gang("b", 4)}
NODES = [f"n{number}" for number in range(6)]
_POD = msgspec.json.Decoder(wire.Pod)
_NODE = msgspec.json.Decoder(wire.Node)


async def nothing_is_behind(_namespace: str, _plans: AbstractSet[str]) -> None:
    """Return: all that is stored was seen."""


@dataclass
class World:
    """An extender without an API server; ``pods``: those that are there, by gang and number."""

    now: float = 1_000.0
    pods: dict[tuple[str, int], str] = field(default_factory=dict)
    places: dict[tuple[str, int], ReservedPlace] = field(default_factory=dict)
    made: int = 0

    def __post_init__(self) -> None:
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        engine = Engine(self.state, lambda: self.now)
        pending, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pending, recorder, metrics, DueEvents())
        self.feed = feed_of(engine, pending, reporter)
        self.worklist = WorkList(engine)
        pace = Pace(asyncio.get_running_loop().time)
        self.released: list[PodUid] = []
        self.reservations = Reservations(
            engine,
            self.feed,
            metrics,
            pace,
            ExpectedRows(),
            ReservationParts(
                release=self.released.extend,
                set_aside=self.worklist.reason,
                is_isolated=lambda _view: False,
                caught_up=nothing_is_behind,
                keys=PlanKeys(),
            ),
        )
        config = ExtenderConfig(debounce_seconds=0.0, spare_count=0)
        self.planner = Planner(
            engine,
            config,
            self.worklist,
            PlanHolder(engine),
            restrictions=UNRESTRICTED,
            release=self.reservations.planned,
            bind_times=BindTimes(engine, metrics.gang_bound, reporter.bound),
            reporter=reporter,
            metrics=metrics,
            pace=pace,
        )

    def node(self, name: str) -> None:
        labels = {names.ZONE: "z", names.BLOCK: "b", names.RACK: f"r{NODES.index(name) // 3}"}
        self.feed.node(_NODE.decode(json.dumps(node(name, labels))))

    async def reserve(self, gang: str, number: int) -> None:
        asked = asyncio.ensure_future(self.reservations.reserve(self._pod(gang, number)))
        while not asked.done():
            await self.planner.settle()
            await asyncio.sleep(0)
        for place in asked.result().places:
            self.places[gang, place.number] = place

    def come(self, gang: str, number: int, *, placed: bool) -> None:
        """Show a pod, with its place if it has one, if there is none of that number."""
        if (gang, number) in self.pods:
            return
        self.made += 1
        place = self.places.pop((gang, number), None) if placed else None
        uid = self.pods[gang, number] = str(UUID(int=self.made))
        self.feed.pod(self._pod(gang, number, uid, place))

    def lose(self, gang: str, number: int) -> None:
        uid = self.pods.pop((gang, number), None)
        if uid is not None:
            self.feed.pod_gone(wire.ObjectMeta(uid=uid))

    def _pod(
        self, gang: str, number: int, uid: str = "", place: ReservedPlace | None = None
    ) -> wire.Pod:
        owner = owner_reference(GANGS[gang], f"{gang}-uid")
        pod = [*members(GANGS[gang], owner)][number]
        pod["metadata"]["uid"] = uid
        if place is None:
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        else:
            pod["metadata"]["annotations"][names.PLAN] = reservation.annotation(place)
            affinity = json.loads(bytes(reservation.pinned(place)))
            pod["spec"]["affinity"] = {"nodeAffinity": affinity}
        return _POD.decode(json.dumps(pod))

    async def settled(self) -> None:
        await self.planner.settle()
        self.state.validate()
        for uid in self.rows() - {translate.pod_uid(uid) for uid in self.pods.values()}:
            assert uid in self.reservations.uids()

    def rows(self) -> set[PodUid]:
        pods = self.state.snapshot().pods
        return {pods.uid(row) for key in self.state.gangs() for row in self._members(key)}

    def _members(self, key: Any) -> list[int]:
        view = self.state.gang(key)
        assert view is not None
        parts = (view.waiting, view.blocked, view.assumed, view.released, view.bound, view.leaving)
        return [row for part in parts for row in part.tolist()]


member = st.sampled_from([(name, n) for name, gang in GANGS.items() for n in range(gang.size)])
step = st.one_of(
    st.tuples(st.just("reserve"), member),
    st.tuples(st.just("placed"), member),
    st.tuples(st.just("placed"), member),
    st.tuples(st.just("gated"), member),
    st.tuples(st.just("lose"), member),
    st.tuples(st.just("node"), st.sampled_from(NODES)),
    st.tuples(st.just("no node"), st.sampled_from(NODES)),
    st.tuples(st.just("later"), st.sampled_from([1.0, KEEP_S])),
)


async def play(steps: list[tuple[str, Any]]) -> None:
    world = World()
    for name in NODES:
        world.node(name)
    for kind, what in steps:
        match kind:
            case "reserve":
                await world.reserve(*what)
            case "placed" | "gated":
                world.come(*what, placed=kind == "placed")
            case "lose":
                world.lose(*what)
            case "node":
                world.node(what)
            case "no node":
                world.feed.node_gone(wire.ObjectMeta(name=what))
            case "later":
                world.now += what
                world.reservations.tidy(world.now)
        await world.settled()
    world.now += KEEP_S
    world.reservations.tidy(world.now)
    await world.settled()
    assert len(world.reservations) == 0
    for gang, number in list(world.pods):
        world.lose(gang, number)
    await world.settled()
    assert not world.rows()
    assert not any(world.state.gangs())


@given(st.lists(step, max_size=25))
@settings(deadline=None)
def test_nothing_is_left_of_pods_that_were_expected_and_never_came(
    steps: list[tuple[str, Any]],
) -> None:
    asyncio.run(play(steps))
