"""Asking a running extender who would give way to a gang that finds no place.

::

    rack r1   r1-0 [8 low] r1-1 [8 low] r1-2 [8 high] r1-3 [8 high]     8 GPUs each
    wants waits: 2 members of 8 GPUs; priorities: low 0, wants 10, high 100
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.extenders.extenders import PODS, World, world

from extender.config.backfill import BackfillConfig
from extender.config.makingroom import MakingRoomConfig
from loadtest.testbed.client.pods import Gang, create_owner, members
from muster.cli.main import main
from muster.kube import names

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
Capture = pytest.CaptureFixture[str]


async def comes(cluster: World, name: str, priority: int, nodes: list[str] | None = None) -> None:
    """Create a gang of two members; ``nodes``: where they are bound."""
    gang = Gang(name, 2)
    for pod in members(gang, await create_owner(cluster.api, gang)):
        pod["spec"]["priorityClassName"] = f"p{priority}"
        if nodes is None:
            pod["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await cluster.api.create(PODS, pod)
    for rank, node in enumerate(nodes or []):
        await cluster.bind(f"{name}-{rank}", node)
    await cluster.settled()


@asynccontextmanager
async def scene(**settings: Any) -> AsyncIterator[World]:
    async with world(spare_count=0, **settings) as running:
        await running.nodes({"r1": 4})
        for value in (0, 5, 10, 100):
            body = {"metadata": {"name": f"p{value}"}, "value": value}
            await running.api.create(CLASSES, body)
        await comes(running, "low", 0, ["r1-0", "r1-1"])
        await comes(running, "high", 100, ["r1-2", "r1-3"])
        await comes(running, "wants", 10)
        yield running


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with scene() as running:
        yield running


async def muster(cluster: World, *arguments: str) -> int:
    url = str(cluster.http.make_url("/"))
    return await asyncio.to_thread(main, [*arguments, "--extender", url])


async def test_who_would_give_way_is_told_with_the_cost_and_the_right_and_nothing_is_done(
    cluster: World, capsys: Capture
) -> None:
    before = (await cluster.api.get(PODS))["items"]
    assert await muster(cluster, "whatif", "--gang", "wants", "--preempt") == 0
    told = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(told) if "give" in line)
    assert told[at].startswith("1 gang gives it room: 2 pods end, ")
    assert told[at].endswith("device-seconds of work are lost; no other gangs would cost less")
    assert told[at + 1].startswith("  muster/default/low, priority 0, ends: 2 pods end, ")
    assert told[at + 1].endswith("; a higher priority")
    assert told[at + 2] == (
        "then muster/default/wants goes: 2 members on 1 zone, 1 block, 1 rack, 2 hosts"
    )
    assert (await cluster.api.get(PODS))["items"] == before


async def test_why_nobody_would_give_way_is_told_rule_by_rule(
    cluster: World, capsys: Capture
) -> None:
    arguments = ["--gang", "wants", "--preempt", "--without", "node/r1-0", "--without"]
    assert await muster(cluster, "whatif", *arguments, "gang/low", "--without", "node/r1-1") == 1
    told = capsys.readouterr().out.splitlines()
    assert told[-2:] == [
        "nobody gives way: a rule keeps every gang",
        "  1 gang: its priority is not lower",
    ]


async def test_the_answer_as_data_has_the_gangs_the_rights_and_the_rules(
    cluster: World, capsys: Capture
) -> None:
    await muster(cluster, "whatif", "--gang", "wants", "--preempt", "--json")
    found = json.loads(capsys.readouterr().out)
    room = found["room"]
    assert found["fits"] is False
    assert (room["makes"], room["ends"], room["pods"]) == (True, 1, 2)
    assert room["lost"] == sum(one["lost"] for one in room["gives"])
    assert [(one["gang"], one["whole"]) for one in room["gives"]] == [("muster/default/low", True)]
    arguments = ["--gang", "wants", "--preempt", "--replicas", "4", "--json"]
    assert await muster(cluster, "whatif", *arguments) == 1
    room = json.loads(capsys.readouterr().out)["room"]
    assert (room["makes"], room["gives"]) == (False, [])
    assert room["reason"] == "not even all who may give way would be enough"
    assert room["kept"] == [{"rule": "its priority is not lower", "gangs": 1}]


async def test_without_being_asked_nobody_is_named(cluster: World, capsys: Capture) -> None:
    assert await muster(cluster, "whatif", "--gang", "wants", "--json") == 1
    assert "room" not in json.loads(capsys.readouterr().out)


async def test_a_gang_that_fits_needs_nobody_to_give_way(cluster: World, capsys: Capture) -> None:
    arguments = ["--without", "gang/low", "--preempt", "--json"]
    assert await muster(cluster, "whatif", "--gang", "wants", *arguments) == 0
    assert "room" not in json.loads(capsys.readouterr().out)


async def test_explain_says_who_would_give_way_where_gangs_give_way(capsys: Capture) -> None:
    #  gangs without a queue are promised nothing here, so nobody is asked to give way to one
    async with scene(making_room=MakingRoomConfig(enabled=True)) as cluster:
        assert await muster(cluster, "explain", "gang/wants") == 0
        told = capsys.readouterr().out
        assert "if it were the first that waits now:\n1 gang gives it room: 2 pods end" in told
        assert "muster/default/low, priority 0, ends" in told


async def test_explain_says_nothing_of_it_where_no_gang_gives_way(
    cluster: World, capsys: Capture
) -> None:
    assert await muster(cluster, "explain", "gang/wants") == 0
    assert "gives it room" not in capsys.readouterr().out


async def test_explain_says_rule_by_rule_why_nobody_gives_way_to_the_first_that_waits(
    capsys: Capture,
) -> None:
    settings = {"backfill": BackfillConfig(without_queues=True)}
    async with scene(making_room=MakingRoomConfig(enabled=True), **settings) as cluster:
        await cluster.released(["wants-0", "wants-1"])
        await comes(cluster, "late", 5)
        assert await muster(cluster, "explain", "gang/late", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert found["room"]["reason"] == "a rule keeps every gang"
        assert {one["rule"] for one in found["room"]["kept"]} == {"its priority is not lower"}
        assert "if it were the first that waits now:" not in found["lines"]


async def test_a_gang_that_its_budget_keeps_is_named_with_the_budget(
    cluster: World, capsys: Capture
) -> None:
    """Beside it nobody has a lower priority."""
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    selector = {"matchLabels": {names.GANG: "low"}}
    await cluster.api.create(
        path,
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep"},
            "spec": {"maxUnavailable": 1, "selector": selector},
        },
    )
    await cluster.api.patch(f"{path}/keep/status", {"status": {"disruptionsAllowed": 1}})

    assert await muster(cluster, "whatif", "--gang", "wants", "--preempt") == 1

    told = capsys.readouterr().out.splitlines()
    assert "  1 gang: its disruption budget does not allow that all its pods end now" in told
    assert told[-1] == "  muster/default/low: its budget default/keep allows 1 of 2"
    await muster(cluster, "whatif", "--gang", "wants", "--preempt", "--json")
    room = json.loads(capsys.readouterr().out)["room"]
    held = {"gang": "muster/default/low", "budget": "default/keep", "allowed": 1, "pods": 2}
    assert room["held"] == [held]
