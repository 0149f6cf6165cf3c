"""What users see of a gang that waits, on a real control plane.

::

    rack r0 ── 2 hosts with 8 GPUs; r1 ── 2 more, later
"""

import re

import aiohttp
import pytest
from support.apiservers.eventually import eventually
from support.extenders.realcluster import JSON, PODS, Cluster, cluster

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

GANG = pods.Gang("big", 4)
TELLING = {"conditions": {"afterSeconds": 1}}


def scheduled(pod: JSON) -> JSON:
    found: JSON = next(c for c in pod["status"]["conditions"] if c["type"] == "PodScheduled")
    return found


def says_why(pod: JSON) -> bool:
    return "muster/default/big waits" in scheduled(pod).get("message", "")


async def writes(fleet: Cluster) -> dict[str, int]:
    """Return how many conditions were written, by outcome."""
    url = fleet.muster.extender_url + "/metrics"
    async with aiohttp.ClientSession() as session, session.get(url) as reply:
        page = await reply.text()
    found = re.findall(r'muster_condition_writes_total\{outcome="(\w+)"\} ([\d.]+)', page)
    return {outcome: int(float(count)) for outcome, count in found}


async def test_every_member_of_a_waiting_gang_says_why_until_it_is_bound(
    real_plane: ControlPlane,
) -> None:
    """One write for each member in all: not one per cycle, and none to take it back."""
    async with cluster(real_plane, **TELLING) as fleet:
        await fleet.add_racks([0], hosts=2)
        await fleet.submit(GANG)
        await fleet.until(GANG, says_why, GANG.size)
        told = [scheduled(pod) for pod in await fleet.list_pods(GANG)]
        assert {(c["status"], c["reason"]) for c in told} == {("False", "SchedulingGated")}
        assert "lacks 16 nvidia.com/gpu" in told[0]["message"]
        assert "kubectl muster explain -n default big-3" in told[3]["message"]
        await fleet.stays_unbound(GANG)
        await fleet.add_racks([1], hosts=2)
        await fleet.bound(GANG)
        for pod in await fleet.list_pods(GANG):
            name = pod["metadata"]["name"]
            after = await eventually(
                fleet.api, f"{PODS}/{name}", lambda p: scheduled(p)["status"] == "True"
            )
            assert "waits" not in scheduled(after).get("message", "")
        assert await writes(fleet) == {"written": GANG.size}
