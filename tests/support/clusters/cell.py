"""Three nodes of its own for a test of a scheduler, and pods that select them."""

from typing import Any

from support.apiservers.eventually import eventually
from support.apiservers.fake_extender import FakeExtender
from support.pods.wire import pinned

from loadtest.testbed.client.api import Api
from loadtest.testbed.client.nodes import node

GPU = "example.com/gpu"


class Cell:
    """Three nodes, with 4 GPUs each, that only this test's pods select."""

    def __init__(self, api: Api, namespace: str, extender: FakeExtender) -> None:
        self.api, self.namespace, self.extender = api, namespace, extender
        self.pods = f"/api/v1/namespaces/{namespace}/pods"
        self.nodes = [f"{namespace}-n{i}" for i in range(3)]

    async def add_node(self, name: str, **resources: str) -> None:
        amounts = {"cpu": "8", "memory": "8Gi", "pods": "20", GPU: "4", **resources}
        await self.api.create("/api/v1/nodes", node(name, {"cell": self.namespace}, amounts))

    async def known(self) -> None:
        """Wait until the scheduler knows the nodes: pods come to it by a watch of their own.

        It hears of nodes in order, so whoever is bound to the last one tells of all.
        """
        await self.create("probe", gpus=0, affinity=pinned(self.nodes[-1]))
        await self.bound("probe")
        await self.api.delete(f"{self.pods}/probe")

    def pod(self, name: str, gpus: int = 1, **spec: Any) -> dict[str, Any]:
        amounts = {GPU: str(gpus)} if gpus else {"cpu": "1"}
        resources = {"requests": amounts, "limits": amounts}
        container = {"name": "main", "image": "example.com/x:1", "resources": resources}
        return {
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {
                "containers": [container],
                "nodeSelector": {"cell": self.namespace},
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }

    def key(self, name: str) -> str:
        return f"{self.namespace}/{name}"

    async def create(self, name: str, gpus: int = 1, **spec: Any) -> dict[str, Any]:
        return await self.api.create(self.pods, self.pod(name, gpus, **spec))

    def let_bind(self, *names: str) -> None:
        """Have the extender bind these pods, as it is the one that must."""
        for name in names:
            self.extender.on(self.key(name), "bind", self._bind)

    async def _bind(self, body: dict[str, Any]) -> dict[str, str]:
        binding = {
            "metadata": {"name": body["PodName"], "uid": body["PodUID"]},
            "target": {"kind": "Node", "name": body["Node"]},
        }
        await self.api.create(f"{self.pods}/{body['PodName']}/binding", binding)
        return {"Error": ""}

    async def bound(self, name: str) -> str:
        path = f"{self.pods}/{name}"
        after = await eventually(self.api, path, lambda p: "nodeName" in p["spec"])
        return str(after["spec"]["nodeName"])

    async def condition(self, name: str, reason: str) -> dict[str, Any]:
        def has(pod: dict[str, Any]) -> bool:
            return any(c.get("reason") == reason for c in pod["status"].get("conditions", []))

        after = await eventually(self.api, f"{self.pods}/{name}", has)
        return next(c for c in after["status"]["conditions"] if c.get("reason") == reason)

    def seen(self, name: str, verb: str = "") -> list[Any]:
        return self.extender.seen(self.key(name), verb)
