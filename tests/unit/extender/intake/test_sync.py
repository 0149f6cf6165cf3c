"""What the watches bring while the writer is behind.

::

    API server ──► watches ──► inbox, 4 changes and a piece at most ──► writer, held by the test
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.extenders.extenders import World, until, world

from extender.intake import sync
from extender.intake.sync import Sync
from loadtest.testbed.client.pods import Gang
from muster.cluster.ids import GangKey

PODS = 40
AT_MOST = 4


@pytest.fixture
async def go_on(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Return an event; the writer runs while it is set."""
    may, write = asyncio.Event(), Sync._write_some
    may.set()

    async def held(self: Sync, items: list[Any]) -> None:
        await may.wait()
        await write(self, items)

    monkeypatch.setattr(Sync, "_write_some", held)
    monkeypatch.setattr(sync, "MOST_BEHIND", AT_MOST)
    monkeypatch.setattr("muster.kube.watching.readahead.PIECE_BYTES", 1)  # a line each
    return may


@pytest.fixture
async def running(go_on: asyncio.Event) -> AsyncIterator[World]:
    async with world() as cluster:
        assert go_on.is_set()
        await cluster.nodes({"r1": 2})
        yield cluster


async def behind(running: World, go_on: asyncio.Event) -> Sync:
    """Stop the writer, and wait until a gang's pods wait for it."""
    go_on.clear()
    await running.gang(Gang("big", PODS))
    told = running.extender.sync
    await until(lambda: told.backlog >= PODS - 1)  # the writer may hold some already
    return told


async def test_events_that_the_writer_has_no_time_for_wait_as_bytes_and_are_counted(
    running: World, go_on: asyncio.Event
) -> None:
    told = await behind(running, go_on)
    assert len(told._inbox.items) <= AT_MOST + 1
    go_on.set()
    await running.settled()
    gang = running.extender.engine.state.gang(GangKey("muster/default/big"))
    assert gang is not None
    assert len(gang.waiting) == PODS
    assert told.backlog == 0


async def test_who_waits_for_all_that_has_come_waits_for_what_nobody_has_decoded(
    running: World, go_on: asyncio.Event
) -> None:
    told = await behind(running, go_on)
    flushed = asyncio.create_task(told.flushed())
    await asyncio.sleep(5 * sync.FLUSH_STEP_S)
    assert not flushed.done()
    go_on.set()
    await flushed
    assert len(list(running.extender.engine.state.snapshot().pods.uids)) == PODS


async def test_a_kind_that_changes_rarely_does_not_wait_behind_all_pods(
    running: World, go_on: asyncio.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, write = (
        list[int](),
        Sync._write_some,
    )  # what waits, each time after the namespace is known

    async def watched(self: Sync, items: list[Any]) -> None:
        await write(self, items)
        if "late" in running.extender.feed.namespaces:
            left.append(self.backlog)

    monkeypatch.setattr(Sync, "_write_some", watched)
    await behind(running, go_on)
    await running.api.create("/api/v1/namespaces", {"metadata": {"name": "late"}})
    go_on.set()
    await until(lambda: bool(left))
    assert left[0] > 0
