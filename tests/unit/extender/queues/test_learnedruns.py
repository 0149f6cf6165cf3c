"""Learned run times: written to the objects of queues, and read again by the next leader.

::

    first leader   gangs end ── writes ── killed
    next one                                └─ lists the objects ── estimates as before
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.apiservers.apifaults import api_server
from support.clusters import gangviews
from support.dialects.kinds import serve

from extender.config.settings import QueueStatusConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.queues.learnedruns import LearnedRuns
from extender.queues.queueevents import QueueEvents
from extender.queues.queueobjects import QueueObjects
from extender.queues.queuestatuses import QueueStatusWriter, StatusParts
from extender.timeslice import Pace
from loadtest.testbed.client.api import Api
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.state import ClusterState
from muster.cluster.tables.gangview import GangView
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.names import PLAN_GATE
from muster.kube.resources import Resource
from muster.kube.writing.events import EventRecorder
from muster.queueing.backfill.runtimes import ENOUGH, RunTimes
from muster.workloads.queues.muster import OwnQueue
from muster.workloads.queues.registry import KINDS

(KIND,) = (kind for kind in KINDS if kind.type is OwnQueue)
RESOURCE = Resource("muster.dev", "v1alpha1", "queues", OwnQueue, namespaced=False)
PATH = "/apis/muster.dev/v1alpha1/queues"
QUEUE = QueueName("muster/vision")
BODY = {"apiVersion": "muster.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "vision"}}


def gang(name: str) -> GangView:
    return replace(gangviews.gang(name), queue="vision")


@dataclass
class Clock:
    now: float = 999_960.0  # a minute begins

    def __call__(self) -> float:
        return self.now


@dataclass
class Leader:
    """One extender, as far as learned run times go."""

    api: Api
    client: KubeClient
    clock: Clock
    learns: bool = True
    times: RunTimes = field(default_factory=lambda: RunTimes(0.9))
    writer: QueueStatusWriter = field(init=False)

    def __post_init__(self) -> None:
        state = ClusterState("test", levels=("kubernetes.io/hostname",), gate=PLAN_GATE)
        engine = Engine(state, self.clock)
        parts = StatusParts(
            engine=engine,
            objects=QueueObjects(engine),
            client=self.client,
            events=QueueEvents(EventRecorder(self.client, controller="test", instance="test")),
            metrics=ExtenderMetrics(CollectorRegistry()),
            pace=Pace(time.perf_counter),
            program="muster",
            runs=LearnedRuns(self.times, self.clock) if self.learns else None,
        )
        self.writer = QueueStatusWriter(parts, QueueStatusConfig())

    async def lists(self) -> None:
        found = await self.client.get(RESOURCE, "vision")
        reading = KIND.read(found)
        self.writer.objects.seen(KIND.name, found.metadata, reading)
        self.writer.seen(KIND, RESOURCE, found, reading)

    def learn(self, *seconds: float) -> None:
        for number, each in enumerate(seconds):
            self.times.learn(gang(f"train-{number}"), each, self.clock.now, QUEUE)

    async def writes(self) -> int:
        """Write what is due, as the job does, and see it; return how many statuses were sent."""
        await self.writer.look()
        sent = await self.writer.write_due(100)
        if sent:
            await self.lists()
        return sent

    def estimate(self, name: str = "train-99") -> float | None:
        return self.times.of(gang(name))

    async def status(self) -> dict[str, Any]:
        found = await self.api.get(f"{PATH}/vision")
        return dict(found.get("status") or {})


@dataclass
class Cluster:
    api: Api
    client: KubeClient
    clock: Clock

    async def leader(self, *, learns: bool = True) -> Leader:
        found = Leader(self.api, self.client, self.clock, learns)
        await found.lists()
        await found.writes()
        return found


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with api_server() as (_, url), Api(url) as api, KubeClient(auth.fixed(url)) as client:
        await serve(api, "muster.dev/v1alpha1", "Queue")
        await api.create(PATH, BODY)
        yield Cluster(api, client, Clock())


async def test_the_next_leader_knows_what_the_one_before_learned(cluster: Cluster) -> None:
    first = await cluster.leader()
    first.learn(*range(100, 100 + ENOUGH))
    assert first.estimate() == 104
    await first.writes()
    second = await cluster.leader()
    assert second.estimate() == 104
    assert second.estimate("other-1") == 104, "whatever the template: it is the queue's"


async def test_the_next_leader_adds_what_it_learns(cluster: Cluster) -> None:
    first = await cluster.leader()
    first.learn(100, 100, 100)
    await first.writes()
    second = await cluster.leader()
    assert second.estimate() is None
    cluster.clock.now += 3600
    second.learn(200, 200)
    assert second.estimate() == 200
    await second.writes()
    third = await cluster.leader()
    assert third.estimate() == 200


async def test_run_times_are_written_once_a_minute_and_the_last_ones_without_another_event(
    cluster: Cluster,
) -> None:
    leader = await cluster.leader()
    written = []
    for second in range(300):
        if second < 90:
            leader.learn(second)
        if await leader.writes():
            last = (await leader.status())["runTimes"]["last"]
            written.append((second, [row["seconds"] for row in last][-1]))
        cluster.clock.now += 1
    assert written == [(0, 0), (60, 60), (120, 89)]


async def test_a_replica_that_does_not_lead_follows_what_the_leader_writes(
    cluster: Cluster,
) -> None:
    standby, leader = await cluster.leader(), await cluster.leader()
    for seconds in (100, 300):
        leader.learn(*[seconds] * ENOUGH)
        await leader.writes()
        await standby.lists()
        await standby.lists()
        assert standby.estimate() == leader.estimate() == seconds
        cluster.clock.now += 60


async def test_where_nothing_is_learned_what_stands_stays(cluster: Cluster) -> None:
    first = await cluster.leader()
    first.learn(100)
    await first.writes()
    before = (await first.status())["runTimes"]
    cluster.clock.now += 3600
    other = await cluster.leader(learns=False)
    await other.writes()
    assert (await other.status())["runTimes"] == before


async def test_a_status_that_somebody_spoilt_is_written_anew(cluster: Cluster) -> None:
    leader = await cluster.leader()
    leader.learn(100)
    await leader.writes()
    before = (await leader.status())["runTimes"]
    wrong = {"at": before["at"], "last": [{"seconds": "many"}]}
    await cluster.api.patch(f"{PATH}/vision/status", {"status": {"runTimes": wrong}})
    await leader.lists()
    await leader.writes()
    assert (await leader.status())["runTimes"] == before


async def test_a_queue_that_is_made_anew_has_no_past(cluster: Cluster) -> None:
    leader = await cluster.leader()
    leader.learn(*[100] * ENOUGH)
    await leader.writes()
    found = await cluster.client.get(RESOURCE, "vision")
    leader.writer.objects.gone(KIND.name, found.metadata)
    leader.writer.gone(KIND, found.metadata)
    await cluster.api.delete(f"{PATH}/vision")
    await cluster.api.create(PATH, BODY)
    await leader.lists()
    await leader.writes()
    assert "runTimes" not in await leader.status()
    assert leader.estimate() is None
