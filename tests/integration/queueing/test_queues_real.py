"""Queues on a real control plane: two teams, a borrowed half, a closed queue, a killed extender.

::

    cluster (32 GPUs on 4 hosts) ─┬─ vision   entitled 16, at most 24
                                  └─ speech   entitled 16
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.queueplane import QUEUES, queue_plane
from support.extenders.realcluster import EVENTS, PODS, Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
GPU = "nvidia.com/gpu"


def _queue(name: str, entitled: int | str = 16, **spec: object) -> JSON:
    quota = {"resource": GPU, "entitled": entitled, **spec.pop("quota", {})}  # type: ignore[dict-item]
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quotas": [quota], **spec},
    }


def _gang(name: str, size: int, queue: str, run_time: str = "") -> pods.Gang:
    lasts = {names.MAX_RUN_TIME: run_time} if run_time else {}
    return pods.Gang(name, size, labels={names.QUEUE: queue, **lasts})


def _placed_by_others(name: str, scheduler: str, key: str, queue: str) -> JSON:
    """Return a pod of 8 GPUs that names its node, so that no scheduler looks at it."""
    amounts = {GPU: "8"}
    container = {
        "name": "main",
        "image": "example.invalid/serve:1",
        "resources": {"limits": amounts, "requests": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {key: queue}},
        "spec": {"nodeName": "r0-h00", "schedulerName": scheduler, "containers": [container]},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane that serves Muster's queues."""
    async with queue_plane(minor) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs, and the two teams' queues."""
    async with cluster(plane) as it:
        for queue in (_queue("vision", quota={"limit": 24}), _queue("speech")):
            await it.api.create(QUEUES, queue)
        await it.add_racks([0], hosts=4)
        yield it
        await it.api.delete(QUEUES)


async def _rows(fleet: Cluster) -> dict[str, JSON]:
    found = json.loads((await fleet.muster.get("/v1/queues"))["text"])
    return {row["queue"]: row for row in found}


async def _used(fleet: Cluster, queue: str) -> str:
    row = (await _rows(fleet)).get(f"muster/{queue}", {"uses": []})
    return next((use["used"] for use in row["uses"] if use["resource"] == GPU), "-")


async def _waits_because(fleet: Cluster, gang: pods.Gang, text: str) -> None:
    async def says() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        return any(
            text in event.get("note", "") and event["regarding"]["name"].startswith(gang.name)
            for event in events
        )

    await until(says)
    await fleet.stays_unbound(gang)


async def _restarted(fleet: Cluster) -> None:
    fleet.muster.extender.kill()
    await asyncio.sleep(0.5)
    await fleet.muster.start(fleet.muster.extender)


async def test_a_team_borrows_what_the_other_leaves_idle_and_stops_at_its_limit(
    fleet: Cluster,
) -> None:
    own, borrowed, over = _gang("own", 2, "vision"), _gang("more", 1, "vision"), _gang(
        "over", 1, "vision"
    )  # fmt: skip
    for gang in (own, borrowed):
        await fleet.submit(gang)
        await fleet.bound(gang)
    await fleet.submit(over)

    await _waits_because(fleet, over, "queue muster/vision has 0 nvidia.com/gpu left")

    rows = await _rows(fleet)
    (use,) = (use for use in rows["muster/vision"]["uses"] if use["resource"] == GPU)
    assert (use["used"], use["entitled"], use["borrowed"], use["limit"]) == ("24", "16", "8", "24")
    assert rows["muster/cluster"]["depth"] == 0
    assert rows["muster/vision"]["first"] == "muster/default/over"


async def test_a_large_gang_is_promised_a_start_and_only_those_that_end_before_go_first(
    fleet: Cluster,
) -> None:
    """Two hosts are busy for an hour; the large gang needs all four."""
    first = _gang("first", 2, "speech", "1h")
    await fleet.submit(first)
    await fleet.bound(first)
    large, long, short = (
        _gang("large", 4, "speech", "8h"),
        _gang("long", 1, "speech", "2h"),
        _gang("short", 1, "speech", "10m"),
    )
    await fleet.submit(large)
    await _waits_because(fleet, large, "on 4 nodes, after muster/default/first")
    found = await fleet.muster.get("/v1/queues/speech")
    (waiting,) = found["waiting"]
    assert 3_000 < waiting["starts_at"] - time.time() < 3_600
    assert waiting["first_promised"] == waiting["starts_at"]

    await fleet.submit(long)
    await fleet.submit(short)

    await fleet.bound(short)
    await _waits_because(fleet, long, "is promised to muster/default/large")
    for pod in (*await fleet.list_pods(first), *await fleet.list_pods(short)):
        await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")
    await fleet.bound(large)


