"""Gangs that give way: each ends whole, whatever is refused, hangs or is killed in between.

The two racks are drawn in support/clusters/clocked.py. The extender's own evictor has no orders
here; the tests give theirs to evictors of their own, which share its parts.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import (
    GANG,
    KEY,
    PREEMPTOR,
    SETTINGS,
    WHY,
    Killed,
    Mortal,
)
from support.extenders.evictionsite import EvictionSite as Site
from support.extenders.extenders import PODS

from extender.evictions import marks
from extender.evictions.evictor import SETTLES_S, Evictor
from extender.evictions.memberpods import MISSING_S
from extender.planning.evictionorders import NOBODY, EvictedGang, EvictionOrder
from loadtest.testbed.client.pods import Gang, members, owner_reference
from muster.cluster.ids import GangKey, PodUid
from muster.kube import names
from muster.kube.client import KubeClient

URGENT = Gang("urgent", 7)  # on six nodes it waits


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with two_racks(Site()) as made:
        await made.submit(URGENT)
        yield made


def _order(members: Sequence[PodUid] = (), gang: GangKey = KEY) -> EvictionOrder:
    return EvictionOrder(PREEMPTOR, (EvictedGang(gang, WHY, tuple(members), 240.0),))


async def test_a_gang_gives_way_whole_and_says_for_whom_and_why(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()
    lost = site.metrics.lost_seconds._value.get()

    assert evictor.order(_order())
    await site.look(evictor)

    assert not await site.there()
    assert evictor.for_whom(KEY) == PREEMPTOR, "its room is not free as long as its pods end"
    text = (await site.event("GivesWay"))["note"]
    assert f"so that gang {PREEMPTOR} gets its room: {WHY}" in text
    assert "240 device-seconds of work are lost" in text
    assert site.metrics.lost_seconds._value.get() == lost + 240
    await site.end()
    await site.look(evictor)
    assert not len(evictor)


async def test_members_that_come_again_at_once_do_not_keep_the_gang_among_those_that_leave(
    site: Site,
) -> None:
    """Its controller is faster than the next look, and the planner has placed them already."""
    await site.run()
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    await site.end()
    await _come_again(site)
    await site.cluster.released(["g-0", "g-1", "g-2"])

    await site.look(evictor)

    assert not len(evictor)
    assert not evictor.is_served(PREEMPTOR)
    assert await site.there() == ["g-0", "g-1", "g-2"]


async def _come_again(site: Site) -> None:
    """Do as a Job's controller does once its pods are gone."""
    owner = await site.cluster.api.get("/apis/batch/v1/namespaces/default/jobs/g")
    for pod in members(GANG, owner_reference(GANG, owner["metadata"]["uid"])):
        pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await site.cluster.api.create(PODS, pod)


async def test_a_gang_that_gave_way_is_as_old_as_before_when_its_pods_come_again(
    site: Site,
) -> None:
    await site.run()
    state, ages = site.cluster.extender.engine.state, site.cluster.extender.ages
    before = state.gang(KEY)
    assert before is not None
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    await site.end()
    assert state.gang(KEY) is None
    assert ages.of(KEY) == before.submitted_at

    ages.note(KEY, before.submitted_at - 500)  # all this takes less than a second
    await _come_again(site)
    await site.cluster.settled()

    again = state.gang(KEY)
    assert again is not None
    assert again.submitted_at == before.submitted_at - 500


async def test_an_order_is_dropped_where_its_gang_has_gone_before_anything_was_begun(
    site: Site,
) -> None:
    await site.run()
    evictor = await site.evictor()
    assert evictor.order(_order())
    await _withdraw(site)

    await site.look(evictor)

    assert len(await site.there()) == 3
    assert not await site.marked()
    assert not len(evictor)


async def _ordered_for_one_of_which_a_member_is_done(site: Site) -> Evictor:
    await site.run()
    status = {"status": {"phase": "Succeeded"}}
    await site.cluster.api.patch(f"{PODS}/urgent-0/status", status)
    await site.cluster.settled()
    evictor = await site.evictor()
    assert evictor.order(_order())
    return evictor


