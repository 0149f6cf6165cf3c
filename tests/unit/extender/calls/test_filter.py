"""``filter`` through HTTP on a real state: pure, idempotent, one name back for a planned pod.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

import json
from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import PODS, World, go_args, go_pod, until, world

from extender.calls.wire import Reason
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, pod
from muster.kube import names

RACKS = {"r1": 2, "r2": 2}
NODES = "/api/v1/nodes"
ALL = ["r1-0", "r1-1", "r2-0", "r2-1"]


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world() as running:
        await running.nodes(RACKS)
        yield running


async def planned(cluster: World) -> tuple[dict, str, str]:  # type: ignore[type-arg]
    """Plan and release a lone pod; return it, its node and its spare."""
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    await cluster.settled()
    found = await cluster.pod("g-0")
    note = json.loads(found["metadata"]["annotations"][names.PLAN])
    return found, note["node"], note["spares"][0]


async def test_a_planned_pod_gets_its_node_alone(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    answer = await cluster.filter(found, ALL)
    assert answer["NodeNames"] == [node]
    assert answer["Error"] == ""


async def test_a_hundred_calls_get_the_same_answer_and_change_nothing(cluster: World) -> None:
    """gpu-admission refused the second filter of a pod."""
    found, node, _ = await planned(cluster)
    state = cluster.extender.engine.state
    generation = state.generation
    for _ in range(100):
        assert (await cluster.filter(found, ALL))["NodeNames"] == [node]
    assert state.generation == generation


async def test_the_spare_is_returned_when_the_planned_node_is_not_offered(cluster: World) -> None:
    found, node, spare = await planned(cluster)
    answer = await cluster.filter(found, [name for name in ALL if name != node])
    assert answer["NodeNames"] == [spare]


async def test_one_nominated_node_gets_the_same_answer_as_the_whole_list(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    assert (await cluster.filter(found, [node]))["NodeNames"] == [node]


async def test_no_planned_node_offered_means_planned_elsewhere(cluster: World) -> None:
    found, node, spare = await planned(cluster)
    others = [name for name in ALL if name not in (node, spare)]
    answer = await cluster.filter(found, others)
    assert answer["NodeNames"] == []
    assert answer["FailedNodes"] == {}
    assert answer["FailedAndUnresolvableNodes"] == dict.fromkeys(others, Reason.ELSEWHERE.value)


async def test_full_nodes_are_answered_with_the_one_full_node(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    items = [{"metadata": {"name": name}, "status": {"marker": name}} for name in ALL]
    body = {"Pod": go_pod(found), "Nodes": {"items": items}, "NodeNames": None}
    answer = await cluster.verb("filter", body)
    assert [item["status"]["marker"] for item in answer["Nodes"]["items"]] == [node]


async def test_any_key_order_and_casing_gives_the_same_answer(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    body = {"nodeNames": ALL, "nodes": None, "pod": found}
    assert (await cluster.verb("filter", body))["NodeNames"] == [node]


async def test_an_unmanaged_pod_gets_back_what_was_offered(cluster: World) -> None:
    free = await cluster.api.create(PODS, pod("free"))
    for offered in (ALL, ["unknown-node"], []):
        answer = await cluster.filter(free, offered)
        assert answer["NodeNames"] == offered
        assert answer["FailedAndUnresolvableNodes"] == {}


async def test_an_unmanaged_pod_gets_full_nodes_back_as_they_came(cluster: World) -> None:
    free = await cluster.api.create(PODS, pod("free"))
    nodes = {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "n"}, "x": 1}]}
    answer = await cluster.verb("filter", {"Pod": free, "Nodes": nodes, "NodeNames": None})
    assert answer["Nodes"] == nodes


async def test_a_pod_that_the_watch_has_not_shown_yet_is_judged_by_itself(cluster: World) -> None:
    unseen = pod("unseen", gpus=1)
    unseen["metadata"]["uid"] = "7b0c7a6e-1111-4222-8333-0123456789ab"
    answer = await cluster.filter(unseen, ALL)
    assert answer["NodeNames"] == []
    assert set(answer["FailedAndUnresolvableNodes"].values()) == {Reason.WAITING.value}


async def test_a_member_of_an_incomplete_gang_waits_on_every_node(cluster: World) -> None:
    pods = await cluster.gang(Gang("half", 4), gated=False, ranks=range(3))
    state = cluster.extender.engine.state
    await until(lambda: state.find_pod("default", "half-0") is not None)
    answer = await cluster.filter(pods[0], ["x1", "x2"])
    assert answer["NodeNames"] == []
    assert set(answer["FailedAndUnresolvableNodes"]) == {"x1", "x2"}


async def test_a_users_annotation_cannot_offer_the_planned_node(cluster: World) -> None:
    found, node, spare = await planned(cluster)
    found["metadata"]["annotations"]["note"] = f'","Nodes":null,"NodeNames":["{node}","{spare}"]}}'
    answer = await cluster.filter(found, ["somewhere-else"])
    assert answer["NodeNames"] == []
    assert answer["FailedAndUnresolvableNodes"] == {"somewhere-else": Reason.ELSEWHERE.value}


async def test_replies_carry_their_length(cluster: World) -> None:
    """Go's client does not drain a chunked reply and would dial anew for every pod."""
    found, _, _ = await planned(cluster)
    async with cluster.http.post("/v1/extender/filter", data=go_args(found, ALL)) as response:
        assert "Content-Length" in response.headers
        assert "Transfer-Encoding" not in response.headers


