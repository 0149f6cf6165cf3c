"""A closed fence lets nothing out, wherever the process was when it closed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.kube.errors import Fenced, TransportError
from muster.kube.http import auth, sockets
from muster.kube.http.fence import Fence
from muster.kube.http.transport import HttpRequest, Transport

BODY = HttpRequest("PATCH", "/x", body=b"{}")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Seen:
    requests: list[web.Request] = field(default_factory=list)
    hang: bool = False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        self.requests.append(request)
        if self.hang:
            await asyncio.sleep(60)
        return web.json_response({})


@pytest.fixture
async def server() -> AsyncIterator[tuple[Seen, str]]:
    seen = Seen()
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", seen.handle)
    async with TestServer(app) as running:
        yield seen, str(running.make_url("")).rstrip("/")


def opened(clock: Clock, write_timeout_s: float = 4.0) -> Fence:
    fence = Fence(write_timeout_s=write_timeout_s, clock=clock)
    fence.extend(10.0)
    fence.permit()
    return fence


async def test_it_is_open_only_between_permission_and_the_end_of_the_leaders_time() -> None:
    clock = Clock()
    fence = Fence(write_timeout_s=4.0, clock=clock)
    assert not fence.is_open()
    fence.extend(10.0)
    assert not fence.is_open()
    fence.permit()
    assert fence.is_open()
    clock.now = 10.0  # nobody told it
    assert not fence.is_open()
    fence.extend(20.0)
    assert fence.is_open()
    fence.shut()
    assert not fence.is_open()


async def test_a_write_outside_its_time_is_not_sent_and_counted(server: tuple[Seen, str]) -> None:
    seen, url = server
    clock = Clock()
    fence, refused = opened(clock), []
    fence.listen(lambda: refused.append(1))
    async with Transport(auth.fixed(url), fence=fence) as transport:
        await transport.send(BODY)
        clock.now = 10.0
        with pytest.raises(Fenced):
            await transport.send(BODY)
    assert len(seen.requests) == len(refused) == 1


async def test_a_write_carries_a_deadline_for_the_server(server: tuple[Seen, str]) -> None:
    seen, url = server
    async with Transport(auth.fixed(url), fence=opened(Clock())) as transport:
        await transport.send(BODY)
        await transport.send(HttpRequest("PATCH", "/x", {"fieldManager": "m"}, b"{}"))
    assert [dict(request.query) for request in seen.requests] == [
        {"timeout": "3000ms"},
        {"fieldManager": "m", "timeout": "3000ms"},
    ]


async def test_a_write_that_hangs_ends_at_its_time_out(server: tuple[Seen, str]) -> None:
    seen, url = server
    seen.hang = True
    fence = opened(Clock(), write_timeout_s=0.1)
    async with Transport(auth.fixed(url), fence=fence) as transport:
        with pytest.raises(TransportError):
            await transport.send(BODY)
    assert await fence.settled()


async def test_a_fence_that_closes_after_it_was_asked_still_keeps_the_request_in(
    server: tuple[Seen, str],
) -> None:
    seen, url = server

    class Closing(Fence):
        """Open for the transport's question, closed for the socket's."""

        asked = 0

        def is_open(self) -> bool:
            self.asked += 1
            return self.asked == 1

    async with Transport(auth.fixed(url), fence=Closing(write_timeout_s=4.0)) as transport:
        with pytest.raises(TransportError):
            await transport.send(BODY)
    assert seen.requests == []


def test_a_fenced_socket_gives_up_what_it_cannot_deliver() -> None:
    make = sockets.fenced(lambda: True, 1.5)
    with make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8) == b"\1\0\0\0\0\0\0\0"
        assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 1500
        assert not made.getblocking()


async def test_settled_waits_for_what_is_in_flight_and_tells_when_it_does_not_end() -> None:
    fence = opened(Clock(), write_timeout_s=0.05)
    assert await fence.settled()
    with fence.write("a write"):
        assert not await fence.settled()
    assert await fence.settled()