async def test_nobody_ends_at_once_for_a_gang_of_which_members_are_done_since_it_may_be_deleted(
    site: Site,
) -> None:
    """Found by the simulation: those that are done go first, and the others seem to need more."""
    evictor = await _ordered_for_one_of_which_a_member_is_done(site)
    await site.look(evictor)
    assert len(await site.there()) == 3
    await _withdraw(site)
    await site.look(evictor, after=SETTLES_S)
    assert len(await site.there()) == 3
    assert not len(evictor)


async def test_others_end_for_a_gang_of_which_members_are_done_if_it_goes_on_waiting(
    site: Site,
) -> None:
    evictor = await _ordered_for_one_of_which_a_member_is_done(site)
    await site.look(evictor, after=SETTLES_S - 0.1)
    assert len(await site.there()) == 3
    await site.look(evictor, after=0.1)
    assert not await site.there()


async def test_what_was_begun_is_completed_though_its_gang_has_gone(site: Site) -> None:
    await site.run()
    mortal = Mortal(site.cluster.extender.client, 2, takes_effect=True)
    evictor = await site.evictor(mortal)
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await site.look(evictor)
    await _withdraw(site)

    await site.look(await site.evictor())

    assert not await site.there()


async def test_the_room_is_free_the_moment_the_last_member_is_gone(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    assert KEY in evictor

    await site.end()

    assert KEY not in evictor, "no look is waited for"


async def _withdraw(site: Site) -> None:
    """Delete the gang that the others give way to."""
    for n in range(URGENT.size):
        await site.cluster.api.delete(f"{PODS}/{URGENT.name}-{n}")
    await site.cluster.settled()


async def test_the_next_leader_knows_which_node_a_gang_leaves(site: Site) -> None:
    await site.run()
    victim = EvictedGang(KEY, "it is drained", leaves="node r1-0")
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 2))
    assert evictor.order(EvictionOrder(NOBODY, (victim,)))
    with pytest.raises(Killed):
        await evictor.look()

    heir = await site.evictor()
    await site.look(heir)

    assert not await site.there()
    await site.look(heir, after=101)
    assert "gang muster/default/g leaves node r1-0" in (await site.event("EvictionHangs"))["note"]
    assert NOBODY not in site.cluster.extender.worklist.todo


async def test_gangs_that_leave_nodes_do_not_wait_for_one_another_as_those_for_one_gang_do(
    site: Site,
) -> None:
    await site.run()
    await site.run(Gang("other", 1))
    evictor = await site.evictor()
    for name in ("g", "other"):
        victim = EvictedGang(GangKey(f"muster/default/{name}"), "it is drained", leaves="node n")
        assert evictor.order(EvictionOrder(NOBODY, (victim,)))
    await site.look(evictor)
    assert not await site.there()
    assert not await site.there(Gang("other", 1))


class Rendezvous:
    """A client whose first write of each gang waits until gangs enough are at it."""

    def __init__(self, client: KubeClient, gangs: int) -> None:
        self._client, self._gangs = client, gangs
        self._came = asyncio.Event()
        self.at_it: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, what: Any, name: str, *args: Any, **options: Any) -> Any:
        self.at_it.add(name.rpartition("-")[0])
        if len(self.at_it) == self._gangs:
            self._came.set()
        async with asyncio.timeout(20):
            await self._came.wait()
        return await self._client.patch(what, name, *args, **options)


async def test_a_gang_that_ends_slowly_keeps_no_other_waiting(site: Site) -> None:
    """Each mark is answered only once both gangs were marked."""
    await site.run(Gang("g", 3))
    await site.run(Gang("h", 2))
    client = Rendezvous(site.cluster.extender.client, 2)
    evictor = await site.evictor(client)
    for gang, whom in (("g", NOBODY), ("h", NOBODY)):
        one = EvictedGang(GangKey(f"muster/default/{gang}"), WHY, (), 240.0)
        assert evictor.order(EvictionOrder(whom, (one,)))

    await site.look(evictor)

    assert client.at_it == {"g", "h"}
    assert not await site.there(Gang("g", 3))
    assert not await site.there(Gang("h", 2))


class Hiding:
    """A client to which a pod has other labels than the watch has shown."""

    def __init__(self, client: KubeClient, hidden: str) -> None:
        self._client, self._hidden = client, hidden

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list(self, *args: Any, **options: Any) -> Sequence[Any]:
        pods = await self._client.list(*args, **options)
        hides = "labelSelector" in options
        return [pod for pod in pods if not hides or pod.metadata.name != self._hidden]


