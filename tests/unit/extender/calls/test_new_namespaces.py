"""kube-scheduler asks about pods of a namespace that our watch has not shown yet.

It gets no events of namespaces, so after a wrong rejection it would not try the pod for minutes.
A late watch is simulated by forgetting what it has shown::

    API server:  team (muster.dev/managed: "false", or nothing said of it)
    known here:  nothing of team
"""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault
from support.extenders.extenders import World, until, world

from extender.calls.wire import Reason
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import pod
from muster.kube import names
from muster.kube.translation.translate import pod_uid

TEAM = "/api/v1/namespaces/team"
OFFERED = ["r1-0", "r1-1"]
VICTIM = {"Pods": [{"UID": "11111111-1111-4111-8111-111111111111"}], "NumPDBViolations": 0}


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 2})
        yield running


async def unseen(cluster: World, *, known: bool, gated: bool = False, **labels: str) -> JSON:
    """Return a pod of a namespace that only the API server knows; ``known``: the pod is."""
    team = {"metadata": {"name": "team", "labels": labels}}
    await cluster.api.create("/api/v1/namespaces", team)
    wanted = pod("urgent", namespace="team", gpus=16)  # more than a node has: it is never planned
    if gated:
        wanted["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    made = await cluster.api.create(f"{TEAM}/pods", wanted)
    state = cluster.extender.engine.state
    await until(lambda: state.pod_row(pod_uid(made["metadata"]["uid"])) is not None)
    await until(lambda: "team" in cluster.extender.feed.namespaces)
    await cluster.settled()
    del cluster.extender.feed.namespaces["team"]
    if not known:
        made["metadata"]["uid"] = "22222222-2222-4222-8222-222222222222"
    return made


async def preempt(cluster: World, found: JSON) -> JSON:
    body = {"Pod": found, "NodeNameToMetaVictims": {"r1-0": VICTIM}}
    answer: JSON = (await cluster.verb("preempt", body))["NodeNameToMetaVictims"]
    return answer


@pytest.mark.parametrize("known", [False, True])
async def test_a_pod_of_a_namespace_that_is_closed_goes_and_evicts_where_it_likes(
    cluster: World, *, known: bool
) -> None:
    found = await unseen(cluster, known=known, **{names.MANAGED: "false"})
    assert (await cluster.filter(found, OFFERED))["NodeNames"] == OFFERED
    assert await preempt(cluster, found) == {"r1-0": VICTIM}


@pytest.mark.parametrize("known", [False, True])
async def test_a_pod_of_a_namespace_that_is_open_waits_for_its_plan_and_evicts_nobody(
    cluster: World, *, known: bool
) -> None:
    found = await unseen(cluster, known=known)
    reply = (await cluster.filter(found, OFFERED))["FailedAndUnresolvableNodes"]
    assert reply == dict.fromkeys(OFFERED, Reason.WAITING.value)
    assert await preempt(cluster, found) == {}


async def test_a_pod_with_our_gate_is_ours_without_a_question(cluster: World) -> None:
    found = await unseen(cluster, known=True, gated=True, **{names.MANAGED: "false"})
    cluster.server.faults.append(Fault("GET", TEAM, code=403))
    assert await preempt(cluster, found) == {}


async def test_a_namespace_that_is_not_there_says_nothing_against_us(cluster: World) -> None:
    found = await unseen(cluster, known=False)
    found["metadata"]["namespace"] = "nowhere"
    assert await preempt(cluster, found) == {}


async def test_while_a_namespace_cannot_be_read_its_pod_is_asked_for_again(
    cluster: World,
) -> None:
    found = await unseen(cluster, known=False)
    cluster.server.faults.append(Fault("GET", TEAM, code=403, left=2))
    for verb, rest in (
        ("filter", {"NodeNames": OFFERED}),
        ("preempt", {"NodeNameToMetaVictims": {}}),
    ):
        async with cluster.http.post(f"/v1/extender/{verb}", json={"Pod": found} | rest) as reply:
            assert reply.status == 503
            assert "namespace team cannot be read" in await reply.text()
