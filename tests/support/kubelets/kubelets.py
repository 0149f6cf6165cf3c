"""A kubelet as the contract suite sees it: the fake one and a real one, behind the same words."""

import itertools
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from support.kubelets.fakekubelet import AdmissionError, FakeKubelet, asking
from support.kubelets.fakekubelet.pods import Pod
from support.kubelets.realnode import RealNode


class Kubelet(Protocol):
    """What scenarios need. Pods have one container, which gets its devices by environment."""

    @property
    def folder(self) -> Path:
        """device-plugins, also as a path of this process."""
        ...

    @property
    def registry(self) -> Path:
        """plugins_registry."""
        ...

    async def capacity(self, resource: str) -> int | None: ...

    async def until_allocatable(self, resource: str, count: int | None) -> None: ...

    async def until_capacity(self, resource: str, count: int | None) -> None: ...

    async def run(self, limits: Mapping[str, int]) -> str:
        """Run a pod until its container has started; return its name.

        Raises ``AdmissionError`` if the kubelet does not admit it.
        """
        ...

    async def env(self, pod: str) -> Mapping[str, str]:
        """Return the environment that a running container was started with."""
        ...

    async def delete(self, pod: str) -> None: ...

    async def restart(self) -> None: ...


class FakeSide:
    """The fake kubelet."""

    def __init__(self, kubelet: FakeKubelet) -> None:
        self.kubelet = kubelet
        self._pods: dict[str, tuple[Pod, Mapping[str, str]]] = {}
        self._numbers = itertools.count(1)

    @property
    def folder(self) -> Path:
        return self.kubelet.folder

    @property
    def registry(self) -> Path:
        return self.kubelet.registry

    async def capacity(self, resource: str) -> int | None:
        return self.kubelet.capacity().get(resource)

    async def until_allocatable(self, resource: str, count: int | None) -> None:
        await self.kubelet.until(lambda: self.kubelet.allocatable().get(resource) == count)

    async def until_capacity(self, resource: str, count: int | None) -> None:
        await self.kubelet.until(lambda: self.kubelet.capacity().get(resource) == count)

    async def run(self, limits: Mapping[str, int]) -> str:
        number = next(self._numbers)
        pod = asking(f"p{number}", limits, created=number)
        self._pods[pod.name] = pod, (await self.kubelet.run(pod)).envs
        return pod.name

    async def env(self, pod: str) -> Mapping[str, str]:
        return self._pods[pod][1]

    async def delete(self, pod: str) -> None:
        self.kubelet.remove(self._pods.pop(pod)[0])

    async def restart(self) -> None:
        await self.kubelet.restart()


class RealSide:
    """A real kubelet with a real container runtime."""

    def __init__(self, node: RealNode) -> None:
        self.node = node

    @property
    def folder(self) -> Path:
        return self.node.device_plugins

    @property
    def registry(self) -> Path:
        return self.node.plugins_registry

    async def capacity(self, resource: str) -> int | None:
        return await self.node.capacity(resource)

    async def until_allocatable(self, resource: str, count: int | None) -> None:
        await self.node.until_allocatable(resource, count)

    async def until_capacity(self, resource: str, count: int | None) -> None:
        async def reached() -> bool:
            return await self.node.capacity(resource) == count

        await self.node.until(reached, f"{resource} capacity: {count}")

    async def run(self, limits: Mapping[str, int]) -> str:
        name = f"p-{uuid.uuid4().hex[:8]}"
        # Without kube-scheduler, which would not send what the kubelet is to refuse.
        await self.node.create_pod(name, limits, pinned=True)
        refused = ""

        async def settled() -> bool:
            nonlocal refused
            status = (await self.node.pod(name))["status"]
            refused = status.get("message", "") if status.get("phase") == "Failed" else ""
            return bool(refused) or status.get("phase") == "Running"

        await self.node.until(settled, f"pod {name} runs or is refused")
        if refused:
            await self.delete(name)
            raise AdmissionError(refused)
        return name

    async def env(self, pod: str) -> Mapping[str, str]:
        return (await self.node.seen(pod)).env

    async def delete(self, pod: str) -> None:
        await self.node.delete_pod(pod)

    async def restart(self) -> None:
        await self.node.restart_kubelet()
