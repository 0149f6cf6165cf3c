"""The extender's filter as kube-scheduler calls it: one pod, one connection, one body.

For benches: everything is made so that what is measured is the call.
"""

import asyncio
import http.client
import json
import time
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import numpy as np

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.pods import Gang, create_owner, members
from muster.kube import names as wire_names

FILTER: Final = "/v1/extender/filter"
_PODS: Final = "/api/v1/namespaces/default/pods"
_POD_PADDING_BYTES: Final = 6_500  # brings the pod to the 8.2 KB that real training pods have
_PLANNED_WITHIN_S: Final = 60.0


def gated(gang: Gang, owner: JSON) -> list[JSON]:
    """Return the gang's pods as the webhook would leave them."""
    pods = list(members(gang, owner))
    for pod in pods:
        pod["spec"]["schedulingGates"] = [{"name": wire_names.PLAN_GATE}]
    return pods


async def released_pod(api: Api) -> tuple[JSON, str]:
    """Create one gated pod and wait for its release; return it and its planned node."""
    gang = Gang("measured", 1, gpus=1)
    (pod,) = gated(gang, await create_owner(api, gang))
    padding = {"name": "PADDING", "value": "x" * _POD_PADDING_BYTES}
    pod["spec"]["containers"][0]["env"] = [padding]
    await api.create(_PODS, pod)
    async with asyncio.timeout(_PLANNED_WITHIN_S):
        while True:
            pod = await api.get(f"{_PODS}/measured-0")
            plan = pod["metadata"].get("annotations", {}).get(wire_names.PLAN)
            if plan is not None and not pod["spec"].get("schedulingGates"):
                return pod, json.loads(plan)["node"]
            await asyncio.sleep(0.05)


# metav1.ObjectMeta's fields in Go's order: what encoding/json writes first.
_META_ORDER: Final = (
    *("name", "generateName", "namespace", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "labels", "annotations", "ownerReferences"),
)


def request_body(pod: JSON, names: list[str]) -> bytes:
    """Return ExtenderArgs as kube-scheduler marshals them."""
    meta = pod["metadata"]
    ordered = {key: meta[key] for key in _META_ORDER if key in meta}
    args = {
        "Pod": {"metadata": ordered, "spec": pod["spec"], "status": pod.get("status", {})},
        "Nodes": None,
        "NodeNames": names,
    }
    return json.dumps(args, separators=(",", ":")).encode()


def percentile(values: list[float], percent: int) -> float:
    """Return the percentile of some figures."""
    return float(np.percentile(np.asarray(values), percent))


class Connection:
    """One blocking keep-alive connection: a client with as little noise of its own as there is."""

    def __init__(self, url: str) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=30)

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[float, float, bytes]:
        """Return round trip and server time in milliseconds, and the reply."""
        began = time.perf_counter()
        self._connection.request(
            "POST", path, body, {"Content-Type": "application/json", **(headers or {})}
        )
        response = self._connection.getresponse()
        reply = response.read()
        took_ms = (time.perf_counter() - began) * 1000
        if response.status != 200:
            raise RuntimeError(f"POST {path}: {response.status}: {reply[:200]!r}")
        timing = response.headers.get("Server-Timing", "app;dur=nan")
        return took_ms, float(timing.partition("dur=")[2]), reply
