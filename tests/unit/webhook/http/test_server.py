"""The server over HTTP: what clients get for good, bad, huge, slow and unlucky requests."""

import asyncio
import base64
import io
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp.test_utils import RawTestServer, TestClient
from aiohttp.web import BaseRequest
from prometheus_client import CollectorRegistry

from muster.kube import names
from muster.observability.health import Health
from muster.workloads.managedpods import ManagedPolicy
from webhook.http import server as app
from webhook.http.server import Admittance, Reviewing, ReviewServer
from webhook.metrics import Metrics
from webhook.review.validation import ValidationRules

Client = TestClient[BaseRequest, None]
LIMIT = 7 * 1024 * 1024


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
async def client(health: Health) -> AsyncIterator[Client]:
    server = ReviewServer(
        Reviewing(ManagedPolicy(), ValidationRules()),
        Admittance(body_limit_bytes=LIMIT, body_seconds=0.2),
        Metrics(CollectorRegistry()),
        health,
    )
    async with TestClient(RawTestServer(server.handle)) as client:
        yield client


def review(pod: dict[str, object], **request: object) -> bytes:
    body = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "operation": "CREATE",
            "namespace": "team-a",
            "object": pod,
            **request,
        },
    }
    return json.dumps(body).encode()


SECRET = "hunter2"
GPU = {
    "metadata": {"name": "p"},
    "spec": {
        "schedulerName": "volcano",
        "containers": [
            {
                "env": [{"name": "TOKEN", "value": SECRET}],
                "resources": {"limits": {"amd.com/gpu": 1}},
            }
        ],
    },
}


async def test_a_gpu_pod_comes_back_with_a_patch(client: Client) -> None:
    reply = await (await client.post("/mutate?timeout=3s", data=review(GPU))).json()
    patch = json.loads(base64.b64decode(reply["response"]["patch"]))
    assert [operation["path"] for operation in patch] == [
        "/spec/schedulerName",
        "/spec/schedulingGates",
        "/metadata/annotations",
    ]


async def test_a_refusal_is_a_good_reply(client: Client) -> None:
    plan = {"metadata": {"annotations": {"muster.dev/plan": "{}"}}, "spec": {}}
    reply = await client.post("/validate", data=review(plan))
    assert reply.status == 200
    assert (await reply.json())["response"]["status"]["code"] == 403


@pytest.mark.parametrize("path", ["/mutate", "/validate"])
@pytest.mark.parametrize("body", [b"", b"{", b"[" * 50_000, b'{"kind": "Pod"}', b"\x00\xff"])
async def test_what_is_no_review_gets_400_and_no_traceback(
    client: Client, path: str, body: bytes
) -> None:
    reply = await client.post(path, data=body)
    assert reply.status == 400
    text = await reply.text()
    assert text.startswith("body is not an admission.k8s.io/v1 AdmissionReview: ")
    assert "Traceback" not in text


async def test_a_body_over_the_limit_gets_413(client: Client) -> None:
    assert (await client.post("/mutate", data=io.BytesIO(b" " * (LIMIT + 1)))).status == 413


async def test_a_client_that_does_not_send_its_body_gets_408(client: Client) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.Event().wait()

    assert (await client.post("/mutate", data=slow())).status == 408


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(app, "admit_mutating", broken)


