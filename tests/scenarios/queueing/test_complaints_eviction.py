"""What people report of evictions in other schedulers, as what must hold while gangs end.

The two racks are drawn in support/clusters/clocked.py: six nodes of 8 GPUs, and gangs ``g``, ``h``
that run on them. Orders come from the test, the API server is simulated, time is an argument.
"""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import (
    JOBS,
    PREEMPTOR,
    SETTINGS,
    WHY,
    EvictionSite,
    Killed,
    Mortal,
)

from extender.planning.evictionorders import EvictedGang, EvictionOrder
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import GangKey
from muster.kube import names
from muster.placement.moves.movablepods import MovePrices
from muster.placement.victims.units import units_of


@pytest.fixture
async def site() -> AsyncIterator[EvictionSite]:
    async with two_racks(EvictionSite()) as made:
        await made.submit(Gang("urgent", 7))
        yield made


def _order(*gangs: GangKey, preemptor: GangKey = PREEMPTOR) -> EvictionOrder:
    return EvictionOrder(preemptor, tuple(EvictedGang(gang, WHY) for gang in gangs))


def _key(name: str) -> GangKey:
    return GangKey(f"muster/default/{name}")


# --- nobody ends in vain --------------------------------------------------------------------------


async def test_where_one_victim_is_protected_the_others_of_its_order_stay(
    site: EvictionSite,
) -> None:
    """volcano#4607, kueue#5243: h ends, g is refused, and both together would have been enough."""
    await site.run(Gang("h", 2))
    await site.run()
    await site.protect()
    evictor = await site.evictor()
    assert evictor.order(_order(_key("h"), _key("g")))

    await site.look(evictor)
    assert len(await site.there(Gang("h", 2))) == 2
    await site.look(evictor, after=SETTINGS.budget_seconds)

    assert len(await site.there(Gang("h", 2))) == 2
    assert not len(evictor)
    assert list(evictor.protected()) == [_key("g")], "h is no less a victim of the next order"


async def test_a_budget_of_two_victims_is_counted_for_both(site: EvictionSite) -> None:
    """volcano#4607: it allows three, which is enough for each of them and not for both."""
    await site.run(Gang("h", 2))
    await site.run()
    await site.protect("g", "h", allowed=3)
    evictor = await site.evictor()
    assert evictor.order(_order(_key("h"), _key("g")))

    await site.look(evictor)
    await site.look(evictor)

    assert len(await site.there(Gang("h", 2))) == 2
    assert len(await site.there()) == 3


async def test_where_a_budget_yields_in_time_all_of_an_order_end(site: EvictionSite) -> None:
    """The same, and another replica of the protected gang becomes ready after ten seconds."""
    await site.run(Gang("h", 2))
    await site.run()
    await site.protect()
    evictor = await site.evictor()
    assert evictor.order(_order(_key("h"), _key("g")))
    await site.look(evictor)

    await site.allow(3)
    await site.look(evictor, after=10)
    await site.look(evictor)

    assert not await site.there(Gang("h", 2))
    assert not await site.there()


async def test_nobody_ends_for_a_gang_that_is_gone(site: EvictionSite) -> None:
    """kueue#14543: a budget holds the victim up; its preemptor is deleted before it yields."""
    await site.run()
    await site.protect()
    evictor = await site.evictor()
    assert evictor.order(_order(_key("g")))
    await site.look(evictor)

    await site.withdraw(Gang("urgent", 7))
    await site.allow(3)
    await site.look(evictor, after=10)

    assert len(await site.there()) == 3
    assert not len(evictor)
    assert not list(evictor.protected())


async def test_what_has_begun_is_ended_though_the_preemptor_is_gone(site: EvictionSite) -> None:
    """volcano#4607: half a gang is of use to nobody."""
    await site.run()
    refusal = Fault("POST", "/g-2/eviction", 429, left=1)
    site.cluster.server.faults.append(refusal)
    evictor = await site.evictor()
    assert evictor.order(_order(_key("g")))
    await site.look(evictor)
    await site.withdraw(Gang("urgent", 7))

    await site.look(evictor)

    assert not await site.there()


# --- storms ---------------------------------------------------------------------------------------


async def test_an_order_larger_than_what_may_end_in_a_minute_is_carried_out_and_then_paid_for(
    site: EvictionSite,
) -> None:
    """YUNIKORN-2761, and the other way: a limit that no order ever meets starves the preemptor.

    Two gangs a minute: an order of five is taken, and the next one waits for two minutes more.
    """
    gangs = [Gang(letter, 1) for letter in "abcdef"]
    for gang in gangs:
        await site.run(gang)
    keys = [_key(gang.name) for gang in gangs]
    evictor = await site.evictor()
    assert evictor.order(_order(*keys[:5]))

    another = _order(keys[5], preemptor=_key("another"))
    for seconds in (0, 60, 60 - 1):
        site.now += seconds
        assert not evictor.order(another)
    site.now += 1
    assert evictor.order(another)


