"""The extender's choice, from the plan to the container: every part real but the GPUs.

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
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
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

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SETTINGS = {
    "readingSeconds": 0.2,
    "health": {"recovery": {"holdSeconds": 1.0, "settleSeconds": 0.5}},
}
GPU = "nvidia.com/gpu"
LEVELS = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r"}


@dataclass(slots=True)
class Site:
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

    async def submit(self, name: str, size: int, gpus: int) -> None:
        """Create a gang's pods, which tell their environment."""
        for rank in range(size):
            meta = {
                "name": f"{name}-{rank}",
                "labels": {names.GANG: name},
                "annotations": {names.GANG_SIZE: str(size)},
            }
            spec = pod_spec({GPU: gpus})
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
            await self.api.create(PODS, pod)

    async def running(self, name: str, size: int) -> list[JSON]:
        return [await self.node.until_phase(f"{name}-{r}", "Running") for r in range(size)]

    async def planned(self, pod: str) -> set[str]:
        """The devices that the extender chose."""
        plan = json.loads((await self.node.pod(pod))["metadata"]["annotations"][names.PLAN])
        return set(plan["devices"][self.node.name])

    async def seen(self, pod: str) -> set[str]:
        """The devices that the container sees."""
        env = (await self.node.seen(pod)).env
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor) -> AsyncIterator[Site]:
    await skip_unless_possible()
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(plane_options(minor, rbac=RBAC)))
        node = await stack.enter_async_context(real_node(plane, NodeOptions()))
        await node.api.patch(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": LEVELS}})
        muster = await stack.enter_async_context(Muster(plane))
        await _scheduler(plane, muster)
        plugin, faults = await stack.enter_async_context(plugin_on(node, SETTINGS))
        yield Site(node, plugin, faults, muster)


async def _scheduler(plane: ControlPlane, muster: Muster) -> None:
    config = schedulerconfig.write(
        "recommended",
        directory=plane.directory,
        kubeconfig=plane.kubeconfig(SCHEDULER),
        extender_url=muster.extender_url,
        extender_ca=muster.extender_ca,
    )
    await plane.start_scheduler(config)


async def test_the_node_says_what_a_dgx_h100_says(site: Site) -> None:
    await site.node.until_allocatable(GPU, 8)
    await site.node.until(lambda: _says(site, "nvidia.com/gpu.count", "8"), "GFD's labels")
    labels = (await site.node.node())["metadata"]["labels"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    assert sum(each["kind"] == "gpu" for each in devices) == 8
    await site.node.until(lambda: _is(site.condition(), "True"), "the node's condition")


async def test_each_member_of_a_gang_sees_the_very_gpus_that_were_chosen_for_it(
    site: Site,
) -> None:
    await site.node.until_allocatable(GPU, 8)
    await site.submit("pair", 2, 4)
    await site.running("pair", 2)
    seen = [await site.seen(f"pair-{rank}") for rank in range(2)]
    assert seen == [await site.planned(f"pair-{rank}") for rank in range(2)]
    assert len(seen[0] | seen[1]) == 8
    for rank in range(2):
        await site.node.until(
            lambda rank=rank: _same(site.given(f"pair-{rank}"), seen[rank]),  # type: ignore[misc]
            "the Node says what the pod was given",
        )
    await site.empty("pair-0", "pair-1")


async def test_pods_of_equal_shape_that_start_together_are_not_mixed_up(site: Site) -> None:
    await site.submit("ones", 8, 1)
    await site.running("ones", 8)
    seen = [await site.seen(f"ones-{rank}") for rank in range(8)]
    assert seen == [await site.planned(f"ones-{rank}") for rank in range(8)]
    assert len(set[str]().union(*seen)) == 8
    await site.empty(*(f"ones-{rank}" for rank in range(8)))


async def test_a_sick_gpu_is_given_to_no_pod_until_it_is_well(site: Site) -> None:
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    sick = devices[3]["name"]
    await site.fault("set", "recoveryAction=2", "--gpu", "3")  # until the node is rebooted
    await site.fault("xid", "79", "--gpu", "3")
    await site.node.until_allocatable(GPU, 7)
    await site.node.until(lambda: _is(site.condition(), "False"), "the condition tells")
    await site.node.until(lambda: _is_ill(site, sick), "the planner is told which and why")
    await site.submit("seven", 1, 7)
    await site.running("seven", 1)
    assert sick not in await site.seen("seven-0")
    await site.empty("seven-0")
    await site.fault("well")
    await site.node.until_allocatable(GPU, 8)
    await site.node.until(lambda: _is(site.condition(), "True"), "the condition is well again")


async def test_devices_and_pods_outlive_the_kubelet_and_the_plugin(site: Site) -> None:
    await site.submit("stays", 1, 3)
    await site.running("stays", 1)
    held = await site.seen("stays-0")
    await site.node.restart_kubelet()
    await site.node.until_allocatable(GPU, 8)
    await site.restart_plugin()
    await site.node.until_allocatable(GPU, 8)
    await site.submit("joins", 1, 5)
    await site.running("joins", 1)
    assert await site.seen("joins-0") == await site.planned("joins-0")
    assert not await site.seen("joins-0") & held
    assert (await site.node.pod("stays-0"))["status"]["phase"] == "Running"
    await site.node.until(lambda: _same(site.given("stays-0"), held), "what it has is still told")
    await site.empty("stays-0", "joins-0")


async def _says(site: Site, key: str, value: str) -> bool:
    return (await site.node.node())["metadata"]["labels"].get(key) == value


async def _is(answer: object, value: str) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _same(answer: object, value: Sequence[str] | set[str]) -> bool:
    return (await answer) == value  # type: ignore[misc]


async def _is_ill(site: Site, name: str) -> bool:
    devices = (await site.annotation(names.NODE_TOPOLOGY))["devices"]
    found = next(each for each in devices if each["name"] == name)
    return found.get("healthy", True) is False and "79" in found["reason"]
