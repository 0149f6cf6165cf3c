"""kube-scheduler's extender path: what is asked when, and what follows from each answer.

One scheduler runs for all tests, with an extender that the tests drive (and an ignorable
one in front of it that never answers). Nodes are told apart by a label per test.
"""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from support.clusters.cell import GPU, Cell
from support.pods.wire import lift, pinned

from loadtest.testbed.client.api import STRATEGIC_PATCH

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_pod_is_filtered_scored_and_bound_in_that_order(cell: Cell) -> None:
    def prefer_last(body: dict[str, Any]) -> list[dict[str, Any]]:
        names = body["NodeNames"]
        return [{"Host": n, "Score": 10 if n == cell.nodes[2] else 0} for n in names]

    cell.let_bind("p")
    cell.extender.on(cell.key("p"), "prioritize", prefer_last)
    await cell.create("p")
    assert await cell.bound("p") == cell.nodes[2]
    assert [call.verb for call in cell.seen("p")] == ["filter", "prioritize", "bind"]


async def test_arguments_have_go_field_names_in_go_order(cell: Cell) -> None:
    cell.let_bind("p")
    made = await cell.create("p")
    await cell.bound("p")
    filtered, bind = cell.seen("p", "filter")[0], cell.seen("p", "bind")[0]
    assert list(filtered.body) == ["Pod", "Nodes", "NodeNames"]
    assert filtered.body["Nodes"] is None
    assert sorted(filtered.body["NodeNames"]) == cell.nodes
    assert filtered.body["Pod"]["metadata"]["uid"] == made["metadata"]["uid"]
    assert "kind" not in filtered.body["Pod"]
    assert filtered.headers["Content-Type"] == "application/json"
    assert list(bind.body) == ["PodName", "PodNamespace", "PodUID", "Node"]
    assert bind.body["PodUID"] == made["metadata"]["uid"]


async def test_one_feasible_node_skips_scoring(cell: Cell) -> None:
    cell.let_bind("p")
    only = cell.nodes[1]
    cell.extender.on(cell.key("p"), "filter", lambda _: {"NodeNames": [only], "Error": ""})
    await cell.create("p")
    assert await cell.bound("p") == only
    assert [call.verb for call in cell.seen("p")] == ["filter", "bind"]


async def test_a_pinned_pod_brings_only_its_own_node_to_the_extender(cell: Cell) -> None:
    cell.let_bind("p")
    await cell.create("p", affinity=pinned(cell.nodes[1]))
    assert await cell.bound("p") == cell.nodes[1]
    assert [call.body["NodeNames"] for call in cell.seen("p", "filter")] == [[cell.nodes[1]]]


async def test_a_pod_pinned_with_a_spare_brings_both_nodes(cell: Cell) -> None:
    cell.let_bind("p")
    await cell.create("p", affinity=pinned(cell.nodes[0], cell.nodes[2]))
    await cell.bound("p")
    [call] = cell.seen("p", "filter")
    assert sorted(call.body["NodeNames"]) == [cell.nodes[0], cell.nodes[2]]


