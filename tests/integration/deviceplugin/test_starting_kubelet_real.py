"""What pods have while a real kubelet has just started and lists few of them, or none.

The API server is stopped meanwhile: for as long, a kubelet that starts knows of no pod. Then it
admits what is bound to its node by creation, so an older pod may come before one that runs::

    older  created ────────────────────────── bound ─────────────── admitted, asks for a GPU
    keeps         created, runs on 7 GPUs ──────────────────────────────────── listed again
    kubelet                            stops        starts, lists nothing ─► lists older ─► both
    API server    ────────────────────────────────┤ stopped ├──────────────────────────────
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime

import pytest
import pytest_asyncio
from support.kubelets.gpusite import GPU, GpuSite, gpu_site
from support.kubelets.realnode.node import PODS
from support.kubelets.realnode.podresources import healthy_devices, lister

from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import API_SERVER
from muster.kube import names
from muster.protogen import podresources_v1_pb2 as pb

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(minor: Minor) -> AsyncIterator[GpuSite]:
    async with gpu_site(minor) as it:
        await it.node.until_allocatable(GPU, 8)
        yield it


@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
async def test_a_starting_kubelet_gives_no_pod_what_another_uses_that_it_does_not_list_yet(
    site: GpuSite, checkpoint: str
) -> None:
    await _older(site, "older")
    await site.submit("keeps", 1, 7)
    await site.running("keeps", 1)
    held = await site.seen("keeps-0")
    await site.until_given("keeps-0", held)
    uid = (await site.node.pod("keeps-0"))["metadata"]["uid"]
    async with _reported(site) as reports:
        await site.node.stop_kubelet()
        await _bind(site, "older")
        if checkpoint == "lost":
            (site.node.device_plugins / "kubelet_internal_checkpoint").unlink()
        await _start_without_pods(site)
        await site.node.until_phase("older", "Running")
        assert len(await site.seen("older")) == 1
        assert not await site.seen("older") & held
        await site.node.until(lambda: _lists(site, "keeps-0"), "the running pod is listed again")
        await site.until_given("older", await site.seen("older"))
    assert all(set(each[uid][GPU]) == held for each in reports)
    assert (await site.node.pod("keeps-0"))["status"]["phase"] == "Running"
    await site.empty("older", "keeps-0")


async def _older(site: GpuSite, name: str) -> None:
    """Create a pod that no scheduler binds; return when later pods are created after it."""
    await site.node.create_pod(name, {GPU: 1}, spec={"schedulerName": "nobody"})
    made = datetime.fromisoformat((await site.node.pod(name))["metadata"]["creationTimestamp"])

    async def past() -> bool:
        return datetime.now(made.tzinfo).timestamp() >= made.timestamp() + 1

    await site.node.until(past, "another second")


async def _bind(site: GpuSite, name: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": site.node.name}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    await site.api.create(f"{PODS}/{name}/binding", body)


async def _start_without_pods(site: GpuSite) -> None:
    """Start the kubelet, and let it see its pods only when it has the plugin's devices again."""
    server = site.node.plane.program(API_SERVER)
    server.suspend()
    try:
        site.node.kubelet.start()
        await site.node.until(lambda: _has_devices(site), "the plugin is registered again")
        assert await _listed(site) == set()
    finally:
        server.resume()
    await site.node.kubelet.wait_ready()


async def _has_devices(site: GpuSite) -> bool:
    return await healthy_devices(site.node.pod_resources, GPU) == 8


async def _listed(site: GpuSite) -> set[str]:
    async with lister(site.node.pod_resources) as stub:
        answer = await stub.List(pb.ListPodResourcesRequest())
    return {pod.name for pod in answer.pod_resources}


async def _lists(site: GpuSite, pod: str) -> bool:
    return pod in await _listed(site)


@asynccontextmanager
async def _reported(site: GpuSite) -> AsyncIterator[list[dict[str, dict[str, list[str]]]]]:
    """Collect what the Node says of all pods' devices, each time that the Node changes."""
    node = await site.node.node()
    found = []

    async def record() -> None:
        version = node["metadata"]["resourceVersion"]
        async for _, changed in site.api.watch("/api/v1/nodes", version):
            note = changed["metadata"]["annotations"][names.NODE_ALLOCATIONS]
            found.append(json.loads(note)["pods"])

    recording = asyncio.create_task(record())
    try:
        yield found
        assert found
    finally:
        recording.cancel()
        with suppress(asyncio.CancelledError):
            await recording
