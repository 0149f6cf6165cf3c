"""Gangs that give way to an entitled one, on a real control plane with the real Job controller.

::

    cluster (32 GPUs on 4 hosts) ─┬─ vision   entitled 16
                                  └─ speech   entitled 16

Vision borrows what speech leaves idle, until speech wants it back.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import pytest_asyncio
from support.apiservers.apiproxy import Keeps, StoppingProxy
from support.extenders.queueplane import QUEUES, queue_plane
from support.extenders.realcluster import (
    EVENTS,
    PATIENCE_S,
    PODS,
    Cluster,
    cluster,
    host_job,
    until,
)

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
GPU = "nvidia.com/gpu"
ROOM = {"enabled": True, "budgetSeconds": 1}


def _queue(name: str) -> JSON:
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"quotas": [{"resource": GPU, "entitled": 16}]},
    }


def _gang(name: str, queue: str) -> pods.Gang:
    return pods.Gang(name, 2, labels={names.QUEUE: queue, "team": queue})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane that serves Muster's queues."""
    async with queue_plane(minor) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def proxy(plane: ControlPlane) -> AsyncIterator[StoppingProxy]:
    """Between Muster and the API server."""
    async with StoppingProxy(plane) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane, proxy: StoppingProxy) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs, the two teams' queues, and the real Job controller."""
    async with cluster(plane, proxy_port=proxy.port, makingRoom=ROOM) as it:
        for queue in ("vision", "speech"):
            await it.api.create(QUEUES, _queue(queue))
        await it.add_racks([0], hosts=4)
        await plane.start_controllers("job")
        try:
            yield it
        finally:
            for path in (JOBS, PODS, BUDGETS):
                await it.api.delete(path)
            await until(it.is_empty)
            await plane.stop(CONTROLLERS)
            await it.api.delete(QUEUES)


async def _event(fleet: Cluster, kind: str, reason: str, is_it: Callable[[str], bool]) -> None:
    async def said() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        return any(
            event["regarding"]["kind"] == kind
            and event["reason"] == reason
            and is_it(event.get("note", ""))
            for event in events
        )

    await until(said)


async def test_a_borrowers_job_is_suspended_for_the_entitled_and_comes_back_without_a_failure(
    fleet: Cluster,
) -> None:
    """A Job with backoffLimit 0 fails with the first pod that is evicted; this one does not."""
    for name in ("first", "second"):
        await fleet.api.create(JOBS, host_job(name, {names.QUEUE: "vision"}))
        await fleet.runs(name, 2)
    await fleet.api.create(JOBS, host_job("owner", {names.QUEUE: "speech"}))

    await fleet.runs("owner", 2)

    jobs = {name: await fleet.api.get(f"{JOBS}/{name}") for name in ("first", "second")}
    (gone,) = (name for name, job in jobs.items() if job["spec"]["suspend"])
    assert jobs[gone]["metadata"]["annotations"][names.SUSPENDED_BY] == names.MUSTER
    assert await fleet.bound_of(gone) == 0
    assert await fleet.bound_of("first") + await fleet.bound_of("second") == 2
    why = "so that gang job/default/owner gets its room: the queue takes back what it is entitled"
    await _event(
        fleet, "Job", "GivesWay", lambda note: note.startswith("suspended, ") and why in note
    )
    await _event(fleet, "Job", "MakesRoom", lambda note: f"job/default/{gone}" in note)

    await fleet.end(f"{JOBS}/owner")

    await fleet.runs(gone, 2)
    job = await fleet.api.get(f"{JOBS}/{gone}")
    assert job["spec"]["suspend"] is False
    assert not job["status"].get("failed")
    assert not any(c["type"] == "Failed" for c in job["status"].get("conditions", ()))


@pytest.mark.parametrize("keeps", ["request", "reply"])
async def test_a_gang_of_pods_is_evicted_whole_though_the_extender_is_killed_in_the_middle(
    fleet: Cluster, proxy: StoppingProxy, keeps: Keeps
) -> None:
    gangs = [_gang("first", "vision"), _gang("second", "vision")]
    for gang in gangs:
        await fleet.submit(gang)
        await fleet.bound(gang)
    stop = proxy.stop_at("POST", "/eviction", keeps=keeps)
    owner = _gang("owner", "speech")
    await fleet.submit(owner)
    async with asyncio.timeout(PATIENCE_S):
        await stop.reached.wait()
    fleet.muster.extender.kill()
    proxy.open()
    await fleet.muster.start(fleet.muster.extender)

    await fleet.bound(owner)

    left = [await fleet.bound_of(gang.name) for gang in gangs]
    log = fleet.muster.extender.log_tail()
    assert sorted(left) == [0, 2], f"one is gone whole, the other is untouched\n{log}"


async def test_what_a_disruption_budget_protects_stays_and_the_next_gang_gives_way(
    fleet: Cluster,
) -> None:
    """No disruption controller runs, so the budget allows no disruption.

    The search knows that, so the gang is not chosen, and nobody waits until it is refused.
    """
    first, second, owner = (
        _gang("first", "vision"),
        _gang("second", "vision"),
        _gang("owner", "speech"),
    )
    for gang in (first, second):
        await fleet.submit(gang)
        await fleet.bound(gang)
    for pod in await fleet.list_pods():
        path = f"{PODS}/{pod['metadata']['name']}/status"
        await fleet.api.patch(path, {"status": {"phase": "Running"}})
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {names.GANG: "second"}}},
    }
    await fleet.api.create(BUDGETS, budget)
    await fleet.submit(owner)

    await fleet.bound(owner)

    assert await fleet.bound_of("second") == 2
    assert await fleet.bound_of("first") == 0
    events = (await fleet.api.get(EVENTS))["items"]
    assert not [event for event in events if event["reason"] == "EvictionRefused"]


async def test_a_start_is_promised_for_when_pods_with_a_long_grace_period_are_killed(
    fleet: Cluster,
) -> None:
    """No kubelet runs: evicted pods are there until the test deletes them."""
    for name in ("first", "second"):
        gang = replace(_gang(name, "vision"), grace_s=120)
        await fleet.submit(gang)
        await fleet.bound(gang)
    owner = _gang("owner", "speech")
    await fleet.submit(owner)

    async def killed() -> list[float]:
        metas = [pod["metadata"] for pod in await fleet.list_pods()]
        times = [meta["deletionTimestamp"] for meta in metas if "deletionTimestamp" in meta]
        return [datetime.fromisoformat(time).timestamp() for time in times]

    async def promised() -> list[float]:
        found = await fleet.muster.get("/v1/queues/speech")
        return [row["starts_at"] for row in found["waiting"]]

    async def is_promised_then() -> bool:
        times = await killed()
        return len(times) == 2 and await promised() == [max(times)]

    await until(is_promised_then)

    for pod in await fleet.list_pods():
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            await fleet.api.delete(f"{PODS}/{meta['name']}?gracePeriodSeconds=0")
    await fleet.bound(owner)
    for pod in await fleet.list_pods():
        await fleet.api.delete(f"{PODS}/{pod['metadata']['name']}?gracePeriodSeconds=0")
