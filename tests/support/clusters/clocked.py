"""An extender with a clock that the test sets, on two racks of three hosts.

::

    rack r1 ── r1-0 r1-1 r1-2        rack r2 ── r2-0 r2-1 r2-2      (8 GPUs each)
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from support.extenders.extenders import World, eventually, world

from loadtest.testbed.client.api import JSON, ApiFailed


@dataclass
class Clocked:
    """``now``: epoch seconds, as the extender has them."""

    cluster: World = field(init=False)
    now: float = 1_000_000.0

    async def exists(self, *pods: str) -> bool:
        """Whether there is any of these pods."""
        return any([await self._exists(name) for name in pods])

    async def event(self, reason: str) -> JSON:
        """Wait for an Event of a reason, and return it."""

        async def reported() -> bool:
            return bool(await self.cluster.events(reason))

        await eventually(reported)
        return (await self.cluster.events(reason))[0]

    async def _exists(self, name: str) -> bool:
        try:
            await self.cluster.pod(name)
        except ApiFailed as error:
            return error.code != 404
        return True


T = TypeVar("T", bound=Clocked)


@asynccontextmanager
async def two_racks(made: T, **settings: float) -> AsyncIterator[T]:
    """Start the extender with these settings and no spares; its clock is ``made.now``."""
    async with world(clock=lambda: made.now, spare_count=0, **settings) as cluster:
        await cluster.nodes({"r1": 3, "r2": 3})
        made.cluster = cluster
        yield made
