"""Gangs leave nodes of which a cloud or an operator says that they will be gone.

::

    rack r1 ── r1-0 r1-1 r1-2        rack r2 ── r2-0 r2-1 r2-2      (8 GPUs each)
"""

from collections.abc import AsyncIterator

import pytest
from support.extenders.drainsite import NODES, DrainSite, running

from extender.config.draining import DrainingConfig, FurtherNotice
from loadtest.testbed.client.pods import Gang

SPOT = "aws-node-termination-handler/spot-itn"
A = Gang("a", 2)


@pytest.fixture
async def noticed() -> AsyncIterator[DrainSite]:
    async for made in running(DrainSite(), draining=DrainingConfig(notices=True)):
        yield made


async def test_a_spot_notice_ends_a_gang_without_another_place_before_the_node_is_gone(
    noticed: DrainSite,
) -> None:
    await noticed.runs(Gang("full", 3), "r2-0", "r2-1", "r2-2")
    await noticed.runs(Gang("a", 3), "r1-0", "r1-1", "r1-2")
    await noticed.taint("r1-0", SPOT)

    await noticed.look()
    await noticed.look(89)
    assert not await noticed.leaving()
    await noticed.look(1)

    assert await noticed.leaving() == ["a-0", "a-1", "a-2"], "30 s of the two minutes are left"


async def test_a_gang_that_takes_longer_to_end_has_its_grace_period_before_the_node_is_gone(
    noticed: DrainSite,
) -> None:
    await noticed.runs(Gang("full", 2), "r2-0", "r2-1")
    await noticed.runs(Gang("a", 1), "r1-0", grace=100)
    await noticed.runs(Gang("b", 1), "r1-1")
    await noticed.runs(Gang("c", 2), "r1-2", "r2-2")
    await noticed.taint("r1-0", SPOT)
    await noticed.taint("r1-1", SPOT)

    await noticed.look()
    await noticed.look(19)
    assert not await noticed.leaving()
    await noticed.look(1)
    assert await noticed.leaving() == ["a-0"], "100 s of the two minutes are left"
    await noticed.look(70)
    assert await noticed.leaving() == ["a-0", "b-0"]


async def test_a_condition_by_which_a_node_says_that_it_leaves_keeps_gangs_off_and_moves_them(
    noticed: DrainSite,
) -> None:
    await noticed.runs(Gang("a", 1), "r1-0")
    conditions = [{"type": "PreemptScheduled", "status": "True"}]
    body = {"status": {"conditions": conditions}}
    await noticed.cluster.api.patch(f"{NODES}/r1-0/status", body)
    await noticed.cluster.settled()

    await noticed.look()

    assert await noticed.leaving() == ["a-0"]
    [node] = await noticed.shown()
    assert node["why"] == "the spot VM is evicted"


async def test_without_the_setting_a_notice_moves_nobody() -> None:
    async for site in running(DrainSite()):
        await site.runs(A, "r1-0", "r1-1")
        await site.taint("r1-0", SPOT)

        await site.look(3600)

        assert not await site.leaving()
        assert await site.shown() == []


async def test_a_notice_of_ones_own_counts_where_the_configuration_names_it() -> None:
    own = FurtherNotice(taint="example.com/leaving", seconds=60)
    settings = DrainingConfig(notices=True, more_notices=(own,))
    async for site in running(DrainSite(), draining=settings):
        await site.runs(A, "r1-0", "r1-1")
        await site.taint("r1-0", "example.com/leaving")
        await site.look()
        assert await site.leaving() == ["a-0", "a-1"]
