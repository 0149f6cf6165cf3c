"""Averages of past use: written to the objects, and read again by the next leader.

::

    first leader   ── looks ── writes ── killed
    next one                               └─ lists the objects ── looks ── goes on
"""

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.apiservers.apifaults import api_server
from support.dialects.kinds import serve

from extender.config.queueing import UsageConfig
from extender.config.settings import QueueStatusConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.queues.averageuse import AverageUse
from extender.queues.queueevents import QueueEvents
from extender.queues.queueobjects import QueueObjects
from extender.queues.queuestatuses import QueueStatusWriter, StatusParts
from extender.timeslice import Pace
from loadtest.testbed.client.api import Api
from muster.cluster.events import QueueUpserted
from muster.cluster.quota.aliases import QueueUser, Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.charges import Bill
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName, QueueSpec, ShareFunction
from muster.cluster.state import ClusterState
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.names import PLAN_GATE
from muster.kube.resources import Resource
from muster.kube.writing.events import EventRecorder
from muster.workloads.queues.kueue import LocalQueue
from muster.workloads.queues.muster import OwnQueue
from muster.workloads.queues.registry import KINDS

(KIND,) = (kind for kind in KINDS if kind.type is OwnQueue)
RESOURCE = Resource("muster.dev", "v1alpha1", "queues", OwnQueue, namespaced=False)
PATH = "/apis/muster.dev/v1alpha1/queues"
QUEUE = QueueName("muster/vision")
GPU = Cell("", "nvidia.com/gpu")
HOUR = 3600.0
USAGE = UsageConfig(half_life_seconds=HOUR, interval_seconds=300.0)


@dataclass
class Clock:
    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Leader:
    """One extender, as far as averages go."""

    api: Api
    client: KubeClient
    clock: Clock
    usage: UsageConfig = USAGE
    engine: Engine = field(init=False)
    averages: AverageUse | None = field(init=False, default=None)
    writer: QueueStatusWriter = field(init=False)

    def __post_init__(self) -> None:
        state = ClusterState("test", levels=("kubernetes.io/hostname",), gate=PLAN_GATE)
        self.engine, pace = Engine(state, self.clock), Pace(time.perf_counter)
        if self.usage.is_on:
            self.averages = AverageUse(self.engine, self.usage, pace)
        parts = StatusParts(
            engine=self.engine,
            objects=QueueObjects(self.engine),
            client=self.client,
            events=QueueEvents(EventRecorder(self.client, controller="test", instance="test")),
            metrics=ExtenderMetrics(CollectorRegistry()),
            pace=pace,
            program="muster",
            averages=self.averages,
        )
        self.writer = QueueStatusWriter(parts, QueueStatusConfig())

    async def lists(self) -> None:
        found = await self.client.get(RESOURCE, "vision")
        reading = KIND.read(found)
        self.writer.objects.seen(KIND.name, found.metadata, reading)
        self.writer.seen(KIND, RESOURCE, found, reading)

    def runs(self, gpus: int) -> Bill:
        bill = Bill(QueueUser("muster", "team", "vision"), ((GPU.resource, gpus),))
        self.engine.state.charges.charge(bill)
        return bill

    async def looks(self) -> None:
        """Note, and write what is due, as the jobs do."""
        if self.averages is not None:
            await self.averages.note()
        await self.writer.look()
        await self.writer.write_due(100)
        await self.lists()

    def average(self) -> tuple[float, float]:
        """Return what the queue used and borrowed on average."""
        node = self.engine.state.charges.tree.find(QUEUE)
        assert isinstance(node, QueueNode)
        found = None if self.averages is None else self.averages.of(node)
        assert found is not None
        return found.used.get(GPU, 0.0), found.borrowed.get(GPU, 0.0)

    async def status(self) -> dict[str, Any]:
        found = await self.api.get(f"{PATH}/vision")
        return dict(found.get("status") or {})


@dataclass
class Cluster:
    api: Api
    client: KubeClient
    clock: Clock

    def leader(self, usage: UsageConfig = USAGE) -> Leader:
        return Leader(self.api, self.client, self.clock, usage)

    async def busy_leader(self) -> Leader:
        """Return one that knows of 8 GPUs in use, and has looked once."""
        found = self.leader()
        await found.lists()
        found.runs(8)
        await found.looks()
        return found


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with api_server() as (_, url), Api(url) as api, KubeClient(auth.fixed(url)) as client:
        await serve(api, "muster.dev/v1alpha1", "Queue")
        quotas = [{"resource": GPU.resource, "entitled": 2}]
        body = {
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": "vision"},
        }
        await api.create(PATH, {**body, "spec": {"quotas": quotas}})
        yield Cluster(api, client, Clock())


