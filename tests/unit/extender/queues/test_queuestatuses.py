"""Statuses of queues: written when something changed, so many in a second, and never in vain."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.dialects.kinds import serve

from extender.config.settings import QueueStatusConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.queues.queueevents import QueueEvents
from extender.queues.queueobjects import QueueObjects
from extender.queues.queuestatuses import QueueStatusWriter, StatusParts
from extender.timeslice import Pace
from loadtest.testbed.client.api import Api
from muster.cluster.state import ClusterState
from muster.kube.client import KubeClient
from muster.kube.errors import KubeError
from muster.kube.http import auth
from muster.kube.names import PLAN_GATE
from muster.kube.resources import Resource
from muster.kube.writing.events import EventRecorder
from muster.workloads.queues.muster import OwnQueue
from muster.workloads.queues.registry import KINDS

(KIND,) = (kind for kind in KINDS if kind.type is OwnQueue)
RESOURCE = Resource("muster.dev", "v1alpha1", "queues", OwnQueue, namespaced=False)
PATH = "/apis/muster.dev/v1alpha1/queues"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@dataclass
class Desk:
    server: FaultyServer
    api: Api
    client: KubeClient
    recorder: EventRecorder
    writer: QueueStatusWriter

    async def put(self, name: str, **spec: Any) -> None:
        """Create a queue, or change it, and show it."""
        body = {"apiVersion": "muster.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}}
        if any(one["metadata"]["name"] == name for one in (await self.api.get(PATH))["items"]):
            await self.api.patch(f"{PATH}/{name}", {"spec": spec})
        else:
            await self.api.create(PATH, {**body, "spec": spec})
        await self.show(name)

    async def show(self, *names: str) -> None:
        """Show objects as they are now, as the watch does."""
        for name in names:
            found = await self.client.get(RESOURCE, name)
            reading = KIND.read(found)
            self.writer.objects.seen(KIND.name, found.metadata, reading)
            self.writer.seen(KIND, RESOURCE, found, reading)

    async def delete(self, name: str) -> None:
        """Delete a queue, and show that."""
        found = await self.client.get(RESOURCE, name)
        await self.api.delete(f"{PATH}/{name}")
        self.writer.objects.gone(KIND.name, found.metadata)
        self.writer.gone(KIND, found.metadata)

    async def round(self, patches: int = 100) -> int:
        """Look, and write; return how many statuses were written."""
        await self.writer.look()
        return await self.writer.write_due(patches)

    async def reason(self, name: str) -> str:
        """Return the reason of the condition Ready."""
        found = await self.api.get(f"{PATH}/{name}")
        conditions = (found.get("status") or {}).get("conditions") or [{"reason": ""}]
        return str(conditions[0]["reason"])

    async def notes(self, reason: str) -> list[str]:
        """Return the texts of all Events of a reason."""
        await self.recorder.flush()
        events = (await self.api.get(EVENTS))["items"]
        return [event["note"] for event in events if event["reason"] == reason]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    state = ClusterState("test", levels=("kubernetes.io/hostname",), gate=PLAN_GATE)
    engine = Engine(state, lambda: 0.0)
    async with (
        api_server() as (server, url),
        Api(url) as api,
        KubeClient(auth.fixed(url)) as client,
    ):
        await serve(api, "muster.dev/v1alpha1", "Queue")
        recorder = EventRecorder(client, controller="test", instance="test")
        parts = StatusParts(
            engine=engine,
            objects=QueueObjects(engine),
            client=client,
            events=QueueEvents(recorder),
            metrics=ExtenderMetrics(CollectorRegistry()),
            pace=Pace(time.perf_counter),
            program="muster",
        )
        writer = QueueStatusWriter(parts, QueueStatusConfig())
        yield Desk(server, api, client, recorder, writer)


async def test_a_status_is_written_once_while_nothing_changes(desk: Desk) -> None:
    await desk.put("a")
    assert await desk.round() == 1
    assert await desk.round() == 0  # before the watch has shown what was written
    await desk.show("a")
    assert await desk.round() == 0
    assert await desk.reason("a") == "Ready"


async def test_no_more_than_so_many_are_written_at_once_and_all_in_turn(desk: Desk) -> None:
    for name in "abcde":
        await desk.put(name)
    await desk.writer.look()
    assert [await desk.writer.write_due(2) for _ in range(4)] == [2, 2, 1, 0]
    assert {await desk.reason(name) for name in "abcde"} == {"Ready"}


async def test_a_queue_is_ready_as_soon_as_its_parent_comes(desk: Desk) -> None:
    await desk.put("child", parent="late")
    await desk.round()
    assert await desk.reason("child") == "ParentMissing"
    await desk.show("child")
    await desk.put("late")
    await desk.round()
    assert await desk.reason("child") == "Ready"


async def test_a_deleted_queue_is_forgotten(desk: Desk) -> None:
    await desk.put("a")
    await desk.writer.look()
    await desk.delete("a")
    assert await desk.writer.write_due(10) == 0
    assert await desk.round() == 0
    assert list(desk.writer.gauges(10)) == []


async def test_a_write_that_fails_is_made_again(desk: Desk) -> None:
    await desk.put("a")
    desk.server.faults.append(Fault("PATCH", "/status", code=500, left=9))
    await desk.writer.look()
    with pytest.raises(KubeError):
        await desk.writer.write_due(10)
    desk.server.faults.clear()
    assert await desk.writer.write_due(10) == 1
    assert await desk.reason("a") == "Ready"


async def test_a_status_that_is_refused_is_sent_again_when_the_object_changes(desk: Desk) -> None:
    await desk.put("a")
    desk.server.faults.append(Fault("PATCH", "/status", code=403))
    await desk.round()
    await desk.put("b")
    assert await desk.round() == 1
    assert await desk.reason("a") == ""
    await desk.put("a", closed=True)
    await desk.round()
    assert await desk.reason("a") == "Closed"


async def test_an_object_that_changed_meanwhile_is_written_when_it_is_seen(desk: Desk) -> None:
    await desk.put("a")
    await desk.writer.look()
    await desk.api.patch(f"{PATH}/a", {"spec": {"closed": True}})  # not shown yet
    await desk.writer.write_due(10)
    assert await desk.reason("a") == ""
    await desk.show("a")
    await desk.round()
    assert await desk.reason("a") == "Closed"


async def test_what_is_wrong_or_not_obeyed_is_an_event_once(desk: Desk) -> None:
    await desk.put("a", parent="late")
    await desk.put("b", priority=3)
    for _ in range(3):
        await desk.round()
        await desk.show("a")
        await desk.show("b")
    (wrong,) = await desk.notes("QueueNotReady")
    assert "parent muster/late does not exist" in wrong
    (unobeyed,) = await desk.notes("FieldNotObeyed")
    assert unobeyed.startswith("spec.priority: ")


async def test_a_queue_that_is_closed_on_purpose_is_no_event(desk: Desk) -> None:
    await desk.put("a", closed=True)
    await desk.round()
    assert await desk.reason("a") == "Closed"
    assert await desk.notes("QueueNotReady") == []


async def test_ten_thousand_queues_do_not_keep_the_event_loop(desk: Desk) -> None:
    """Another task gets its turn again and again; how long that takes depends on the machine."""
    for number in range(10_000):
        spec = {"parent": f"q{number % 10}"} if number >= 10 else {}
        meta = {"name": f"q{number}", "uid": str(number)}
        found = msgspec.convert({"metadata": meta, "spec": spec}, OwnQueue)
        reading = KIND.read(found)
        desk.writer.objects.seen(KIND.name, found.metadata, reading)
        desk.writer.seen(KIND, RESOURCE, found, reading)
    look = asyncio.create_task(desk.writer.look())
    turns = 0
    while not look.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 100


async def test_gauges_show_the_first_queues_by_name(desk: Desk) -> None:
    for name in "cab":
        await desk.put(name, quotas=[{"resource": "x/y", "entitled": 3}])
    await desk.writer.look()
    rows = [(row.queue, [one.entitled for one in row.cells]) for row in desk.writer.gauges(2)]
    assert rows == [("muster/a", [3]), ("muster/b", [3])]
