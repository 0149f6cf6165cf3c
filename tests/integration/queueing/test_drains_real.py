"""Gangs leave a node whole, on a real control plane with the real Job controller.

::

    rack r0 ── r0-h00 r0-h01 r0-h02 r0-h03      (8 GPUs each)
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from support.apiservers.apiproxy import Keeps, StoppingProxy
from support.extenders.realcluster import (
    EVENTS,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    host_job,
    recreate,
    until,
)

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC
from muster.cli.main import main
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
NODES = "/api/v1/nodes"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with Muster's own rights."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(plane: ControlPlane) -> AsyncIterator[StoppingProxy]:
    """Between Muster and the API server."""
    async with StoppingProxy(plane) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane, proxy: StoppingProxy) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs."""
    async with cluster(plane, proxy_port=proxy.port) as it:
        await it.add_racks([0], hosts=4)
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def controlled(plane: ControlPlane, fleet: Cluster) -> AsyncIterator[Cluster]:
    """The same with the real Job controller, which takes pods that it did not make off a job."""
    await plane.start_controllers("job")
    try:
        yield fleet
    finally:
        for path in (JOBS, PODS):
            await fleet.api.delete(path)
        await until(fleet.is_empty)
        await plane.stop(CONTROLLERS)


async def _drain(fleet: Cluster, *arguments: str) -> int:
    """Run `muster drain` as an administrator does."""
    flags = ["--kubeconfig", str(fleet.plane.kubeconfig()), "--extender", fleet.muster.extender_url]
    return await asyncio.to_thread(main, ["drain", *arguments, *flags])


async def _nodes_of(fleet: Cluster, job: str) -> set[str]:
    found = await fleet.pods_of(job)
    return {node for pod in found if (node := pod["spec"].get("nodeName"))}


async def test_a_job_on_a_drained_node_is_suspended_whole_and_resumed_elsewhere_without_a_failure(
    controlled: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = controlled
    await fleet.api.create(JOBS, host_job("train"))
    await fleet.runs("train", 2)
    drained = min(await _nodes_of(fleet, "train"))

    assert await _drain(fleet, drained, "--wait", str(PATIENCE_S)) == 0

    assert f"{drained}: no pod of a gang is left" in capsys.readouterr().out
    await fleet.runs("train", 2)
    assert drained not in await _nodes_of(fleet, "train")
    job = await fleet.api.get(f"{JOBS}/train")
    assert job["spec"]["suspend"] is False
    assert not job["status"].get("failed")
    node = await fleet.api.get(f"{NODES}/{drained}")
    assert node["spec"]["unschedulable"] is True
    reasons = {event["reason"] for event in (await fleet.api.get(EVENTS))["items"]}
    assert {"GangsLeave", "GivesWay"} <= reasons

    assert await _drain(fleet, drained, "--cancel") == 0
    node = await fleet.api.get(f"{NODES}/{drained}")
    assert "unschedulable" not in node["spec"]
    assert not any(t["key"] == names.DRAIN for t in node["spec"].get("taints", ()))


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_a_gang_of_pods_leaves_whole_though_the_extender_is_killed_in_the_middle(
    fleet: Cluster, proxy: StoppingProxy, keeps: Keeps
) -> None:
    gang, other = pods.Gang("gang", 2), pods.Gang("other", 1)
    await fleet.submit(gang)
    await fleet.bound(gang)
    await fleet.submit(other)
    await fleet.bound(other)
    drained = min((await fleet.placement(gang)).values())
    stop = proxy.stop_at("POST", "/eviction", keeps=keeps)
    # one node is free, and the gang's own other one counts as free, too
    assert await _drain(fleet, drained) == 0
    async with asyncio.timeout(PATIENCE_S):
        await stop.reached.wait()
    fleet.muster.extender.kill()
    proxy.open()
    await fleet.muster.start(fleet.muster.extender)

    await until(lambda: _gone(fleet, gang))

    assert await fleet.bound_of("other") == 1, "it is not on the node that is drained"
    await recreate(fleet, gang, *range(gang.size))
    await fleet.bound(gang)
    assert drained not in (await fleet.placement(gang)).values()
    assert await _drain(fleet, drained, "--wait", str(PATIENCE_S)) == 0
    assert await _drain(fleet, drained, "--cancel") == 0


async def _gone(fleet: Cluster, gang: pods.Gang) -> bool:
    return not await fleet.list_pods(gang)