async def test_the_next_leader_goes_on_from_what_the_one_before_wrote(cluster: Cluster) -> None:
    """8 GPUs for an hour, a leader that is killed, and 100 s until the next one leads."""
    first = await cluster.busy_leader()
    cluster.clock.now += HOUR
    await first.looks()
    assert first.average() == pytest.approx((4.0, 3.0))
    cluster.clock.now += 100  # what is used here is what the next one finds
    expected = first.average()
    second = cluster.leader()
    await second.lists()
    second.runs(8)
    await second.looks()
    assert second.average() == pytest.approx(expected, abs=0.002)


async def test_a_replica_that_does_not_lead_follows_what_the_leader_writes(
    cluster: Cluster,
) -> None:
    standby = cluster.leader()
    await standby.lists()
    first = await cluster.busy_leader()
    for _ in range(6):
        cluster.clock.now += HOUR
        await first.looks()
        await standby.lists()
    assert standby.average() == pytest.approx(first.average(), abs=0.002)


async def test_an_average_is_written_once_per_interval_however_often_somebody_looks(
    cluster: Cluster,
) -> None:
    leader = cluster.leader()
    await leader.lists()
    leader.runs(8)
    written = set()
    for _ in range(60):
        await leader.looks()
        written.add((await leader.status()).get("averageUse", {}).get("at"))
        cluster.clock.now += 10  # ten minutes in all
    assert len(written - {None}) == 2


async def test_a_leader_that_has_not_looked_yet_writes_no_average(cluster: Cluster) -> None:
    """It does not know what was used since: it would write too little."""
    first = await cluster.busy_leader()
    cluster.clock.now += HOUR
    await first.looks()
    before = (await first.status())["averageUse"]
    cluster.clock.now += HOUR
    second = cluster.leader()
    await second.lists()
    second.runs(8)
    await second.writer.look()
    await second.writer.write_due(100)
    assert (await second.status())["averageUse"] == before


async def test_without_a_half_life_no_average_is_written_and_an_old_one_stays(
    cluster: Cluster,
) -> None:
    first = await cluster.busy_leader()
    cluster.clock.now += HOUR
    await first.looks()
    before = (await first.status())["averageUse"]
    other = cluster.leader(UsageConfig())
    await other.lists()
    await other.looks()
    assert (await other.status())["averageUse"] == before


async def test_a_queue_that_is_made_anew_has_no_past(cluster: Cluster) -> None:
    leader = cluster.leader()
    await leader.lists()
    bill = leader.runs(8)
    await leader.looks()
    cluster.clock.now += HOUR
    await leader.looks()
    leader.engine.state.charges.give_back(bill)
    found = await cluster.client.get(RESOURCE, "vision")
    leader.writer.objects.gone(KIND.name, found.metadata)
    leader.writer.gone(KIND, found.metadata)
    assert leader.averages is not None
    await leader.averages.note()
    await cluster.api.delete(f"{PATH}/vision")
    body = {"apiVersion": "muster.dev/v1alpha1", "kind": "Queue", "metadata": {"name": "vision"}}
    await cluster.api.create(PATH, body)
    await leader.lists()
    await leader.looks()
    assert leader.average() == (0.0, 0.0)


LOCAL = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues"


async def test_averages_of_local_queues_survive_in_the_field_that_kueues_tools_read(
    cluster: Cluster,
) -> None:
    """The same for LocalQueues, in a ClusterQueue that goes by them."""
    await serve(cluster.api, "kueue.x-k8s.io/v1beta2", "LocalQueue")
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}
    meta = {"name": "main", "namespace": "default"}
    await cluster.api.create(LOCAL, {**body, "metadata": meta, "spec": {"clusterQueue": "a"}})
    first = cluster.leader()
    await lists_local(first)
    runs_of(first, 8)
    await looks_at_local(first)
    cluster.clock.now += HOUR
    await looks_at_local(first)
    said = (await cluster.api.get(f"{LOCAL}/main"))["status"]["fairSharing"]
    assert said["admissionFairSharingStatus"]["consumedResources"] == {GPU.resource: "4"}
    cluster.clock.now += 100
    second = cluster.leader()
    await lists_local(second)
    runs_of(second, 8)
    await looks_at_local(second)
    averages = [
        one.averages.users.average("default/main", cluster.clock.now)
        for one in (first, second)
        if one.averages
    ]
    assert averages[1][GPU.resource] == pytest.approx(averages[0][GPU.resource], abs=0.002)