async def test_nodes_that_fail_in_tree_are_never_shown(cell: Cell) -> None:
    cell.let_bind("big", "p")
    await cell.create("big", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.bound("big")
    await cell.create("p", gpus=4)
    await cell.bound("p")
    assert sorted(cell.seen("p", "filter")[0].body["NodeNames"]) == cell.nodes[1:]


async def test_the_extender_is_not_asked_when_nothing_fits_in_tree(cell: Cell) -> None:
    await cell.create("p", gpus=5)
    condition = await cell.condition("p", "Unschedulable")
    assert f"Insufficient {GPU}" in condition["message"]
    assert cell.seen("p") == []


async def test_pods_without_a_managed_resource_are_not_shown(cell: Cell) -> None:
    await cell.create("p", gpus=0)
    assert await cell.bound("p") in cell.nodes
    assert cell.seen("p") == []


async def test_the_nominated_node_is_tried_alone_and_first(cell: Cell) -> None:
    cell.let_bind("p")
    body = cell.pod("p", schedulingGates=[{"name": "t.co/g"}])
    await cell.api.create(cell.pods, body)
    path = f"{cell.pods}/p"
    status = {"status": {"nominatedNodeName": cell.nodes[2]}}
    await cell.api.patch(f"{path}/status", status, kind=STRATEGIC_PATCH)
    await cell.api.patch(path, {"spec": {"schedulingGates": lift("t.co/g")}}, kind=STRATEGIC_PATCH)
    assert await cell.bound("p") == cell.nodes[2]
    assert [call.body["NodeNames"] for call in cell.seen("p", "filter")] == [[cell.nodes[2]]]


async def test_all_nodes_are_tried_when_the_nominated_one_fails(cell: Cell) -> None:
    def not_alone(body: dict[str, Any]) -> Any:
        alone = len(body["NodeNames"]) == 1
        return web.Response(status=500) if alone else {"NodeNames": body["NodeNames"][:1]}

    cell.let_bind("p")
    cell.extender.on(cell.key("p"), "filter", not_alone)
    await cell.api.create(cell.pods, cell.pod("p", schedulingGates=[{"name": "t.co/g"}]))
    path = f"{cell.pods}/p"
    status = {"status": {"nominatedNodeName": cell.nodes[2]}}
    await cell.api.patch(f"{path}/status", status, kind=STRATEGIC_PATCH)
    await cell.api.patch(path, {"spec": {"schedulingGates": lift("t.co/g")}}, kind=STRATEGIC_PATCH)
    await cell.bound("p")
    counts = [len(call.body["NodeNames"]) for call in cell.seen("p", "filter")]
    assert counts == [1, 3]


async def test_a_gated_pod_is_not_touched_until_its_gate_is_lifted(cell: Cell) -> None:
    cell.let_bind("p", "other")
    await cell.create("p", schedulingGates=[{"name": "t.co/g"}])
    await cell.create("other")
    await cell.bound("other")
    assert cell.seen("p") == []
    lifted = {"spec": {"schedulingGates": lift("t.co/g"), "affinity": pinned(cell.nodes[1])}}
    await cell.api.patch(f"{cell.pods}/p", lifted, kind=STRATEGIC_PATCH)
    assert await cell.bound("p") == cell.nodes[1]


async def test_reasons_are_counted_in_the_condition(cell: Cell) -> None:
    def reject(body: dict[str, Any]) -> dict[str, Any]:
        first, *rest = sorted(body["NodeNames"])
        return {
            "NodeNames": [],
            "FailedNodes": {},
            "FailedAndUnresolvableNodes": dict.fromkeys(rest, "planned elsewhere")
            | {first: "held"},
            "Error": "",
        }

    cell.extender.on(cell.key("p"), "filter", reject)
    await cell.create("p")
    message = (await cell.condition("p", "Unschedulable"))["message"]
    assert "2 planned elsewhere" in message
    assert "1 held" in message


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: {"Error": "not ready"},
        lambda _: web.Response(status=503),
        lambda _: web.Response(text="not json"),
        lambda _: {"NodeNames": ["a-node-that-was-not-asked"], "Error": ""},
    ],
    ids=["error field", "status 503", "no json", "unknown node"],
)
async def test_an_error_is_a_scheduler_error_and_is_tried_again(cell: Cell, answer: Any) -> None:
    cell.extender.on(cell.key("p"), "filter", answer)
    await cell.create("p")
    await cell.condition("p", "SchedulerError")
    await cell.extender.wait_for(cell.key("p"), "filter", 2)
    cell.extender.on(cell.key("p"), "filter", lambda body: {"NodeNames": body["NodeNames"][:1]})
    cell.let_bind("p")
    await cell.bound("p")


