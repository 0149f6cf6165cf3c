"""The story of a gang through a whole extender: from its first pod to its nodes.

::

    rack r1 ── r1-0 r1-1     (8 GPUs each)
    rack r2 ── r2-0 r2-1
"""

import asyncio
import re
from collections.abc import AsyncIterator

import msgspec
import pytest
from support.extenders.extenders import PODS, World, until, world

from extender.config.settings import StoryConfig
from loadtest.testbed.client.pods import Gang
from muster.apiwire.story import StoryAnswer, StoryEntry
from muster.cli.main import main
from muster.kube import names

Capture = pytest.CaptureFixture[str]


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes({"r1": 2, "r2": 2})
        yield running


async def story_of(cluster: World, path: str) -> StoryAnswer:
    async with cluster.http.get(f"/v1/story/{path}") as reply:
        raw = await reply.read()
        assert reply.status == 200, raw
    found = msgspec.json.decode(raw, type=StoryAnswer)
    assert msgspec.json.encode(found) == raw
    return found


async def runs(cluster: World, name: str, size: int) -> dict[str, str]:
    """Create a gang and bind it where it is planned; return pod → node."""
    await cluster.gang(Gang(name, size, required=names.RACK))
    placed = await cluster.released([f"{name}-{rank}" for rank in range(size)])
    for pod, node in placed.items():
        await cluster.bind(pod, node)
    await cluster.settled()
    return placed


def chain(story: StoryAnswer, entry: StoryEntry) -> list[StoryEntry]:
    """Return an entry and its causes, first things first."""
    by_id = {each.id: each for each in story.entries}
    found = [entry]
    while found[0].cause:
        found.insert(0, by_id[found[0].cause])
    return found


async def test_a_gated_gang_arrives_is_complete_planned_held_released_and_bound(
    cluster: World,
) -> None:
    placed = await runs(cluster, "g", 2)
    story = await story_of(cluster, "gang/default/g")
    assert [each.at for each in story.entries] == sorted(each.at for each in story.entries)
    bound = next(e for e in story.entries if e.pod == "default/g-0" and "is bound to" in e.what)
    steps = chain(story, bound)
    assert [(step.kind, step.pod) for step in steps] == [
        ("watch", "default/g-1"), ("look", ""), ("plan", ""), ("hold", ""),
        ("release", "default/g-0"), ("watch", "default/g-0"),
    ]  # fmt: skip
    texts = [re.sub(r"plan \w{12}", "plan …", step.what) for step in steps]
    assert texts == [
        "waits, gated",
        "is complete: 2 members wait, 0 have a node",
        "fits: 2 members on 1 zone, 1 block, 1 rack, 2 hosts",
        "plan … holds room for 2 pods",
        "is released: its pin is written",
        f"is bound to {placed['g-0']}; as planned",
    ]


async def test_a_gang_that_waits_is_planned_because_another_ended(cluster: World) -> None:
    await runs(cluster, "a", 2)
    await runs(cluster, "b", 2)
    await cluster.gang(Gang("late", 2, required=names.RACK))
    await until(lambda: "muster/default/late" in cluster.extender.planner.decisions)
    for pod in ("b-0", "b-1"):
        await cluster.api.delete(f"{PODS}/{pod}")
    await cluster.released(["late-0", "late-1"])
    story = await story_of(cluster, "gang/default/late")
    assert "waits: not enough room" in [each.what for each in story.entries]
    release = next(each for each in story.entries if each.kind == "release")
    cause = chain(story, release)[0]
    assert (cause.kind, cause.what) == ("watch", "is gone")
    assert cause.pod in ("default/b-0", "default/b-1")


async def test_a_pod_that_is_gone_still_has_its_story(cluster: World) -> None:
    await runs(cluster, "g", 1)
    await cluster.api.delete(f"{PODS}/g-0")
    await until(lambda: not list(cluster.extender.engine.state.gangs()))
    story = await story_of(cluster, "pod/default/g-0")
    assert story.entries[-1].what == "is gone"
    assert {each.kind for each in story.entries} >= {"watch", "look", "plan", "hold", "release"}


async def test_the_newest_entries_are_kept_where_a_limit_is_asked_for(cluster: World) -> None:
    await runs(cluster, "g", 2)
    whole = await story_of(cluster, "gang/default/g")
    some = await story_of(cluster, "gang/default/g?limit=3")
    assert some.entries == whole.entries[-3:]
    assert some.left_out == len(whole.entries) - 3


@pytest.mark.parametrize("path", ["pod/default/none", "gang/default/none", "node/default/r1-0"])
async def test_what_is_not_there_has_no_story(cluster: World, path: str) -> None:
    async with cluster.http.get(f"/v1/story/{path}") as reply:
        assert reply.status == 404
        assert path.partition("/")[0] in (await reply.json())["error"]


async def test_people_read_a_line_for_each_thing_that_happened(
    cluster: World, capsys: Capture
) -> None:
    await runs(cluster, "g", 1)
    url = str(cluster.http.make_url("/"))
    assert await asyncio.to_thread(main, ["story", "gang/g", "--extender", url]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["TIME", "+MS", "ID", "CAUSE", "WHAT"]
    assert "muster/default/g is complete: 1 members wait, 0 have a node" in "\n".join(lines)
    assert await asyncio.to_thread(main, ["story", "g-0", "-o", "json", "--extender", url]) == 0
    found = msgspec.json.decode(capsys.readouterr().out, type=StoryAnswer)
    assert (found.kind, found.name) == ("pod", "default/g-0")
    assert await asyncio.to_thread(main, ["story", "gang/none", "--extender", url]) == 1
    assert "gang default/none: does not exist" in capsys.readouterr().err


async def test_a_replica_that_keeps_nothing_says_so(capsys: Capture) -> None:
    async with world(story=StoryConfig(entries=0)) as running:
        await running.nodes({"r1": 1})
        await runs(running, "g", 1)
        url = str(running.http.make_url("/"))
        assert await asyncio.to_thread(main, ["story", "gang/g", "--extender", url]) == 0
    assert "story.entries is 0" in capsys.readouterr().out
