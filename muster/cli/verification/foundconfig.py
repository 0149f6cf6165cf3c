"""The scheduler configuration, searched in the cluster where no file was named.

That of a second scheduler is in a ConfigMap beside Muster and is checked there. Of a static pod
only the command line is visible, which names the configuration file, if there is one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from muster.cli.verification import scheduler
from muster.cli.verification.finding import CheckFinding, broken, unknown
from muster.kube.errors import Forbidden
from muster.kube.http.transport import HttpRequest, Transport
from muster.kube.wire import ObjectMeta

_KIND: Final = "kind: KubeSchedulerConfiguration"
_STATIC: Final = {"labelSelector": "component=kube-scheduler"}  # kubeadm's label on the pod


class _ConfigMap(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] = msgspec.field(default_factory=dict)


class _ConfigMaps(msgspec.Struct):
    items: list[_ConfigMap] = msgspec.field(default_factory=list)


class _Container(msgspec.Struct):
    command: list[str] = msgspec.field(default_factory=list)
    args: list[str] = msgspec.field(default_factory=list)


class _Spec(msgspec.Struct):
    containers: list[_Container] = msgspec.field(default_factory=list)


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec


class _Pods(msgspec.Struct):
    items: list[_Pod] = msgspec.field(default_factory=list)


async def check(transport: Transport, namespace: str, now: datetime) -> list[CheckFinding]:
    """Check all configurations in ConfigMaps; without any, look at the static pods."""
    try:
        raw = await transport.send(HttpRequest("GET", f"/api/v1/namespaces/{namespace}/configmaps"))
    except Forbidden as refused:
        remedy = "run this with credentials that may, or name the file with --scheduler-config"
        return [unknown(scheduler.AREA, str(refused), remedy)]
    found = [
        finding
        for configmap in msgspec.json.decode(raw, type=_ConfigMaps).items
        for key, text in configmap.data.items()
        if _KIND in text
        for finding in scheduler.judge(text.encode(), _name(configmap, key), now, elsewhere=True)
    ]
    return found or await _static(transport)


def _name(configmap: _ConfigMap, key: str) -> str:
    return f"ConfigMap {configmap.metadata.name} {key}"


async def _static(transport: Transport) -> list[CheckFinding]:
    path = "/api/v1/namespaces/kube-system/pods"
    raw = await transport.send(HttpRequest("GET", path, _STATIC))
    pods = msgspec.json.decode(raw, type=_Pods).items
    findings = [_of_pod(pod) for pod in pods]
    unseen = "no kube-scheduler is visible in the cluster"
    remedy = "name its file with --scheduler-config, on a control-plane node"
    return findings or [unknown(scheduler.AREA, unseen, remedy)]


def _of_pod(pod: _Pod) -> CheckFinding:
    words = [word for c in pod.spec.containers for word in (*c.command, *c.args)]
    files = [word.partition("=")[2] for word in words if word.startswith("--config=")]
    name = pod.metadata.name
    if not files:
        text = f"{name} runs without --config: it calls no extender"
        return broken(scheduler.AREA, text, "see manifests/scheduler-config/static-pod/")
    remedy = f"on that node: muster verify --scheduler-config {files[0]}"
    return unknown(scheduler.AREA, f"{name} reads {files[0]} of its own node", remedy)