async def test_the_marked_member_stays_until_nobody_is_missing_who_may_have_other_labels(
    site: Site,
) -> None:
    await site.run()
    evictor = await site.evictor(Hiding(site.cluster.extender.client, "g-1"))
    assert evictor.order(_order())

    await site.look(evictor)

    assert await site.there() == ["g-0", "g-1"]
    assert await site.marked() == ["g-0"]
    await site.look(evictor, MISSING_S)
    assert not await site.there()


async def test_members_above_the_minimum_go_and_the_others_stay(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()
    await site.run(Gang("other", 1))

    assert evictor.order(_order([await site.uid("g-1")]))
    await site.look(evictor)

    assert await site.there() == ["g-0", "g-2"]
    assert not await site.marked()
    await site.cluster.api.delete(f"{PODS}/g-1")
    await site.cluster.settled()
    await site.look(evictor)
    assert not len(evictor)


async def test_a_gang_that_a_budget_protects_is_let_alone_and_nothing_has_begun(
    site: Site,
) -> None:
    await site.run()
    await site.protect()
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    assert KEY in evictor, "the budget may allow it soon"
    await site.look(evictor, after=SETTINGS.budget_seconds)

    assert len(await site.there()) == 3
    assert not await site.marked()
    assert KEY not in evictor
    assert list(evictor.protected()) == [KEY]
    text = (await site.event("EvictionRefused"))["note"]
    assert f"should give way to gang {PREEMPTOR} and stays: disruption budget keep" in text
    assert "allows 1 disruptions, 3 are needed" in text, "one would leave half a gang"
    site.now += 600
    assert not list(evictor.protected())


async def test_a_budget_that_muster_may_not_read_is_found_at_the_first_eviction(
    site: Site,
) -> None:
    await site.run()
    site.cluster.server.faults += [
        Fault("GET", "/poddisruptionbudgets", 403, left=1000),
        Fault("POST", "/eviction", 429, left=1000),
    ]
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    assert len(await site.marked()) == 1
    await site.look(evictor, after=SETTINGS.budget_seconds)

    assert len(await site.there()) == 3
    assert not await site.marked()
    text = (await site.event("EvictionRefused"))["note"]
    assert "stays: a disruption budget protects it" in text


async def test_what_a_budget_refuses_after_the_first_member_is_tried_until_the_gang_is_gone(
    site: Site,
) -> None:
    await site.run()
    refusal = Fault("POST", "/g-2/eviction", 429, left=1000)
    site.cluster.server.faults.append(refusal)
    evictor = await site.evictor()
    assert evictor.order(_order())

    await site.look(evictor)
    await site.look(evictor, after=10 * SETTINGS.budget_seconds)

    assert await site.there() == ["g-0", "g-2"], "g-0 carries the mark and goes last"
    assert await site.marked() == ["g-0"]
    refusal.left = 0
    await site.look(evictor)
    assert not await site.there()


async def test_a_member_that_does_not_end_is_named_with_what_keeps_it(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await site.run()
    body = {"metadata": {"finalizers": ["example.com/snapshot"]}}
    await site.cluster.api.patch(f"{PODS}/g-1", body)
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)
    await site.end()

    await site.look(evictor, after=SETTINGS.hangs_after_seconds - 1)
    assert "eviction hangs" not in caplog.text
    await site.look(evictor, after=1)

    text = (await site.event("EvictionHangs"))["note"]
    assert "g-1 (finalizers example.com/snapshot); remove the finalizer" in text
    assert KEY in evictor


async def test_members_with_a_long_grace_period_hang_only_once_it_is_over(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    await site.run(grace=300)
    evictor = await site.evictor()
    assert evictor.order(_order())
    await site.look(evictor)

    await site.look(evictor, after=SETTINGS.hangs_after_seconds + 269)
    assert "eviction hangs" not in caplog.text
    await site.look(evictor, after=1)

    assert "eviction hangs" in caplog.text


async def test_too_many_gangs_of_a_queue_do_not_give_way_within_a_minute(site: Site) -> None:
    gangs = [Gang(f"{letter}", 1) for letter in "abc"]
    for gang in gangs:
        await site.run(gang)
    keys = [GangKey(f"muster/default/{gang.name}") for gang in gangs]
    evictor = await site.evictor()
    victims = tuple(EvictedGang(key, WHY) for key in keys)

    assert evictor.order(EvictionOrder(PREEMPTOR, victims[:1]))
    next_one = EvictionOrder(GangKey("muster/default/another"), victims[1:])
    assert not evictor.order(next_one), "all or none"
    assert len(evictor) == 1
    site.now += 60
    assert evictor.order(next_one)


async def test_an_order_that_cannot_be_carried_out_is_refused(site: Site) -> None:
    await site.run()
    evictor = await site.evictor()

    assert not evictor.order(_order(gang=GangKey("muster/default/gone")))
    assert evictor.order(_order())
    assert not evictor.order(_order()), "it gives way already"


@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", range(1, 6))
async def test_a_leader_that_is_killed_at_any_write_leaves_a_whole_gang_or_one_that_ends_whole(
    site: Site, write: int, *, takes_effect: bool
) -> None:
    """The writes: a mark, and the evictions of three members."""
    await site.run()
    mortal = Mortal(site.cluster.extender.client, write, takes_effect)
    evictor = await site.evictor(mortal)
    assert evictor.order(_order())
    try:
        await evictor.look()
        assert write == 5, "four writes are all"
    except Killed:
        pass

    heir = await site.evictor()
    for _ in range(3):
        await site.look(heir)

    left = await site.there()
    was_marked = write > 1 or takes_effect
    assert left == ([] if was_marked else ["g-0", "g-1", "g-2"])
    if was_marked:
        await site.end()
        await site.look(heir)
        assert not len(heir)


async def test_what_an_earlier_leader_may_have_begun_is_completed_whatever_a_budget_says(
    site: Site,
) -> None:
    await site.run()
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 2, takes_effect=True))
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await evictor.look()
    refusal = Fault("POST", "/eviction", 429, left=1000)
    site.cluster.server.faults.append(refusal)

    heir = await site.evictor()
    await site.look(heir, after=10 * SETTINGS.budget_seconds)

    assert await site.there() == ["g-0", "g-2"]
    assert KEY in heir
    refusal.left = 0
    await site.look(heir)
    assert not await site.there()


