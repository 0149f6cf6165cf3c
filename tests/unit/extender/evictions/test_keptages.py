"""The age of a gang that gave way, from one leader to the next: by the mark on its last pod.

The two racks are drawn in support/clusters/clocked.py.
"""

from collections.abc import AsyncIterator

import pytest
from support.clusters.clocked import two_racks
from support.extenders.evictionsite import (
    GANG,
    KEY,
    PREEMPTOR,
    WHY,
    EvictionSite,
    Killed,
    Mortal,
)
from support.extenders.extenders import PODS

from extender.evictions import marks
from extender.planning.evictionorders import EvictedGang, EvictionOrder
from extender.planning.gangages import KEPT_S, GangAges
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import GangKey
from muster.kube import names
from muster.kube.translation.planseal import KEY_BYTES, PlanKeys

OLD_S = 500.0  # how much older the gang is than its pods: it gave way before
URGENT = Gang("urgent", 7)


@pytest.fixture
async def site() -> AsyncIterator[EvictionSite]:
    async with two_racks(EvictionSite()) as made:
        await made.submit(URGENT)
        yield made


async def _runs(site: EvictionSite) -> float:
    """Have the gang run that gave way before; returns since when it waited."""
    since = 1_000_000.0 - OLD_S
    site.cluster.extender.ages.note(KEY, since)
    await site.run()
    view = site.cluster.extender.engine.state.gang(KEY)
    assert view is not None
    assert view.submitted_at == since
    return since


def _order() -> EvictionOrder:
    return EvictionOrder(PREEMPTOR, (EvictedGang(KEY, WHY),))


async def _killed(site: EvictionSite, left: int, *, takes_effect: bool) -> None:
    """Have a leader die at a write of the eviction; the next one has noted nothing."""
    evictor = await site.evictor(Mortal(site.cluster.extender.client, left, takes_effect))
    assert evictor.order(_order())
    with pytest.raises(Killed):
        await evictor.look()
    await site.cluster.settled()
    site.cluster.extender.ages.noted.clear()


@pytest.mark.parametrize("takes_effect", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("left", [2, 3, 4], ids=["first", "second", "marked"])
async def test_a_leader_that_is_killed_at_any_eviction_leaves_the_age_to_the_next_one(
    site: EvictionSite, *, left: int, takes_effect: bool
) -> None:
    since = await _runs(site)
    await _killed(site, left, takes_effect=takes_effect)

    await site.evictor()

    assert site.cluster.extender.ages.noted[KEY][0] == since


async def test_a_gang_of_which_the_next_leader_sees_a_pod_that_ends_comes_back_as_old_as_before(
    site: EvictionSite,
) -> None:
    """The last eviction took effect, and nobody is left to evict."""
    since = await _runs(site)
    await _killed(site, 1 + GANG.size, takes_effect=True)
    heir = await site.evictor()
    assert KEY not in heir

    await site.end()
    await site.come_again(GANG)

    again = site.cluster.extender.engine.state.gang(KEY)
    assert again is not None
    assert again.submitted_at == since


async def test_an_age_that_somebody_else_wrote_does_not_count(site: EvictionSite) -> None:
    """Whoever may label pods would have their gangs go before all others."""
    await _runs(site)
    uid = (await site.cluster.pod("g-0"))["metadata"]["uid"]
    mark = marks.mark_of(EvictedGang(KEY, WHY), PREEMPTOR)
    forged = marks.aged(mark, uid, 1.0, PlanKeys(own=bytes([1] * KEY_BYTES)))
    await site.cluster.api.patch(f"{PODS}/g-0", marks.marking(uid, forged))
    await site.cluster.settled()

    await site.evictor()

    assert KEY not in site.cluster.extender.ages.noted


async def test_an_age_is_of_use_to_no_other_pod_gang_or_time() -> None:
    """The seal covers all three."""
    keys = PlanKeys(own=bytes(KEY_BYTES))
    mark = marks.aged(marks.mark_of(EvictedGang(KEY, WHY), PREEMPTOR), "u", 7.5, keys)
    assert marks.read({names.EVICTION: str(_text(mark))}) == mark
    assert marks.age_of(mark, "u", keys) == 7.5
    assert marks.age_of(mark, "other", keys) is None
    other = marks.EvictionMark("muster/default/h", mark.preemptor, WHY, since=7.5, seal=mark.seal)
    assert marks.age_of(other, "u", keys) is None
    older = marks.EvictionMark(mark.gang, mark.preemptor, WHY, since=7.0, seal=mark.seal)
    assert marks.age_of(older, "u", keys) is None
    rotated = PlanKeys(own=bytes([1] * KEY_BYTES), others=(keys.own,))
    assert marks.age_of(mark, "u", rotated) == 7.5
    plain = marks.mark_of(EvictedGang(KEY, WHY), PREEMPTOR)
    assert marks.age_of(plain, "u", keys) is None
    assert marks.aged(plain, "u", 7.5, PlanKeys()) == plain


def _text(mark: marks.EvictionMark) -> object:
    patch = marks.marking("u", mark)["metadata"]
    assert isinstance(patch, dict)
    return patch["annotations"][names.EVICTION]


def test_the_oldest_of_several_ages_counts_until_it_is_forgotten() -> None:
    """A leader that knows a gang by its new pods alone makes it no younger than its mark says."""
    now = [0.0]
    ages, gang = GangAges(lambda: now[0]), GangKey("muster/default/g")
    ages.note(gang, 10.0)
    ages.note(gang, 20.0)
    assert ages.of(gang) == 10.0
    ages.note(gang, 10.0)
    now[0] = KEPT_S
    ages.note(gang, 20.0)
    assert ages.of(gang) == 20.0
