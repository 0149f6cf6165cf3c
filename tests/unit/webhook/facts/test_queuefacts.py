"""The queues that the webhook knows, over a simulated API server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.apiservers.apifaults import api_server
from support.dialects.profilekinds import CRDS
from support.machine import quickyaml

from loadtest.testbed.client.api import Api
from muster.cluster.quota.aliases import QueueUser
from muster.kube.client import KubeClient
from muster.kube.http import auth
from webhook.facts.queues import QueueFacts

JSON = dict[str, Any]
QUEUES = "/apis/muster.dev/v1alpha1/queues"
DEFINITION = Path(__file__).parents[4] / "manifests" / "crds" / "queues.yaml"
USER = QueueUser("muster", "team-a", "vision")
PATIENCE_S = 20


@dataclass
class World:
    """A cluster, and what is known of its queues."""

    api: Api
    facts: QueueFacts

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not holds():  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.01)

    def problem(self, gpus: int = 8) -> str:
        directory = self.facts.directory()
        assert directory is not None
        return directory.problem(USER, self.facts.labels("team-a"), {"nvidia.com/gpu": gpus})


@asynccontextmanager
async def world(*, kinds: bool = True) -> AsyncIterator[World]:
    async with api_server() as (_, url), Api(url) as api:
        if kinds:
            await api.create(CRDS, quickyaml.load(DEFINITION.read_text()))
        async with KubeClient(auth.fixed(url)) as client:
            facts = QueueFacts(client)
            assert facts.directory() is None
            task = asyncio.create_task(facts.run())
            try:
                known = World(api, facts)
                await known.until(lambda: facts.directory() is not None)
                yield known
            finally:
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


def queue(name: str, **spec: object) -> JSON:
    quotas = [{"resource": "nvidia.com/gpu", "entitled": 8, "limit": 16}]
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quotas": quotas, **spec},
    }


async def test_that_all_is_known_is_a_change_even_where_there_is_nothing() -> None:
    async with api_server() as (_, url), KubeClient(auth.fixed(url)) as client:
        facts = QueueFacts(client)
        before = facts.generation
        for source in facts._sources:
            assert facts.directory() is None
            assert facts.generation == before
            source.synced.set()
        assert facts.directory() is not None
        assert facts.generation > before


async def test_a_cluster_without_any_kind_of_queue_is_known_to_have_none() -> None:
    async with world(kinds=False) as cluster:
        assert cluster.problem(99) == ""


async def test_queues_come_change_and_go() -> None:
    async with world() as cluster:
        assert cluster.problem(99) == ""
        await cluster.api.create(QUEUES, queue("other"))
        await cluster.until(lambda: cluster.problem().startswith("no queue is named"))
        before = cluster.facts.generation
        await cluster.api.create(QUEUES, queue("vision"))
        await cluster.until(lambda: cluster.problem() == "")
        assert cluster.facts.generation > before
        assert "can never have more than 16" in cluster.problem(17)
        await cluster.api.patch(f"{QUEUES}/vision", {"spec": {"closed": True}})
        await cluster.until(lambda: "is closed" in cluster.problem())
        await cluster.api.delete(f"{QUEUES}/vision")
        await cluster.until(lambda: cluster.problem().startswith("no queue is named"))


async def test_labels_of_the_namespace_decide_and_are_followed() -> None:
    async with world() as cluster:
        selector = {"matchLabels": {"team": "vision"}}
        await cluster.api.create(QUEUES, queue("vision", namespaceSelector=selector))
        await cluster.until(lambda: cluster.facts.generation > 0)
        assert cluster.problem() == ""  # the namespace is not known
        names = "/api/v1/namespaces"
        await cluster.api.create(names, {"metadata": {"name": "team-a", "labels": {}}})
        await cluster.until(lambda: "may not use queue" in cluster.problem())
        await cluster.api.patch(f"{names}/team-a", {"metadata": {"labels": {"team": "vision"}}})
        await cluster.until(lambda: cluster.problem() == "")


async def test_defaults_of_limit_ranges_are_followed() -> None:
    async with world() as cluster:
        await cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "team-a"}})
        path = "/api/v1/namespaces/team-a/limitranges"
        limits = [{"type": "Container", "defaultRequest": {"cpu": "2"}}]
        await cluster.api.create(path, {"metadata": {"name": "l"}, "spec": {"limits": limits}})
        facts = cluster.facts
        await cluster.until(lambda: facts.default_requests("team-a") == {"cpu": "2"})
        assert facts.default_requests("team-b") == {}
        await cluster.api.delete(f"{path}/l")
        await cluster.until(lambda: facts.default_requests("team-a") == {})
