"""Gangs that cannot be completed: reported, completed when room appears, or rolled back whole.

The two racks are drawn in support/clocked.py.
"""

import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import pytest
from support.clusters.clocked import Clocked, two_racks
from support.extenders.extenders import PODS, rack_nodes, running_extender, until

from extender.engine import SteadyClock
from extender.releases.partialgangs import PartialGangs
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, members
from muster.cluster.ids import PodUid
from muster.kube import names
from muster.kube.translation.translate import pod_uid

REPORT_S, ROLL_BACK_S = 60.0, 600.0
NODES = "/api/v1/nodes"


class Torn(Clocked):
    """What makes a gang that lacks a member."""

    @property
    def partial(self) -> PartialGangs:
        return self.cluster.extender.partial

    async def look(self, after: float = 0.0) -> None:
        self.now += after
        await self.cluster.settled()
        await self.cluster.extender.repairer.look()
        await self.cluster.extender.parts.api.census.take()
        await self.partial.look()
        await self.cluster.settled()

    async def half(self, gang: Gang, *, owned: bool = True) -> dict[str, str]:
        """Have all but the last member bound, then delete its node; its rack has no other."""
        await self.cluster.gang(gang, owned=owned)
        placed = await self.cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
        lost = f"{gang.name}-{gang.size - 1}"
        for name, node in placed.items():
            if name != lost:
                await self.cluster.bind(name, node)
        await self.cluster.settled()
        await self.cluster.api.delete(f"{NODES}/{placed[lost]}")
        return placed

    async def recreate(self, gang: Gang, ranks: Sequence[int]) -> None:
        """Do as the Job controller does with members that are gone."""
        owner = await self.cluster.api.get(f"/apis/batch/v1/namespaces/default/jobs/{gang.name}")
        reference = {
            "apiVersion": "batch/v1", "kind": "Job", "name": gang.name,
            "uid": owner["metadata"]["uid"], "controller": True,
        }  # fmt: skip
        for rank, obj in enumerate(members(gang, reference)):
            if rank in ranks:
                obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
                made = await self.cluster.api.create(PODS, obj)
                await self._known(pod_uid(made["metadata"]["uid"]))

    async def _known(self, uid: PodUid) -> None:
        state = self.cluster.extender.engine.state
        await until(lambda: state.pod_row(uid) is not None)

    async def row(self, gang: Gang) -> JSON:
        async with self.cluster.http.get("/v1/gangs") as response:
            rows: list[JSON] = await response.json()
        return next(row for row in rows if row["gang"].endswith(f"/{gang.name}"))


@pytest.fixture
async def torn() -> AsyncIterator[Torn]:
    settings = {"partial_after_seconds": REPORT_S, "roll_back_after_seconds": ROLL_BACK_S}
    async with two_racks(Torn(), **settings) as made:
        yield made


GANG = Gang("g", 3, required=names.RACK)


async def test_a_gang_that_cannot_be_completed_is_reported_and_then_rolled_back_whole(
    torn: Torn,
) -> None:
    """Its rack has lost a node; the other rack could hold all of it."""
    placed = await torn.half(GANG)
    await torn.look()
    assert not await torn.exists("g-2"), "a pod pinned to a node that is gone is evicted at once"
    await torn.recreate(GANG, [2])
    await torn.look()
    assert (await torn.row(GANG))["partial_since"] is None
    await torn.look(after=REPORT_S)
    assert (await torn.row(GANG))["partial_since"] is not None
    event = await torn.event("GangPartial")
    assert "2 members are bound, 3 are needed" in event["note"]
    await torn.look(after=ROLL_BACK_S - REPORT_S - 1)
    assert await torn.exists("g-0")
    await torn.look(after=2)
    assert not await torn.exists("g-0", "g-1")
    await torn.recreate(GANG, [0, 1])
    torn.now += 60
    await torn.cluster.extender.planner.settle()
    again = await torn.cluster.released(["g-0", "g-1", "g-2"])
    (rack,) = {node.partition("-")[0] for node in again.values()}
    assert rack != placed["g-0"].partition("-")[0]
    await torn.look()
    assert torn.partial.reported == 0


async def test_a_gang_is_completed_when_room_appears_before_it_is_rolled_back(
    torn: Torn,
) -> None:
    placed = await torn.half(GANG)
    await torn.look()
    await torn.recreate(GANG, [2])
    await torn.look()
    await torn.look(after=REPORT_S)
    assert torn.partial.reported == 1
    await torn.cluster.api.create(NODES, _node_like(placed["g-2"]))
    again = await torn.cluster.released(["g-2"])
    await torn.cluster.bind("g-2", again["g-2"])
    await torn.look(after=ROLL_BACK_S)
    assert torn.partial.reported == 0
    assert await torn.exists("g-0")


