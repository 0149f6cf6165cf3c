"""Namespaces that are opened or closed to Muster: their pending pods are judged again at once.

::

    rack r1 ── r1-0 r1-1
"""

from collections.abc import AsyncIterator

import pytest
from support.extenders.extenders import World, until, world

from extender.intake.reopenednamespaces import Rejudging
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import pod
from muster.kube import names, wire
from muster.kube.translation.translate import pod_uid

TEAM = "/api/v1/namespaces/team"
A, B = pod_uid("a"), pod_uid("b")


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 2})
        yield running


async def namespace(cluster: World, **labels: str) -> None:
    await cluster.api.create("/api/v1/namespaces", {"metadata": {"name": "team", "labels": labels}})


async def put(cluster: World, name: str, **spec: object) -> JSON:
    """Create an ungated pod with a GPU in the namespace, and wait until it is known."""
    wanted = pod(name, namespace="team", gpus=8)
    wanted["spec"] |= spec
    made = await cluster.api.create(f"{TEAM}/pods", wanted)
    state = cluster.extender.engine.state
    await until(lambda: state.pod_row(pod_uid(made["metadata"]["uid"])) is not None)
    return made


async def mark(cluster: World, value: str | None) -> None:
    await cluster.api.patch(TEAM, {"metadata": {"labels": {names.MANAGED: value}}})


def is_managed(cluster: World, made: JSON) -> bool:
    return cluster.extender.engine.state.gang_of(pod_uid(made["metadata"]["uid"])) is not None


async def test_pods_that_wait_in_a_namespace_that_is_opened_are_taken_without_an_event_of_theirs(
    cluster: World,
) -> None:
    await namespace(cluster, **{names.MANAGED: "false"})
    waiting = [await put(cluster, f"p{i}") for i in range(3)]
    await until(lambda: not any(is_managed(cluster, made) for made in waiting))
    await mark(cluster, None)
    await until(lambda: all(is_managed(cluster, made) for made in waiting))


async def test_pods_that_wait_in_a_namespace_that_is_closed_are_left_alone_and_hold_nothing(
    cluster: World,
) -> None:
    await namespace(cluster)
    huge = await put(cluster, "huge", schedulingGates=[{"name": "example.com/hold"}])
    await until(lambda: is_managed(cluster, huge))
    await mark(cluster, "false")
    await until(lambda: not is_managed(cluster, huge))
    assert cluster.extender.engine.state.find_pod("team", "huge") is None


async def test_a_pod_with_our_gate_stays_ours_whatever_its_namespace_says(cluster: World) -> None:
    await namespace(cluster)
    gates = [{"name": names.PLAN_GATE}, {"name": "example.com/hold"}]
    ours = await put(cluster, "ours", schedulingGates=gates)
    other = await put(cluster, "other", schedulingGates=[{"name": "example.com/hold"}])
    await mark(cluster, "false")
    await until(lambda: not is_managed(cluster, other))
    await cluster.settled()
    assert is_managed(cluster, ours)


async def test_the_list_does_not_bring_a_pod_back_that_is_not_known(cluster: World) -> None:
    feed = cluster.extender.sync._feed
    late = wire.Pod(
        metadata=wire.ObjectMeta(
            namespace="team", name="late", uid="3f0d8e2a-7a61-4a41-a4bd-0f0b8fca35a1"
        )
    )
    feed.judge_again(late)
    assert cluster.extender.engine.state.pod_row(pod_uid(late.metadata.uid)) is None


# -- the queue ---------------------------------------------------------------------------------


def test_nothing_is_due_before_the_pods_are_listed_for_the_first_time() -> None:
    due = Rejudging()
    due.due("team")
    due.saw("team", A)
    assert not due.was_seen("team", A)


async def test_a_pod_that_had_an_event_since_the_change_is_not_judged_by_the_list() -> None:
    due = Rejudging()
    due.begin()
    due.due("team")
    due.saw("team", A)
    due.saw("other", B)
    assert await due.next() == "team"
    assert [due.was_seen("team", uid) for uid in (A, B)] == [True, False]
    due.listed("team")
    assert not due.was_seen("team", A)


async def test_a_change_while_the_list_is_read_has_it_read_again() -> None:
    due = Rejudging()
    due.begin()
    due.due("team")
    due.saw("team", A)
    assert await due.next() == "team"
    due.due("team")  # changed back: what was seen before is judged by labels of before
    due.listed("team")
    assert not due.was_seen("team", A)
    due.saw("team", B)
    assert await due.next() == "team"
    assert due.was_seen("team", B)


async def test_a_namespace_that_is_gone_is_not_listed_again() -> None:
    due = Rejudging()
    due.begin()
    due.due("gone")
    due.due("team")
    assert await due.next() == "gone"
    due.done("gone")
    due.again("gone")
    assert await due.next() == "team"
    due.again("team")
    assert await due.next() == "team"
