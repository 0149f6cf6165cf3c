"""Packets over the devices that `muster vni-agent` makes: the real program, the real kernel.

The namespaces are drawn in tests/support/networks/netns.py. The agents run inside those of the
nodes, and talk over the underlay to a simulated API server; no Kubernetes is needed, but root is.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from support.apiservers.apifaults import api_server
from support.extenders.extenders import eventually
from support.networks.jobnetworks import NETWORKS, NODES, install
from support.networks.netns import Namespace, Pod, Underlay, run, underlay, why_not, why_not_v6

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.programs import Program
from muster.kube.kinds.jobnetworks import JobNetworkSpec, Peer, network_body, node_labels
from muster.vniagent.desired import MARK

NODE_PORT = 9447
HEADERS = 28  # octets of IPv4 and UDP before what is sent


@dataclass
class Fabric:
    """Nodes with their agents, and the API server they listen to."""

    under: Underlay
    api: Api
    agents: list[Program]
    pods: list[Pod] = field(default_factory=list)

    def spec(self, vni: int, *numbers: int, mtu: int | None = None) -> JobNetworkSpec:
        peers = tuple(Peer(name=f"n{n}", address=self.under.address(n)) for n in numbers)
        return JobNetworkSpec(
            vni=vni,
            pool="jobs",
            gang=f"muster/default/job-{vni}",
            namespace="default",
            subnet="198.18.0.0/15",
            mtu=mtu or self.under.room,
            port=4789,
            nodes=peers,
        )

    async def network(self, vni: int, *numbers: int, mtu: int | None = None) -> None:
        """Put a network on nodes, and wait until their agents say that it stands."""
        await self.api.create(NETWORKS, network_body(self.spec(vni, *numbers, mtu=mtu)))
        for number in numbers:
            await self.until_said(number, ready=vni)

    async def move(self, vni: int, *numbers: int) -> None:
        """Have a network on these nodes and no others."""
        found = await self.api.get(f"{NETWORKS}/vni-{vni}")
        nodes = self.spec(vni, *numbers).nodes
        gone = {k: None for k in found["metadata"]["labels"] if k.startswith("node.")}
        said = [{"name": peer.name, "address": peer.address} for peer in nodes]
        patch = {"metadata": {"labels": gone | node_labels(nodes)}, "spec": {"nodes": said}}
        await self.api.patch(f"{NETWORKS}/vni-{vni}", patch)

    async def end(self, vni: int) -> None:
        """Delete a network as the leader does; the finalizer stays."""
        await self.api.delete(f"{NETWORKS}/vni-{vni}", grace_s=None)

    async def until_said(self, number: int, *, ready: int) -> JSON:
        found: JSON = {}

        async def said() -> bool:
            items = (await self.api.get(NODES))["items"]
            mine = [i for i in items if i["metadata"]["name"] == f"n{number}"]
            found.update(mine[0]["status"] if mine else {})
            return ready in found.get("ready", [])

        await eventually(said)
        return found

    async def until_bare(self, *numbers: int) -> None:
        """Wait until the agents of these nodes have taken everything down and say so."""

        async def bare() -> bool:
            items = (await self.api.get(NODES))["items"]
            said = {i["metadata"]["name"]: i["status"]["vnis"] for i in items}
            return all(said[f"n{number}"] == [] for number in numbers)

        await eventually(bare)

    async def pod(self, number: int, vni: int, host: int, *, mtu: int | None = None) -> Pod:
        node = self.under.nodes[number - 1]
        mtu = mtu or self.under.room
        return await self.under.pod(node, vni, f"198.18.0.{host}/15", mtu)

    async def steps(self, number: int) -> float:
        """Return how many changes of devices a node's agent has made since it began."""
        url = f"http://{self.under.near(number)}:{NODE_PORT}/metrics"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            families = text_string_to_metric_families(await answer.text())
            return sum(
                sample.value
                for family in families
                for sample in family.samples
                if sample.name == "muster_vni_agent_steps_total"
            )

    async def forwarding(self, number: int, vni: int) -> set[str]:
        """Return where a node sends what is for everybody."""
        node = self.under.nodes[number - 1]
        lines = await run("bridge", "-n", node.name, "-j", "fdb", "show", "dev", f"mvx{vni}")
        return {
            entry["dst"]
            for entry in json.loads(lines)
            if entry["mac"] == "00:00:00:00:00:00" and "dst" in entry
        }


