"""Pods for which others give way are nominated, before anybody ends, and no longer than that.

The two racks are drawn in support/clusters/clocked.py; ``urgent`` has one pod more than they hold.
"""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import (
    KEY,
    PREEMPTOR,
    SETTINGS,
    WHY,
    EvictionSite,
    Killed,
    Mortal,
)
from support.extenders.extenders import PODS

from extender.evictions.evictor import Evictor
from extender.evictions.nominations import KEPT_S, RoomNominations
from extender.planning.evictionorders import EvictedGang, EvictionOrder
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import PodUid

URGENT = Gang("urgent", 7)
ORDER = EvictionOrder(PREEMPTOR, (EvictedGang(KEY, WHY, (), 240.0),))


class Site(EvictionSite):
    """A gang that runs, one that waits for its room, and an evictor that nominates."""

    def nominations(self, client: object = None) -> RoomNominations:
        it = self.cluster.extender
        return RoomNominations(it.engine, client or it.client, it.pods)  # type: ignore[arg-type]

    async def nominating(self, nominations: RoomNominations, client: object = None) -> Evictor:
        parts = replace(self.new_evictor(client)._parts, nominations=nominations)
        found = Evictor(parts, SETTINGS)
        await found.take_over()
        return found

    async def places(self) -> dict[PodUid, str]:
        """Return a node for each of the first three members that wait."""
        return {await self.uid(f"urgent-{n}"): f"r1-{n}" for n in range(3)}

    async def nominated(self) -> dict[str, str]:
        pods = (await self.cluster.api.get(PODS))["items"]
        named = {
            pod["metadata"]["name"]: pod["status"].get("nominatedNodeName", "") for pod in pods
        }
        return {name: node for name, node in named.items() if node}


ALL = {f"urgent-{n}": f"r1-{n}" for n in range(3)}


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with two_racks(Site()) as made:
        await made.submit(URGENT)
        await made.run()
        yield made


async def test_members_are_nominated_before_anybody_ends(site: Site) -> None:
    """The extender is killed at its fourth write: three are nominations."""
    mortal = Mortal(site.cluster.extender.client, left=4)
    nominations = site.nominations(mortal)
    evictor = await site.nominating(nominations, mortal)
    assert evictor.order(ORDER)
    nominations.note(PREEMPTOR, await site.places())

    with pytest.raises(Killed):
        await evictor.look()

    assert await site.nominated() == ALL
    assert len(await site.there()) == 3


async def test_a_gang_that_is_gone_is_forgotten(site: Site) -> None:
    nominations = site.nominations()
    nominations.note(PREEMPTOR, await site.places())
    await nominations.look({PREEMPTOR})
    await site.withdraw(URGENT)

    await nominations.look({PREEMPTOR})

    assert not len(nominations)


async def test_what_was_in_vain_is_taken_back_once_the_gang_had_time_to_start(site: Site) -> None:
    nominations = site.nominations()
    nominations.note(PREEMPTOR, await site.places())
    await nominations.look({PREEMPTOR})
    await site.cluster.settled()

    await nominations.look(())
    site.now += KEPT_S - 1
    await nominations.look(())
    assert await site.nominated() == ALL
    site.now += 1
    await nominations.look(())

    assert await site.nominated() == {}
    assert not len(nominations)


async def test_a_gang_to_which_others_give_way_again_keeps_its_nominations(site: Site) -> None:
    nominations = site.nominations()
    nominations.note(PREEMPTOR, await site.places())
    await nominations.look(())
    site.now += KEPT_S
    await nominations.look({PREEMPTOR})
    await nominations.look(())

    assert await site.nominated() == ALL


async def test_the_next_leader_takes_back_what_an_earlier_one_wrote(site: Site) -> None:
    first = site.nominations()
    first.note(PREEMPTOR, await site.places())
    await first.look({PREEMPTOR})
    await site.cluster.settled()

    second = site.nominations()
    await second.look({PREEMPTOR})
    await second.look(())
    site.now += KEPT_S
    await second.look(())

    assert await site.nominated() == {}


async def test_what_others_wrote_stays(site: Site) -> None:
    """Karpenter nominates a pod; nobody gives way to its gang."""
    status = {"status": {"nominatedNodeName": "r1-5"}}
    await site.cluster.api.patch(f"{PODS}/urgent-0/status", status)
    await site.cluster.settled()
    nominations = site.nominations()

    await nominations.look(())
    site.now += KEPT_S
    await nominations.look(())

    assert await site.nominated() == {"urgent-0": "r1-5"}


async def test_a_later_order_nominates_to_its_own_nodes(site: Site) -> None:
    nominations = site.nominations()
    places = await site.places()
    nominations.note(PREEMPTOR, places)
    await nominations.look({PREEMPTOR})
    first = next(iter(places))

    nominations.note(PREEMPTOR, places | {first: "r2-0"})
    await nominations.look({PREEMPTOR})

    assert await site.nominated() == ALL | {"urgent-0": "r2-0"}
