"""Another project's mutating webhook, before ours or after it, as a service mesh would be.

It adds a container that asks for an accelerator, with a variable of its own, and a variable to the
first container; asked again it adds nothing. ``seen`` are the containers of each review, in order.
"""

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.simulated import Plane

JSON = dict[str, Any]
HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ADDED = {
    "name": "added",
    "image": "example.invalid/mesh:1",
    "env": [{"name": "MESH", "value": "1"}],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}


class Other:
    """``name`` decides where it stands: configurations are called in the order of their names."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: list[list[str]] = []

    async def handle(self, http: web.Request) -> web.Response:
        """Answer one review."""
        request = json.loads(await http.read())["request"]
        containers = request["object"]["spec"]["containers"]
        names = [container["name"] for container in containers]
        self.seen.append(names)
        response: JSON = {"uid": request["uid"], "allowed": True}
        if ADDED["name"] not in names:
            patch = [{"op": "add", "path": "/spec/containers/-", "value": ADDED}]
            patch.append(_variable(containers[0]))
            encoded = base64.b64encode(json.dumps(patch).encode()).decode()
            response |= {"patchType": "JSONPatch", "patch": encoded}
        reply = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return web.json_response(reply | {"response": response})


def _variable(container: JSON) -> JSON:
    own = {"name": "MESH_MAIN", "value": "1"}
    if container.get("env"):
        return {"op": "add", "path": "/spec/containers/0/env/-", "value": own}
    return {"op": "add", "path": "/spec/containers/0/env", "value": [own]}


@asynccontextmanager
async def other_webhook(plane: Plane, api: Api, name: str, label: str) -> AsyncIterator[Other]:
    """Have new pods that carry the label ``label`` sent to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(plane.credentials.certificate, plane.credentials.key)
    other, app = Other(name), web.Application()
    app.router.add_post("/", other.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/"
    hook = {
        "name": "mesh.example.com",
        "clientConfig": {
            "url": url,
            "caBundle": base64.b64encode(plane.credentials.ca.read_bytes()).decode(),
        },
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
             "operations": ["CREATE"]}
        ],
        "objectSelector": {"matchLabels": {label: "true"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "reinvocationPolicy": "IfNeeded",
    }  # fmt: skip
    await api.create(HOOKS, {"metadata": {"name": name}, "webhooks": [hook]})
    try:
        yield other
    finally:
        await api.delete(f"{HOOKS}/{name}")
        await runner.cleanup()
