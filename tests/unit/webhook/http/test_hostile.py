"""Bodies that nobody should send, over HTTP: an answer, or a clean error; never a traceback."""

import gzip
import json
from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from aiohttp.web import BaseRequest
from prometheus_client import CollectorRegistry
from support.injections.injecting import facts
from support.webhooks.hostile import LITERALS, review

from muster.observability.health import Health
from muster.workloads.managedpods import ManagedPolicy
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.validation import ValidationRules

Client = TestClient[BaseRequest, None]
LIMIT = 1024 * 1024
FACTS = facts({"profile": "generic-roce-hostnet", "pods": "accelerated"})


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    server = ReviewServer(
        Reviewing(ManagedPolicy(), ValidationRules(), lambda: FACTS),
        Admittance(body_limit_bytes=LIMIT, body_seconds=5),
        Metrics(CollectorRegistry()),
        Health(),
    )
    async with TestClient(RawTestServer(server.handle)) as client:
        yield client


POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "x": "@here@"}]}}
PLACES = ("here", "p", "main", "u", "CREATE", "team-a", "pods")


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_odd_values_anywhere_get_an_answer_or_a_400(client: Client, path: str) -> None:
    sent = json.dumps(review(POD, uid="u"))
    for place in PLACES:
        for literal in [*LITERALS, '"\udcff"']:
            quoted = f'"{place}"' if place != "here" else '"@here@"'
            body = sent.replace(quoted, literal).encode(errors="surrogateescape")
            reply = await client.post(path, data=body)
            text = await reply.text()
            assert reply.status in (200, 400), (place, literal[:40])
            assert "Traceback" not in text
            assert len(text) < 64 * 1024
            if reply.status == 200:
                assert json.loads(text)["kind"] == "AdmissionReview"


async def test_a_body_that_unpacks_to_more_than_the_limit_is_refused(client: Client) -> None:
    packed = gzip.compress(b" " * (64 * 1024 * 1024))
    reply = await client.post("/mutate", data=packed, headers={"Content-Encoding": "gzip"})
    assert reply.status == 413


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "what?"])
async def test_a_body_that_is_not_packed_as_it_says_is_refused(
    client: Client, encoding: str
) -> None:
    reply = await client.post("/mutate", data=b"{}", headers={"Content-Encoding": encoding})
    assert reply.status == 400