async def test_a_new_extender_promises_a_start_from_what_the_one_before_learned(
    fleet: Cluster,
) -> None:
    """Five gangs ended; "now" says nothing of its end, and "large" waits for its hosts."""
    for number in range(5):
        past = _gang(f"past-{number}", 1, "speech")
        await fleet.submit(past)
        await fleet.bound(past)
        for pod in await fleet.list_pods(past):
            await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")

    async def kept() -> bool:
        status = (await fleet.api.get(f"{QUEUES}/speech")).get("status", {})
        last = status.get("runTimes", {}).get("last", [])
        return [row["template"] for row in last] == ["past"] * 5

    await until(kept, 90)  # the first one is written at once, the others a minute later
    await _restarted(fleet)
    now, large = _gang("now", 2, "speech"), _gang("large", 4, "speech", "1h")
    await fleet.submit(now)
    await fleet.bound(now)
    await fleet.submit(large)

    await _waits_because(fleet, large, "on 4 nodes, after muster/default/now")


async def test_a_closed_queue_admits_nobody_until_it_is_opened(fleet: Cluster) -> None:
    await fleet.api.patch(f"{QUEUES}/speech", {"spec": {"closed": True}})
    gang = _gang("late", 1, "speech")
    await fleet.submit(gang)
    await _waits_because(fleet, gang, "queue muster/speech is closed")

    await fleet.api.patch(f"{QUEUES}/speech", {"spec": {"closed": False}})

    await fleet.bound(gang)


async def test_a_gang_whose_queue_does_not_exist_goes_once_it_does(fleet: Cluster) -> None:
    gang = _gang("early", 1, "later")
    await fleet.submit(gang)
    await _waits_because(fleet, gang, 'no queue is named "later"')

    await fleet.api.create(QUEUES, _queue("later", 0))

    await fleet.bound(gang)


async def test_a_new_extender_counts_what_runs_as_the_one_before_did(fleet: Cluster) -> None:
    gangs = [_gang("one", 2, "vision"), _gang("two", 1, "speech")]
    for gang in gangs:
        await fleet.submit(gang)
    await fleet.released(gangs[0])  # the plan is charged; nothing says that it is bound
    await _restarted(fleet)
    await fleet.bound(*gangs)

    async def counted() -> bool:
        return (await _used(fleet, "vision"), await _used(fleet, "speech")) == ("16", "8")

    await until(counted)
    over = _gang("over", 2, "vision")
    await fleet.submit(over)
    await _waits_because(fleet, over, "queue muster/vision has 8 nvidia.com/gpu left")


@pytest.mark.parametrize(
    ("scheduler", "key"),
    [
        ("default-scheduler", names.QUEUE),
        ("default-scheduler", "kueue.x-k8s.io/queue-name"),
        ("somebody-elses", "quota.scheduling.koordinator.sh/name"),
    ],
)
async def test_a_pod_that_others_placed_counts_and_a_later_gang_waits_for_its_end(
    fleet: Cluster, scheduler: str, key: str
) -> None:
    await fleet.api.create(PODS, _placed_by_others("theirs", scheduler, key, "vision"))

    async def counted() -> bool:
        return await _used(fleet, "vision") == "8"

    await until(counted)
    gang = _gang("late", 3, "vision")
    await fleet.submit(gang)
    await _waits_because(fleet, gang, "queue muster/vision has 16 nvidia.com/gpu left")

    await fleet.api.delete(f"{PODS}/theirs")

    await fleet.bound(gang)


@pytest.mark.parametrize(
    ("queue", "says"),
    [
        (_queue("cluster"), "cluster stands for the whole cluster"),
        (_queue("own", parent="own"), "spec.parent is the queue itself"),
        (_queue("q", "-1"), "is no quantity of 0 or more"),
        (_queue("q", "many"), "is no quantity of 0 or more"),
        (_queue("q", 8, quota={"kept": 9}), "kept is more than entitled"),
        (_queue("q", 8, quota={"limit": "4"}), "entitled is more than limit"),
        (_queue("q", weight="-2"), "is no number of 0 or more"),
        (_queue("q", quotas=[{"resource": GPU}, {"resource": GPU}]), "Duplicate value"),
        (_queue("q", admission="Later"), 'supported values: "Gate", "Suspend"'),
    ],
)
async def test_what_one_object_gets_wrong_the_api_server_refuses_in_words(
    plane: ControlPlane, queue: JSON, says: str
) -> None:
    async with plane.api() as api:
        with pytest.raises(ApiFailed, match=says):
            await api.create(QUEUES, queue)
