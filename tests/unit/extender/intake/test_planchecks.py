"""Plans that users write or copy claim nothing; those of Muster do, as before.

::

    rack r1 ── r1-0        one host of 8 GPUs
"""

import json
import math
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry
from support.clusters.feeds import feed_of, plan_checks
from support.extenders.extenders import PODS, World, eventually, plan_of, until, world

from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.nodes import node
from loadtest.testbed.client.pods import Gang, members, owner_reference, pod
from muster.cluster.events import PlanNote
from muster.cluster.state import ClusterState
from muster.cluster.tables.holds import Hold
from muster.kube import names, wire
from muster.kube.translation.planannotation import plan_for_pod, plan_wire, text_of
from muster.kube.translation.planseal import ExpectedMember, PlanKeys, sealed_place
from muster.kube.translation.translate import pod_uid
from muster.kube.writing.events import EventRecorder
from muster.workloads.registry import place

KEYS = PlanKeys(own=b"k" * 32, since=100.0)
NOTE = PlanNote("p1", "r1-0")
GANG = Gang("train", 2)
OWNER = "11111111-2222-3333-4444-555555555555"
_POD, _NODE = msgspec.json.Decoder(wire.Pod), msgspec.json.Decoder(wire.Node)


class Fed:
    """A feed with keys on one node, without an API server."""

    def __init__(self, keys: PlanKeys = KEYS) -> None:
        self.now, self.made = 1_000.0, 0
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        engine = Engine(self.state, lambda: self.now)
        pending, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        recorder = EventRecorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        reporter = DecisionReporter(self.state, pending, recorder, metrics, DueEvents())
        self.checks = plan_checks(engine.clock, keys)
        self.feed = feed_of(engine, pending, reporter, plans=self.checks)
        self.feed.node(_NODE.decode(json.dumps(node("r1-0", {names.RACK: "r1"}))))

    def pod(self, plan: str | None, uid: str = "", **spec: Any) -> wire.Pod:
        """Return the gang's first member as it is stored, with a plan."""
        made = next(iter(members(GANG, owner_reference(GANG, OWNER))))
        self.made += 1
        made["metadata"]["uid"] = uid or f"00000000-0000-0000-0000-{self.made:012}"
        made["metadata"]["name"] = f"train-0-{self.made}"
        when = datetime.fromtimestamp(self.now, UTC)
        made["metadata"]["creationTimestamp"] = f"{when:%Y-%m-%dT%H:%M:%SZ}"
        if plan is not None:
            made["metadata"]["annotations"][names.PLAN] = plan
        made["spec"] |= spec
        return _POD.decode(json.dumps(made))

    def take(self, it: wire.Pod) -> Hold | None:
        """Apply a pod and return what it holds."""
        self.feed.pod(it)
        self.state.validate()
        return self.state.hold(pod_uid(it.metadata.uid))

    def place(self, until: float = 1_090.0) -> str:
        """Return the place of the gang's first member."""
        placed = place(self.pod(None))
        assert placed is not None
        member = ExpectedMember("default", placed.member.key, placed.member.rank, until)
        return text_of(sealed_place(plan_wire(NOTE), member, KEYS))


UID = "00000000-0000-0000-0000-0000000000aa"
RELEASED = plan_for_pod(NOTE, UID, KEYS.own)


def test_a_plan_of_a_users_own_holds_nothing() -> None:
    fed = Fed()
    assert fed.take(fed.pod('{"id":"mine","node":"r1-0"}')) is None
    assert len(fed.checks.forged) == 1


def test_the_plan_of_a_release_holds_room_for_its_pod_and_for_no_other() -> None:
    fed = Fed()
    assert fed.take(fed.pod(RELEASED, UID)) is not None
    assert fed.take(fed.pod(RELEASED)) is None


def test_the_first_pod_with_a_place_has_it_and_a_second_one_does_not() -> None:
    fed = Fed()
    first, copy = fed.pod(fed.place()), fed.pod(fed.place())
    assert fed.take(first) is not None
    assert fed.take(copy) is None
    assert fed.take(first) is not None


def test_a_place_is_not_taken_again_by_a_pod_that_comes_after_the_first_is_gone() -> None:
    fed = Fed()
    first = fed.pod(fed.place())
    fed.take(first)
    fed.feed.pod_gone(first.metadata)
    assert fed.take(fed.pod(fed.place())) is None


def test_a_pod_with_a_node_takes_its_room_there_whatever_its_plan_says() -> None:
    fed = Fed()
    fed.take(fed.pod('{"id":"mine","node":"r9-9"}', nodeName="r1-0"))
    view = fed.state.snapshot()
    assert view.pods.node.array()[:1].tolist() == [view.nodes.names.find("r1-0")]
    assert len(fed.checks.forged) == 0


def test_a_pod_that_is_older_than_the_key_is_believed() -> None:
    fed = Fed()
    fed.now = 100.0
    old = fed.pod('{"id":"before","node":"r1-0"}')
    fed.now = 1_000.0
    assert fed.take(old) is not None


def test_without_a_key_yet_every_plan_is_believed() -> None:
    fed = Fed(PlanKeys())
    assert fed.take(fed.pod('{"id":"before","node":"r1-0"}')) is not None


def test_filter_goes_by_a_plan_that_counts_and_by_no_other() -> None:
    fed = Fed()
    assert fed.checks.counts(fed.pod(RELEASED, UID))
    assert not fed.checks.counts(fed.pod(RELEASED))
    assert not fed.checks.counts(fed.pod('{"id":"mine","node":"r1-0"}'))
    fed.take(fed.pod(fed.place()))
    assert not fed.checks.counts(fed.pod(fed.place()))


def test_a_verdict_is_found_once_and_forgotten_with_its_pod() -> None:
    fed = Fed()
    forged = fed.pod('{"id":"mine","node":"r1-0"}')
    for _ in range(3):
        fed.take(forged)
    assert len(fed.checks.verdicts) == 1
    fed.feed.pod_gone(forged.metadata)
    assert not fed.checks.verdicts
    assert len(fed.checks.forged) == 0


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 1})
        yield running


def forged(name: str) -> JSON:
    """Return a pod that claims the host for itself, and waits for something else."""
    made: JSON = pod(name, gpus=8, annotations={names.PLAN: '{"id":"mine","node":"r1-0"}'})
    made["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    made["metadata"]["creationTimestamp"] = "2999-01-01T00:00:00Z"
    return made


async def test_a_forged_plan_is_taken_off_and_another_gang_gets_the_room(cluster: World) -> None:
    # Pods of the second in which the key was made are believed: the API server counts in seconds.
    key_made = math.floor(time.time())
    await until(lambda: math.floor(time.time()) > key_made)
    await cluster.api.create(PODS, forged("mine"))

    async def is_off() -> bool:
        return plan_of(await cluster.pod("mine")) is None

    await eventually(is_off)
    await cluster.gang(Gang("theirs", 1))
    await cluster.released(["theirs-0"])

    async def reported() -> bool:
        return bool(await cluster.events("PlanDoesNotCount"))

    await eventually(reported)
    await until(lambda: len(cluster.extender.forged) == 0)
