"""``preempt`` only ever narrows, and never lets kube-scheduler break a gang.

A gang that ends whole is one victim; a gang of which a partial gang stays is none. The bodies of
kube-scheduler 1.35 and 1.36 are in ``test_preempt_wire``.

::

    rack r1 ── r1-0 (gang member, bound)  r1-1 (free)  r1-2 (free)
"""

import asyncio
from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import PODS, World, until, world

from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names
from muster.kube.translation.translate import pod_uid


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 3})
        yield running


def meta(*uids: str) -> JSON:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}


async def known(cluster: World, obj: JSON) -> JSON:
    uid = pod_uid(obj["metadata"]["uid"])
    await until(lambda: cluster.extender.engine.state.pod_row(uid) is not None)
    return obj


async def at_rest(cluster: World) -> int:
    """Wait until half a second brings no event of the bindings; return the generation."""
    state, seen = cluster.extender.engine.state, -1
    while seen != state.generation:
        seen = state.generation
        await asyncio.sleep(0.5)
    return seen


async def preempt(cluster: World, preemptor: JSON, victims: JSON, *, full: bool = False) -> JSON:
    if full:
        listed = {
            node: {
                "Pods": [{"metadata": {"uid": p["UID"], "name": "v"}} for p in entry["Pods"]],
                "NumPDBViolations": entry["NumPDBViolations"],
            }
            for node, entry in victims.items()
        }
        body = {"Pod": preemptor, "NodeNameToVictims": listed, "NodeNameToMetaVictims": None}
    else:
        body = {"Pod": preemptor, "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    answer: JSON = (await cluster.verb("preempt", body))["NodeNameToMetaVictims"]
    return answer


@pytest.mark.parametrize("full", [False, True])
async def test_a_node_whose_victims_include_a_gang_member_is_dropped(
    cluster: World,
    *,
    full: bool,
) -> None:
    members = await cluster.gang(Gang("train", 2))
    placed = await cluster.released(["train-0", "train-1"])
    await cluster.bind("train-0", placed["train-0"])
    preemptor = await known(cluster, await cluster.api.create(PODS, pod("urgent")))
    victims = {
        "a": meta("11111111-1111-4111-8111-111111111111"),
        "b": meta("22222222-2222-4222-8222-222222222222", members[0]["metadata"]["uid"]),
    }
    assert await preempt(cluster, preemptor, victims, full=full) == {"a": victims["a"]}


async def test_a_lone_managed_pod_may_be_a_victim(cluster: World) -> None:
    """It forms a gang of one, which eviction does not break."""
    lone = pod("lone", gpus=1)
    lone["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    lone = await known(cluster, await cluster.api.create(PODS, lone))
    preemptor = await known(cluster, await cluster.api.create(PODS, pod("urgent")))
    victims = {"a": meta(lone["metadata"]["uid"])}
    assert await preempt(cluster, preemptor, victims) == victims


async def test_a_planned_preemptor_may_only_make_room_where_it_is_planned(cluster: World) -> None:
    await cluster.gang(Gang("g", 1))
    node = (await cluster.released(["g-0"]))["g-0"]
    victim = meta("11111111-1111-4111-8111-111111111111")
    victims = dict.fromkeys(("r1-0", "r1-1", "r1-2"), victim)
    assert await preempt(cluster, await cluster.pod("g-0"), victims) == {node: victim}


async def test_a_planned_preemptor_makes_no_room_on_a_node_that_is_gone(cluster: World) -> None:
    await cluster.gang(Gang("g", 1))
    node = (await cluster.released(["g-0"]))["g-0"]
    preemptor = await cluster.pod("g-0")
    await cluster.api.delete(f"/api/v1/nodes/{node}")
    await cluster.settled()
    victims = {node: meta("11111111-1111-4111-8111-111111111111")}
    assert await preempt(cluster, preemptor, victims) == {}


async def test_a_member_of_a_waiting_gang_evicts_nobody(cluster: World) -> None:
    (member,) = await cluster.gang(Gang("half", 2), gated=False, ranks=range(1))
    await known(cluster, member)
    assert await preempt(cluster, member, {"a": meta("11111111-1111-4111-8111-111111111111")}) == {}


async def test_candidates_without_victims_pass_for_others_and_not_for_ours(cluster: World) -> None:
    """kubernetes#135486 sends them; before it a reply with one failed the whole preemption."""
    other = await known(cluster, await cluster.api.create(PODS, pod("urgent")))
    assert await preempt(cluster, other, {"a": meta()}) == {"a": meta()}
    await cluster.gang(Gang("g", 1))
    node = (await cluster.released(["g-0"]))["g-0"]
    assert await preempt(cluster, await cluster.pod("g-0"), {node: meta()}) == {}


async def test_no_candidates_are_answered_with_none(cluster: World) -> None:
    preemptor = await known(cluster, await cluster.api.create(PODS, pod("urgent")))
    assert await preempt(cluster, preemptor, {}) == {}


STRANGER = "11111111-1111-4111-8111-111111111111"


async def bound(cluster: World, gang: Gang, *ranks: int) -> list[str]:
    """Create a gang, have these members bound, and return the UIDs of all."""
    members = await cluster.gang(gang)
    placed = await cluster.released([f"{gang.name}-{rank}" for rank in range(gang.size)])
    for rank in ranks:
        await cluster.bind(f"{gang.name}-{rank}", placed[f"{gang.name}-{rank}"])
    await cluster.settled()
    return [str(member["metadata"]["uid"]) for member in members]


async def urgent(cluster: World) -> JSON:
    return await known(cluster, await cluster.api.create(PODS, pod("urgent")))


async def test_a_gang_whose_every_member_is_a_victim_ends_whole(cluster: World) -> None:
    first, second = await bound(cluster, Gang("train", 2, gpus=1), 0, 1)
    whole, partial = meta(first, second, STRANGER), meta(first, STRANGER)
    answer = await preempt(cluster, await urgent(cluster), {"a": whole, "b": partial})
    assert answer == {"a": whole}


async def test_a_member_that_is_only_planned_keeps_its_gang_from_ending_whole(
    cluster: World,
) -> None:
    first, _ = await bound(cluster, Gang("train", 2), 0)
    assert await preempt(cluster, await urgent(cluster), {"a": meta(first)}) == {}


async def test_members_above_the_minimum_may_be_victims(cluster: World) -> None:
    uids = await bound(cluster, Gang("elastic", 3, gpus=1, minimum="2"), 0, 1, 2)
    one, two = meta(uids[2]), meta(*uids[1:])
    assert await preempt(cluster, await urgent(cluster), {"a": one, "b": two}) == {"a": one}


async def test_members_of_two_gangs_on_one_node_are_judged_gang_by_gang(cluster: World) -> None:
    small = await bound(cluster, Gang("small", 1, gpus=1), 0)
    large = await bound(cluster, Gang("large", 2, gpus=1), 0, 1)
    both, mixed = meta(*small, *large), meta(*small, large[0])
    answer = await preempt(cluster, await urgent(cluster), {"a": both, "b": mixed})
    assert answer == {"a": both}


async def test_victims_that_a_disruption_budget_protects_are_the_last_choice(
    cluster: World,
) -> None:
    free, protected = meta(STRANGER), meta(STRANGER) | {"NumPDBViolations": 2}
    preemptor = await urgent(cluster)
    assert await preempt(cluster, preemptor, {"a": free, "b": protected}) == {"a": free}
    assert await preempt(cluster, preemptor, {"b": protected}) == {"b": protected}


async def test_nothing_is_evicted_or_changed_by_answering(cluster: World) -> None:
    first, second = await bound(cluster, Gang("train", 2, gpus=1), 0, 1)
    generation = await at_rest(cluster)
    pods = await cluster.api.get(PODS)
    await preempt(cluster, pods["items"][0], {"r1-0": meta(first, second)})
    assert await cluster.api.get(PODS) == pods
    assert cluster.extender.engine.state.generation == generation