async def test_a_gang_without_a_controller_is_kept_and_reported(torn: Torn) -> None:
    await torn.half(GANG, owned=False)
    await torn.look()
    await torn.look(after=10 * ROLL_BACK_S)
    assert await torn.exists("g-0")
    assert (await torn.row(GANG))["partial_since"] is not None


async def test_a_gang_that_ran_whole_and_lost_a_member_is_kept_and_reported(
    torn: Torn,
) -> None:
    """Its processes may hold work; only its owner may discard that."""
    await torn.cluster.gang(GANG)
    placed = await torn.cluster.released(["g-0", "g-1", "g-2"])
    for name, node in placed.items():
        await torn.cluster.bind(name, node)
    await torn.look()
    await torn.cluster.api.delete(f"{PODS}/g-2")
    await torn.cluster.api.delete(f"{NODES}/{placed['g-2']}")
    await torn.recreate(GANG, [2])
    await torn.look()
    await torn.look(after=10 * ROLL_BACK_S)
    assert await torn.exists("g-0")
    assert torn.partial.reported == 1


@pytest.mark.parametrize("off_s", [0.0, 1500.0, -1500.0])
async def test_the_next_leader_rolls_back_a_gang_that_never_was_whole_whatever_its_own_clock_says(
    torn: Torn, off_s: float
) -> None:
    """Found by the simulation: by a clock far ahead a gang bound just now is an old one."""
    await torn.half(GANG)
    await torn.look()
    await torn.recreate(GANG, [2])
    await torn.look()
    started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in ("g-0", "g-1"):
        status = {"phase": "Running", "startTime": started}
        await torn.cluster.api.patch(f"{PODS}/{name}/status", {"status": status})
    up = [0.0]
    clock = SteadyClock(lambda: time.time() + off_s, lambda: up[0])
    server, config = torn.cluster.server, torn.cluster.extender.config
    async with running_extender(server, torn.cluster.api.url, config, clock) as later:
        await later.settled()
        for up[0] in (0.0, ROLL_BACK_S + 1):
            await later.extender.parts.api.census.take()
            await later.extender.partial.look()
    assert not await torn.exists("g-0", "g-1")


async def test_a_gang_that_waits_for_kube_scheduler_alone_is_never_rolled_back(
    torn: Torn,
) -> None:
    await torn.cluster.gang(GANG)
    placed = await torn.cluster.released(["g-0", "g-1", "g-2"])
    await torn.cluster.bind("g-0", placed["g-0"])
    await torn.look()
    await torn.look(after=10 * ROLL_BACK_S)
    assert await torn.exists("g-0")


async def test_a_gang_that_is_whole_by_now_is_kept_although_the_watch_has_not_told(
    torn: Torn,
) -> None:
    """Found by the simulation: a watch of pods may hang for minutes before it is given up."""
    placed = await torn.half(GANG)
    await torn.look()
    await torn.recreate(GANG, [2])
    await torn.look()
    await torn.cluster.api.create(NODES, _node_like(placed["g-2"]))
    again = await torn.cluster.released(["g-2"])
    await torn.cluster.settled()
    (key, partial), *_ = torn.partial._partials.items()
    known = torn.cluster.extender.engine.state.gang(key)
    assert known is not None
    await torn.cluster.bind("g-2", again["g-2"])
    await torn.partial._roll_back(known, partial)
    assert await torn.exists("g-0")


async def test_evictions_that_a_budget_refuses_are_tried_again(torn: Torn) -> None:
    await torn.half(GANG)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {names.GANG: "g"}}},
    }
    path = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await torn.cluster.api.create(path, budget)
    for name in ("g-0", "g-1"):
        await torn.cluster.api.patch(f"{PODS}/{name}/status", {"status": {"phase": "Running"}})
    await torn.look()
    await torn.recreate(GANG, [2])
    await torn.look()
    await torn.look(after=ROLL_BACK_S)
    assert await torn.exists("g-0")
    await torn.cluster.api.delete(f"{path}/keep")
    await torn.look(after=5)
    assert not await torn.exists("g-0", "g-1")


def _node_like(name: str) -> JSON:
    rack, _, index = name.partition("-")
    return next(n for n in rack_nodes({rack: int(index) + 1}) if n["metadata"]["name"] == name)
