"""What a pod will ask for once it is stored, beside what the real API server stores."""

import random
from typing import Any

import msgspec
import pytest
from support.pods.kubepods import make_pod

from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.translation.requests import pod_requests
from muster.kube.translation.selectors import host_ports
from muster.kube.translation.serverdefaults import with_defaults

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
SEED, PODS = 20, 60


def amounts(draw: random.Random, names: tuple[str, ...]) -> JSON:
    chosen = draw.sample(names, draw.randint(0, len(names)))
    return {name: str(draw.randint(1, 3)) for name in chosen}


def container(draw: random.Random, name: str, port: int) -> JSON:
    """Requests, where a name has one, do not exceed limits; extended ones equal them."""
    limits = amounts(draw, ("cpu", "memory", "nvidia.com/gpu"))
    requests = {
        name: limit if name == "nvidia.com/gpu" else "1"
        for name, limit in limits.items()
        if draw.random() < 0.5
    }
    if "memory" not in limits and draw.random() < 0.5:
        requests["memory"] = "1"
    ports = [{"containerPort": port}, {"containerPort": port + 1, "protocol": "UDP"}]
    return {
        "name": name,
        "image": "none",
        "resources": {
            key: value for key, value in (("limits", limits), ("requests", requests)) if value
        },
        "ports": draw.sample(ports, draw.randint(0, 2)),
    }


def drawn(draw: random.Random) -> JSON:
    """A valid pod's spec, of one to three containers and up to two init containers."""
    names = iter("abcdefgh")
    ports = iter(range(2000, 3000, 10))
    containers = [container(draw, next(names), next(ports)) for _ in range(draw.randint(1, 3))]
    inits = [container(draw, next(names), next(ports)) for _ in range(draw.randint(0, 2))]
    for each in inits:
        if draw.random() < 0.5:
            each["restartPolicy"] = "Always"
    spec: JSON = {"containers": containers, "initContainers": inits}
    if draw.random() < 0.5:
        spec["hostNetwork"] = True
    if draw.random() < 0.5:
        spec["resources"] = {"limits": dict.fromkeys(amounts(draw, ("cpu", "memory")), "64")}
    return spec


async def test_a_pod_is_defaulted_as_the_api_server_defaults_it(client: KubeClient) -> None:
    draw = random.Random(SEED)
    for _ in range(PODS):
        spec = drawn(draw)
        stored = (await make_pod(client, **spec)).spec
        ours = msgspec.convert(with_defaults(spec), wire.PodSpec)
        assert pod_requests(ours) == pod_requests(stored), spec
        assert host_ports(ours) == host_ports(stored), spec
