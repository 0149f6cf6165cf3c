"""A mutating webhook of the test's own, registered with an API server for one namespace."""

import base64
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from loadtest.testbed.client.api import Api
from loadtest.testbed.standins.simulated import Plane

HOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def hooked(plane: Plane, api: Api, namespace: str, handler: Handler) -> AsyncIterator[None]:
    """Have every new pod of the namespace sent to ``handler`` as ``/mutate``, twice."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(plane.credentials.certificate, plane.credentials.key)
    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    url = f"https://127.0.0.1:{runner.addresses[0][1]}/mutate"
    await api.create(HOOKS, _configuration(namespace, url, plane.credentials.ca.read_bytes()))
    yield
    await api.delete(f"{HOOKS}/{namespace}")
    await runner.cleanup()


def _configuration(namespace: str, url: str, ca: bytes) -> dict[str, Any]:
    """The same webhook twice: the second one sees what the first one did."""
    hook = {
        "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
             "operations": ["CREATE"]}
        ],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "reinvocationPolicy": "IfNeeded",
    }  # fmt: skip
    names = ("first.example.com", "second.example.com")
    return {"metadata": {"name": namespace}, "webhooks": [{"name": name, **hook} for name in names]}
