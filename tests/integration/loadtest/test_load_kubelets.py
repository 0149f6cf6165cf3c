"""Who runs the pods of a load test: kwok and our writer do the same with a pod.

::

    node n0      pod: Pending, bound ──► Running ──done──► Succeeded ──deleted──► gone
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio
from support.apiservers.eventually import eventually

from loadtest.fourphase.site import kubelets
from loadtest.fourphase.site.kubelets import Kubelets
from loadtest.testbed.client import nodes
from loadtest.testbed.client.api import JSON, Api, ApiFailed
from loadtest.testbed.client.pods import pod
from loadtest.testbed.controlplane.assets import AssetError, Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment import kwok
from loadtest.testbed.standins.kubelet import Kubelet

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

PODS = "/api/v1/namespaces/default/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass
class World:
    who: Kubelets
    api: Api
    kubelet: Kubelet

    async def reaches(self, name: str, phase: str) -> JSON:
        def is_there(pod: JSON) -> bool:
            return bool(pod["status"]["phase"] == phase)

        return await eventually(self.api, f"{PODS}/{name}", is_there)

    async def is_gone(self, name: str) -> bool:
        try:
            await self.api.get(f"{PODS}/{name}")
        except ApiFailed as refused:
            return refused.code == 404
        return False

    async def create(self, name: str, node: str | None) -> None:
        made = pod(name, cpu="1", memory="1Gi")
        if node is not None:
            made["spec"]["nodeName"] = node
        await self.api.create(PODS, made)


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with AsyncExitStack() as stack:
        try:
            made = await stack.enter_async_context(ControlPlane(Options(minor=minor)))
        except AssetError as missing:
            pytest.skip(f"no real control plane: {missing}")
        async with made.api("admin") as api:
            await nodes.create_nodes(api, [nodes.node("n0")])
        yield made


# One for all tests: the next kwok would wait until the Leases of the last one have run out.
@pytest_asyncio.fixture(loop_scope="session", scope="module", params=list(Kubelets))
async def world(request: pytest.FixtureRequest, plane: ControlPlane) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(plane.api("admin"))
        program = await kubelets.start(stack, plane, request.param)
        assert (program is not None) is (request.param is Kubelets.KWOK)
        kubelet = kubelets.writing(request.param, api)
        writing = asyncio.create_task(kubelet.run())
        yield World(request.param, api, kubelet)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_bound_pod_runs_is_done_when_it_is_told_and_goes_when_it_is_deleted(
    world: World,
) -> None:
    name = f"{world.who}-runs"
    await world.create(name, "n0")
    world.kubelet.start("default", name)
    await world.reaches(name, "Running")
    world.kubelet.finish("default", name)
    await world.reaches(name, "Succeeded")
    await world.api.delete(f"{PODS}/{name}")
    assert await world.is_gone(name)


async def test_a_pod_that_no_node_has_stays_pending(world: World) -> None:
    await world.create(f"{world.who}-waits", None)
    await world.create(f"{world.who}-beside", "n0")
    world.kubelet.start("default", f"{world.who}-beside")
    await world.reaches(f"{world.who}-beside", "Running")
    await world.reaches(f"{world.who}-waits", "Pending")


async def test_a_running_pod_says_since_when(world: World) -> None:
    name = f"{world.who}-since"
    await world.create(name, "n0")
    world.kubelet.start("default", name)
    assert (await world.reaches(name, "Running"))["status"]["startTime"]


@pytest.mark.parametrize("world", [Kubelets.KWOK], indirect=True)
async def test_kwok_holds_the_lease_of_a_node(world: World) -> None:
    name = f"{world.who}-after"
    await world.create(name, "n0")
    world.kubelet.start("default", name)
    await world.reaches(name, "Running")  # kwok runs pods of nodes whose Lease it has
    assert (await leases(world.api))["n0"]


async def leases(api: Api) -> dict[str, str]:
    """Return who holds the Lease of each node."""
    found = (await api.get(LEASES))["items"]
    return {each["metadata"]["name"]: each["spec"]["holderIdentity"] for each in found}


async def test_the_stages_of_kwok_know_the_annotation_that_the_driver_writes() -> None:
    assert f'"{kwok.DONE}"' in kwok.STAGES.read_text(encoding="utf-8")
