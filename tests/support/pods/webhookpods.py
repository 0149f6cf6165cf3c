"""Pods for a webhook on a real API server, and what came of them."""

import asyncio
import itertools
from pathlib import Path

import yaml
from support.machine.patience import PATIENCE_S

from loadtest.testbed.client.api import JSON, Api, ApiFailed

PODS = "/api/v1/namespaces/default/pods"
HOOKS = "/apis/admissionregistration.k8s.io/v1"
PLAN = "muster.dev/plan"
_numbers = itertools.count()

CONFIG = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "WebhookConfiguration",
    "managed": {"profile": "default-scheduler", "profiles": ["muster"]},
    "certificates": {"source": "secret"},
    "registration": {"create": True, "url": "auto"},
    "drainSeconds": 0,
}


def write(directory: Path, config: JSON) -> Path:
    path = directory / "webhook.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def pod(
    *,
    gpus: int = 0,
    resource: str = "nvidia.com/gpu",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> JSON:
    amount = {"limits": {resource: str(gpus)}} if gpus else {}
    container = {"name": "main", "image": "example.invalid/train:1", "resources": amount}
    meta = {"name": f"pod-{next(_numbers)}", "labels": labels or {}}
    if annotations is not None:
        meta["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
    }


def gates(pod: JSON) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates", [])]


async def until_gated(api: Api, resource: str = "nvidia.com/gpu") -> None:
    """Wait until the API server has seen the configurations; it reads them with a delay."""
    async with asyncio.timeout(PATIENCE_S):
        while not gates(await dry_run(api, pod(gpus=1, resource=resource))):  # noqa: ASYNC110 - nothing to wait on
            await asyncio.sleep(0.1)


async def dry_run(api: Api, wanted: JSON) -> JSON:
    return await api.create(f"{PODS}?dryRun=All", wanted)


async def failure(api: Api, wanted: JSON) -> str:
    """Return what a creation is refused with, nothing where it is not."""
    try:
        await dry_run(api, wanted)
    except ApiFailed as error:
        return str(error)
    return ""
