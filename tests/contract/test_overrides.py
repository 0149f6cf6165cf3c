"""Pods as an API server stores them when override policies were applied at their admission.

The pods are their own workloads: they name the policy themselves.
"""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from support.injections.injecting import facts
from support.injections.overriding import JSON, loaded, rules
from support.pods.wire import pod
from support.webhooks.hooked import hooked

from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.simulated import Plane
from muster.workloads.managedpods import ManagedPolicy
from webhook.review.admission import admit_mutating
from webhook.review.validation import ValidationRules
from webhook.review.wire import parse, respond

pytestmark = pytest.mark.asyncio(loop_scope="session")
DATA = {"name": "data", "emptyDir": {}}
BEFORE: JSON = {
    "containers": [
        {
            "name": "main",
            "image": "example.com/train:1",
            "command": ["run"],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
    ],
    "volumes": [DATA],
    "nodeSelector": {"pool": "a", "zone": "b"},
    "tolerations": [{"key": "old", "operator": "Exists"}],
}
OVERRIDERS: JSON = {
    "image": [{"operations": [{"imageComponent": "Registry", "value": "mirror.cn:5000"}]}],
    "command": [{"containerName": "main", "operator": "append", "value": ["--x"]}],
    "envs": [{"containerName": "main", "operator": "delete", "value": [{"name": "A"}]}],
    "annotations": [{"operator": "addIfAbsent", "value": {"example.com/a": "1"}}],
    "jsonpatch": [
        {"operator": "remove", "path": "/spec/nodeSelector/zone"},
        {"operator": "replace", "path": "/spec/tolerations/0/key", "value": "new"},
        {"operator": "add", "path": "/spec/volumes", "value": [{"name": "more", "emptyDir": {}}]},
        {"operator": "add", "path": "/spec/containers/0/resources/limits/cpu", "value": "1"},
        {"operator": "add", "path": "/spec/schedulingGates", "value": [{"name": "t.co/seen"}]},
    ],
}
FACTS = replace(
    facts(), policies=loaded(rules("kubeadmiral", OVERRIDERS, name="everywhere", cluster=True))
)


async def _mutate(http: web.BaseRequest) -> web.Response:
    request = parse(await http.read())
    verdict, _ = admit_mutating(request, ManagedPolicy(), ValidationRules(), FACTS)
    return web.Response(body=respond(request.uid, verdict), content_type="application/json")


@pytest_asyncio.fixture(loop_scope="session")
async def webhook(plane: Plane, api: Api, namespace: str) -> AsyncIterator[None]:
    async with hooked(plane, api, namespace, _mutate):
        yield


async def _created(api: Api, pods: str) -> JSON:
    """Create a pod again and again until the webhook is in force (configurations are cached)."""
    for attempt in range(100):
        body = pod(f"p{attempt}", **BEFORE)
        body["metadata"]["labels"] = {"kubeadmiral.io/cluster-override-policy-name": "everywhere"}
        made: JSON = await api.create(pods, body)
        if made["spec"].get("schedulingGates"):
            return made
    raise AssertionError("the webhook was never called")


def _named(items: list[Any]) -> list[Any]:
    """Without what the API server itself adds to every pod."""
    return [item for item in items if not item["name"].startswith("kube-api-access-")]


@pytest.mark.usefixtures("webhook")
async def test_every_kind_of_operation_is_stored_once(api: Api, pods: str) -> None:
    made = await _created(api, pods)
    spec, main = made["spec"], made["spec"]["containers"][0]
    assert main["image"] == "mirror.cn:5000/train:1"
    assert main["command"] == ["run", "--x"]
    assert main["env"] == [{"name": "B", "value": "2"}]
    assert main["resources"]["limits"] == {"cpu": "1"}
    assert spec["nodeSelector"] == {"pool": "a"}
    assert spec["tolerations"][0] == {"key": "new", "operator": "Exists"}
    assert _named(spec["volumes"]) == [{"name": "more", "emptyDir": {}}, DATA]
    assert _named(main["volumeMounts"]) == [{"name": "data", "mountPath": "/data"}]
    assert made["metadata"]["annotations"]["example.com/a"] == "1"
    assert made["metadata"]["annotations"]["muster.dev/injected"].startswith('{"overridden"')
