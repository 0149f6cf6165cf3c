"""The device plugin as a program between a fake kubelet and a simulated API server.

::

    DGX H100 "n1": 8 GPUs; the kubelet has NUMA nodes 0 and 1, four GPUs on each
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import yaml
from support.apiservers.apifaults import FaultyServer, api_server
from support.apiservers.eventually import eventually
from support.kubelets.fakekubelet import Container, FakeKubelet, Pod
from support.kubelets.pluginprocess import PluginProcess, plugin
from support.machine.patience import PATIENCE_S
from support.machine.shortpath import short_folder

from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import node as node_body
from muster.kube.names import NODE_ALLOCATIONS, NODE_TOPOLOGY, PLAN

NODE, GPU = "n1", "nvidia.com/gpu"
PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


@dataclass
class Site:
    """One node's worth of cluster."""

    api: Api
    server: FaultyServer
    kubelet: FakeKubelet
    kubeconfig: str
    pods: dict[str, Pod] = field(default_factory=dict)

    @asynccontextmanager
    async def plugin(
        self, *arguments: str, name: str = "plugin", shows: int | None = 8
    ) -> AsyncIterator[PluginProcess]:
        """Run the plugin until the kubelet shows so many GPUs; None: does not wait for any."""
        how = ("--kubeconfig", self.kubeconfig, *arguments)
        async with plugin(self.kubelet.root, *how, name=name, cluster=True) as it:
            if shows is not None:
                await self.kubelet.until_allocatable(GPU, shows)
            yield it

    async def node(self) -> dict[str, Any]:
        return await self.api.get(f"/api/v1/nodes/{NODE}")

    async def gpus(self) -> list[str]:
        """Return the UUIDs that the Node says it has, in their order."""
        found = await eventually(self.api, f"/api/v1/nodes/{NODE}", _has(NODE_TOPOLOGY))
        published = json.loads(found["metadata"]["annotations"][NODE_TOPOLOGY])
        return [device["name"] for device in published["devices"] if device["kind"] == "gpu"]

    async def given(self, *pods: str) -> dict[str, dict[str, list[str]]]:
        """Wait until the Node says who has what of these pods, and return it by pod."""
        uids = {self.pods[name].id: name for name in pods}

        def said(node: dict[str, Any]) -> bool:
            text = node["metadata"].get("annotations", {}).get(NODE_ALLOCATIONS)
            return text is not None and json.loads(text)["pods"].keys() >= uids.keys()

        found = await eventually(self.api, f"/api/v1/nodes/{NODE}", said)
        published = json.loads(found["metadata"]["annotations"][NODE_ALLOCATIONS])["pods"]
        return {name: published[uid] for uid, name in uids.items()}

    async def label(self, key: str, value: str) -> None:
        """Label the Node."""
        await self.api.patch(f"/api/v1/nodes/{NODE}", {"metadata": {"labels": {key: value}}})

    async def event(self, reason: str) -> dict[str, Any]:
        """Wait for an Event of this reason."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                found, _ = await self.api.list_all(EVENTS)
                for one in found:
                    if one["reason"] == reason:
                        return one
                await asyncio.sleep(0.05)

    @asynccontextmanager
    async def recorded(self) -> AsyncIterator[list[str]]:
        """Collect every text of the allocations that the Node has inside the block."""
        node = await self.node()
        texts = [node["metadata"]["annotations"][NODE_ALLOCATIONS]]

        async def record() -> None:
            version = node["metadata"]["resourceVersion"]
            async for _, changed in self.api.watch("/api/v1/nodes", version):
                texts.append(changed["metadata"].get("annotations", {})[NODE_ALLOCATIONS])

        recording = asyncio.create_task(record())
        try:
            yield texts
        finally:
            recording.cancel()
            with suppress(asyncio.CancelledError):
                await recording

    async def bind(
        self, name: str, size: int, plan: Sequence[str] | None = None, *, created: float = 1.0
    ) -> Pod:
        """Have a pod on the node, as the extender releases it; the kubelet has yet to admit it."""
        limits = {GPU: str(size)}
        notes = {} if plan is None else {PLAN: json.dumps(_plan(name, plan))}
        made = await self.api.create(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default", "annotations": notes},
                "spec": {
                    "nodeName": NODE,
                    "containers": [
                        {
                            "name": "main",
                            "image": "none",
                            "resources": {"limits": limits, "requests": limits},
                        }
                    ],
                },
            },
        )
        uid = made["metadata"]["uid"]
        pod = Pod(name, (Container("main", {GPU: size}),), uid=uid, created=created)
        self.pods[name] = pod
        return pod


@asynccontextmanager
async def site(**how: object) -> AsyncIterator[Site]:
    """Serve a node; ``how``: of the fake kubelet."""
    async with AsyncExitStack() as stack:
        root = stack.enter_context(short_folder())
        server, url = await stack.enter_async_context(api_server())
        api = await stack.enter_async_context(Api(url))
        await api.create("/api/v1/nodes", node_body(NODE, resources={"cpu": "64"}))
        kubelet = await stack.enter_async_context(FakeKubelet(root, **how))  # type: ignore[arg-type]
        config = root / "kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(url)), encoding="utf-8")
        yield Site(api, server, kubelet, str(config))


def _plan(name: str, devices: Sequence[str]) -> dict[str, Any]:
    return {"id": f"plan-{name}", "node": NODE, "devices": {NODE: list(devices)}, "generation": 1}


def _kubeconfig(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "it", "user": {"token": "none"}}],
    }


def _has(annotation: str) -> Callable[[dict[str, Any]], bool]:
    return lambda node: annotation in node["metadata"].get("annotations", {})
