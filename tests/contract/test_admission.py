"""Webhooks: called over HTTPS with a review, answered with patches and refusals."""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from support.pods.wire import gated, lift, pod

from loadtest.testbed.client.api import STRATEGIC_PATCH, Api, ApiFailed
from loadtest.testbed.standins.simulated import Plane

pytestmark = pytest.mark.asyncio(loop_scope="session")
GROUP = "/apis/admissionregistration.k8s.io/v1"


class Webhook:
    """Adds a gate, and refuses pods that carry the label ``bad``."""

    def __init__(self) -> None:
        self.reviews: list[dict[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        review = json.loads(await request.read())["request"]
        self.reviews.append(review | {"path": request.path})
        response = {"uid": review["uid"], "allowed": True}
        if request.path == "/mutate" and review["operation"] == "CREATE":
            patch = [{"op": "add", "path": "/spec/schedulingGates", "value": [{"name": "t.co/g"}]}]
            response |= {
                "patchType": "JSONPatch",
                "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
            }
        if "bad" in review["object"]["metadata"].get("labels", {}):
            response |= {"allowed": False, "status": {"code": 403, "message": "bad label"}}
        reply = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
        return web.json_response(reply | {"response": response})


@pytest_asyncio.fixture(loop_scope="session")
async def webhook(plane: Plane, api: Api, namespace: str) -> AsyncIterator[Webhook]:
    hook = Webhook()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(plane.credentials.certificate, plane.credentials.key)
    app = web.Application()
    app.router.add_post("/{kind}", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    made = []
    for kind in ("mutat", "validat"):
        path = f"{GROUP}/{kind}ingwebhookconfigurations"
        made.append(f"{path}/{namespace}")
        url = f"https://127.0.0.1:{port}/{kind}e"
        await api.create(path, configuration(namespace, url, plane.credentials.ca.read_bytes()))
    yield hook
    for path in made:
        await api.delete(path)
    await runner.cleanup()


def configuration(namespace: str, url: str, ca: bytes, **more: Any) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "operations": ["CREATE", "UPDATE"],
    }
    hook = {
        "name": "test.example.com",
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 5,
        **more,
    }
    return {"metadata": {"name": namespace}, "webhooks": [hook]}


async def created(api: Api, pods: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create a pod again and again until the webhook is in force (configurations are cached)."""
    for attempt in range(100):
        body["metadata"]["name"] = f"p{attempt}"
        made = await api.create(pods, body)
        if made["spec"].get("schedulingGates"):
            return made
    raise AssertionError("the webhook was never called")


@pytest.mark.usefixtures("webhook")
async def test_a_mutating_webhook_changes_the_pod_that_is_stored(api: Api, pods: str) -> None:
    made = await created(api, pods, pod())
    assert made["spec"]["schedulingGates"] == [{"name": "t.co/g"}]
    assert made["status"]["conditions"][0]["reason"] == "SchedulingGated"


async def test_a_review_says_what_is_done_by_whom(api: Api, pods: str, webhook: Webhook) -> None:
    made = await created(api, pods, pod())
    name = made["metadata"]["name"]
    mine = [r for r in webhook.reviews if r["name"] == name]
    assert [r["path"] for r in mine] == ["/mutate", "/validate"]
    review = mine[0]
    assert review["operation"] == "CREATE"
    assert review["kind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert review["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert review["oldObject"] is None
    assert review["userInfo"]["username"] == "observer"
    assert "system:masters" in review["userInfo"]["groups"]
    assert review["object"]["spec"]["schedulerName"] == "nobody"
    assert "schedulingGates" in mine[1]["object"]["spec"]


async def test_an_update_is_reviewed_with_the_old_pod(
    api: Api, pods: str, webhook: Webhook
) -> None:
    name = (await created(api, pods, pod()))["metadata"]["name"]
    patch = {"spec": {"schedulingGates": lift("t.co/g")}}
    await api.patch(f"{pods}/{name}", patch, kind=STRATEGIC_PATCH)
    review = [r for r in webhook.reviews if r["operation"] == "UPDATE"][-1]
    assert review["oldObject"]["spec"]["schedulingGates"] == [{"name": "t.co/g"}]
    assert "schedulingGates" not in review["object"]["spec"]


async def test_status_and_bindings_are_not_reviewed_unless_named(
    api: Api, pods: str, webhook: Webhook
) -> None:
    name = (await created(api, pods, pod()))["metadata"]["name"]
    before = len(webhook.reviews)
    await api.patch(f"{pods}/{name}/status", {"status": {"message": "x"}}, kind=STRATEGIC_PATCH)
    assert len(webhook.reviews) == before


@pytest.mark.usefixtures("webhook")
async def test_a_refusal_names_the_webhook_and_writes_nothing(api: Api, pods: str) -> None:
    await created(api, pods, pod())
    bad = gated("refused")
    bad["metadata"]["labels"] = {"bad": "1"}
    with pytest.raises(ApiFailed) as caught:
        await api.create(pods, bad)
    assert caught.value.code == 403
    expected = 'admission webhook "test.example.com" denied the request: bad label'
    assert caught.value.message == expected
    with pytest.raises(ApiFailed) as missing:
        await api.get(f"{pods}/refused")
    assert missing.value.code == 404


@pytest.mark.usefixtures("webhook")
async def test_other_namespaces_are_left_alone(api: Api, pods: str) -> None:
    await created(api, pods, pod())
    made = await api.create(
        "/api/v1/namespaces/default/pods", {**pod(), "metadata": {"generateName": "q-"}}
    )
    assert "schedulingGates" not in made["spec"]
    await api.delete(f"/api/v1/namespaces/default/pods/{made['metadata']['name']}")


async def test_a_webhook_that_is_away_refuses_or_lets_pass_as_its_policy_says(
    plane: Plane, api: Api, pods: str, namespace: str
) -> None:
    path = f"{GROUP}/validatingwebhookconfigurations"
    away = configuration(
        namespace, "https://127.0.0.1:1/", plane.credentials.ca.read_bytes(), failurePolicy="Fail"
    )
    await api.create(path, away)
    failure = await first_refusal(api, pods)
    assert (failure.code, failure.status["reason"]) == (500, "InternalError")
    assert 'failed calling webhook "test.example.com"' in failure.message
    away["webhooks"][0]["failurePolicy"] = "Ignore"
    await api.patch(f"{path}/{namespace}", {"webhooks": away["webhooks"]})
    await first_success(api, pods)
    await api.delete(f"{path}/{namespace}")


async def first_refusal(api: Api, pods: str) -> ApiFailed:
    for attempt in range(100):
        try:
            await api.create(pods, pod(f"let-through-{attempt}"))
        except ApiFailed as failure:
            return failure
    raise AssertionError("the webhook was never called")


async def first_success(api: Api, pods: str) -> None:
    for attempt in range(100):
        try:
            await api.create(pods, pod(f"passed-{attempt}"))
        except ApiFailed:
            continue
        return
    raise AssertionError("the webhook was never ignored")
