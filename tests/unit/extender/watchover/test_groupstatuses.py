"""Statuses in the place of another scheduler: written once, again after trouble, never in vain."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.dialects.kinds import VOLCANO, create, described, path_of, serve

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.watchover.groupstatuses import GroupStatusWriter
from loadtest.testbed.client.api import Api
from muster.cluster.events import GangUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec
from muster.cluster.state import ClusterState
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.names import PLAN_GATE
from muster.kube.resources import Resource
from muster.workloads.dialects.volcano import PodGroup, Volcano
from muster.workloads.managedpods import ManagedPolicy

GROUP = described(VOLCANO, "PodGroup", "pg", {"minMember": 2})
RESOURCE = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", PodGroup)
(WATCHED,) = Volcano.watched


class NotTold:
    """No condition says why any gang waits."""

    def of(self, _key: GangKey) -> None:
        """Return nothing."""

    def listen(self, _listener: Callable[[GangKey], None]) -> None:
        """Nothing changes."""


@dataclass
class Bench:
    server: FaultyServer
    api: Api
    client: KubeClient
    engine: Engine
    writer: GroupStatusWriter

    async def look(self) -> PodGroup:
        """Show the writer the object as it is now, as the watch does."""
        found = await self.client.get(RESOURCE, "pg", namespace="default")
        self.writer.seen(RESOURCE, WATCHED.status, found)
        return found

    async def status(self) -> dict[str, Any]:
        found = await self.api.get(f"{path_of(GROUP)}/pg")
        return dict(found.get("status") or {})

    def writes(self, outcome: str) -> float:
        metrics = self.writer._metrics.registry
        return metrics.get_sample_value("muster_status_writes_total", {"outcome": outcome}) or 0.0


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    engine = Engine(
        ClusterState("test", levels=("kubernetes.io/hostname",), gate=PLAN_GATE), lambda: 0.0
    )
    metrics = ExtenderMetrics(CollectorRegistry())
    async with (
        api_server() as (server, url),
        Api(url) as api,
        KubeClient(auth.fixed(url)) as client,
    ):
        await serve(api, VOLCANO, "PodGroup")
        await create(api, GROUP)
        writer = GroupStatusWriter(
            engine, ManagedPolicy(), lambda _: True, client, metrics, NotTold()
        )
        yield Bench(server, api, client, engine, writer)


async def test_a_status_is_written_once_however_often_the_gang_changes(bench: Bench) -> None:
    await bench.look()
    assert await bench.writer.settle()
    assert (await bench.status())["phase"] == "Inqueue"
    await bench.look()
    spec = GangSpec("volcano/default/pg", "default", "pg", "volcano", min_count=2)  # type: ignore[arg-type]
    bench.engine.apply(GangUpserted(spec))
    assert await bench.writer.settle()
    assert bench.writes("written") == 1


async def test_a_write_that_fails_is_made_again(bench: Bench) -> None:
    bench.server.faults.append(Fault("PATCH", "/status", code=500))
    await bench.look()
    assert not await bench.writer.settle()
    assert (await bench.status()) == {}
    assert await bench.writer.settle()
    assert (await bench.status())["phase"] == "Inqueue"
    assert (bench.writes("failed"), bench.writes("written")) == (1, 1)


async def test_an_object_that_is_gone_is_not_written_to_again(bench: Bench) -> None:
    found = await bench.look()
    await bench.api.delete(f"{path_of(GROUP)}/pg")
    assert await bench.writer.settle()
    bench.writer.gone(found.metadata.uid)
    assert await bench.writer.settle()
    assert bench.writes("written") == 0


async def test_a_field_that_this_version_of_the_kind_drops_is_not_sent_for_ever(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[object] = []
    found = await bench.look()

    async def patched(_resource: object, _name: str, body: object, **_: object) -> PodGroup:
        sent.append(body)
        return found  # unchanged, as of the version that was seen

    monkeypatch.setattr(bench.client, "patch", patched)
    for _ in range(3):
        assert await bench.writer.settle()
        await bench.look()
    assert len(sent) == 1


async def test_of_a_scheduler_that_is_not_replaced_nothing_is_kept(bench: Bench) -> None:
    metrics = ExtenderMetrics(CollectorRegistry())
    policy = ManagedPolicy(rewrite=frozenset({"kai-scheduler"}))
    writer = GroupStatusWriter(
        bench.engine, policy, lambda _: True, bench.client, metrics, NotTold()
    )
    writer.seen(RESOURCE, WATCHED.status, await bench.look())
    assert await writer.settle()
    assert (await bench.status()) == {}


async def test_in_a_namespace_that_is_not_musters_nothing_is_written(bench: Bench) -> None:
    """There the other scheduler may be at work, and its queues decide what is let in."""
    bench.writer._covers = lambda namespace: namespace != "default"
    await bench.look()
    assert await bench.writer.settle()
    assert (await bench.status()) == {}
