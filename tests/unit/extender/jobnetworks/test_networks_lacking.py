"""Isolated networks where something is missing: gangs wait, and the cause is reported.

The rack is drawn in tests/support/networks/networksite.py.
"""

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.extenders import eventually
from support.networks.jobnetworks import (
    ATTACHMENTS,
    CRDS,
    NETWORKS,
    NODES,
    agent,
    definitions,
    isolated,
    pool,
    selections,
)
from support.networks.networksite import HOSTS, Site, site

from loadtest.testbed.client.pods import Gang

MULTUS = "network-attachment-definitions"


async def later(it: Site, seconds: float) -> None:
    """Let the time pass, and the leader look."""
    it.now += seconds
    await it.world.extender.networks.look()


async def is_told(it: Site) -> bool:
    return bool(await it.world.events("GangNetworkLate"))


async def test_without_multus_a_gang_waits_takes_no_vni_and_goes_when_it_is_there() -> None:
    async with site(without=MULTUS) as it:
        await it.world.gang(isolated("train", 2))
        await it.until_explained("train-0", "install Multus")
        assert await it.networks() == {}
        [multus] = [d for d in definitions() if d["spec"]["names"]["plural"] == MULTUS]
        await it.api.create(CRDS, multus)
        await later(it, 6)
        await it.world.released(["train-0", "train-1"])
        assert selections(await it.world.pod("train-0"))[-1]["name"] == "muster-vni-1000"


async def test_gangs_that_want_no_network_go_without_multus() -> None:
    async with site(without=MULTUS) as it:
        await it.submit(Gang("plain", 2))


async def test_an_attachment_that_cannot_be_made_is_told_and_costs_no_second_vni() -> None:
    """Multus' definition goes while it is used, or the namespace does."""
    async with site() as it:
        it.world.server.faults.append(Fault("POST", ATTACHMENTS, code=404))
        await it.world.gang(isolated("train", 2))
        await it.until_explained("train-0", "muster-vni-1000 cannot be made")
        await later(it, 6)
        await it.world.released(["train-0", "train-1"])
        assert set(await it.networks()) == {"vni-1000"}
        assert set(await it.attachments()) == {"muster-vni-1000"}


async def test_networks_that_cannot_be_listed_are_named_as_what_is_waited_for() -> None:
    async with site(without="jobnetworks") as it:
        await it.world.gang(isolated("train", 2))
        await it.until_explained(
            "train-0", "the VNIs in use are not listed yet: component job-networks is not installed"
        )


async def test_a_gang_that_only_a_bad_pool_selects_waits_rather_than_run_among_others() -> None:
    good = pool("a", 7, 7, podSelector={"matchLabels": {"team": "other"}})
    async with site(good, pool("b", 5, 9)) as it:
        await it.world.gang(isolated("train", 2))
        text = "pool b is not used: spec.range 5-9 overlaps with the range 7-7 of pool a"
        await it.until_explained("train-0", text)
        await it.submit(Gang("plain", 1))


async def test_without_any_agent_the_first_node_is_named() -> None:
    async with site(agents=0) as it:
        await it.world.gang(isolated("train", HOSTS))
        await it.until_explained(
            "train-0", "node r1-0 and 3 more: muster vni-agent does not run there"
        )
        assert await it.networks() == {}


async def test_agents_whose_addresses_are_of_two_families_are_told_apart() -> None:
    async with site() as it:
        await it.api.patch(f"{NODES}/r1-2", {"status": {"address": "fd00::3", "mtu": 1500}})
        await it.world.gang(isolated("train", HOSTS))
        await it.until_explained("train-0", "node r1-2 an IPv6 one: give the agents --address")


@pytest.mark.parametrize("address", ["", "r1-2"])
async def test_an_agent_that_says_no_address_counts_as_none(address: str) -> None:
    async with site() as it:
        await it.api.patch(f"{NODES}/r1-2", {"status": {"address": address}})
        await it.world.gang(isolated("train", HOSTS))
        await it.until_explained("train-0", "node r1-2: muster vni-agent does not run there")


async def test_over_ipv6_a_network_has_70_octets_less_than_the_underlay() -> None:
    async with site() as it:
        for number in range(HOSTS):
            said = {"status": {"address": f"fd00::{number + 1}"}}
            await it.api.patch(f"{NODES}/r1-{number}", said)
        await it.submit(isolated("train", 2))
        spec = (await it.networks())["vni-1000"]["spec"]
        assert spec["mtu"] == 1430
        assert {peer["address"][:6] for peer in spec["nodes"]} == {"fd00::"}


async def test_a_node_whose_agent_is_silent_for_two_lists_is_named_once() -> None:
    """The agent was there and has died: its members would be cut off without a report."""
    async with site() as it:
        nodes = await it.bound(isolated("train", 2))
        live, dead = sorted(nodes.values())
        await agent(it.api, live, 0, 1000)
        for _ in range(4):
            await later(it, 61)
            await it.world.settled()
        await eventually(lambda: is_told(it))
        [event] = await it.world.events("GangNetworkLate")
        text = f"VNI 1000 has no devices yet on {dead}, so members there cannot reach the others"
        assert text in event["note"]
        assert nodes[event["regarding"]["name"]] == dead
        metrics = it.world.extender.parts.metrics
        assert metrics.registry.get_sample_value("muster_job_networks_late") == 1
        await agent(it.api, dead, 1, 1000)

        async def reported() -> bool:
            await later(it, 61)
            return metrics.registry.get_sample_value("muster_job_networks_late") == 0

        await eventually(reported)


async def test_one_network_that_cannot_be_written_keeps_no_other_from_being_freed() -> None:
    async with site() as it:
        first, second = isolated("one", 1), isolated("two", 1)
        await it.bound(first)
        await it.bound(second)
        it.world.server.faults.append(Fault("DELETE", f"{NETWORKS}/vni-1000", code=403, left=1000))
        await it.end(first)
        await it.end(second)
        await it.until_networks("vni-1000")
        it.world.server.faults.clear()
        await it.until_networks()
