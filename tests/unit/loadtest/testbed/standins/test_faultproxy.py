"""The faulty proxy before a simulated API server, both in this process.

::

    client ──► FaultProxy ──► API server        plain: past the proxy
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web
from support.apiservers.apifaults import api_server

from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.standins import faultproxy
from loadtest.testbed.standins.faultproxy import CONTROL, FaultProxy
from loadtest.testbed.standins.persistentclient import LOST

PODS = "/api/v1/namespaces/default/pods"
WAIT_S = 20.0


@dataclass
class World:
    api: Api  # through the proxy
    plain: Api

    async def version(self) -> str:
        return (await self.plain.list_all(PODS))[1]

    async def faults(self, **how: str) -> dict[str, int]:
        return await self.api.get(CONTROL, **how)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(faultproxy, "SLOW_S", 0.0)
    async with api_server() as (_, url), aiohttp.ClientSession(auto_decompress=False) as session:
        proxy = FaultProxy(url, session, seed=1)
        runner = web.ServerRunner(web.Server(proxy.handle, handler_cancellation=True))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        near = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with Api(near) as api, Api(url) as plain:
            yield World(api, plain)
        await runner.cleanup()


async def watched(world: World, version: str) -> list[str]:
    """Return the names that a watch brings until it ends."""
    seen: list[str] = []
    try:
        async with asyncio.timeout(WAIT_S):
            async for _, obj in world.api.watch(PODS, version):
                seen.append(obj["metadata"]["name"])
                if seen[-1] == "last":
                    break
                await world.faults(drop="1")
    except LOST:
        pass
    return seen


async def test_without_faults_everything_is_handed_on(world: World) -> None:
    made = await world.api.create(PODS, pod("train-0"))
    await world.api.patch(f"{PODS}/train-0", {"metadata": {"labels": {"a": "b"}}})
    there = await world.plain.get(f"{PODS}/train-0")
    assert there["metadata"]["uid"] == made["metadata"]["uid"]
    assert there["metadata"]["labels"] == {"a": "b"}
    with pytest.raises(ApiFailed, match="404"):
        await world.api.get(f"{PODS}/none")
    assert await world.faults() == {}


async def test_nothing_is_asked_for_that_the_client_did_not_ask_for() -> None:
    asked: list[str] = []

    async def answered(request: web.BaseRequest) -> web.Response:
        asked.extend(name.lower() for name in request.headers)
        return web.Response(body=b"{}")

    far = web.ServerRunner(web.Server(answered))
    await far.setup()
    await web.TCPSite(far, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        proxy = FaultProxy(f"http://127.0.0.1:{far.addresses[0][1]}", session, seed=1)
        near = web.ServerRunner(web.Server(proxy.handle))
        await near.setup()
        await web.TCPSite(near, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*near.addresses[0][:2])
        writer.write(b"GET /api HTTP/1.1\r\nHost: near\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"{}\r\n0\r\n\r\n")
        writer.close()
        await near.cleanup()
    await far.cleanup()
    assert asked == ["host"]


async def test_a_conflict_is_told_of_changes_only_and_nothing_is_written(world: World) -> None:
    await world.faults(conflicts="1")
    await world.api.create(PODS, pod("train-0"))
    with pytest.raises(ApiFailed, match="409") as refused:
        await world.api.patch(f"{PODS}/train-0", {"metadata": {"labels": {"a": "b"}}})
    assert refused.value.status["reason"] == "Conflict"
    assert not (await world.plain.get(f"{PODS}/train-0"))["metadata"].get("labels")
    assert await world.faults(conflicts="0") == {"conflicts": 1}
    await world.api.patch(f"{PODS}/train-0", {"metadata": {"labels": {"a": "b"}}})


async def test_a_slow_answer_is_the_right_one(world: World) -> None:
    await world.faults(slow="1")
    await world.api.create(PODS, pod("train-0"))
    assert (await world.faults(slow="0"))["slow"] == 1
    assert await world.plain.get(f"{PODS}/train-0")


@pytest.mark.parametrize(("share", "of", "met"), [("0.05", 20, 1), ("0.5", 100, 50), ("0", 9, 0)])
async def test_a_share_is_as_many_as_it_says_even_of_few(
    world: World, share: str, of: int, met: int
) -> None:
    await world.faults(slow=share)
    for _ in range(of):
        await world.api.get(PODS)
    assert (await world.faults()).get("slow", 0) == met


async def test_a_watch_that_is_cut_goes_on_where_it_was(world: World) -> None:
    version = await world.version()
    await world.plain.create(PODS, pod("first"))
    assert await watched(world, version) == ["first"]
    version = await world.version()
    await world.plain.create(PODS, pod("last"))
    assert await watched(world, version) == ["last"]
    assert await world.faults() == {"watches cut": 1}


async def test_what_an_expired_watch_resumes_from_is_gone_once(world: World) -> None:
    version = await world.version()
    await world.plain.create(PODS, pod("last"))
    begun = asyncio.Event()

    async def follow() -> None:
        with contextlib.suppress(*LOST):
            async for _ in world.api.watch(PODS, version):
                begun.set()

    async with asyncio.TaskGroup() as group, asyncio.timeout(WAIT_S):
        group.create_task(follow())
        await begun.wait()  # a client repeats a GET by itself that is cut before its answer begins
        await world.faults(gone="1")
    with pytest.raises(ApiFailed, match="410") as refused:
        await watched(world, version)
    assert refused.value.status["reason"] == "Expired"
    assert await watched(world, version) == ["last"]
    assert (await world.faults())["410"] == 1


async def test_a_server_that_is_away_is_a_lost_connection(world: World) -> None:
    async with aiohttp.ClientSession() as session:
        async with api_server() as (_, url):
            pass
        proxy = FaultProxy(url, session, seed=1)
        runner = web.ServerRunner(web.Server(proxy.handle))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with Api(f"http://127.0.0.1:{runner.addresses[0][1]}") as api:
            with pytest.raises(LOST):
                await api.create(PODS, pod("train-0"))
        await runner.cleanup()
    assert await world.faults() == {}
