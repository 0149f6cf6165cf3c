"""From when a cloud's notice counts: from the time that the node says, else from when it was seen.

The two racks are drawn in support/clusters/clocked.py. The extender has just begun each time: it
sees a notice that is 80 s old.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from support.apiservers.apifaults import Fault
from support.clusters.clocked import Clocked, two_racks

from extender.config.draining import DrainingConfig
from loadtest.testbed.client.api import JSON

NODE = "/api/v1/nodes/r1-0"
SPOT = "aws-node-termination-handler/spot-itn"  # 120 s, of which the last 30 are for checkpoints
AGE_S = 80.0


@pytest.fixture
async def site() -> AsyncIterator[Clocked]:
    noticing = DrainingConfig(notices=True)
    async with two_racks(Clocked(), draining=noticing) as made:  # type: ignore[arg-type]
        yield made


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


async def _tainted(site: Clocked, **fields: str) -> None:
    taint = {"key": SPOT, "effect": "NoSchedule", **fields}
    await site.cluster.api.patch(NODE, {"spec": {"taints": [taint]}})
    await site.cluster.settled()


async def _says(site: Clocked, condition: JSON) -> None:
    body = {
        "status": {"conditions": [{"type": "TerminateScheduled", "status": "True", **condition}]}
    }
    await site.cluster.api.patch(f"{NODE}/status", body)
    await site.cluster.settled()


async def _until(site: Clocked, after: float = 0.0) -> float:
    """Look, and return after how many seconds from the beginning gangs end on the node."""
    site.now += after
    await site.cluster.extender.drains.look()
    [node] = site.cluster.extender.drains.nodes
    assert node.until is not None
    return node.until - 1_000_000.0


async def test_a_taint_counts_from_when_it_was_added(site: Clocked) -> None:
    await _tainted(site, timeAdded=_moment(site.now - AGE_S))
    assert await _until(site) == 120 - 30 - AGE_S
    assert await _until(site, after=5) == 120 - 30 - AGE_S


async def test_a_condition_counts_from_when_it_changed(site: Clocked) -> None:
    await _says(site, {"lastTransitionTime": _moment(site.now - AGE_S)})
    assert await _until(site) == 300 - 30 - AGE_S


async def test_without_a_time_a_notice_counts_from_when_it_was_seen(site: Clocked) -> None:
    await _tainted(site)
    assert await _until(site) == 120 - 30
    assert await _until(site, after=5) == 120 - 30


async def test_a_time_to_come_is_none(site: Clocked) -> None:
    """The cloud's clock goes ahead: nobody stays longer by that."""
    await _tainted(site, timeAdded=_moment(site.now + AGE_S))
    assert await _until(site) == 120 - 30


async def test_a_time_that_cannot_be_read_is_none(site: Clocked) -> None:
    site.cluster.server.faults.append(Fault("GET", "/nodes/r1-0", 500, left=1000))
    await _tainted(site, timeAdded=_moment(site.now - AGE_S))
    assert await _until(site) == 120 - 30
