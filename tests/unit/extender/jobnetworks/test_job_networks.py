"""Isolated networks: one VNI per gang, on the nodes of its members, given back when it ends.

::

    rack r1 ── r1-0 r1-1 r1-2 r1-3    (8 GPUs each, an agent on each, underlay MTU 1500)
"""

import json

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.extenders import PODS, eventually
from support.networks.jobnetworks import (
    ANNOTATION,
    ISOLATED,
    NODES,
    POOLS,
    address,
    agent,
    isolated,
    pool,
    selections,
)
from support.networks.networksite import HOSTS, Site, site

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang
from muster.kube import names


async def test_a_gang_gets_a_vni_an_attachment_and_an_address_for_each_member() -> None:
    async with site() as it:
        gang = isolated("train", 3)
        nodes = await it.submit(gang)
        [network] = (await it.networks()).values()
        spec = network["spec"]
        assert network["metadata"]["name"] == "vni-1000"
        assert (spec["vni"], spec["mtu"], spec["port"]) == (1000, 1450, 4789)
        assert spec["gang"] == "muster/default/train"
        assert {peer["name"] for peer in spec["nodes"]} == set(nodes.values())
        [attachment] = (await it.attachments()).values()
        config = json.loads(attachment["spec"]["config"])
        assert (config["type"], config["bridge"], config["mtu"]) == ("bridge", "mvb1000", 1450)
        assert config["ipam"] == {"type": "static"}
        for rank in range(3):
            pod = await it.world.pod(f"train-{rank}")
            assert selections(pod) == [
                {
                    "name": "muster-vni-1000",
                    "namespace": "default",
                    "interface": "job0",
                    "ips": [f"198.18.0.{rank + 1}/15"],
                }
            ]


async def test_the_annotation_goes_out_with_the_release_in_one_patch() -> None:
    async with site() as it:
        await it.submit(isolated("train", 2))
        for rank in range(2):
            pod = await it.world.pod(f"train-{rank}")
            assert pod["metadata"]["annotations"].keys() >= {names.PLAN, ANNOTATION}


async def test_two_gangs_have_two_vnis_and_the_same_addresses() -> None:
    async with site() as it:
        await it.submit(isolated("one", 2))
        await it.submit(isolated("two", 2))
        assert set(await it.networks()) == {"vni-1000", "vni-1001"}
        assert address(await it.world.pod("one-0")) == address(await it.world.pod("two-0"))


async def test_a_gang_that_no_pool_selects_has_no_network() -> None:
    async with site() as it:
        await it.submit(Gang("plain", 2))
        assert await it.networks() == {}
        assert selections(await it.world.pod("plain-0")) == []


async def test_jumbo_frames_are_used_where_the_nodes_have_them() -> None:
    async with site(mtu=9000) as it:
        await it.submit(isolated("train", 2))
        assert (await it.networks())["vni-1000"]["spec"]["mtu"] == 8950


async def test_the_node_with_the_smallest_underlay_decides() -> None:
    async with site(mtu=9000) as it:
        await agent(it.api, "r1-1", 1, mtu=4000)
        await it.submit(isolated("train", 4))
        assert (await it.networks())["vni-1000"]["spec"]["mtu"] == 3950


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        ("storage", [{"name": "storage"}]),
        ("a/storage@net1,rdma", [
            {"namespace": "a", "name": "storage", "interface": "net1"}, {"name": "rdma"},
        ]),
        ('[{"name":"x","mac":"02:00:00:00:00:01","new":{"field":1}}]', [
            {"name": "x", "mac": "02:00:00:00:00:01", "new": {"field": 1}},
        ]),
    ],
)  # fmt: skip
async def test_networks_that_a_pod_asks_for_itself_are_kept_and_come_first(
    before: str, kept: list[JSON]
) -> None:
    async with site() as it:
        await submit_with(it, before)
        await it.world.released(["train-0"])
        found = selections(await it.world.pod("train-0"))
        assert found[:-1] == kept
        assert found[-1]["name"] == "muster-vni-1000"


