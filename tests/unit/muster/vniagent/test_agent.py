"""One agent against an API server and a kernel that fail."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from prometheus_client import CollectorRegistry
from support.apiservers.apifaults import Fault, FaultyServer, api_server
from support.extenders.extenders import eventually
from support.networks.jobnetworks import NETWORKS, NODES, install

from loadtest.testbed.client.api import JSON, Api
from muster.kube.client import KubeClient
from muster.kube.http import auth
from muster.kube.kinds import jobnetworks
from muster.kube.kinds.jobnetworks import JobNetworkSpec, Peer, network_body
from muster.vniagent import __main__ as program
from muster.vniagent.agent import Agent
from muster.vniagent.desired import MARK, MakeVxlan, NetworkDevice, Present, Step, held
from muster.vniagent.links import LinkError
from muster.vniagent.metrics import AgentMetrics

ADDRESS = "10.0.0.1"


@dataclass
class Kernel:
    """``asks``: what is looked at right before each step."""

    api: Api
    here: dict[str, NetworkDevice] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    reports: list[list[int]] = field(default_factory=list)
    broken: bool = False

    async def read(self) -> Present:
        return Present(tuple(self.here.values()))

    async def underlay_mtu(self, address: str) -> int | None:
        return 1500 if address == ADDRESS else None

    async def apply(self, step: Step) -> None:
        if self.broken:
            raise LinkError("Operation not permitted")
        items = (await self.api.get(NODES))["items"]
        self.reports.append(items[0]["status"]["vnis"] if items else [])
        self.steps.append(step)
        if isinstance(step, MakeVxlan):
            wanted = step.wanted
            self.here[step.name] = NetworkDevice(
                9, step.name, "vxlan", MARK, vni=wanted.vni, local=wanted.local, port=wanted.port
            )
        elif type(step).__name__ == "Remove":
            self.here.clear()


@dataclass
class Site:
    server: FaultyServer
    api: Api
    kernel: Kernel
    agent: Agent

    async def network(self, vni: int = 7) -> None:
        peers = (Peer(name="n1", address=ADDRESS), Peer(name="n2", address="10.0.0.2"))
        spec = JobNetworkSpec(
            vni=vni, pool="p", gang="muster/default/a", namespace="default",
            subnet="10.9.0.0/16", mtu=1450, port=4789, nodes=peers,
        )  # fmt: skip
        made = await self.api.create(NETWORKS, network_body(spec))
        self.agent._networks[made["metadata"]["name"]] = await self.agent.client.get(
            jobnetworks.NETWORKS, f"vni-{vni}"
        )

    async def reported(self) -> JSON:
        found: JSON = (await self.api.get(f"{NODES}/n1"))["status"]
        return found


@asynccontextmanager
async def site(address: str = ADDRESS) -> AsyncIterator[Site]:
    async with api_server() as (server, url), Api(url) as api:
        await install(api)
        async with KubeClient(auth.fixed(url)) as client:
            kernel = Kernel(api)
            metrics = AgentMetrics(CollectorRegistry())
            agent = Agent(client, kernel, "n1", address, metrics, clock=lambda: 0.0)
            yield Site(server, api, kernel, agent)


async def test_a_vni_is_said_before_its_first_device_is_made_and_unsaid_after_its_last() -> None:
    async with site() as it:
        await it.network()
        await it.agent.look()
        assert it.kernel.reports
        assert all(report == [7] for report in it.kernel.reports)
        it.agent._networks.clear()
        it.kernel.reports.clear()
        await it.agent.look()
        assert it.kernel.reports == [[7]]
        assert (await it.reported())["vnis"] == []


async def test_nothing_is_made_while_it_cannot_be_said() -> None:
    async with site() as it:
        await it.network()
        it.server.faults.append(Fault("PATCH", "/nodenetworks", code=403, left=100))
        wait_s = await it.agent.look()
        assert it.kernel.steps == []
        assert wait_s < it.agent.resync_s
        assert "403" in (it.agent.healthy() or "")


async def test_a_network_that_is_gone_when_it_is_looked_at_is_not_made() -> None:
    """The watch is late: the network was given back, and its VNI perhaps to somebody else."""
    async with site() as it:
        await it.network()
        known = dict(it.agent._networks)
        path = f"{NETWORKS}/vni-7"
        await it.api.delete(path, grace_s=None)
        await it.agent.look()
        assert it.kernel.steps == []
        await it.api.patch(path, {"metadata": {"finalizers": None}})
        await it.network()  # of the same name, another one
        it.agent._networks = known
        await it.agent.look()
        assert it.kernel.steps == []


async def test_before_the_networks_are_listed_nothing_is_removed() -> None:
    async with site() as it:
        it.kernel.here["mvx9"] = NetworkDevice(9, "mvx9", "vxlan", MARK, vni=9)
        it.server.faults.append(Fault("GET", "/jobnetworks", code=500, left=1000))
        running = asyncio.create_task(it.agent.run())
        await asyncio.sleep(0.3)
        assert it.kernel.steps == []
        assert it.agent.healthy() is not None
        it.server.faults.clear()

        async def removed() -> bool:
            return held(await it.kernel.read()) == set()

        await eventually(removed)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_kernel_that_refuses_is_told_and_tried_again_soon() -> None:
    async with site() as it:
        await it.network()
        it.kernel.broken = True
        assert await it.agent.look() == 0.5
        assert await it.agent.look() == 1.0
        assert "not permitted" in (it.agent.healthy() or "")
        assert (await it.reported())["vnis"] == [7]


async def test_an_address_that_the_node_does_not_have_is_named() -> None:
    async with site("10.7.7.7") as it:
        await it.agent.look()
        text = "no device of this node has the address 10.7.7.7: set --address"
        assert it.agent.healthy() == text


def test_the_program_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    monkeypatch.setattr(sys, "argv", ["vni-agent"])
    assert program.main() == 2
    assert "--node-name" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["vni-agent", "--node-name", "n1", "--address", "here"])
    assert program.main() == 2
    assert "'here' is no IP address" in capsys.readouterr().err
