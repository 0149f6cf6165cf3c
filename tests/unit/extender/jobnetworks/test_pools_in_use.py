"""Pools that are changed, shrunk or deleted while jobs have their VNIs.

The rack is drawn in tests/support/networks/networksite.py.
"""

from support.extenders.extenders import PODS, eventually
from support.networks.jobnetworks import POOLS, address, agent, isolated, pool, selections
from support.networks.networksite import Site, site

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang


async def edit(it: Site, name: str, **spec: object) -> None:
    """Change a pool, and wait until the extender knows."""
    made = await it.api.patch(f"{POOLS}/{name}", {"spec": spec})
    kept = it.world.extender.networks.pools.pools

    async def known() -> bool:
        version = kept[name].found.metadata.resource_version
        return version == made["metadata"]["resourceVersion"]

    await eventually(known)


async def remake(it: Site, gang: Gang, rank: int) -> JSON:
    """Lose a member, make it anew, and return it when it is released."""
    name = f"{gang.name}-{rank}"
    await it.api.delete(f"{PODS}/{name}")
    await it.world.settled()
    await it.world.gang(gang, ranks=range(rank, rank + 1), owned=False)
    await it.world.released([name])
    return await it.world.pod(name)


async def test_a_vni_outside_of_a_pool_that_has_shrunk_stays_its_gangs_and_is_not_given_again() -> (
    None
):
    async with site(pool("jobs", 7, 9)) as it:
        gang = isolated("train", 2)
        await it.bound(gang)
        await edit(it, "jobs", range={"first": 8, "last": 8})
        await it.submit(isolated("other", 1))
        assert set(await it.networks()) == {"vni-7", "vni-8"}
        member = await remake(it, gang, 1)
        assert selections(member)[-1]["name"] == "muster-vni-7"
        assert address(member) == "198.18.0.2/15"
        await it.end(gang)
        await it.until_networks("vni-8")
        await it.world.gang(isolated("third", 1))
        await it.until_explained("third-0", "no VNI free in pool jobs (1 of 1 used)")


async def test_a_pool_made_over_what_another_has_left_gives_nothing_that_is_still_used() -> None:
    async with site(pool("jobs", 7, 9)) as it:
        await it.bound(isolated("train", 1))
        await edit(it, "jobs", range={"first": 9, "last": 9})
        await it.submit(isolated("second", 1))
        await it.api.create(POOLS, pool("more", 7, 8))
        await it.submit(isolated("third", 1))
        assert set(await it.networks()) == {"vni-7", "vni-8", "vni-9"}
        await it.world.gang(isolated("fourth", 1))
        await it.until_explained("fourth-0", "pool more (2 of 2 used)")


async def test_a_deleted_pools_networks_last_as_long_as_their_gangs() -> None:
    async with site() as it:
        gang = isolated("train", 2)
        await it.bound(gang)
        await it.api.delete(f"{POOLS}/jobs")
        pools = it.world.extender.networks.pools

        async def forgotten() -> bool:
            return not pools.pools

        await eventually(forgotten)
        member = await remake(it, gang, 1)
        assert selections(member)[-1]["name"] == "muster-vni-1000"
        await it.submit(isolated("later", 1))
        assert selections(await it.world.pod("later-0")) == []
        await it.end(gang)
        await it.until_networks()
        assert await it.attachments() == {}


async def test_a_changed_subnet_mtu_and_port_concern_the_gangs_that_come_later() -> None:
    async with site() as it:
        gang = isolated("train", 2)
        await it.bound(gang)
        await edit(it, "jobs", subnet="10.99.0.0/24", mtu=1300, port=8472)
        assert address(await remake(it, gang, 1)) == "198.18.0.2/15"
        await it.submit(isolated("later", 1))
        found = {name: each["spec"] for name, each in (await it.networks()).items()}
        assert [(s["subnet"], s["mtu"], s["port"]) for s in found.values()] == [
            ("198.18.0.0/15", 1450, 4789),
            ("10.99.0.0/24", 1300, 8472),
        ]
        assert address(await it.world.pod("later-0")) == "10.99.0.1/24"


async def test_a_pool_that_is_spoilt_keeps_its_gangs_networks_and_gives_no_more() -> None:
    async with site(pool("jobs", 7, 9)) as it:
        gang = isolated("train", 2)
        await it.bound(gang)
        await edit(it, "jobs", federation={"first": 9, "last": 9})
        await it.world.gang(isolated("later", 1))
        await it.until_explained("later-0", "spec.federation 9-9 overlaps with spec.range 7-9")
        await remake(it, gang, 1)
        await edit(it, "jobs", federation=None)
        await it.world.released(["later-0"])


async def test_a_federation_is_told_which_of_its_vnis_jobs_still_have() -> None:
    async with site(pool("jobs", 7, 9)) as it:
        gang = isolated("train", 1)
        [node] = (await it.bound(gang)).values()
        await agent(it.api, node, 0, 7)
        await edit(it, "jobs", range={"first": 20, "last": 29}, federation={"first": 1, "last": 9})

        async def reported(status: str, text: str) -> bool:
            it.now += 6
            found = (await it.conditions("jobs")).get("FederationFree", {})
            return found.get("status") == status and text in found.get("message", "")

        await eventually(lambda: reported("False", "VNI 7 (muster/default/train): let them end"))
        await it.end(gang)
        await it.world.settled()
        await eventually(lambda: reported("False", "VNI 7"))  # its node still has devices
        await agent(it.api, node, 0)
        await eventually(lambda: reported("True", ""))
        assert (await it.conditions("jobs"))["Accepted"]["status"] == "True"
