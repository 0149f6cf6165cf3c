"""A gang that needs its minimum once, and had it, has it for ever: also for the next process.

::

    zone z ── block b ── rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each, a member fills one)

Koordinator's default; three of five members are needed.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.apiservers.apifaults import api_server
from support.apiservers.eventually import eventually
from support.dialects.kinds import JSON, KOORDINATOR, create, member, serve, waits
from support.extenders.extenders import PODS, World, running_extender

from extender.config.settings import ExtenderConfig
from loadtest.testbed.client.api import Api

KEYS = "gang.scheduling.koordinator.sh/"
GROUPS = f"/apis/{KOORDINATOR}/namespaces/default/podgroups"


class Cluster:
    """An API server, and one extender after the other."""

    def __init__(self, server: object, url: str) -> None:
        self.server, self.url = server, url

    @asynccontextmanager
    async def extender(self) -> AsyncIterator[World]:
        config = ExtenderConfig(
            debounce_seconds=0.0, assembly_window_seconds=0.0, drain_seconds=2.0, spare_count=0
        )
        async with running_extender(self.server, self.url, config) as running:  # type: ignore[arg-type]
            yield running


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with api_server() as (server, url):
        async with Api(url) as api:
            await serve(api, KOORDINATOR, "PodGroup")
        yield Cluster(server, url)


def koordinator_member(name: str, kind: str, policy: str = "") -> JSON:
    if kind == "PodGroup":
        return member(name, labels={"pod-group.scheduling.sigs.k8s.io": "g"})
    keys = {f"{KEYS}name": "g", f"{KEYS}min-available": "3", f"{KEYS}total-number": "5"}
    return member(name, annotations=keys | ({f"{KEYS}match-policy": policy} if policy else {}))


async def first_three(world: World, kind: str, policy: str = "") -> None:
    """Let the first three members run, on a host each."""
    await world.nodes({"r1": 3})
    if kind == "PodGroup":
        notes = {f"{KEYS}total-number": "5"} | ({f"{KEYS}match-policy": policy} if policy else {})
        meta = {"name": "g", "namespace": "default", "annotations": notes}
        group = {"apiVersion": KOORDINATOR, "kind": "PodGroup", "metadata": meta}
        await create(world.api, group | {"spec": {"minMember": 3}})
    for number in range(3):
        await world.api.create(PODS, koordinator_member(f"m-{number}", kind, policy))
    for name, node in (await world.released(["m-0", "m-1", "m-2"])).items():
        await world.bind(name, node)
    await world.settled()


async def end(world: World, *names: str) -> None:
    """Let members succeed, and delete them."""
    for name in names:
        await world.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Succeeded"}})
        await world.api.delete(f"{PODS}/{name}")
    await world.settled()


@pytest.mark.parametrize("kind", ["annotations", "PodGroup"])
async def test_a_member_that_comes_later_goes_alone(cluster: Cluster, kind: str) -> None:
    async with cluster.extender() as world:
        await first_three(world, kind)
        await end(world, "m-0", "m-1")
        await world.api.create(PODS, koordinator_member("m-3", kind))
        await world.released(["m-3"])


@pytest.mark.parametrize("kind", ["annotations", "PodGroup"])
async def test_it_goes_alone_after_a_restart(cluster: Cluster, kind: str) -> None:
    async with cluster.extender() as world:
        await first_three(world, kind)
        await end(world, "m-0", "m-1")
    async with cluster.extender() as world:
        await world.api.create(PODS, koordinator_member("m-3", kind))
        await world.released(["m-3"])


@pytest.mark.parametrize("restarted", [False, True])
async def test_a_group_remembers_when_all_of_the_first_are_gone(
    cluster: Cluster,
    restarted: bool,  # noqa: FBT001 - a table
) -> None:
    async with cluster.extender() as world:
        await first_three(world, "PodGroup")
        await eventually(
            world.api, f"{GROUPS}/g", lambda group: group.get("status", {}).get("scheduled") == 3
        )
        await end(world, "m-0", "m-1", "m-2")
        if not restarted:
            await world.api.create(PODS, koordinator_member("m-3", "PodGroup"))
            await world.released(["m-3"])
    if restarted:
        async with cluster.extender() as world:
            await world.api.create(PODS, koordinator_member("m-3", "PodGroup"))
            await world.released(["m-3"])


@pytest.mark.parametrize("policy", ["only-waiting", "waiting-and-running"])
async def test_under_another_policy_the_minimum_is_asked_for_each_time(
    cluster: Cluster, policy: str
) -> None:
    async with cluster.extender() as world:
        await first_three(world, "PodGroup", policy)
        await end(world, "m-0", "m-1", "m-2")
        await world.api.create(PODS, koordinator_member("m-3", "PodGroup"))
        await waits(world, "m-3")