async def test_an_order_that_is_refused_because_of_the_limit_is_counted(site: EvictionSite) -> None:
    """YUNIKORN-1990: nobody sees why nothing is preempted."""
    gangs = [Gang(letter, 1) for letter in "abc"]
    for gang in gangs:
        await site.run(gang)
    evictor = await site.evictor()
    before = site.metrics.given_way.labels("limited")._value.get()
    assert evictor.order(_order(_key("a"), _key("b")))
    assert not evictor.order(_order(_key("c"), preemptor=_key("another")))
    assert site.metrics.given_way.labels("limited")._value.get() == before + 1


# --- jobs that are suspended ----------------------------------------------------------------------


async def test_a_suspension_whose_answer_is_lost_evicts_no_pod(site: EvictionSite) -> None:
    """kueue#14543: the job is suspended; one evicted pod more would fail it (backoffLimit 0)."""
    await site.run_job("j", 2)
    site.cluster.server.faults.append(Fault("PATCH", "/jobs/j", 500, takes_effect=True))
    evictor = await site.evictor()
    assert evictor.order(_order(site.job_key("j")))

    await site.look(evictor)
    await site.look(evictor)

    assert (await site.cluster.api.get(f"{JOBS}/j"))["spec"]["suspend"] is True
    assert len(await site.there(Gang("j", 2))) == 2, "the Job controller deletes them"
    assert site.job_key("j") in evictor
    await site.job_controller_deletes("j")
    await site.look(evictor)
    assert not len(evictor)


@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
async def test_a_leader_that_is_killed_at_a_suspension_leaves_one_job_suspended_and_not_two(
    site: EvictionSite, *, takes_effect: bool
) -> None:
    """kueue#3779, volcano#5881: what an earlier leader did is not known to the next one."""
    for name in "jk":
        await site.run_job(name, 2)
    evictor = await site.evictor(Mortal(site.cluster.extender.client, 1, takes_effect))
    assert evictor.order(_order(site.job_key("j")))
    with pytest.raises(Killed):
        await evictor.look()
    await site.cluster.settled()

    heir = await site.evictor()

    assert heir.is_served(PREEMPTOR) is takes_effect
    taken = heir.order(_order(site.job_key("k")))
    assert taken is not takes_effect, "what leaves for it already may be enough"
    if takes_effect:
        await site.look(heir)
        assert len(await site.there(Gang("j", 2))) == 2, "its controller deletes them"
        await site.job_controller_deletes("j")
        await site.look(heir)
        assert not len(heir)


async def test_a_job_that_runs_again_is_on_its_way_for_nobody(site: EvictionSite) -> None:
    """kueue#3779: what is noted of an eviction is over with it."""
    await site.run_job("j", 2)
    evictor = await site.evictor()
    assert evictor.order(_order(site.job_key("j")))
    await site.look(evictor)
    notes = {names.SUSPENDED_BY: None, names.EVICTION: None}
    body = {"spec": {"suspend": False}, "metadata": {"annotations": notes}}
    await site.cluster.api.patch(f"{JOBS}/j", body)
    await site.cluster.settled()

    heir = await site.evictor()

    assert not len(heir)


# --- elastic Jobs -----------------------------------------------------------------------------


IGNORES = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
FAILS = {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("rules", "counts"),
    [([], True), ([FAILS], True), ([IGNORES], False)],
    ids=["no policy", "fails", "ignores"],
)
async def test_a_job_that_counts_evictions_gives_up_no_member_alone(
    site: EvictionSite, rules: list[dict[str, object]], *, counts: bool
) -> None:
    """volcano#4607: one member of three is evicted, and backoffLimit 0 fails the Job.

    Whole it is suspended, which counts nothing.
    """
    await site.run_job("j", 3, minimum=1, rules=rules)
    state = site.cluster.extender.engine.state
    view = state.gang(site.job_key("j"))
    assert view is not None
    assert view.spec is not None
    assert (view.spec.min_count, view.spec.counts_evictions) == (1, counts)

    units = units_of(MovePrices(state.snapshot()), view, 0.0)

    assert [unit.is_whole for unit in units] == ([True] if counts else [True, False, False])


# --- whatever happens -----------------------------------------------------------------------------


async def test_a_gang_has_left_though_its_members_came_again_and_run(site: EvictionSite) -> None:
    """armada#5071: its controller replaces each evicted pod at once, and they find other room."""
    await site.run()
    evictor = await site.evictor()
    assert evictor.order(_order(_key("g")))
    await site.look(evictor)
    await site.end()
    await site.come_again(Gang("g", 3))
    await site.cluster.released(["g-0", "g-1", "g-2"])

    await site.look(evictor)

    assert not len(evictor)
    assert len(await site.there()) == 3
