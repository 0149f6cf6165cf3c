"""A Queue of KAI takes room back up to its fair share, on a real control plane without KAI.

::

    32 GPUs on 4 hosts ─┬─ vision   no quota, weight 1: uses all
                        └─ speech   no quota, weight 1: gets 16
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from support.dialects.kinds import serve
from support.extenders.queueplane import serves
from support.extenders.realcluster import EVENTS, Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
VERSION, QUEUES = "scheduling.run.ai/v2", "/apis/scheduling.run.ai/v2/queues"
ROOM = {"enabled": True, "queues": ["kai"]}


def queue(name: str) -> JSON:
    """Return a Queue without a quota of GPUs, and without limits."""
    every = {"quota": -1, "limit": -1}
    gpu = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    return {
        "metadata": {"name": name},
        "spec": {"resources": {"cpu": every, "memory": every, "gpu": gpu}},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with the queues, before Muster begins."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            await serve(api, VERSION, "Queue")
            await until(lambda: serves(api, QUEUES))
            for name in ("vision", "speech"):
                await api.create(QUEUES, {"apiVersion": VERSION, "kind": "Queue"} | queue(name))
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs."""
    async with cluster(plane, makingRoom=ROOM) as it:
        await it.add_racks([0], hosts=4)
        yield it


def _gang(name: str, of: str) -> pods.Gang:
    """Two pods that fill a host each."""
    return pods.Gang(name, 2, labels={"kai.scheduler/queue": of})


async def _says(fleet: Cluster, reason: str, text: str) -> None:
    """Wait for an Event; they are written a little later than what they say."""

    async def is_said() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        notes = [event.get("note", "") for event in events if event["reason"] == reason]
        return any(text in note for note in notes)

    await until(is_said)


async def test_a_queue_without_a_quota_takes_its_fair_share_back_and_no_more(
    fleet: Cluster,
) -> None:
    """Another two hosts would be all of the cluster."""
    gangs = [_gang("first", "vision"), _gang("second", "vision")]
    for gang in gangs:
        await fleet.submit(gang)
        await fleet.bound(gang)
    owner, more = _gang("owner", "speech"), _gang("more", "speech")
    await fleet.submit(owner)

    await fleet.bound(owner)

    assert sorted([await fleet.bound_of(gang.name) for gang in gangs]) == [0, 2]
    await _says(fleet, "MakesRoom", "its queue uses more than its fair share")
    await fleet.submit(more)
    await _says(fleet, "NobodyGivesWay", "the queue would use more than its fair share")
    await fleet.stays_unbound(more)
