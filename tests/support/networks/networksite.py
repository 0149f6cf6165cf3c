"""One rack with isolated networks for unit tests, and the time in hand.

::

    rack r1 ── r1-0 r1-1 r1-2 r1-3    (8 GPUs each, an agent on each, underlay MTU 1500)
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from support.apiservers.apifaults import api_server
from support.extenders.extenders import PODS, World, eventually, running_extender
from support.networks.jobnetworks import ATTACHMENTS, NETWORKS, POOLS, agent, install, pool

from extender.config.settings import ExtenderConfig
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.pods import Gang

HOSTS = 4


@dataclass
class Site:
    """A cluster with networks, and the time."""

    api: Api
    world: World = field(init=False)
    now: float = 1_000_000.0

    async def networks(self) -> dict[str, JSON]:
        found = await self.api.get(NETWORKS)
        return {each["metadata"]["name"]: each for each in found["items"]}

    async def attachments(self) -> dict[str, JSON]:
        found = await self.api.get(ATTACHMENTS)
        return {each["metadata"]["name"]: each for each in found["items"]}

    async def submit(self, gang: Gang, **how: object) -> dict[str, str]:
        """Create the gang and wait until it is released; return pod → node."""
        await self.world.gang(gang, **how)  # type: ignore[arg-type]
        return await self.world.released([f"{gang.name}-{rank}" for rank in range(gang.size)])

    async def end(self, gang: Gang) -> None:
        for rank in range(gang.size):
            await self.api.delete(f"{PODS}/{gang.name}-{rank}")

    async def until_networks(self, *expected: str) -> None:
        async def there() -> bool:
            return set(await self.networks()) == set(expected)

        await eventually(there)

    async def bound(self, gang: Gang, **how: object) -> dict[str, str]:
        """Submit a gang and bind its members where they are planned; return pod → node."""
        nodes = await self.submit(gang, **how)
        for pod, node in nodes.items():
            await self.world.bind(pod, node)
        await self.world.settled()
        return nodes

    async def conditions(self, name: str) -> dict[str, JSON]:
        """Return the conditions of a pool by type."""
        status = (await self.api.get(f"{POOLS}/{name}")).get("status", {})
        return {each["type"]: each for each in status.get("conditions", [])}

    async def explained(self, pod: str) -> str:
        async with self.world.http.get(f"/v1/explain/default/{pod}") as answer:
            return await answer.text()

    async def until_explained(self, pod: str, text: str) -> None:
        async def reported() -> bool:
            return text in await self.explained(pod)

        await eventually(reported)


@asynccontextmanager
async def site(
    *pools: JSON, mtu: int = 1500, agents: int = HOSTS, spares: int = 0, without: str = ""
) -> AsyncIterator[Site]:
    """Serve a cluster of one rack. ``without``: a kind, by its plural, that is not installed."""
    config = ExtenderConfig(debounce_seconds=0.0, drain_seconds=2.0, spare_count=spares)
    async with api_server() as (server, url), Api(url) as api:
        await install(api, without)
        for each in pools or (pool(),):
            await api.create(POOLS, each)
        for number in range(agents):
            await agent(api, f"r1-{number}", number, mtu=mtu)
        it = Site(api)
        async with running_extender(server, url, config, lambda: it.now) as world:
            it.world = world
            await world.nodes({"r1": HOSTS})
            yield it
