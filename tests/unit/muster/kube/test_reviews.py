"""Questions about callers: asked like reads, answered strictly."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.kube.client import KubeClient
from muster.kube.errors import DecodeError, Forbidden
from muster.kube.http import auth
from muster.kube.http.fence import Fence
from muster.kube.http.transport import Retry, Transport
from muster.kube.reviews import UserInfo, may, owner_of

JSON = dict[str, Any]
PROMETHEUS = {
    "username": "prometheus",
    "uid": "7",
    "groups": ["a", "b"],
    "extra": {"scopes": ["x"]},
}


@dataclass
class Server:
    """Fails with each of ``codes`` in turn, then answers with ``status``."""

    status: JSON = field(default_factory=dict)
    codes: list[int] = field(default_factory=list)
    asked: list[JSON] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        if self.codes:
            return web.json_response({"reason": "Told"}, status=self.codes.pop(0))
        return web.json_response({"status": self.status}, status=201)


@asynccontextmanager
async def asking(server: Server, *, leads: bool = True) -> AsyncIterator[KubeClient]:
    app = web.Application()
    app.router.add_post("/{path:.*}", server.handle)

    async def at_once(_seconds: float) -> None:
        pass

    async with AsyncExitStack() as stack:
        running = await stack.enter_async_context(TestServer(app))
        who = auth.fixed(str(running.make_url("")).rstrip("/"))
        reads = Transport(who, retry=Retry(attempts=3), sleep=at_once)
        closed = Transport(who, fence=Fence(write_timeout_s=4.0))
        made = KubeClient(who, transport=reads, writes=None if leads else closed)
        yield await stack.enter_async_context(made)


async def test_the_owner_is_whom_the_api_server_names() -> None:
    server = Server({"authenticated": True, "user": PROMETHEUS})
    async with asking(server) as client:
        user = await owner_of(client, "t", ())
    assert user == UserInfo(
        username="prometheus", uid="7", groups=("a", "b"), extra={"scopes": ("x",)}
    )
    assert server.asked[0]["spec"] == {"token": "t"}


@pytest.mark.parametrize(
    ("status", "audiences"),
    [
        ({}, ()),
        ({"authenticated": False, "user": PROMETHEUS}, ()),
        ({"authenticated": False, "error": "expired"}, ()),
        ({"authenticated": True, "user": {}}, ()),
        ({"authenticated": True, "user": PROMETHEUS}, ("ours",)),
        ({"authenticated": True, "user": PROMETHEUS, "audiences": ["theirs"]}, ("ours",)),
    ],
    ids=["empty", "no", "error", "nameless", "no-audience", "other-audience"],
)
async def test_anything_less_is_nobody(status: JSON, audiences: tuple[str, ...]) -> None:
    async with asking(Server(status)) as client:
        assert await owner_of(client, "t", audiences) is None


async def test_one_audience_of_several_is_enough() -> None:
    server = Server({"authenticated": True, "user": PROMETHEUS, "audiences": ["b"]})
    async with asking(server) as client:
        assert await owner_of(client, "t", ("a", "b")) is not None
    assert server.asked[0]["spec"]["audiences"] == ["a", "b"]


@pytest.mark.parametrize(
    ("status", "allowed"),
    [
        ({"allowed": True}, True),
        ({"allowed": False}, False),
        ({"denied": True}, False),
        ({}, False),
    ],
)
async def test_rbac_is_asked_with_all_that_is_known_of_the_user(
    status: JSON, *, allowed: bool
) -> None:
    server = Server(status)
    user = UserInfo(username="prometheus", uid="7", groups=("a",), extra={"scopes": ("x",)})
    async with asking(server) as client:
        assert await may(client, user, "get", "/metrics") is allowed
    assert server.asked[0]["spec"] == {
        "user": "prometheus",
        "uid": "7",
        "groups": ["a"],
        "extra": {"scopes": ["x"]},
        "nonResourceAttributes": {"verb": "get", "path": "/metrics"},
    }


async def test_a_question_is_repeated_like_a_read_since_it_stores_nothing() -> None:
    server = Server({"allowed": True}, codes=[500, 503])
    async with asking(server) as client:
        assert await may(client, UserInfo(username="u"), "get", "/")
    assert len(server.asked) == 3


async def test_a_replica_that_may_not_write_may_ask() -> None:
    async with asking(Server({"allowed": True}), leads=False) as client:
        assert await may(client, UserInfo(username="u"), "get", "/")


@pytest.mark.parametrize("question", ["token", "access"])
async def test_who_may_not_ask_gets_an_error_and_no_answer(question: str) -> None:
    ask: dict[str, Callable[[KubeClient], Any]] = {
        "token": lambda client: owner_of(client, "t", ()),
        "access": lambda client: may(client, UserInfo(username="u"), "get", "/"),
    }
    async with asking(Server(codes=[403])) as client:
        with pytest.raises(Forbidden):
            await ask[question](client)


@pytest.mark.parametrize("status", ["yes", {"authenticated": "yes"}, {"user": []}])
async def test_an_answer_of_another_shape_is_an_error(status: object) -> None:
    server = Server(json.loads(json.dumps(status)))
    async with asking(server) as client:
        with pytest.raises(DecodeError, match="TokenReview"):
            await owner_of(client, "t", ())