async def answer(client: Client, body: bytes) -> dict[str, Any]:
    async with client.post("/mutate", data=body) as reply:
        response: dict[str, Any] = (await reply.json())["response"]
        return response


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_a_mutation_gates_a_pod_that_asks_for_an_accelerator(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answer(client, review(GPU))
    assert response["allowed"]
    patch = json.loads(base64.b64decode(response["patch"]))
    assert "/spec/schedulingGates" in [operation["path"] for operation in patch]
    assert "only gated it" in response["warnings"][0]
    assert "mutation failed" in caplog.text


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_a_mutation_lets_a_pod_through_that_asks_for_nothing_of_ours(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    response = await answer(client, review({"metadata": {"name": "p"}, "spec": {}}))
    assert response["allowed"]
    assert "patch" not in response
    assert "left it unchanged" in response["warnings"][0]
    assert "mutation failed" in caplog.text


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_a_mutation_is_no_way_in_for_a_plan(client: Client) -> None:
    forged = {**GPU, "metadata": {"name": "p", "annotations": {names.PLAN: "{}"}}}
    assert not (await answer(client, review(forged)))["allowed"]


OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "fake", "uid": "u"}
OWNED = {**GPU, "metadata": {"name": "p", "ownerReferences": [{**OWNER, "controller": True}]}}


async def is_gated(client: Client, pod: dict[str, object], user: str) -> bool:
    patch = (await answer(client, review(pod, userInfo={"username": user}))).get("patch", "W10=")
    paths = [operation["path"] for operation in json.loads(base64.b64decode(patch))]
    return "/spec/schedulingGates" in paths


async def test_a_daemonset_owns_the_pods_of_its_controller_alone(client: Client) -> None:
    assert await is_gated(client, OWNED, "anna")
    assert not await is_gated(client, OWNED, "system:kube-controller-manager")


@pytest.mark.usefixtures("defect")
async def test_a_defect_in_a_mutation_is_no_way_in_for_an_owner_that_a_user_wrote(
    client: Client,
) -> None:
    assert await is_gated(client, OWNED, "anna")
    assert not await is_gated(client, OWNED, "system:kube-controller-manager")


async def test_a_pod_that_cannot_be_decoded_is_refused(client: Client) -> None:
    odd = {"metadata": {"name": "p", "labels": {"a": 7}}, "spec": GPU["spec"]}
    response = await answer(client, review(odd))
    assert not response["allowed"]
    assert "cannot be read" in response["status"]["message"]


async def test_no_value_of_an_environment_variable_is_ever_logged(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    plan = {"metadata": {"annotations": {"muster.dev/plan": SECRET}}, "spec": GPU["spec"]}
    for path, pod in (("/mutate", GPU), ("/validate", plan), ("/mutate", {"spec": [SECRET]})):
        await client.post(path, data=review(pod))
    ours = [record for record in caplog.records if record.name.startswith("webhook")]
    assert [record.getMessage() for record in ours] == ["mutated", "refused", "refused"]
    assert SECRET not in str([vars(record) for record in ours])


async def test_readiness_follows_the_checks_and_liveness_does_not(
    client: Client, health: Health
) -> None:
    assert (await client.get("/readyz")).status == 200
    health.add("certificate", lambda: "expired")
    reply = await client.get("/readyz")
    assert (reply.status, await reply.text()) == (
        503,
        "[-]certificate failed: expired\ncheck failed\n",
    )
    assert (await client.get("/livez")).status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "allowed"),
    [
        ("GET", "/mutate", 405, "POST"),
        ("POST", "/readyz", 405, "GET,HEAD"),
        ("GET", "/", 404, None),
        ("POST", "/mutate/", 404, None),
        ("HEAD", "/livez", 200, None),
    ],
)
async def test_only_the_five_paths_are_served_each_to_its_methods(
    client: Client, method: str, path: str, status: int, allowed: str | None
) -> None:
    reply = await client.request(method, path)
    assert (reply.status, reply.headers.get("Allow")) == (status, allowed)


async def test_a_client_that_waits_to_be_asked_for_its_body_is_asked(client: Client) -> None:
    body = io.BytesIO(review(GPU))
    assert (await client.post("/mutate", data=body, expect100=True)).status == 200


async def test_reviews_are_counted_by_path_and_outcome(client: Client) -> None:
    await client.post("/mutate", data=review(GPU))
    await client.post("/mutate", data=review({"metadata": {}, "spec": {}}))
    await client.post("/mutate", data=b"{")
    text = await (await client.get("/metrics")).text()
    for line in (
        'muster_webhook_reviews_total{outcome="patched",path="/mutate"} 1.0',
        'muster_webhook_reviews_total{outcome="unchanged",path="/mutate"} 1.0',
        'muster_webhook_reviews_total{outcome="malformed",path="/mutate"} 1.0',
        "muster_webhook_pods_gated_total 1.0",
        'muster_webhook_scheduler_names_rewritten_total{scheduler="volcano"} 1.0',
    ):
        assert line in text