async def submit_with(it: Site, networks: str) -> None:
    """Create a gang of one pod that carries the annotation already."""
    gang = isolated("train", 1)
    from loadtest.testbed.client.pods import create_owner, members  # noqa: PLC0415

    [pod] = members(gang, await create_owner(it.api, gang))
    pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    pod["metadata"]["annotations"][ANNOTATION] = networks
    await it.api.create(PODS, pod)


async def test_networks_that_cannot_be_read_are_told_and_the_pod_stays_gated() -> None:
    async with site() as it:
        await submit_with(it, '[{"name"')

        async def reported() -> bool:
            return any(ANNOTATION in e["note"] for e in await it.world.events("ReleaseRefused"))

        await eventually(reported)
        assert names.PLAN not in (await it.world.pod("train-0"))["metadata"]["annotations"]


async def test_a_gang_that_ends_gives_its_vni_back_when_no_node_has_devices_any_more() -> None:
    async with site() as it:
        gang = isolated("train", 1)
        [node] = (await it.submit(gang)).values()
        await agent(it.api, node, 1, 1000)
        await it.world.settled()
        await it.end(gang)

        async def leaves() -> bool:
            found = await it.networks()
            return "deletionTimestamp" in found["vni-1000"]["metadata"]

        await eventually(leaves)
        for _ in range(3):
            await it.world.extender.networks.look()
        assert set(await it.networks()) == {"vni-1000"}
        await agent(it.api, node, 1)
        await it.until_networks()
        assert await it.attachments() == {}


async def test_the_last_vni_is_waited_for_and_the_reason_is_told() -> None:
    async with site(pool("few", 7, 8)) as it:
        first = isolated("one", 1)
        await it.submit(first)
        await it.submit(isolated("two", 1))
        await it.world.gang(isolated("three", 1))
        await it.until_explained("three-0", "no VNI free in pool few (2 of 2 used)")
        assert (await it.world.pod("three-0"))["spec"]["schedulingGates"]
        await it.end(first)
        await it.world.released(["three-0"])
        assert {each["spec"]["gang"] for each in (await it.networks()).values()} == {
            "muster/default/two",
            "muster/default/three",
        }


async def test_the_second_pool_that_selects_it_is_used_when_the_first_is_empty() -> None:
    async with site(pool("a", 7, 7), pool("b", 17, 17)) as it:
        await it.submit(isolated("one", 1))
        await it.submit(isolated("two", 1))
        assert set(await it.networks()) == {"vni-7", "vni-17"}


async def test_a_pool_that_overlaps_with_an_older_one_is_not_used_and_says_so() -> None:
    async with site(pool("a", 7, 7), pool("b", 5, 9)) as it:
        await it.submit(isolated("one", 1))
        await it.world.gang(isolated("two", 1))
        await it.until_explained("two-0", "no VNI free in pool a (1 of 1 used)")

        async def reported() -> bool:
            status = (await it.api.get(f"{POOLS}/b")).get("status", {})
            return any("overlaps" in c["message"] for c in status.get("conditions", []))

        it.now += 10
        await eventually(reported)


async def test_a_node_without_an_agent_is_named_and_the_gang_goes_when_it_has_one() -> None:
    async with site(agents=HOSTS - 1) as it:
        await it.world.gang(isolated("train", HOSTS))
        await it.until_explained("train-0", "node r1-3: muster vni-agent does not run there")
        await agent(it.api, "r1-3", 3)
        it.now += 10
        await it.world.released([f"train-{rank}" for rank in range(HOSTS)])


