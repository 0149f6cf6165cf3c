"""Fake nodes: objects with allocatable resources and a Ready condition, and no kubelet behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from loadtest.testbed.client.api import JSON, Api
from muster.kube import names

GPU: Final = "nvidia.com/gpu"
# One host of the published 8-GPU generation: two sockets of 48 cores, 2 TiB of memory.
HOST_RESOURCES: Final[Mapping[str, str]] = {
    "cpu": "192",
    "memory": "2048Gi",
    "ephemeral-storage": "7000Gi",
    "pods": "110",  # the kubelet's default
    GPU: "8",
}
_IN_FLIGHT: Final = 32  # about where the API server's throughput stops growing on two cores


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, str] = HOST_RESOURCES,
) -> JSON:
    """Return a Ready v1 Node; `labels` get the hostname label added."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**(labels or {}), names.HOST: name}},
        "status": {
            "capacity": dict(resources),
            "allocatable": dict(resources),
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def grid(count: int, *, rack: int = 16, block: int = 512) -> Iterator[JSON]:
    """Yield `count` hosts in racks of `rack` and blocks of `block` hosts, all in one zone."""
    for index in range(count):
        labels = {
            names.ZONE: "zone-a",
            names.BLOCK: f"block-{index // block:04d}",
            names.RACK: f"rack-{index // rack:05d}",
        }
        yield node(f"host-{index:06d}", labels)


async def create_nodes(api: Api, nodes: Iterable[JSON], *, in_flight: int = _IN_FLIGHT) -> int:
    """POST the nodes with their status, `in_flight` at a time; returns how many."""
    return await create_all(api, "/api/v1/nodes", nodes, in_flight=in_flight)


async def create_all(
    api: Api, path: str, objects: Iterable[JSON], *, in_flight: int = _IN_FLIGHT
) -> int:
    """POST the objects to one collection, `in_flight` at a time; returns how many."""
    return await create_each(api, ((path, obj) for obj in objects), in_flight=in_flight)


async def create_each(
    api: Api, objects: Iterable[tuple[str, JSON]], *, in_flight: int = _IN_FLIGHT
) -> int:
    """POST each object to its collection, begun in this order; returns how many."""
    rest = iter(objects)
    made = 0

    async def worker() -> None:
        nonlocal made
        for path, obj in rest:  # shared: each worker takes the next one
            await api.create(path, obj)
            made += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(in_flight):
            group.create_task(worker())
    return made
