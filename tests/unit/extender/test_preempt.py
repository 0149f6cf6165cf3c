"""``preempt`` only ever narrows, and never lets kube-scheduler break a gang.

::

    rack r1 ── r1-0 (gang member, bound)  r1-1 (free)  r1-2 (free)
"""

from collections.abc import AsyncIterator

import pytest
from support.extenders import PODS, World, until, world

from kube import names
from kube.translate import pod_uid
from loadtest.api import JSON
from loadtest.pods import Gang, pod


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
