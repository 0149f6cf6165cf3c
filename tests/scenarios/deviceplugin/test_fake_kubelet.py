"""The fake kubelet keeps to what is known of the real one.

::

    NUMA 0: gpu-0 gpu-2 gpu-4 gpu-6      NUMA 1: gpu-1 gpu-3 gpu-5 gpu-7
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.devices.served import CallLog
from support.kubelets.fakekubelet import AdmissionError, Container, FakeKubelet, Pod, asking
from support.machine.shortpath import short_folder
from support.webhooks.plainview import PlainView, variable, view

from deviceplugin.model.answers import ShownDevice
from deviceplugin.serving.resource import ResourceServer, SocketPlace

GPU = "nvidia.com/gpu"
NIC = "rdma/hca"
GPUS = [f"gpu-{number}" for number in range(8)]


@asynccontextmanager
async def node(
    *views: PlainView, **how: object
) -> AsyncIterator[tuple[FakeKubelet, list[ResourceServer]]]:
    """Run a kubelet and a server for each view, until the kubelet shows all devices."""
    with short_folder() as root:
        async with FakeKubelet(root, **how) as kubelet, asyncio.TaskGroup() as group:  # type: ignore[arg-type]
            servers = [
                ResourceServer(each, SocketPlace(kubelet.folder, "t1"), CallLog()) for each in views
            ]
            tasks = [group.create_task(server.run()) for server in servers]
            for each in views:
                await kubelet.until_allocatable(each.resource, len(each.devices))
            yield kubelet, servers
            for task in tasks:
                task.cancel()


async def test_a_pod_gets_what_the_plugin_prefers() -> None:
    gpus = view(GPU, GPUS)
    async with node(gpus) as (kubelet, _):
        options = await kubelet.run(asking("a", {GPU: 2}))
        assert options.envs == {variable(GPU): "gpu-6,gpu-7"}
        assert kubelet.offered == [(GPU, kubelet.offered[0][1], (), 2)]


async def test_pods_are_admitted_in_the_order_of_their_creation() -> None:
    async with node(view(GPU, GPUS)) as (kubelet, _):
        late, early = asking("late", {GPU: 8}, created=2), asking("early", {GPU: 8}, created=1)
        await kubelet.admit(late, early)
        assert kubelet.ids(early, GPU) == set(GPUS)
        assert "requested number of devices unavailable" in kubelet.failed["late"]


async def test_devices_of_an_init_container_are_used_again_but_not_those_of_a_side_car() -> None:
    async with node(view(GPU, GPUS)) as (kubelet, _):
        init = Container("init", {GPU: 2})
        car = Container("car", {GPU: 2}, restartable=True)
        pod = Pod("a", (Container("main", {GPU: 4}),), init=(init, car))
        await kubelet.run(pod)
        before, beside = kubelet.ids(pod, GPU, "init"), kubelet.ids(pod, GPU, "car")
        assert beside == before  # what the init container had is taken first
        assert not kubelet.ids(pod, GPU) & beside


async def test_the_topology_manager_keeps_a_container_on_one_numa_node() -> None:
    async with node(view(GPU, GPUS, numa=2), policy="single-numa-node") as (kubelet, _):
        pods = [asking(f"p{number}", {GPU: 3}, created=number) for number in range(3)]
        await kubelet.admit(*pods)
        homes = [{int(g[-1]) % 2 for g in kubelet.ids(pod, GPU)} for pod in pods[:2]]
        assert all(len(home) == 1 for home in homes)
        assert homes[0] != homes[1]
        assert "Topology locality" in kubelet.failed["p2"]  # 1 is left on either node


async def test_the_plugin_is_not_asked_where_all_aligned_devices_are_needed() -> None:
    async with node(view(GPU, GPUS, numa=2), policy="restricted") as (kubelet, _):
        await kubelet.run(asking("a", {GPU: 4}))
        assert kubelet.offered == []


async def test_an_ended_stream_makes_all_devices_unhealthy_and_then_drops_the_resource() -> None:
    now = 0.0
    with short_folder() as root:
        async with FakeKubelet(root, clock=lambda: now) as kubelet:
            server = ResourceServer(view(GPU, GPUS), SocketPlace(kubelet.folder, "t1"), CallLog())
            task = asyncio.create_task(server.run())
            await kubelet.until_allocatable(GPU, 8)
            task.cancel()
            await kubelet.until_allocatable(GPU, 0)
            assert kubelet.capacity() == {GPU: 8}
            now = 300.5
            assert kubelet.capacity() == {}


async def test_after_a_restart_the_checkpoint_holds_what_pods_have() -> None:
    async with node(view(GPU, GPUS)) as (kubelet, _):
        pod = asking("a", {GPU: 2})
        before = await kubelet.run(pod)
        await kubelet.restart()
        assert kubelet.ids(pod, GPU) == {"gpu-6", "gpu-7"}
        assert not kubelet.failed
        await kubelet.until_allocatable(GPU, 8)
        assert await kubelet.start_container(pod) == before


async def test_a_pod_of_before_a_reboot_fails_when_it_comes_before_the_plugin() -> None:
    async with node(view(GPU, GPUS)) as (kubelet, _):
        await kubelet.run(asking("a", {GPU: 2}))
        await kubelet.reboot()
        assert "no healthy devices present" in kubelet.failed["a"]


async def test_a_refused_allocation_fails_the_pod_and_frees_its_devices() -> None:
    gpus = view(GPU, GPUS)
    async with node(gpus) as (kubelet, _):
        gpus.breaks = True
        with pytest.raises(AdmissionError, match="Allocate failed"):
            await kubelet.run(asking("a", {GPU: 8}))
        gpus.breaks = False
        await kubelet.run(asking("b", {GPU: 8}))


async def test_resources_of_one_container_come_in_an_order_of_chance() -> None:
    orders = set()
    for seed in range(6):
        gpus, nics = view(GPU, GPUS), view(NIC, ["mlx5_0"])
        async with node(gpus, nics, seed=seed) as (kubelet, _):
            await kubelet.run(asking("a", {GPU: 1, NIC: 1}))
            orders.add(tuple(resource for resource, *_ in kubelet.offered))
    assert orders == {(GPU, NIC), (NIC, GPU)}


async def test_a_device_that_is_not_healthy_is_not_allocatable() -> None:
    gpus = view(GPU, GPUS)
    async with node(gpus) as (kubelet, (server,)):
        gpus.put(ShownDevice("gpu-0", healthy=False))
        server.changed()
        await kubelet.until_allocatable(GPU, 7)
        assert kubelet.capacity() == {GPU: 8}
