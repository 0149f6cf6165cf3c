"""A node with a simulated DGX H100 whose device plugin is ours, and Muster beside its plane.

::

    pods of a gang ─► kube-apiserver ◄─ webhook, extender, kube-scheduler   (on this machine)
                          ▲  ▲
          Node, events ───┘  └─── kubelet ◄── sockets ── muster device-plugin --simulate dgx-h100
                                    │                        ▲
                                    └─► containerd ─► pods   └── a file that switches faults

A container tells its environment; it must name the very GPUs that its pod's plan names.
"""

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from support.kubelets.realnode import (
    NodeOptions,
    RealNode,
    plane_options,
    pod_spec,
    real_node,
    skip_unless_possible,
)
from support.kubelets.realnode.node import PODS
from support.kubelets.realplugin import plugin_on

from deviceplugin.health.reports import CONDITION
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane import schedulerconfig
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import SCHEDULER, ControlPlane
from loadtest.testbed.controlplane.programs import Program
from loadtest.testbed.deployment.muster import RBAC, Muster
from muster.kube import names

SETTINGS: Final = {
    "readingSeconds": 0.2,
    "health": {"recovery": {"holdSeconds": 1.0, "settleSeconds": 0.5}},
}
GPU: Final = "nvidia.com/gpu"
_LEVELS: Final = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r"}


@dataclass(slots=True)
class GpuSite:
    """A node with the plugin on it, and Muster beside its control plane."""

    node: RealNode
    plugin: Program
    faults: Path
    muster: Muster

    @property
    def api(self) -> Api:
        return self.node.api

    async def restart_plugin(self) -> None:
        """As after a crash: SIGKILL, then a new process."""
        self.plugin.kill()
        self.plugin.start()
        await self.plugin.wait_ready()

    async def fault(self, *words: str) -> None:
        command = [sys.executable, "-m", "deviceplugin.tools.faultswitch", self.faults, *words]
        program = Program("fault", command, directory=self.node.directory, ready=_at_once)
        program.start()
        await self.node.until(lambda: _ended(program), "the fault is switched")

    async def submit(
        self, name: str, size: int, gpus: int, args: Sequence[str] = (), **spec: Any
    ) -> None:
        """Create a gang's pods, which tell their environment; `spec` are fields of the pods'."""
        for rank in range(size):
            meta = {
                "name": f"{name}-{rank}",
                "labels": {names.GANG: name},
                "annotations": {names.GANG_SIZE: str(size)},
            }
            made = pod_spec({GPU: gpus}, args=list(args)) | spec
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made}
            await self.api.create(PODS, pod)

    async def running(self, name: str, size: int) -> list[JSON]:
        return [await self.node.until_phase(f"{name}-{r}", "Running") for r in range(size)]

    async def planned(self, pod: str) -> set[str]:
        """The devices that the extender chose."""
        plan = json.loads((await self.node.pod(pod))["metadata"]["annotations"][names.PLAN])
        return set(plan["devices"][self.node.name])

    async def seen(self, pod: str, container: str = "main") -> set[str]:
        """The devices that the container sees."""
        env = (await self.node.seen(pod, container)).env
        assert env["NVIDIA_VISIBLE_DEVICES"] == "void"  # said by the CDI spec
        return set(env["MUSTER_GPUS"].split(","))

    async def annotation(self, key: str) -> JSON:
        text = (await self.node.node())["metadata"].get("annotations", {}).get(key, "{}")
        found: JSON = json.loads(text)
        return found

    async def given(self, pod: str) -> set[str]:
        """The devices that the Node says the pod was given."""
        uid = (await self.node.pod(pod))["metadata"]["uid"]
        reported = (await self.annotation(names.NODE_ALLOCATIONS)).get("pods", {})
        return set(reported.get(uid, {}).get(GPU, ()))

    async def until_given(self, pod: str, devices: set[str]) -> None:
        async def told() -> bool:
            return await self.given(pod) == devices

        await self.node.until(told, f"the Node says that {pod} was given {devices}")

    async def condition(self) -> str:
        found = (await self.node.node())["status"]["conditions"]
        return next((each["status"] for each in found if each["type"] == CONDITION), "")

    async def empty(self, *pods: str) -> None:
        for pod in pods:
            await self.node.delete_pod(pod)


async def _at_once() -> bool:
    return True


async def _ended(program: Program) -> bool:
    return not program.running


@asynccontextmanager
async def gpu_site(minor: Minor) -> AsyncIterator[GpuSite]:
    """Yield the node, Ready; skips where there can be none."""
    await skip_unless_possible()
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(plane_options(minor, rbac=RBAC)))
        node = await stack.enter_async_context(real_node(plane, NodeOptions()))
        await node.api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": _LEVELS}})
        muster = await stack.enter_async_context(Muster(plane))
        await _scheduler(plane, muster)
        plugin, faults = await stack.enter_async_context(plugin_on(node, SETTINGS))
        yield GpuSite(node, plugin, faults, muster)


async def _scheduler(plane: ControlPlane, muster: Muster) -> None:
    config = schedulerconfig.write(
        "recommended",
        directory=plane.directory,
        kubeconfig=plane.kubeconfig(SCHEDULER),
        extender_url=muster.extender_url,
        extender_ca=muster.extender_ca,
    )
    await plane.start_scheduler(config)
