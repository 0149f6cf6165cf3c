"""When gangs last wrote a checkpoint, as pods that run say: the latest of all members counts.

::

    rack r1 ── r1-0 r1-1        gang g runs on both
"""

from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import (
    PODS,
    World,
    eventually,
    running_extender,
    until,
    world,
)

from extender.intake.checkpoints import Checkpoints, seconds_of
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import GangKey
from muster.kube.names import CHECKPOINTED_AT

NOON = 1_777_636_800.0  # 2026-05-01T12:00:00Z
G = GangKey("muster/default/g")


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 2})
        await running.gang(Gang("g", 2, gpus=8))
        for name, node in (await running.released(["g-0", "g-1"])).items():
            await running.bind(name, node)
        await until(lambda: running.extender.engine.state.gang(G) is not None)
        yield running


async def says(cluster: World, pod: str, at: str | None) -> None:
    patch = {"metadata": {"annotations": {CHECKPOINTED_AT: at}}}
    await cluster.api.patch(f"{PODS}/{pod}", patch)


async def test_the_latest_checkpoint_of_all_members_is_that_of_the_gang(cluster: World) -> None:
    notes: Checkpoints = cluster.extender.checkpoints
    assert notes.latest() == {}

    await says(cluster, "g-0", "2026-05-01T12:00:05Z")
    await says(cluster, "g-1", "2026-05-01T14:00:01+02:00")

    await until(lambda: notes.latest() == {G: NOON + 5})


async def test_a_checkpoint_is_forgotten_with_its_annotation_or_its_pod(cluster: World) -> None:
    notes: Checkpoints = cluster.extender.checkpoints
    await says(cluster, "g-0", "2026-05-01T12:00:05Z")
    await says(cluster, "g-1", "2026-05-01T12:00:01Z")
    await until(lambda: notes.latest() == {G: NOON + 5})

    await says(cluster, "g-0", None)
    await until(lambda: notes.latest() == {G: NOON + 1})

    await cluster.api.delete(f"{PODS}/g-1")
    await until(lambda: notes.latest() == {})


async def test_a_time_that_cannot_be_read_is_reported_once_and_the_last_one_counts(
    cluster: World,
) -> None:
    notes: Checkpoints = cluster.extender.checkpoints
    await says(cluster, "g-0", "2026-05-01T12:00:05Z")
    await until(lambda: notes.latest() == {G: NOON + 5})

    await says(cluster, "g-0", "yesterday")

    async def told() -> bool:
        return bool(await cluster.events("CheckpointUnreadable"))

    await eventually(told)
    (event,) = await cluster.events("CheckpointUnreadable")
    assert '"yesterday" is not allowed' in event["note"]
    assert event["regarding"]["name"] == "g-0"
    assert notes.latest() == {G: NOON + 5}


async def test_a_restarted_extender_reads_checkpoints_in_its_first_list(cluster: World) -> None:
    await says(cluster, "g-1", "2026-05-01T12:00:05Z")
    await until(lambda: cluster.extender.checkpoints.latest() == {G: NOON + 5})

    url, config = cluster.api.url, cluster.extender.config
    async with running_extender(cluster.server, url, config) as again:
        assert again.extender.checkpoints.latest() == {G: NOON + 5}


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-05-01T12:00:00", "1777636800", "2026-13-01T12:00:00Z", "∞"]
)
def test_what_is_no_time_with_an_offset_is_none(text: str) -> None:
    assert seconds_of(text) is None


def test_a_time_is_read_with_its_offset_and_its_fraction() -> None:
    assert seconds_of("2026-05-01T12:00:00.25Z") == NOON + 0.25
    assert seconds_of("2026-05-01T05:00:00-07:00") == NOON
