"""Nodes of the first list: taken together, and one by one where one of them is odd; heartbeats.

::

    rack r1 ── r1-0 … r1-79       one of them has less than nothing of something: no node can
"""

import json
from typing import cast

import pytest
from support.apiservers.apifaults import api_server
from support.extenders.extenders import rack_nodes, running_extender

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.intake.nodes import NodeFeed
from extender.reporting.reporter import DecisionReporter
from loadtest.testbed.client.api import JSON, Api
from muster.cluster.events import Event
from muster.cluster.state import ClusterState
from muster.kube.names import PLAN_GATE
from muster.kube.resources import NODES
from muster.kube.watching.frames import Codec
from muster.kube.wire import Condition, Node, NodeStatus, ObjectMeta
from muster.workloads.devices import devicenames

CONFIG = ExtenderConfig(debounce_seconds=0.0)


async def listed(nodes: list[JSON]) -> tuple[set[str], str]:
    """Start an extender on a cluster with these nodes; return those it knows, and its metrics."""
    async with api_server() as (server, url):
        async with Api(url) as api:
            for node in nodes:
                await api.create("/api/v1/nodes", node)
        async with running_extender(server, url, CONFIG) as cluster:
            state = cluster.extender.engine.state
            found = {name for name in state.snapshot().nodes.names if name is not None}
            async with cluster.http.get("/metrics") as response:
                metrics = await response.text()
    return found, metrics


@pytest.mark.parametrize("odd", [None, 7, 0, 79])
async def test_one_odd_node_keeps_no_other_out_of_the_first_list(odd: int | None) -> None:
    nodes = rack_nodes({"r1": 80})
    if odd is not None:
        nodes[odd]["status"]["allocatable"]["example.com/tape"] = "-1"
    found, metrics = await listed(nodes)
    assert found == {node["metadata"]["name"] for i, node in enumerate(nodes) if i != odd}
    reported = 'muster_unreadable_objects_total{resource="nodes"} 1.0'
    assert (reported in metrics) == (odd is not None)


class Recording(Engine):
    """An engine that keeps the events it was given."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state, lambda: 0.0)
        self.applied: list[Event] = []

    def apply(self, event: Event) -> None:
        self.applied.append(event)
        super().apply(event)


class Fed:
    """A feed of one node. ``reported``: problems, ``changed``: what differed from before."""

    def __init__(self, notices: frozenset[str] = frozenset()) -> None:
        self.reported: list[str] = []
        self.changed: list[str] = []
        self.state = ClusterState("test", levels=("rack", "host"), gate=PLAN_GATE)
        self.engine = Recording(self.state)
        reporter = cast(
            "DecisionReporter", self
        )  # of which a feed of nodes asks ``unreadable`` alone
        names = devicenames.load()
        self.feed = NodeFeed(self.engine, reporter, names, self.changed.append, notices)

    def unreadable(self, _resource: str, problem: str) -> None:
        self.reported.append(problem)

    def says(
        self,
        *,
        rack: str = "r1",
        cpu: str = "8",
        beat: str = "10:00",
        name: str = "n1",
        more: dict[str, str] | None = None,
    ) -> None:
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": beat}]
        conditions += [] if more is None else [more]
        node = {
            "metadata": {"name": name, "labels": {"rack": rack, "host": name}},
            "status": {"allocatable": {"cpu": cpu}, "conditions": conditions},
        }
        self.feed.take(Codec(NODES).object(json.dumps(node).encode()))

    def events(self) -> int:
        """Return how many events there were since this was asked for last."""
        count = len(self.engine.applied)
        self.engine.applied.clear()
        return count


def test_a_heartbeat_makes_no_event_and_whatever_differs_makes_one() -> None:
    on = Fed()
    on.says()
    assert on.events() == 1
    on.says(beat="10:05")
    assert on.events() == 0
    for said in ({"cpu": "9"}, {"cpu": "9", "rack": "r2"}, {"rack": "r2"}):
        on.says(**said)
        on.says(**said, beat="10:10")
        assert on.events() == 1
    assert on.changed == ["n1"] * 4


def test_a_node_that_comes_back_as_it_was_is_taken_over() -> None:
    on = Fed()
    on.says()
    on.feed.gone(ObjectMeta(name="n1"))
    on.says(name="n2")  # may stand where the first one stood
    on.says()
    assert on.events() == 4
    assert {name for name in on.state.snapshot().nodes.names if name} == {"n1", "n2"}


def test_a_condition_by_which_a_node_says_that_it_leaves_is_a_taint_as_long_as_it_is_true() -> None:
    on = Fed(notices=frozenset({"PreemptScheduled"}))

    def taints() -> list[str]:
        nodes = on.state.snapshot().nodes
        return [taint.key for taint in nodes.taint_sets[int(nodes.taint_set[0])]]

    on.says()
    assert taints() == []
    on.says(more={"type": "PreemptScheduled", "status": "True"})
    assert taints() == ["notice.muster.dev/PreemptScheduled"]
    on.says(more={"type": "PreemptScheduled", "status": "False"})
    assert taints() == []
    on.says(more={"type": "FreezeScheduled", "status": "True"})
    assert taints() == []


def test_nodes_of_the_first_list_have_these_taints_too() -> None:
    on = Fed(notices=frozenset({"PreemptScheduled"}))
    said = (Condition(type="Ready", status="True"), Condition("PreemptScheduled", "True"))
    nodes = [
        Node(metadata=ObjectMeta(name=f"n{at}"), status=NodeStatus(conditions=said[: at + 1]))
        for at in range(2)
    ]
    on.feed.take_all(nodes)
    view = on.state.snapshot().nodes
    found = {view.name(row): view.taint_sets[int(view.taint_set[row])] for row in range(2)}
    assert {name: [taint.key for taint in of] for name, of in found.items()} == {
        "n0": [],
        "n1": ["notice.muster.dev/PreemptScheduled"],
    }


def test_what_cannot_be_read_of_a_node_is_told_each_time() -> None:
    on = Fed()
    on.says(cpu="many")
    on.says(cpu="many")
    assert len(on.reported) == 2
    assert on.events() == 2
