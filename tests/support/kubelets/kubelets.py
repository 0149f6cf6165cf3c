"""A kubelet as the contract suite sees it: the fake one and a real one, behind the same words."""

import itertools
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from support.kubelets.fakekubelet import AdmissionError, Container, FakeKubelet
from support.kubelets.fakekubelet.devices import CHECKPOINT
from support.kubelets.fakekubelet.pods import Pod
from support.kubelets.realnode import RealNode, container


class Kubelet(Protocol):
    """What scenarios need.

    Containers get their devices by environment, and are started again when they die.
    """

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

    async def run(self, limits: Mapping[str, int], init: Sequence[Container] = ()) -> str:
        """Run a pod of a container "main" until that has started; return the pod's name.

        ``init``: before it, in this order. Raises ``AdmissionError`` if the kubelet does not admit
        it.
        """
        ...

    async def env(self, pod: str, container: str = "main") -> Mapping[str, str]:
        """Return the environment that a container was started with last."""
        ...

    async def until_health(self, pod: str, health: Mapping[str, str]) -> None:
        """Wait until the pod's status says this of the main container's devices: id → health."""
        ...

    async def crash(self, pod: str) -> None:
        """Have the main container die, and wait until it runs again."""
        ...

    def uid(self, pod: str) -> str: ...

    def saved(self) -> set[str]:
        """Return the uids of pods with devices in the device manager's checkpoint."""
        ...

    async def delete(self, pod: str) -> None: ...

    async def lose(self, pod: str) -> None:
        """Delete a pod while the kubelet is away."""
        ...

    async def stop(self) -> None: ...

    async def start(self) -> None: ...

    async def restart(self) -> None: ...


class FakeSide:
    """The fake kubelet."""

    def __init__(self, kubelet: FakeKubelet) -> None:
        self.kubelet = kubelet
        self._pods: dict[str, Pod] = {}
        self._envs: dict[tuple[str, str], Mapping[str, str]] = {}
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

    async def run(self, limits: Mapping[str, int], init: Sequence[Container] = ()) -> str:
        number = next(self._numbers)
        name = f"p{number}"
        pod = Pod(name, (Container("main", limits),), tuple(init), created=number)
        await self.kubelet.admit(pod)
        if pod.id in self.kubelet.failed:
            raise AdmissionError(self.kubelet.failed[pod.id])
        self._pods[name] = pod
        for each in (*pod.init, *pod.containers):
            await self._start(name, each.name)
        return name

    async def _start(self, pod: str, name: str) -> None:
        options = await self.kubelet.start_container(self._pods[pod], name)
        self._envs[pod, name] = options.envs

    async def env(self, pod: str, container: str = "main") -> Mapping[str, str]:
        return self._envs[pod, container]

    async def until_health(self, pod: str, health: Mapping[str, str]) -> None:
        def said() -> bool:
            of = self.kubelet.health(self._pods[pod])
            return {id_: each for ids in of.values() for id_, each in ids.items()} == health

        await self.kubelet.until(said)

    async def crash(self, pod: str) -> None:
        self.kubelet.die(self._pods[pod])
        await self._start(pod, "main")

    def uid(self, pod: str) -> str:
        return self._pods[pod].id

    def saved(self) -> set[str]:
        return _saved(self.folder)

    async def delete(self, pod: str) -> None:
        self.kubelet.remove(self._pods.pop(pod))

    async def lose(self, pod: str) -> None:
        await self.delete(pod)

    async def stop(self) -> None:
        await self.kubelet.stop()

    async def start(self) -> None:
        await self.kubelet.start()

    async def restart(self) -> None:
        await self.kubelet.restart()


class RealSide:
    """A real kubelet with a real container runtime."""

    def __init__(self, node: RealNode) -> None:
        self.node = node
        self._uids: dict[str, str] = {}

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

    async def run(self, limits: Mapping[str, int], init: Sequence[Container] = ()) -> str:
        name = f"p-{uuid.uuid4().hex[:8]}"
        spec = {"restartPolicy": "Always", "initContainers": [_init(each) for each in init]}
        # Without kube-scheduler, which would not send what the kubelet is to refuse.
        made = await self.node.create_pod(name, limits, pinned=True, spec=spec)
        self._uids[name] = made["metadata"]["uid"]
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

    async def env(self, pod: str, container: str = "main") -> Mapping[str, str]:
        return (await self.node.seen(pod, container)).env

    async def until_health(self, pod: str, health: Mapping[str, str]) -> None:
        async def said() -> bool:
            (status,) = (await self.node.pod(pod))["status"]["containerStatuses"]
            of = status.get("allocatedResourcesStatus", ())
            found = {each["resourceID"]: each["health"] for one in of for each in one["resources"]}
            return found == health

        await self.node.until(said, f"pod {pod} says {health}")

    async def crash(self, pod: str) -> None:
        await self.node.crash(pod)

    def uid(self, pod: str) -> str:
        return self._uids[pod]

    def saved(self) -> set[str]:
        return _saved(self.folder)

    async def delete(self, pod: str) -> None:
        await self.node.delete_pod(pod)

    async def lose(self, pod: str) -> None:
        await self.node.delete_pod(pod, grace_s=0)

    async def stop(self) -> None:
        await self.node.stop_kubelet()

    async def start(self) -> None:
        await self.node.start_kubelet()

    async def restart(self) -> None:
        await self.node.restart_kubelet()


def _init(each: Container) -> dict[str, Any]:
    if each.restartable:
        return container(each.limits, name=each.name, restartPolicy="Always")
    return container(each.limits, name=each.name, args=["-exit", "0"])


def _saved(folder: Path) -> set[str]:
    data = json.loads((folder / CHECKPOINT).read_text())["Data"]
    return {entry["PodUID"] for entry in data["PodDeviceEntries"] or ()}
