"""Pods before and after injection; `jsonpatch`, an independent one, is the API server's part."""

import json
from typing import Any

import jsonpatch
import msgspec

from muster.injection.nodegroups import NOT_KNOWN, NodeGroups
from muster.injection.podview import PodView
from muster.injection.profiles import catalog, tiers
from muster.injection.profiles.clusterprofile import ClusterProfile
from muster.injection.profiles.fabric import Fabrics
from muster.injection.run import Injection, inject
from muster.injection.subject import Facts, Gang
from muster.workloads.devices.accelerators import load

JSON = dict[str, Any]
FABRICS = catalog.load()
ACCELERATORS = load()
PLACES = tiers.load()
GPU = "nvidia.com/gpu"


def facts(
    *choices: JSON, nodes: NodeGroups = NOT_KNOWN, fabrics: Fabrics = FABRICS, **spec: object
) -> Facts:
    """A cluster with these fabric choices; ``spec``: further fields of its ClusterProfile."""
    profile = {"metadata": {"name": "train-eu"}, "spec": {"fabrics": list(choices), **spec}}
    return Facts(msgspec.convert(profile, ClusterProfile), fabrics, ACCELERATORS, PLACES, nodes)


def result(
    pod: JSON,
    known: Facts,
    *,
    in_gang: bool = True,
    size: int | None = None,
    namespace: str = "team-a",
) -> Injection:
    """What injection says about a pod."""
    view = msgspec.json.decode(json.dumps(pod), type=PodView)
    return inject(view, namespace, known, Gang("muster", size) if in_gang else None)


def patch(injection: Injection) -> list[JSON]:
    """The patch as it travels."""
    operations: list[JSON] = json.loads(msgspec.json.encode(injection.operations))
    return operations


def injected(pod: JSON, known: Facts, *, in_gang: bool = True) -> JSON:
    """The pod as the API server has it afterwards."""
    after: JSON = jsonpatch.apply_patch(pod, patch(result(pod, known, in_gang=in_gang)))
    return after


def gpu_pod(gpus: int = 8, *, container: JSON | None = None, **spec: object) -> JSON:
    """A pod of one container that asks for accelerators, as a user writes it."""
    main = {
        "name": "main",
        "image": "example.invalid/train:1",
        "resources": {"limits": {GPU: str(gpus)}},
        **(container or {}),
    }
    return {"metadata": {"name": "p"}, "spec": {"containers": [main], **spec}}


def env(pod: JSON, index: int = 0) -> dict[str, str]:
    """The environment of a container, by name."""
    return {e["name"]: e.get("value", "") for e in pod["spec"]["containers"][index].get("env", [])}
