"""Marking nodes as drained on a simulated API server: one PATCH a node, and no taint is lost."""

from collections.abc import AsyncIterator

import pytest
from support.apiservers.apifaults import Fault, FaultyServer, api_server

from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.client.nodes import node
from muster.cli.ops import draining
from muster.kube import names
from muster.kube.errors import Conflict, NotFound
from muster.kube.http import auth

NODES = "/api/v1/nodes"
OTHER = {
    "key": "nvidia.com/gpu",
    "value": "present",
    "effect": "NoSchedule",
    "timeAdded": "2026-11-28T10:00:00Z",
}


class Fleet:
    """An API server with nodes n1, which has a taint, and n2."""

    def __init__(self, api: Api, server: FaultyServer, url: str) -> None:
        self.api, self.server, self.auth = api, server, auth.fixed(url)

    async def spec(self, name: str) -> JSON:
        found = await self.api.get(f"{NODES}/{name}")
        spec: JSON = found.get("spec", {})
        return spec


@pytest.fixture
async def fleet() -> AsyncIterator[Fleet]:
    async with api_server() as (server, url), Api(url) as api:
        await api.create(NODES, node("n1", {}) | {"spec": {"taints": [OTHER]}})
        await api.create(NODES, node("n2", {}))
        yield Fleet(api, server, url)


async def test_a_node_is_cordoned_and_marked_beside_the_taints_that_it_has(fleet: Fleet) -> None:
    await draining.request(fleet.auth, ["n1", "n2"], None)
    mark = {"key": names.DRAIN, "value": "", "effect": "NoSchedule"}
    assert await fleet.spec("n1") == {"unschedulable": True, "taints": [OTHER, mark]}
    assert await fleet.spec("n2") == {"unschedulable": True, "taints": [mark]}


async def test_a_second_request_changes_the_deadline_and_adds_no_second_mark(
    fleet: Fleet,
) -> None:
    await draining.request(fleet.auth, ["n1"], None)
    await draining.request(fleet.auth, ["n1"], 1764325000.9)
    values = {taint["key"]: taint["value"] for taint in (await fleet.spec("n1"))["taints"]}
    assert values == {"nvidia.com/gpu": "present", names.DRAIN: "1764325000"}


async def test_taking_it_back_uncordons_and_leaves_other_taints(fleet: Fleet) -> None:
    await draining.request(fleet.auth, ["n1", "n2"], None)
    await draining.cancel(fleet.auth, ["n1", "n2"])
    assert await fleet.spec("n1") == {"taints": [OTHER]}
    assert await fleet.spec("n2") == {}


async def test_a_name_that_is_wrong_changes_no_node(fleet: Fleet) -> None:
    with pytest.raises(NotFound):
        await draining.request(fleet.auth, ["n2", "n9"], None)
    assert await fleet.spec("n2") == {}


async def test_where_somebody_else_changes_the_node_it_is_tried_again(fleet: Fleet) -> None:
    fleet.server.faults.append(Fault("PATCH", "/nodes/n1", 409, left=2))
    await draining.request(fleet.auth, ["n1"], None)
    assert (await fleet.spec("n1"))["unschedulable"] is True


async def test_after_some_conflicts_it_gives_up_and_says_so(fleet: Fleet) -> None:
    fleet.server.faults.append(Fault("PATCH", "/nodes/n1", 409, left=99))
    with pytest.raises(Conflict):
        await draining.request(fleet.auth, ["n1"], None)
    assert await fleet.spec("n1") == {"taints": [OTHER]}
