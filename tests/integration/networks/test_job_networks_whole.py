"""All of it at once: the real control plane, the extender, agents, and packets between two pods.

::

    kube-apiserver ◄── extender, kube-scheduler            nodes r0-h00 and r0-h01 are namespaces,
          ▲                                                drawn in tests/support/networks/netns.py
          └── agents of both nodes, their netlink sockets in these namespaces

There is no kubelet: what Multus and the bridge plugin would do with the attachment and the pod's
annotation is done by hand, with nothing but what stands in the two.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from pyroute2 import AsyncIPRoute
from support.extenders.realcluster import PODS, Cluster, cluster, until
from support.networks.agenttokens import identity
from support.networks.jobnetworks import (
    ATTACHMENTS,
    NETWORKS,
    NODES,
    POOLS,
    address,
    isolated,
    pool,
)
from support.networks.netns import Namespace, Pod, Underlay, run, underlay, why_not
from support.networks.networksinstalled import installed

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube.client import KubeClient
from muster.vniagent.agent import Agent
from muster.vniagent.links import Links
from muster.vniagent.metrics import AgentMetrics

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

HOSTS = ("r0-h00", "r0-h01")


@asynccontextmanager
async def agents(
    api: Api, plane: ControlPlane, under: Underlay, folder: Path
) -> AsyncIterator[None]:
    """Run an agent for each node, with the rights as shipped."""
    async with AsyncExitStack() as stack:
        running = []
        for number, (name, node) in enumerate(zip(HOSTS, under.nodes, strict=True), 1):
            shown = await identity(api, plane, name, folder)
            client = await stack.enter_async_context(KubeClient(shown))
            links = await stack.enter_async_context(Links(lambda node=node: _socket(node)))  # type: ignore[misc]
            metrics = AgentMetrics(CollectorRegistry())
            made = Agent(client, links, name, under.address(number), metrics, resync_s=300.0)
            running.append(asyncio.create_task(made.run()))
        try:
            yield
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


def _socket(node: Namespace) -> AsyncIPRoute:
    return AsyncIPRoute(netns=node.name)


async def attach(fleet: Cluster, under: Underlay, gang: pods.Gang) -> list[Pod]:
    """Do what Multus and the bridge plugin do for each member, on the node it is bound to."""
    made = []
    for pod in await fleet.list_pods(gang):
        node = under.nodes[HOSTS.index(pod["spec"]["nodeName"])]
        [spec] = [n["spec"] for n in (await fleet.api.get(NETWORKS))["items"]
                  if n["spec"]["gang"].endswith(gang.name)]  # fmt: skip
        name = f"muster-vni-{spec['vni']}"
        attachment = await fleet.api.get(f"{ATTACHMENTS}/{name}")
        config = json.loads(attachment["spec"]["config"])
        vni = int(config["bridge"].removeprefix("mvb"))
        made.append(await under.pod(node, vni, address(pod), config["mtu"]))
    return made


async def test_members_of_a_job_reach_each_other_and_nobody_else_and_nothing_is_left_behind(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    reason = await why_not()
    if reason:
        pytest.skip(reason)
    async with underlay(2) as under, installed(real_plane) as api:
        await api.create(POOLS, pool("jobs", 1000, 1001))
        async with AsyncExitStack() as stack:
            fleet = await stack.enter_async_context(cluster(real_plane, spareCount=0))
            await fleet.add_racks([0], hosts=len(HOSTS))
            await stack.enter_async_context(agents(api, real_plane, under, tmp_path))

            async def reported() -> bool:
                return len((await api.get(NODES))["items"]) == len(HOSTS)

            await until(reported)
            # One member of each on either node: two of five devices do not fit on eight.
            one, two = isolated("one", 2, gpus=5), isolated("two", 2, gpus=3)
            for gang in (one, two):
                await fleet.submit(gang)
                await fleet.bound(gang)

            async def ready() -> bool:
                said = (await api.get(NODES))["items"]
                on = [n["spec"] for n in (await api.get(NETWORKS))["items"]]
                return len(on) == 2 and all(
                    {n["metadata"]["name"] for n in said if net["vni"] in n["status"]["ready"]}
                    == {peer["name"] for peer in net["nodes"]}
                    for net in on
                )

            await until(ready)
            (a, b), (c, d) = [await attach(fleet, under, gang) for gang in (one, two)]
            assert await a.reaches(b) == "answered"
            assert await c.reaches(d) == "answered"
            assert await a.reaches(b, 1450 - 28) == "answered"
            assert await a.reaches(b, 1450 - 27) == "Message too long"
            assert (a.address, b.address) == (c.address, d.address)
            assert await a.probe(b.address, tries=2) == "answered"
            await run(*under.nodes[1].inside("ip", "link", "set", "mvx1000", "down"))
            assert await a.probe(b.address, tries=2) != "answered"  # it is not d that answers
            assert await c.reaches(d) == "answered"
            for gang in (one, two):
                for rank in range(gang.size):
                    await fleet.api.delete(f"{PODS}/{gang.name}-{rank}")

            async def gone() -> bool:
                return not (await api.get(NETWORKS))["items"]

            await until(gone)
            for node in under.nodes:
                assert not {n for n in await node.devices() if n.startswith(("mvb", "mvx"))}
