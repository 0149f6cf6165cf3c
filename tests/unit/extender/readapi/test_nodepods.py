"""The watch of a node's pods, at an extender that ends."""

import asyncio
from contextlib import suppress
from pathlib import Path

import aiohttp
from support.extenders.door import door

from extender.config.callers import CallersSettings, NamedCallers, Tokens


async def test_an_extender_that_ends_ends_its_watches_at_once(tmp_path: Path) -> None:
    callers = CallersSettings(Tokens(), node=NamedCallers(users=("plugin",)))
    async with door(tmp_path, callers) as it, it.session(token="t-plugin") as session:
        async with session.get("/v1/nodes/n1/pods") as listed:
            version = (await listed.json())["metadata"]["resourceVersion"]
        query = {"watch": "1", "resourceVersion": version}
        async with asyncio.timeout(20), session.get("/v1/nodes/n1/pods", params=query) as watch:
            assert watch.status == 200
            await it.extender.parts.node_pods.close()
            with suppress(aiohttp.ClientError):  # it is closed in the middle of a stream
                assert await watch.content.read() == b""
            assert not it.extender.parts.node_pods._watches
