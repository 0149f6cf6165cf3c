"""What is sent how often; against a real HTTP server that answers as it is told."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from muster.cluster.events import PlanNote
from muster.kube import errors
from muster.kube.client import KubeClient
from muster.kube.http.auth import Auth
from muster.kube.http.credentials import Credentials
from muster.kube.http.transport import AnswerStream, HttpRequest, Retry, Transport
from muster.kube.resources import NODES, PODS
from muster.kube.writing.podwrites import (
    Conflicted,
    PodRef,
    Released,
    Unclear,
    evict_pod,
    release_pod,
)

REF = PodRef("ns", "p", "u")
GONE = json.dumps({"kind": "Status", "code": 410, "reason": "Expired"})


@dataclass
class Answers:
    """``script``: status codes, ``drop`` (the connection is closed) or ``hang``."""

    script: deque[int | str]
    body: str = "{}"
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[web.Request] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        self.tokens.append(request.headers.get("Authorization", ""))
        answer = self.script.popleft() if self.script else 200
        if answer == "drop":
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        if isinstance(answer, str):
            await asyncio.sleep(60)
        status = int(answer)
        body = self.body if status < 300 else json.dumps({"code": status, "reason": "Told"})
        return web.Response(status=status, text=body, headers=self.headers)


@dataclass
class Fixture:
    client: KubeClient
    answers: Answers
    waits: list[float]
    auth: Auth


class Rotating:
    """Tokens that are numbered by how often everything was loaded."""

    def __init__(self, server: str) -> None:
        self.loads = 0
        self.asked = 0
        self._server = server

    def load(self) -> Credentials:
        self.loads += 1
        return Credentials(self._server, authorization=f"Bearer {self.loads}")

    def authorization(self) -> str:
        self.asked += 1
        return f"Bearer {self.loads}.{self.asked}"


@asynccontextmanager
async def serving(*script: int | str, body: str = "{}", **headers: str) -> AsyncIterator[Fixture]:
    answers = Answers(deque(script), body, {k.replace("_", "-"): v for k, v in headers.items()})
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answers.handle)
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with TestServer(app) as server:
        auth = Auth(Rotating(str(server.make_url("")).rstrip("/")), clock=lambda: 0.0)
        transport = Transport(
            auth, timeout_s=5, retry=Retry(attempts=3), sleep=sleep, jitter=lambda: 0.5
        )
        async with KubeClient(auth, transport=transport) as client:
            yield Fixture(client, answers, waits, auth)


@pytest.mark.parametrize("trouble", [500, 503, 429])
async def test_a_read_is_repeated_with_growing_waits(trouble: int | str) -> None:
    async with serving(trouble, trouble, 200) as on:
        await on.client.get(NODES, "n1")
        assert len(on.answers.seen) == 3
        assert on.waits == [0.05, 0.1]


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        (500, errors.ServerError),
        (503, errors.ServerError),
        (504, errors.ServerError),
        ("drop", errors.TransportError),
        (409, errors.Conflict),
        (422, errors.Invalid),
        (403, errors.Forbidden),
    ],
)
async def test_a_write_that_may_have_taken_effect_is_never_sent_twice(
    trouble: int | str, error: type[errors.KubeError]
) -> None:
    async with serving(trouble, 200) as on:
        with pytest.raises(error):
            await on.client.patch(PODS, "p", b"{}", namespace="ns")
        assert (len(on.answers.seen), on.waits) == (1, [])


async def test_a_throttled_write_waits_as_long_as_it_is_asked_to() -> None:
    async with serving(429, 200, Retry_After="7") as on:
        await on.client.patch(PODS, "p", b"{}", namespace="ns")
        assert on.waits == [7.05]


async def test_a_throttled_eviction_is_a_disruption_budgets_no() -> None:
    async with serving(200, 429, body='{"metadata":{"uid":"u"}}') as on:
        with pytest.raises(errors.TooManyRequests):
            await evict_pod(on.client, REF)
        assert len(on.answers.seen) == 2


async def test_a_read_survives_lost_connections() -> None:
    async with serving("drop", "drop", 200) as on:
        await on.client.get(NODES, "n1")
        assert len(on.answers.seen) == 3  # aiohttp repeats one of them itself, without a wait


async def test_attempts_end() -> None:
    async with serving(500, 500, 500, 200) as on:
        with pytest.raises(errors.ServerError):
            await on.client.get(NODES, "n1")
        assert len(on.answers.seen) == 3


async def test_a_401_renews_the_credentials_once() -> None:
    async with serving(401, 200) as on:
        await on.client.patch(PODS, "p", b"{}", namespace="ns")
        assert on.answers.tokens == ["Bearer 1", "Bearer 2"]
    async with serving(401, 401, 200) as on:
        with pytest.raises(errors.Unauthorized):
            await on.client.get(NODES, "n1")
        assert len(on.answers.seen) == 2


async def test_many_requests_refused_together_renew_together() -> None:
    async with serving(*[401] * 8) as on:
        await asyncio.gather(*[on.client.get(NODES, "n1") for _ in range(8)])
        assert set(on.answers.tokens) == {"Bearer 1", "Bearer 2"}


async def test_a_token_is_asked_for_again_when_it_has_aged() -> None:
    now = [0.0]
    source = Rotating("http://x")
    auth = Auth(source, clock=lambda: now[0])
    assert (await auth.current()).authorization == "Bearer 1"
    now[0] = 59.0
    assert (await auth.current()).authorization == "Bearer 1"
    now[0] = 61.0
    found = await asyncio.gather(*[auth.current() for _ in range(5)])
    assert {one.authorization for one in found} == {"Bearer 1.1"}
    assert (source.loads, source.asked) == (1, 1)


async def test_tokens_do_not_show_in_representations() -> None:
    assert "secret" not in repr(Credentials("http://x", authorization="Bearer secret"))


async def test_a_release_that_gets_no_answer_is_unclear_and_one_that_raced_conflicts() -> None:
    async with serving("drop") as on:
        assert isinstance(await release_pod(on.client, REF, PlanNote("p", "n")), Unclear)
        assert len(on.answers.seen) == 1
    async with serving(409) as on:
        assert await release_pod(on.client, REF, PlanNote("p", "n")) == Conflicted()
    async with serving(body='{"metadata":{"resourceVersion":"8"}}') as on:
        assert await release_pod(on.client, REF, PlanNote("p", "n")) == Released("8")
        sent = on.answers.seen[0]
        assert (sent.method, sent.path) == ("PATCH", "/api/v1/namespaces/ns/pods/p")
        assert sent.headers["Content-Type"] == "application/strategic-merge-patch+json"
        assert "as=PartialObjectMetadata" in sent.headers["Accept"]


async def test_a_list_whose_version_is_compacted_is_read_again_from_the_cache() -> None:
    page = json.dumps({"metadata": {"resourceVersion": "5", "continue": "c"}, "items": []})
    async with serving(200, 410, 200, body=page) as on:
        pages = [page async for page in on.client.pages(PODS, limit=7)]
        queries = [dict(request.query) for request in on.answers.seen]
    assert queries == [
        {"limit": "7"},
        {"limit": "7", "continue": "c"},
        {"resourceVersion": "5", "resourceVersionMatch": "NotOlderThan"},
    ]
    assert [page.anew for page in pages] == [False, True]


async def test_a_stream_is_read_as_it_comes_and_breaks_when_idle() -> None:
    async with serving("hang") as on:
        with pytest.raises(errors.TransportError, match="TimeoutError"):
            async with on.client.watch(PODS, resource_version="1", timeout_s=5, idle_s=0.05):
                pass
    async with serving(body='{"type":"BOOKMARK"}\n') as on:
        opening = on.client.watch(PODS, resource_version="1", timeout_s=5, idle_s=5)
        async with opening as stream:
            assert await stream.read() == b'{"type":"BOOKMARK"}\n'
            assert await stream.read() == b""


@pytest.mark.parametrize("body", ["", "[]", "{", "null", '{"metadata":5}', "\x00"])
async def test_an_answer_that_is_no_object_is_a_decode_error(body: str) -> None:
    async with serving(body=body) as on:
        with pytest.raises(errors.DecodeError, match="nodes"):
            await on.client.get(NODES, "n1")
        with pytest.raises(errors.DecodeError):
            await on.client.patch(NODES, "n1", b"{}")


async def test_no_more_requests_are_in_flight_than_there_are_connections() -> None:
    most = now = 0

    async def handle(_request: web.Request) -> web.Response:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.01)
        now -= 1
        return web.Response(text="{}")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        auth = Auth(Rotating(str(server.make_url("")).rstrip("/")))
        transport = Transport(auth, connections=3)
        async with KubeClient(auth, transport=transport) as client:
            await asyncio.gather(*[client.get(NODES, "n1") for _ in range(12)])
    assert most == 3


async def test_a_closed_client_says_so() -> None:
    client = KubeClient(Auth(Rotating("http://127.0.0.1:1")))
    with pytest.raises(RuntimeError, match="async with"):
        await client.get(NODES, "n1")


def test_waits_are_never_shorter_than_asked() -> None:
    retry = Retry(base_s=1.0, limit_s=8.0)
    assert [retry.wait_s(n, jitter=1.0, asked=None) for n in range(6)] == [1, 2, 4, 8, 8, 8]
    assert retry.wait_s(0, jitter=0.0, asked=30.0) == 30.0


async def test_names_cannot_leave_their_path_segment() -> None:
    async with serving() as on:
        await on.client.get(NODES, "../secrets?x=1")
        assert on.answers.seen[0].raw_path == "/api/v1/nodes/..%2Fsecrets%3Fx%3D1"
        with pytest.raises(ValueError, match="a namespace is needed"):
            await on.client.get(PODS, "p")
    request = HttpRequest("GET", "/x")
    assert request.changes_nothing


async def test_nothing_is_asked_for_packed_that_would_have_to_be_unpacked() -> None:
    async with serving() as on:
        await on.client.get(NODES, "n1")
        await on.client.patch(PODS, "p", b"{}", namespace="ns")
        accepted = [request.headers.get("Accept-Encoding", "") for request in on.answers.seen]
    assert accepted == ["identity", "identity"]


async def test_events_that_come_one_by_one_are_read_together() -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        for _ in range(100):
            await answer.write(b"event\n")
            await asyncio.sleep(0)
        return answer

    app = web.Application()
    app.router.add_get("/watch", drip)
    async with TestServer(app) as server:
        auth = Auth(Rotating(str(server.make_url("")).rstrip("/")))
        asked = HttpRequest("GET", "/watch")
        async with Transport(auth) as transport, transport.stream(asked, idle_s=5.0) as stream:
            read = [chunk async for chunk in chunks(stream)]
    assert b"".join(read) == b"event\n" * 100
    assert len(read) < 50


async def chunks(stream: AnswerStream) -> AsyncIterator[bytes]:
    while chunk := await stream.read():
        yield chunk
