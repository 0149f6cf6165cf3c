"""Slow and too many connections, over real sockets; time is the test's."""

import asyncio
import contextlib
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge

from muster.observability.idleconnections import (
    PATIENCE_S,
    Connection,
    ConnectionLimits,
    ConnectionMetrics,
    ConnectionStage,
    Door,
    busy,
    vouch,
)

HEAD_S = 5.0
PIECE_BYTES = 1 << 15
PATIENCE = 20
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class World:
    """A server with room for four; a request to ``/`` is answered when ``answer`` is set."""

    registry: CollectorRegistry
    answer: asyncio.Event
    now: float = 0.0
    port: int = 0
    door: Door = field(init=False)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def dial(self, data: bytes = b"") -> Streams:
        """A new connection on which ``data`` has arrived."""
        before = set(self.connections())
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        await self.until(lambda: bool(set(self.connections()) - before))
        (connection,) = set(self.connections()) - before
        if data:
            writer.write(data)
            await self.until(lambda: connection.stage is not ConnectionStage.IDLE)
        return reader, writer

    def connections(self) -> list[Connection]:
        return list(self.door.connections)

    def stages(self) -> list[str]:
        return sorted(connection.stage.name for connection in self.connections())

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():  # noqa: ASYNC110 - nothing to wait on
                await asyncio.sleep(0.005)

    def closed(self, reason: str) -> float:
        sample = self.registry.get_sample_value
        return sample("closed_total", {"reason": reason}) or 0


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    answer = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.Response:
        await answer.wait()
        if request.path != "/":
            raise web.HTTPNotFound
        return web.Response(text="ok")

    inner = web.Server(busy(handle), handler_cancellation=True)
    runner = web.ServerRunner(inner)
    await runner.setup()
    registry = CollectorRegistry()
    made = World(registry, answer)
    limits = ConnectionLimits(connections=4, head_seconds=HEAD_S, read_bytes=PIECE_BYTES)
    counted = ConnectionMetrics(
        Gauge("open", "Open.", registry=registry),
        Counter("closed", "Closed.", ("reason",), registry=registry),
    )
    made.door = Door(inner, limits, counted, lambda: made.now)
    server = await asyncio.get_running_loop().create_server(made.door, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        answer.set()
        for writer in made.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await runner.cleanup()


async def is_cut(streams: Streams) -> bool:
    """Whether the other side closes."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await streams[0].read() == b""
    except ConnectionError:
        return True


async def test_a_head_that_does_not_end_is_cut_off_and_an_idle_connection_is_not() -> None:
    async with world() as door:
        slow, _idle = await door.dial(GET[:10]), await door.dial()
        door.now = HEAD_S - 0.1
        door.door.sweep()
        assert door.stages() == ["HEAD", "IDLE"]
        door.now = HEAD_S
        door.door.sweep()
        assert await is_cut(slow)
        assert door.stages() == ["IDLE"]
        assert door.closed("slow_head") == 1


async def test_more_bytes_of_a_head_do_not_buy_more_time() -> None:
    async with world() as door:
        slow = await door.dial(GET[:5])
        door.now = HEAD_S - 0.1
        slow[1].write(GET[5:10])
        await slow[1].drain()
        door.now = HEAD_S
        door.door.sweep()
        assert await is_cut(slow)


async def test_a_request_that_is_being_answered_is_not_cut_off_and_may_be_followed_by_another() -> (
    None
):
    async with world() as door:
        reader, writer = await door.dial(GET)
        await door.until(lambda: door.stages() == ["BUSY"])
        door.now = 10 * HEAD_S
        door.door.sweep()
        door.answer.set()
        assert b"200 OK" in await reader.readuntil(b"ok")
        await door.until(lambda: door.stages() == ["IDLE"])
        writer.write(GET)
        assert b"200 OK" in await reader.readuntil(b"ok")


async def test_when_there_are_too_many_the_slowest_at_work_goes_and_not_the_idle_one() -> None:
    async with world() as door:
        await door.dial()
        door.now = 1.0
        slowest = await door.dial(GET[:10])
        door.now = 1.5
        await door.dial(GET)
        await door.dial()
        door.now = 1.5 + PATIENCE_S
        await door.dial()
        assert await is_cut(slowest)
        assert door.stages() == ["BUSY", "IDLE", "IDLE", "IDLE"]
        assert door.closed("too_many") == 1


async def test_when_nobody_is_slow_the_one_that_is_idle_for_longest_goes() -> None:
    async with world() as door:
        first = await door.dial()
        for number in range(1, 5):
            door.now = float(number)
            await door.dial()
        assert await is_cut(first)
        assert len(door.connections()) == 4


async def test_strangers_push_out_each_other_and_never_a_caller_who_has_shown_who_he_is() -> None:
    """The oldest idle connection is kube-scheduler's; after it come ever more halves of heads."""
    async with world() as door:
        known = await door.dial()
        (connection,) = door.connections()
        vouch(connection.transport)
        for number in range(1, 20):
            door.now = float(number)
            await door.dial(GET[:10] if number % 2 else b"")
        assert connection in door.connections()
        assert len(door.connections()) == 4
        door.answer.set()
        known[1].write(GET)
        assert (await known[0].readuntil(b"\r\n")).endswith(b"200 OK\r\n")


async def test_connections_are_counted_and_forgotten() -> None:
    async with world() as door:
        streams = [await door.dial() for _ in range(3)]
        assert door.registry.get_sample_value("open") == 3
        for _, writer in streams:
            writer.close()
        await door.until(lambda: not door.connections())
        assert door.registry.get_sample_value("open") == 0


@pytest.mark.parametrize("path", ["/", "/nowhere"])
async def test_a_connection_is_idle_again_whatever_the_answer_was(path: str) -> None:
    async with world() as door:
        door.answer.set()
        reader, writer = await door.dial()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        await door.until(lambda: door.stages() == ["IDLE"])


async def test_little_waits_to_be_decrypted() -> None:
    """Over TLS, as asyncio does it, and a client whose handler takes nothing for now."""
    async with world() as door:
        context, connection = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), door.door()
        loop = asyncio.get_running_loop()
        tls = SSLProtocol(loop, connection, context, None, server_side=True)
        transport = tls._get_app_transport()
        connection.connection_made(transport)
        assert transport.get_read_buffer_limits()[1] == PIECE_BYTES
        connection.connection_lost(None)