async def test_prioritize_gives_ten_to_the_planned_node_and_integers_only(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    body = {"Pod": found, "Nodes": None, "NodeNames": ALL}
    scores: object = await cluster.verb("prioritize", body)
    assert scores == [{"Host": name, "Score": 10 if name == node else 0} for name in ALL]


async def test_prioritize_leaves_a_very_long_list_to_its_default_of_zero(cluster: World) -> None:
    found, node, _ = await planned(cluster)
    many = [f"n{i}" for i in range(2000)]
    body = {"Pod": found, "Nodes": None, "NodeNames": [*many, node]}
    scores: object = await cluster.verb("prioritize", body)
    assert scores == [{"Host": node, "Score": 10}]


# --- kube-scheduler's view of the nodes is behind ours, or ahead of it ------------------


def assert_asks_again(answer: JSON) -> None:
    """After a rejection kube-scheduler would wait for an event, which it may have had before us."""
    assert answer["Error"] == Reason.LOST.value
    assert not answer["NodeNames"]
    assert answer["FailedNodes"] == answer["FailedAndUnresolvableNodes"] == {}


async def test_a_planned_node_that_is_gone_is_refused_and_nothing_is_bound_there(
    cluster: World,
) -> None:
    found, node, spare = await planned(cluster)
    for lost in (node, spare):
        await cluster.api.delete(f"{NODES}/{lost}")
    await cluster.settled()
    for offered in ([node], [node, spare], [node, "r1-9"]):
        assert_asks_again(await cluster.filter(found, offered))
    scores: object = await cluster.verb("prioritize", {"Pod": found, "NodeNames": [node]})
    assert scores == [{"Host": node, "Score": 0}]
    meta = found["metadata"]
    binding = {"PodName": meta["name"], "PodNamespace": meta["namespace"], "PodUID": meta["uid"]}
    assert await cluster.verb("bind", binding | {"Node": node}) == {"Error": Reason.LOST.value}


async def test_a_spare_that_is_gone_is_no_answer(cluster: World) -> None:
    found, node, spare = await planned(cluster)
    await cluster.api.delete(f"{NODES}/{spare}")
    await cluster.settled()
    assert_asks_again(await cluster.filter(found, [spare]))
    assert (await cluster.filter(found, [spare, node]))["NodeNames"] == [node]


async def test_a_pod_made_with_its_plan_that_nobody_saw_yet_is_not_sent_to_a_node_that_is_gone(
    cluster: World,
) -> None:
    unseen = pod("unseen", gpus=1)
    unseen["metadata"]["uid"] = "7b0c7a6e-1111-4222-8333-0123456789ab"
    unseen["metadata"]["annotations"] = {names.PLAN: '{"id": "p", "node": "r1-0"}'}
    assert (await cluster.filter(unseen, ALL))["NodeNames"] == ["r1-0"]
    await cluster.api.delete(f"{NODES}/r1-0")
    await cluster.settled()
    assert (await cluster.filter(unseen, ALL))["NodeNames"] == []