async def lists_local(leader: Leader) -> None:
    spec = QueueSpec(QueueName("kueue/a"), None, {GPU: Quota(16)}, goes_by_users=True)
    leader.engine.apply(QueueUpserted(spec, (Spelling("default", "main"),)))
    (kind,) = (kind for kind in KINDS if kind.type is LocalQueue)
    resource = Resource(kind.group, "v1beta2", kind.plural, LocalQueue)
    found = await leader.client.get(resource, "main", namespace="default")
    leader.writer.seen(kind, resource, found, kind.read(found))


def runs_of(leader: Leader, gpus: int) -> None:
    bill = Bill(QueueUser("batch", "default", "main"), ((GPU.resource, gpus),))
    leader.engine.state.charges.charge(bill)


async def looks_at_local(leader: Leader) -> None:
    assert leader.averages is not None
    await leader.averages.note()
    await leader.writer.look()
    await leader.writer.write_due(100)
    await lists_local(leader)


async def test_explain_says_what_past_use_means_for_a_gang(cluster: Cluster) -> None:
    await serve(cluster.api, "kueue.x-k8s.io/v1beta2", "LocalQueue")
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue"}
    meta = {"name": "main", "namespace": "default"}
    await cluster.api.create(LOCAL, {**body, "metadata": meta, "spec": {"clusterQueue": "a"}})
    leader = cluster.leader()
    await leader.lists()
    await lists_local(leader)
    leader.runs(8)
    runs_of(leader, 4)
    await leader.looks()
    cluster.clock.now += HOUR
    await leader.looks()
    assert leader.averages is not None
    (line,) = leader.averages.lines(QueueUser("muster", "team", "vision"))
    assert line == (
        "queue muster/vision used 4 nvidia.com/gpu on average and borrowed 3 nvidia.com/gpu:"
        " of queues that borrow, the one that did so less lately goes first"
    )
    (line,) = leader.averages.lines(QueueUser("batch", "default", "main"))
    assert line == (
        "LocalQueue default/main used 2 nvidia.com/gpu on average: in queue kueue/a"
        " who used less lately goes first"
    )
    assert leader.averages.lines(QueueUser("batch", "default", "nobody")) == ()


async def test_the_api_lists_those_who_name_a_queue_the_first_to_go_first(
    cluster: Cluster,
) -> None:
    leader = cluster.leader()
    names = (Spelling("default", "main", weight=2000), Spelling("lab", "main"))
    spec = QueueSpec(QueueName("kueue/a"), None, {GPU: Quota(16)}, goes_by_users=True)
    leader.engine.apply(QueueUpserted(spec, names))
    for namespace, gpus in (("default", 4), ("lab", 3)):
        bill = Bill(QueueUser("batch", namespace, "main"), ((GPU.resource, gpus),))
        leader.engine.state.charges.charge(bill)
    assert leader.averages is not None
    await leader.averages.note()
    cluster.clock.now += HOUR
    node = leader.engine.state.charges.tree.find(QueueName("kueue/a"))
    assert node is not None
    uses = leader.averages.uses(node)
    assert [(use.name, use.weight, use.average[GPU.resource]) for use in uses] == [
        ("default/main", 2.0, "2"),  # 2 ÷ 2 before 1.5 ÷ 1
        ("lab/main", 1.0, "1500m"),
    ]
    assert leader.averages.uses(node.root) == uses


@pytest.mark.parametrize(
    ("shares", "says"),
    [
        (ShareFunction.BORROWED, "of queues that borrow, the one"),
        (ShareFunction.WATER_FILLING, "of queues alike, the one that used less of its part"),
        (ShareFunction.PRIORITY, ""),
    ],
)
async def test_the_line_is_about_what_orders_the_queue(
    cluster: Cluster, shares: ShareFunction, says: str
) -> None:
    leader = cluster.leader()
    top, child = QueueName("muster/top"), QueueName("muster/child")
    leader.engine.apply(QueueUpserted(QueueSpec(top, shares=shares)))
    leader.engine.apply(QueueUpserted(QueueSpec(child, top), (Spelling("", "child"),)))
    assert leader.averages is not None
    lines = leader.averages.lines(QueueUser("muster", "team", "child"))
    assert [says in line for line in lines] == ([True] if says else [])