def agent(node: Namespace, number: int, under: Underlay, url: str, folder: Path) -> Program:
    """Return the real program, to be run in the namespace of a node."""
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    config = folder / "agent.yaml"
    listen = {"host": "0.0.0.0", "port": NODE_PORT}  # noqa: S104  in a namespace of its own
    config.write_text(yaml.safe_dump({"listen": listen, "resyncSeconds": 0.5}))
    words = ["-m", "muster.vniagent", "--config", str(config), "--kubeconfig", str(kubeconfig)]
    words += ["--node-name", f"n{number}", "--address", under.address(number)]

    async def ready() -> bool:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://{under.near(number)}:{NODE_PORT}/readyz") as answer,
            ):
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False

    command = node.inside(sys.executable, "-W", "error", *words)
    return Program(f"agent-{number}", command, directory=folder, ready=ready)


@asynccontextmanager
async def fabric(
    folder: Path, nodes: int = 2, mtu: int = 1500, *, start: bool = True, v6: bool = False
) -> AsyncIterator[Fabric]:
    reason = await why_not() or (await why_not_v6() if v6 else "")
    if reason:
        pytest.skip(reason)
    async with AsyncExitStack() as stack:
        under = await stack.enter_async_context(underlay(nodes, mtu, v6=v6))
        _, url = await stack.enter_async_context(api_server(host=under.gateway))
        api = await stack.enter_async_context(Api(url))
        await install(api)
        made = [agent(n, i, under, url, folder) for i, n in enumerate(under.nodes, 1)]
        for program in made:
            stack.push_async_callback(program.stop)
            if start:
                program.start()
        for program in made if start else ():
            await program.wait_ready()
        yield Fabric(under, api, made)


async def test_pods_on_two_nodes_exchange_packets_over_one_vni_and_not_over_two(
    tmp_path: Path,
) -> None:
    """The same addresses twice: who is on another VNI is not there."""
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        await it.network(1001, 1, 2)
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        other, same = await it.pod(1, 1001, 3), await it.pod(2, 1001, 1)
        assert await first.reaches(second) == "answered"
        assert await second.reaches(first) == "answered"
        assert await other.reaches(same) == "answered"
        assert await first.reaches(other, tries=2) in ("silent", "No route to host")
        assert await other.reaches(second, tries=2) in ("silent", "No route to host")


async def test_the_host_is_no_member_of_the_network(tmp_path: Path) -> None:
    """A pod that has the underlay's network on its interface finds no node in it."""
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        pod = await it.pod(1, 1000, 1)
        await pod.ip("addr", "add", f"{it.under.prefix}.77/24", "dev", "job0")
        assert await pod.probe(it.under.address(1), tries=2) in ("silent", "No route to host")
        assert "inet" not in await it.under.nodes[0].ip("addr", "show", "dev", "mvb1000")


@pytest.mark.parametrize("mtu", [1500, 9000])
async def test_the_largest_packet_of_a_pod_is_the_underlays_less_50(
    tmp_path: Path, mtu: int
) -> None:
    """With DF set, inside as outside; jumbo frames too."""
    async with fabric(tmp_path, mtu=mtu) as it:
        await it.network(1000, 1, 2)
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        largest = mtu - 50 - HEADERS
        assert await first.reaches(second) == "answered"
        assert await first.reaches(second, largest) == "answered"
        assert await first.reaches(second, largest + 1) == "Message too long"
        await first.ip("link", "set", "job0", "mtu", str(mtu))  # the pod alone believes in more
        assert await first.reaches(second, largest + 1, tries=3) == "silent"


async def test_an_underlay_of_ipv6_carries_the_same_with_70_octets_less(tmp_path: Path) -> None:
    """The pods' own addresses are of IPv4 all the same; a node that leaves is sent nothing."""
    async with fabric(tmp_path, nodes=3, v6=True) as it:
        await it.network(1000, 1, 2, 3)
        await it.network(1001, 1, 2)
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        other = await it.pod(2, 1001, 3)
        largest = 1500 - 70 - HEADERS
        assert await first.reaches(second) == "answered"
        assert await first.reaches(second, largest) == "answered"
        assert await first.reaches(second, largest + 1) == "Message too long"
        assert await first.reaches(other, tries=2) in ("silent", "No route to host")
        await it.move(1000, 1, 2)
        await it.until_bare(3)

        async def forgotten() -> bool:
            return await it.forwarding(1, 1000) == {it.under.address(2)}

        await eventually(forgotten)
        assert await second.reaches(first) == "answered"


async def test_an_agent_that_is_killed_and_comes_back_changes_nothing_that_is_right(
    tmp_path: Path,
) -> None:
    """Pods talk before, meanwhile and afterwards, over the very same devices."""
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        assert await first.reaches(second) == "answered"
        indices = [await index(node) for node in it.under.nodes]
        for program in it.agents:
            program.kill()
        assert await first.reaches(second) == "answered"
        for number, program in enumerate(it.agents, 1):
            program.start()
            await program.wait_ready()
            await it.until_said(number, ready=1000)
            assert await it.steps(number) == 0
        assert await second.reaches(first) == "answered"
        assert [await index(node) for node in it.under.nodes] == indices


