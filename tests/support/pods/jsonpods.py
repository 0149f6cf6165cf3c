"""Pods decoded from JSON as the API server sends it: a small one and what a test adds."""

import json
from typing import Any

import msgspec

from muster.kube.wire import Pod


def pod(**spec: Any) -> Pod:
    """Return a pod; keys of the spec, and `labels`, `metadata`, `status`."""
    labels = spec.pop("labels", {})
    meta = spec.pop("metadata", {})
    status = spec.pop("status", {})
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    body = {
        "metadata": {"name": "p", "namespace": "team", "uid": "u", "labels": labels, **meta},
        "spec": {"containers": containers, **spec},
        "status": status,
    }
    return msgspec.json.decode(json.dumps(body), type=Pod)