async def test_no_order_is_taken_before_it_is_known_what_an_earlier_leader_began(
    site: Site,
) -> None:
    await site.run()
    await site.run(Gang("other", 1))
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 1, takes_effect=True))
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await evictor.look()

    heir = site.new_evictor()
    other = _order(gang=GangKey("muster/default/other"))
    assert not heir.order(other)
    await heir.take_over()

    assert KEY in heir
    assert heir.is_served(PREEMPTOR)
    assert PREEMPTOR in site.cluster.extender.worklist.todo, "it is looked at again"
    assert not heir.order(other), "what gives way to it already may be enough"
    assert heir.order(EvictionOrder(GangKey("muster/default/another"), other.victims))


async def test_a_mark_that_names_another_gang_than_its_pods_evicts_nobody(site: Site) -> None:
    """Its author may change this pod, and no other."""
    await site.run()
    mine = Gang("mine", 1)
    await site.run(mine)
    mark = marks.mark_of(EvictedGang(KEY, WHY), PREEMPTOR)
    uid = (await site.cluster.pod("mine-0"))["metadata"]["uid"]
    await site.cluster.api.patch(f"{PODS}/mine-0", marks.marking(uid, mark))
    await site.cluster.settled()

    heir = await site.evictor()
    await site.look(heir)

    assert not len(heir)
    assert await site.there() == ["g-0", "g-1", "g-2"]
    assert await site.there(mine) == ["mine-0"]


async def test_a_mark_that_cannot_be_read_evicts_nobody(site: Site) -> None:
    await site.run()
    for name, text in (
        ("g-0", "{"),
        ("g-1", '{"gang":"x","preemptor":"y","why":"z","members":["q"]}'),
    ):
        body = {
            "metadata": {"labels": {names.EVICTION: "1"}, "annotations": {names.EVICTION: text}}
        }
        await site.cluster.api.patch(f"{PODS}/{name}", body)

    heir = await site.evictor()
    await site.look(heir)

    assert len(await site.there()) == 3
