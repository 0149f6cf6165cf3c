"""Nodes that gangs leave, with workers that the test drives.

::

    rack r1 ── r1-0 r1-1 r1-2        rack r2 ── r2-0 r2-1 r2-2      (8 GPUs each)
"""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from support.clusters.clocked import Clocked
from support.extenders.extenders import PODS, world

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, create_owner, members, owner_reference
from muster.kube import names

NODES = "/api/v1/nodes"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


class DrainSite(Clocked):
    """Two racks; workers that the test drives."""

    async def taint(self, node: str, key: str = names.DRAIN, value: str = "") -> None:
        """Do as `muster drain`, or a cloud's controller, does."""
        taint = {"key": key, "value": value, "effect": "NoSchedule"}
        await self.cluster.api.patch(f"{NODES}/{node}", {"spec": {"taints": [taint]}})
        await self.cluster.settled()

    async def untaint(self, node: str) -> None:
        await self.cluster.api.patch(f"{NODES}/{node}", {"spec": {"taints": None}})
        await self.cluster.settled()

    async def look(self, after: float = 0.0) -> None:
        """Take a step of each worker."""
        self.now += after
        it = self.cluster.extender
        await it.drains.look()
        await it.evictor.look()
        await self.cluster.settled()

    async def runs(
        self, gang: Gang, *nodes: str, owned: bool = True, wide: bool = False, grace: int = 30
    ) -> None:
        """Have a gang bound on nodes; ``wide``: it tolerates every taint."""
        owner = await create_owner(self.cluster.api, gang) if owned else None
        for rank, made in enumerate(members(replace(gang, grace_s=grace), owner)):
            if wide:
                made["spec"]["tolerations"] = [{"operator": "Exists"}]
            await self.cluster.api.create(PODS, made)
            await self.cluster.bind(f"{gang.name}-{rank}", nodes[rank])
        await self.cluster.settled()

    async def ends(self, gang: Gang) -> None:
        """Do as the kubelet and the gang's controller do: its pods go, and come again."""
        for rank in range(gang.size):
            await self.cluster.api.delete(f"{PODS}/{gang.name}-{rank}")
        owner = await self.owner(gang)
        for made in members(gang, owner):
            made["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            await self.cluster.api.create(PODS, made)
        await self.cluster.settled()

    async def owner(self, gang: Gang) -> JSON:
        found = await self.cluster.api.get(f"{JOBS}/{gang.name}")
        return owner_reference(gang, found["metadata"]["uid"])

    async def leaving(self) -> list[str]:
        """Return the pods that are being deleted."""
        pods = (await self.cluster.api.get(PODS))["items"]
        found = [each["metadata"] for each in pods]
        return sorted(meta["name"] for meta in found if "deletionTimestamp" in meta)

    async def shown(self, query: str = "") -> list[JSON]:
        async with self.cluster.http.get(f"/v1/drains{query}") as reply:
            body: dict[str, Any] = json.loads(await reply.read())
            assert reply.status == 200, body
            nodes: list[JSON] = body["nodes"]
            return nodes

    def waits(self) -> dict[str, str]:
        found = self.cluster.extender.drains.waits
        return {gang.rpartition("/")[2]: why for gang, why in found.items()}


async def running(site: DrainSite, **settings: Any) -> AsyncIterator[DrainSite]:
    """Yield the site while an extender runs there; ``settings``: of its configuration."""
    without = ["drains", "evictor"]
    async with world(clock=lambda: site.now, spare_count=0, without=without, **settings) as cluster:
        await cluster.nodes({"r1": 3, "r2": 3})
        site.cluster = cluster
        await cluster.extender.evictor.take_over()
        yield site
