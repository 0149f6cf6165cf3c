"""Reviews that are not decided about: too large, too slow, too late, too many, of strangers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from aiohttp.web import BaseRequest
from prometheus_client import CollectorRegistry
from support.injections.injecting import facts, gpu_pod
from support.injections.overriding import loaded, rules

from muster.injection.subject import Facts
from muster.observability.health import Health
from muster.workloads.managedpods import ManagedPolicy
from webhook.config import CallersConfig, ClientLimits
from webhook.http.bodybudget import SMALL_BYTES
from webhook.http.callers import TokenCallers
from webhook.http.server import Admittance, Owners, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.validation import ValidationRules
from webhook.review.wire import AdmissionRequest

Client = TestClient[BaseRequest, None]
LIMIT = 4 * SMALL_BYTES
KNOWN = replace(  # with policies, so that owners are asked for
    facts({"profile": "generic-roce-hostnet"}),
    policies=loaded(rules("kubeadmiral", {}, name="p", cluster=True)),
)
PATIENCE = 20


@asynccontextmanager
async def serving(
    *,
    owners: Owners | None = None,
    callers: CallersConfig | None = None,
    body_seconds: float = PATIENCE,
    **limits: int,
) -> AsyncIterator[tuple[Client, Metrics]]:
    metrics = Metrics(CollectorRegistry())
    server = ReviewServer(
        Reviewing(ManagedPolicy(), ValidationRules(), lambda: KNOWN, owners=owners),
        Admittance(
            body_limit_bytes=LIMIT,
            body_seconds=body_seconds,
            limits=ClientLimits(**{"large_bytes": LIMIT, **limits}),
            callers=None if callers is None else TokenCallers(callers),
        ),
        metrics,
        Health(),
    )
    async with TestClient(RawTestServer(server.handle)) as client:
        yield client, metrics


def review(padding: int = 0) -> bytes:
    request = {
        "uid": "u",
        "kind": {"version": "v1", "kind": "Pod"},
        "resource": {"version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "team-a",
        "object": gpu_pod(8),
    }
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": request,
        "ignored": "x" * padding,
    }
    return json.dumps(body).encode()


def counted(metrics: Metrics, outcome: str) -> float:
    labels = {"path": "/mutate", "outcome": outcome}
    return metrics.registry.get_sample_value("muster_webhook_reviews_total", labels) or 0


async def unfinished(started: asyncio.Event, data: bytes) -> AsyncIterator[bytes]:
    """A body of unknown length that never ends."""
    yield data
    started.set()
    await asyncio.Event().wait()


async def test_a_review_that_announces_too_much_is_refused_before_it_is_read() -> None:
    async with serving() as (client, metrics):
        reply = await client.post("/mutate", data=review(2 * LIMIT))
        assert (reply.status, await reply.text()) == (
            413,
            f"a review may have {LIMIT} bytes: see bodyLimitBytes\n",
        )
        assert counted(metrics, "too_large") == 1


async def test_a_body_without_a_length_is_cut_off_at_the_limit() -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(2 * LIMIT // SMALL_BYTES):
            yield b" " * SMALL_BYTES

    async with serving() as (client, metrics):
        reply = await client.post("/mutate", data=endless())
        assert reply.status == 413
        assert counted(metrics, "too_large") == 1


async def test_a_large_review_waits_for_another_and_a_small_one_does_not() -> None:
    async with serving() as (client, metrics):
        started = asyncio.Event()
        slow = asyncio.create_task(client.post("/mutate", data=unfinished(started, b" ")))
        await started.wait()
        assert (await client.post("/mutate", data=review())).status == 200
        large = await client.post("/mutate?timeout=100ms", data=review(2 * SMALL_BYTES))
        assert (large.status, await large.text()) == (
            408,
            "other large reviews were still being sent\n",
        )
        assert counted(metrics, "too_slow") == 1
        slow.cancel()
        reply = await client.post("/mutate", data=review(2 * SMALL_BYTES))
        assert reply.status == 200


async def test_a_body_that_does_not_come_is_given_up_when_its_caller_gives_up() -> None:
    async with serving() as (client, metrics):
        body = unfinished(asyncio.Event(), b"{")
        reply = await client.post("/mutate?timeout=50ms", data=body)
        assert (reply.status, await reply.text()) == (408, "the body did not arrive in time\n")
        assert counted(metrics, "too_slow") == 1


async def test_nothing_is_decided_for_a_caller_that_has_stopped_waiting() -> None:
    async with serving() as (client, metrics):
        reply = await client.post("/mutate?timeout=0s", data=review())
        assert reply.status in (408, 504)
        assert counted(metrics, "too_slow") + counted(metrics, "late") == 1


async def test_a_look_up_of_owners_that_takes_too_long_is_done_without() -> None:
    async def forever(_request: AdmissionRequest, _facts: Facts) -> Facts:
        await asyncio.Event().wait()
        return replace(KNOWN)

    async with serving(owners=forever) as (client, _):
        reply = await client.post("/mutate?timeout=300ms", data=review())
        answer: Any = await reply.json()
        assert answer["response"]["allowed"]
        assert answer["response"]["patch"]


async def test_reviews_over_the_cap_are_sent_away_and_those_below_are_answered() -> None:
    inside, leave = asyncio.Event(), asyncio.Event()

    async def slow(_request: AdmissionRequest, known: Facts) -> Facts:
        inside.set()
        await leave.wait()
        return known

    async with serving(owners=slow, deciding=1) as (client, metrics):
        first = asyncio.create_task(client.post("/mutate", data=review()))
        await inside.wait()
        second = await client.post("/mutate", data=review())
        assert second.status == 503
        assert counted(metrics, "overloaded") == 1
        leave.set()
        assert (await first).status == 200


async def test_a_stranger_is_not_answered_and_a_new_token_counts_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    async with serving(callers=CallersConfig(token_file=token)) as (client, metrics):

        async def status(shown: str | None) -> int:
            headers = {} if shown is None else {"Authorization": f"Bearer {shown}"}
            return (await client.post("/mutate", data=review(), headers=headers)).status

        assert [await status(shown) for shown in (None, "", "another", "one")] == [
            *([401] * 3),
            200,
        ]
        assert counted(metrics, "unauthorized") == 3
        fresh = tmp_path / "fresh"
        fresh.write_text("two")
        fresh.rename(token)
        assert [await status(shown) for shown in ("one", "two")] == [401, 200]
        token.unlink()
        assert await status("two") == 200  # the last one, while the file is being replaced


@pytest.mark.parametrize(
    ("certificate", "problem"),
    [
        (None, "no client certificate"),
        ({"subject": ((("commonName", "kube-apiserver"),),)}, ""),
        ({"subject": (), "subjectAltName": (("DNS", "kube-apiserver"),)}, ""),
        ({"subject": ((("commonName", "kubelet"),),)}, "of kubelet is none of"),
        ({"subject": ()}, "of nobody (it has no name) is none of"),
    ],
)
def test_a_certificate_counts_by_its_names(
    certificate: dict[str, Any] | None, problem: str
) -> None:
    config = CallersConfig(client_ca_file=Path("ca.crt"), certificates=("kube-apiserver",))
    callers = TokenCallers(config, clock=lambda: 0.0)
    shown = None if certificate is None else {"notAfter": "Jan  5 09:34:43 2030 GMT"} | certificate
    found = callers.problem(shown, "")
    assert problem in found if problem else found == ""
    late = TokenCallers(config, clock=lambda: 2_000_000_000.0)
    if not problem:
        assert "has expired" in late.problem(shown, "")
