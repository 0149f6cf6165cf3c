"""Pods made with Muster's own client, and what tests say about them."""

import itertools
import json
from collections.abc import Sequence
from typing import Any

from muster.cluster.events import PlanNote
from muster.kube.client import KubeClient
from muster.kube.http.transport import HttpRequest
from muster.kube.resources import PODS
from muster.kube.wire import Pod
from muster.kube.writing.podwrites import PodRef

GATE = "muster.dev/plan"
OTHER_UID = "11111111-1111-1111-1111-111111111111"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
numbers = itertools.count()


async def make_pod(client: KubeClient, *, gates: Sequence[str] = (GATE,), **spec: object) -> Pod:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{next(numbers)}", "labels": {"app": "test"}},
        "spec": {
            "schedulingGates": [{"name": gate} for gate in gates],
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }
    return await client.create(PODS, body, namespace="default")


def ref(pod: Pod, *, uid: str | None = None) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, uid or pod.metadata.uid)


def note(node: str, *spares: str) -> PlanNote:
    return PlanNote("plan-1", node, spares, {node: ("gpu-0",)}, rank=3, generation=9)


async def raw(client: KubeClient, pod: Pod) -> dict[str, Any]:
    path = PODS.path(pod.metadata.name, namespace=pod.metadata.namespace)
    found: dict[str, Any] = json.loads(await client._transport.send(HttpRequest("GET", path)))
    return found


def field(*nodes: str) -> list[dict[str, Any]]:
    return [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in nodes
    ]