async def test_a_slow_answer_is_an_error_after_the_timeout(cell: Cell) -> None:
    async def slow(body: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(1.5)
        return {"NodeNames": body["NodeNames"]}

    cell.extender.on(cell.key("p"), "filter", slow)
    await cell.create("p")
    await cell.condition("p", "SchedulerError")
    cell.extender.answers.pop((cell.key("p"), "filter"))
    cell.let_bind("p")
    await cell.bound("p")


async def test_null_for_both_lists_rejects_every_node(cell: Cell) -> None:
    cell.extender.on(cell.key("p"), "filter", lambda _: {"NodeNames": None, "Nodes": None})
    await cell.create("p")
    await cell.condition("p", "Unschedulable")


async def test_an_ignorable_extender_that_is_away_is_passed_over(cell: Cell) -> None:
    for name in cell.nodes:
        amounts = {"example.com~1away": "1"}
        operations = [
            {"op": "add", "path": f"/status/{part}/{key}", "value": value}
            for part in ("capacity", "allocatable")
            for key, value in amounts.items()
        ]
        await cell.api.patch(
            f"/api/v1/nodes/{name}/status", operations, kind="application/json-patch+json"
        )
    body = cell.pod("p")
    amounts = {"example.com/away": "1"}
    body["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    await cell.api.create(cell.pods, body)
    assert await cell.bound("p") in cell.nodes


async def test_a_failed_scoring_is_ignored(cell: Cell) -> None:
    cell.let_bind("p")
    cell.extender.on(cell.key("p"), "prioritize", lambda _: web.Response(status=500))
    await cell.create("p")
    assert await cell.bound("p") in cell.nodes


async def test_a_fractional_score_drops_the_whole_list(cell: Cell) -> None:
    cell.let_bind("p")
    fractional = [{"Host": cell.nodes[0], "Score": 9.5}]
    cell.extender.on(cell.key("p"), "prioritize", lambda _: fractional)
    await cell.create("p")
    assert await cell.bound("p") in cell.nodes


async def test_a_failed_binding_gives_the_room_back_and_is_tried_again(cell: Cell) -> None:
    cell.extender.on(cell.key("p"), "bind", lambda _: {"Error": "conflict"})
    await cell.create("p", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.condition("p", "SchedulerError")
    cell.let_bind("p")
    assert await cell.bound("p") == cell.nodes[0]


async def test_taints_and_cordons_keep_pods_away(cell: Cell) -> None:
    taint = {"key": "broken", "value": "nvlink", "effect": "NoSchedule"}
    await cell.api.patch(f"/api/v1/nodes/{cell.nodes[0]}", {"spec": {"taints": [taint]}})
    await cell.api.patch(f"/api/v1/nodes/{cell.nodes[1]}", {"spec": {"unschedulable": True}})
    cell.let_bind("p", "tolerant")
    await asyncio.sleep(0.5)  # both schedulers learn of nodes by a watch
    await cell.create("p")
    assert await cell.bound("p") == cell.nodes[2]
    assert cell.seen("p", "filter")[0].body["NodeNames"] == [cell.nodes[2]]
    tolerations = [{"key": "broken", "operator": "Equal", "value": "nvlink"}]
    await cell.create("tolerant", tolerations=tolerations)
    await cell.bound("tolerant")
    shown = sorted(cell.seen("tolerant", "filter")[0].body["NodeNames"])
    assert shown == [cell.nodes[0], cell.nodes[2]]


async def test_anti_affinity_holds_in_both_directions(cell: Cell) -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "x"}}}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cell.let_bind("guard", "x")
    await cell.create("guard", affinity=rule)
    home = await cell.bound("guard")
    body = cell.pod("x")
    body["metadata"]["labels"] = {"a": "x"}
    await cell.api.create(cell.pods, body)
    await cell.bound("x")
    shown = cell.seen("x", "filter")[0].body["NodeNames"]
    assert sorted(shown) == sorted(set(cell.nodes) - {home})


async def test_spread_keeps_the_skew(cell: Cell) -> None:
    constraint = {
        "topologyKey": "kubernetes.io/hostname",
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"a": "x"}},
    }
    homes = []
    for i in range(3):
        name = f"x{i}"
        cell.let_bind(name)
        body = cell.pod(name, topologySpreadConstraints=[constraint])
        body["metadata"]["labels"] = {"a": "x"}
        await cell.api.create(cell.pods, body)
        homes.append(await cell.bound(name))
    assert sorted(homes) == cell.nodes


async def low_and_high(cell: Cell) -> tuple[str, str]:
    """Fill one node with a pod of priority 0, and create one of system priority for it."""
    cell.let_bind("low", "high")
    await cell.create("low", gpus=4, affinity=pinned(cell.nodes[0]))
    await cell.bound("low")
    low = await cell.api.get(f"{cell.pods}/low")
    spec = {"affinity": pinned(cell.nodes[0]), "priorityClassName": "system-node-critical"}
    await cell.create("high", gpus=4, **spec)
    return low["metadata"]["uid"], cell.nodes[0]


async def test_preemption_asks_the_extender_by_uid_and_evicts(cell: Cell) -> None:
    uid, home = await low_and_high(cell)
    [call, *_] = await cell.extender.wait_for(cell.key("high"), "preempt")
    assert list(call.body) == ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"]
    assert call.body["NodeNameToVictims"] is None
    victims = call.body["NodeNameToMetaVictims"]
    assert victims == {home: {"Pods": [{"UID": uid}], "NumPDBViolations": 0}}
    assert await cell.bound("high") == home


async def test_a_veto_of_the_extender_saves_the_victims(cell: Cell) -> None:
    none = {"NodeNameToMetaVictims": {}}
    cell.extender.on(cell.key("high"), "preempt", lambda _: none)
    await low_and_high(cell)
    await cell.extender.wait_for(cell.key("high"), "preempt")
    await cell.condition("high", "Unschedulable")
    assert (await cell.api.get(f"{cell.pods}/low"))["spec"]["nodeName"] == cell.nodes[0]


async def test_failed_nodes_may_be_preempted_and_unresolvable_ones_not(cell: Cell) -> None:
    def reject(body: dict[str, Any]) -> dict[str, Any]:
        return {
            "NodeNames": [],
            "FailedAndUnresolvableNodes": dict.fromkeys(body["NodeNames"], "planned elsewhere"),
        }

    cell.let_bind("low")
    await cell.create("low", gpus=1, affinity=pinned(cell.nodes[0]))
    await cell.bound("low")
    cell.extender.on(cell.key("high"), "filter", reject)
    await cell.create("high", gpus=1, priorityClassName="system-node-critical")
    await cell.condition("high", "Unschedulable")
    assert cell.seen("high", "preempt") == []