async def index(node: Namespace) -> str:
    """Return the index of a node's VXLAN device: another device has another one."""
    return (await node.ip("-o", "link", "show", "dev", "mvx1000")).split(":")[0]


async def test_an_agent_that_comes_back_mends_what_was_broken_meanwhile(tmp_path: Path) -> None:
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        node, program = it.under.nodes[0], it.agents[0]
        before = await index(node)
        program.kill()
        await node.ip("link", "del", "mvb1000")
        await run(*node.inside("ip", "link", "set", "mvx1000", "down"))
        program.start()
        await program.wait_ready()

        async def whole() -> bool:
            return {"mvb1000", "mvx1000"} <= await node.devices()

        await eventually(whole)
        await it.until_said(1, ready=1000)
        assert await index(node) == before
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        assert await first.reaches(second) == "answered"


async def test_what_ended_while_the_agent_was_down_is_removed_when_it_is_back(
    tmp_path: Path,
) -> None:
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        it.agents[0].kill()
        await it.end(1000)
        await it.until_bare(2)
        assert {"mvb1000", "mvx1000"} <= await it.under.nodes[0].devices()
        [said] = [
            i["status"]["vnis"]
            for i in (await it.api.get(NODES))["items"]
            if i["metadata"]["name"] == "n1"
        ]
        assert said == [1000]  # nobody may be given this VNI yet
        it.agents[0].start()
        await it.until_bare(1, 2)
        assert await it.under.nodes[0].devices() == {"eth0"}


async def test_a_network_is_on_the_nodes_of_its_members_and_sends_nothing_to_others(
    tmp_path: Path,
) -> None:
    async with fabric(tmp_path, nodes=3) as it:
        await it.network(1000, 1, 2, 3)
        assert await it.forwarding(1, 1000) == {it.under.address(2), it.under.address(3)}
        await it.move(1000, 1, 2)
        await it.until_bare(3)
        assert await it.under.nodes[2].devices() == {"eth0"}

        async def forgotten() -> bool:
            return await it.forwarding(1, 1000) == {it.under.address(2)}

        await eventually(forgotten)
        first, second = await it.pod(1, 1000, 1), await it.pod(2, 1000, 2)
        assert await first.reaches(second) == "answered"


async def test_devices_of_others_are_left_alone_whatever_they_are_called(tmp_path: Path) -> None:
    """An operator's own bridge has the name of VNI 1001's, with a device of the node on it."""
    async with fabric(tmp_path) as it:
        node = it.under.nodes[0]
        await node.ip("link", "add", "mvb1001", "type", "bridge")
        await node.ip("link", "add", "nic0", "type", "vxlan", "id", "9", "dstport", "4791")
        await node.ip("link", "set", "nic0", "master", "mvb1001")
        await node.ip("link", "add", "mvx7", "type", "vxlan", "id", "7", "dstport", "4790")
        await it.api.create(NETWORKS, network_body(it.spec(1001, 1, 2)))
        await it.until_said(2, ready=1001)
        await asyncio.sleep(1)
        status = (await it.api.get(f"{NODES}/n1"))["status"]
        assert (status["vnis"], status["ready"]) == ([1001], [])
        await it.end(1001)
        await it.until_bare(1, 2)
        assert {"mvb1001", "nic0", "mvx7"} <= await node.devices()
        assert "mvx1001" not in await node.devices()


async def test_a_bridge_that_the_cni_plugin_made_first_is_taken_over(tmp_path: Path) -> None:
    """Pods may start before the agent has heard of their network."""
    async with fabric(tmp_path, start=False) as it:
        node = it.under.nodes[0]
        await node.ip("link", "add", "mvb1000", "mtu", "1450", "type", "bridge")
        await node.ip("link", "set", "mvb1000", "up")
        first = await it.pod(1, 1000, 1)
        for program in it.agents:
            program.start()
        await it.network(1000, 1, 2)
        second = await it.pod(2, 1000, 2)
        assert await first.reaches(second) == "answered"
        await it.end(1000)
        await it.until_bare(1, 2)
        assert not {"mvb1000", "mvx1000"} & await node.devices()


async def test_our_devices_carry_the_mark_that_operators_can_ask_for(tmp_path: Path) -> None:
    async with fabric(tmp_path) as it:
        await it.network(1000, 1, 2)
        shown = await it.under.nodes[0].ip("-o", "link", "show", "group", str(MARK))
        assert {line.split(": ")[1] for line in shown.splitlines()} == {"mvb1000", "mvx1000"}