async def test_spare_nodes_have_the_network_until_all_members_are_bound_and_no_longer() -> None:
    async with site(spares=1) as it:
        nodes = await it.submit(isolated("train", 2))

        async def on() -> set[str]:
            return {peer["name"] for peer in (await it.networks())["vni-1000"]["spec"]["nodes"]}

        assert await on() > set(nodes.values())
        for pod, node in nodes.items():
            await it.world.bind(pod, node)

        async def settled() -> bool:
            return await on() == set(nodes.values())

        await eventually(settled)


async def test_a_pod_that_kube_scheduler_puts_elsewhere_takes_the_network_along() -> None:
    """Not pinned in its spec: kube-scheduler may choose another node than the nominated one."""
    async with site() as it:
        [(pod, planned)] = (await it.submit(isolated("train", 1), owned=False)).items()
        [other, *_] = sorted({f"r1-{number}" for number in range(HOSTS)} - {planned})
        await it.world.bind(pod, other)

        async def moved() -> bool:
            [peer] = (await it.networks())["vni-1000"]["spec"]["nodes"]
            return bool(peer["name"] == other)

        await eventually(moved)


async def test_a_member_made_anew_joins_its_gangs_network_with_the_address_of_its_rank() -> None:
    async with site() as it:
        gang = isolated("train", 2)
        nodes = await it.submit(gang)
        for pod, node in nodes.items():
            await it.world.bind(pod, node)
        old = address(await it.world.pod("train-1"))
        await it.api.delete(f"{PODS}/train-1")
        await it.world.settled()
        await it.world.gang(gang, ranks=range(1, 2), owned=False)
        await it.world.released(["train-1"])
        assert address(await it.world.pod("train-1")) == old
        assert set(await it.networks()) == {"vni-1000"}


async def test_an_unanswered_create_costs_no_second_vni() -> None:
    async with site() as it:
        it.world.server.faults.append(Fault("POST", "/jobnetworks", takes_effect=True))
        await it.world.gang(isolated("train", 1))

        async def released() -> bool:
            it.now += 6
            return names.PLAN in (await it.world.pod("train-0"))["metadata"]["annotations"]

        await eventually(released)
        assert set(await it.networks()) == {"vni-1000"}


async def test_a_network_of_a_gang_that_waits_again_is_given_back_after_a_while() -> None:
    async with site() as it:
        it.world.server.faults.append(Fault("PATCH", "/pods/train-0", code=422, left=1000))
        await it.world.gang(isolated("train", 1))

        async def there() -> bool:
            return set(await it.networks()) == {"vni-1000"}

        await eventually(there)
        for number in range(HOSTS):
            await it.api.patch(f"/api/v1/nodes/r1-{number}", {"spec": {"unschedulable": True}})
        await it.world.settled()
        await it.world.extender.networks.look()
        it.now += 61
        await it.until_networks()


async def test_what_an_agent_left_whose_node_is_gone_is_deleted_and_blocks_no_vni() -> None:
    async with site() as it:
        await agent(it.api, "gone", 9, 1000)
        gang = isolated("train", 1)
        await it.submit(gang)
        await it.end(gang)
        await it.until_networks()

        async def deleted() -> bool:
            it.now += 10
            found = await it.api.get(NODES)
            return "gone" not in {each["metadata"]["name"] for each in found["items"]}

        await eventually(deleted)


async def test_gangs_of_two_kinds_get_it_only_where_the_pool_selects() -> None:
    assert ISOLATED  # the label is on the gang's pods, see ``isolated``
    async with site() as it:
        from loadtest.testbed.client.pods import create_owner, members  # noqa: PLC0415

        gang = isolated("mixed", 2)
        made = list(members(gang, await create_owner(it.api, gang)))
        for rank, pod in enumerate(made):
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
            if rank:
                del pod["metadata"]["labels"]["example.com/network"]
            await it.api.create(PODS, pod)
        await it.world.released(["mixed-0", "mixed-1"])
        assert len(selections(await it.world.pod("mixed-0"))) == 1
        assert selections(await it.world.pod("mixed-1")) == []
