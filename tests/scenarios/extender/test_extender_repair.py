"""Plans that break between plan and bind, and members that are lost, through the extender.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1 r2-2
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from support.extenders.extenders import PODS, World, eventually, plan_of, until, world

from loadtest.testbed.client.api import JSON, ApiFailed
from loadtest.testbed.client.pods import Gang, members, pod
from muster.kube import names
from muster.kube.translation.translate import pod_uid

NODES = "/api/v1/nodes"
EVICT_S = 300.0
PAIR = Gang("g", 2, required=names.RACK)


@dataclass
class Clocked:
    """A cluster whose extender is told the time by the test."""

    cluster: World = field(init=False)
    now: float = 1_000_000.0

    async def place(self, gang: Gang, *, owned: bool = True, bind: bool = False) -> dict[str, str]:
        """Create a gang and wait until it is released, or bound."""
        await self.cluster.gang(gang, owned=owned)
        placed = await self.cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
        for name, node in placed.items() if bind else ():
            await self.cluster.bind(name, node)
        await self.cluster.settled()
        return placed

    async def look(self, after: float = 0.0) -> None:
        self.now += after
        await self.cluster.settled()
        await self.cluster.extender.repairer.look()
        await self.cluster.settled()

    async def stranger(self, name: str, node: str) -> None:
        """Have a pod that is not ours take a whole node."""
        obj = pod(name, cpu="192")
        obj["spec"]["nodeName"] = node
        await self._known(await self.cluster.api.create(PODS, obj))

    async def fresh(self) -> None:
        """Have an urgent pod wait that would take any node."""
        await self.cluster.api.create(
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"metadata": {"name": "urgent"}, "value": 1000},
        )
        obj = pod("fresh", gpus=8, priority_class="urgent")
        obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await self._known(await self.cluster.api.create(PODS, obj))
        assert plan_of(await self.cluster.pod("fresh")) is None

    async def plan(self, after: float) -> None:
        """Let time pass, and the planner's timers with it: not in the middle of its own cycle."""
        await self.cluster.settled()
        self.now += after
        await self.cluster.extender.planner.settle()
        await self.cluster.settled()

    async def lose(self, name: str) -> None:
        obj = await self.cluster.pod(name)
        await self.cluster.api.delete(f"{PODS}/{name}")
        state, uid = self.cluster.extender.engine.state, pod_uid(obj["metadata"]["uid"])
        await until(lambda: state.pod_row(uid) is None)

    async def recreate(self, gang: Gang, rank: int) -> None:
        """Do as the Job controller does with a member that is gone."""
        job = await self.cluster.api.get(f"/apis/batch/v1/namespaces/default/jobs/{gang.name}")
        owner = {
            "apiVersion": "batch/v1", "kind": "Job", "name": gang.name,
            "uid": job["metadata"]["uid"], "controller": True,
        }  # fmt: skip
        obj = list(members(gang, owner))[rank]
        obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
        await self._known(await self.cluster.api.create(PODS, obj))

    async def exists(self, name: str) -> bool:
        try:
            await self.cluster.pod(name)
        except ApiFailed as error:
            return error.code != 404
        return True

    async def _known(self, obj: JSON) -> None:
        state, uid = self.cluster.extender.engine.state, pod_uid(obj["metadata"]["uid"])
        await until(lambda: state.pod_row(uid) is not None)
        await self.cluster.settled()


@pytest.fixture
async def clocked() -> AsyncIterator[Clocked]:
    made = Clocked()
    settings = {"evict_after_seconds": EVICT_S, "spare_count": 0}
    async with world(clock=lambda: made.now, **settings) as cluster:
        await cluster.nodes({"r1": 3, "r2": 3})
        made.cluster = cluster
        yield made


def rack(node: str) -> str:
    return node.partition("-")[0]


TAINT = {"spec": {"taints": [{"key": "sick", "effect": "NoSchedule"}]}}
CORDON = {"spec": {"unschedulable": True}}


@pytest.mark.parametrize("change", [TAINT, CORDON, None])
async def test_a_nominated_member_moves_beside_its_sibling_when_its_node_is_lost(
    clocked: Clocked, change: JSON | None
) -> None:
    placed = await clocked.place(PAIR, owned=False)
    await clocked.cluster.bind("g-0", placed["g-0"])
    lost = f"{NODES}/{placed['g-1']}"
    if change is None:
        await clocked.cluster.api.delete(lost)
    else:
        await clocked.cluster.api.patch(lost, change)
    await clocked.look()
    moved = (await clocked.cluster.released(["g-1"]))["g-1"]
    assert moved not in placed.values()
    assert rack(moved) == rack(placed["g-0"])


async def test_a_nominated_member_moves_when_somebody_else_fills_its_node(
    clocked: Clocked,
) -> None:
    placed = await clocked.place(PAIR, owned=False)
    await clocked.stranger("squatter", placed["g-1"])
    await clocked.look()
    moved = (await clocked.cluster.released(["g-1"]))["g-1"]
    assert moved not in placed.values()
    assert rack(moved) == rack(placed["g-0"])


async def test_a_pinned_member_outwaits_whoever_fills_its_node(clocked: Clocked) -> None:
    placed = await clocked.place(PAIR)
    await clocked.stranger("squatter", placed["g-1"])
    await clocked.look(after=EVICT_S - 1)
    assert await clocked.exists("g-1")
    await clocked.lose("squatter")
    await clocked.look(after=EVICT_S)
    assert await clocked.exists("g-1"), "its node takes it again: nothing is broken any more"


async def test_a_pinned_member_whose_node_stays_full_is_made_anew_beside_its_sibling(
    clocked: Clocked,
) -> None:
    placed = await clocked.place(PAIR)
    await clocked.cluster.bind("g-0", placed["g-0"])
    await clocked.stranger("squatter", placed["g-1"])
    await clocked.look()
    await clocked.look(after=EVICT_S)
    assert not await clocked.exists("g-1")
    await clocked.recreate(PAIR, 1)
    moved = (await clocked.cluster.released(["g-1"]))["g-1"]
    assert moved not in placed.values()
    assert rack(moved) == rack(placed["g-0"])


@pytest.mark.parametrize("bind", [False, True])
async def test_a_member_deleted_and_made_anew_returns_to_the_rack_of_its_gang(
    clocked: Clocked, *, bind: bool
) -> None:
    """Before it is bound, and when the gang runs; the other rack is the emptier one."""
    placed = await clocked.place(PAIR, bind=bind)
    await clocked.lose("g-1")
    await clocked.recreate(PAIR, 1)
    again = (await clocked.cluster.released(["g-1"]))["g-1"]
    assert rack(again) == rack(placed["g-0"])


async def test_a_member_made_anew_without_room_in_its_rack_waits_for_room_there(
    clocked: Clocked,
) -> None:
    gang = Gang("g", 3, required=names.RACK)
    placed = await clocked.place(gang, bind=True)
    await clocked.lose("g-2")
    await clocked.stranger("squatter", placed["g-2"])
    await clocked.recreate(gang, 2)
    await clocked.look(after=EVICT_S)
    assert plan_of(await clocked.cluster.pod("g-2")) is None
    await clocked.lose("squatter")
    assert (await clocked.cluster.released(["g-2"]))["g-2"] == placed["g-2"]


async def test_a_lost_member_goes_before_a_gang_of_higher_priority(clocked: Clocked) -> None:
    """The slot that a failed member leaves goes back to its gang (volcano#5805)."""
    gang = Gang("g", 3, required=names.RACK)
    placed = await clocked.place(gang, bind=True)
    for index in range(3):
        await clocked.stranger(f"squatter-{index}", f"{_other(placed)}-{index}")
    await clocked.fresh()
    obj = await clocked.cluster.pod("g-2")
    # Its successor is there before it is gone, as podReplacementPolicy's default has it.
    await clocked.cluster.api.patch(
        f"{PODS}/g-2", {"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}}
    )
    await clocked.cluster.api.delete(f"{PODS}/g-2")
    owner = obj["metadata"]["ownerReferences"][0]
    again = list(members(gang, owner))[2]
    again["metadata"]["name"] = "g-2-again"
    again["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    await clocked._known(await clocked.cluster.api.create(PODS, again))
    await clocked.cluster.api.patch(f"{PODS}/g-2", {"metadata": {"finalizers": None}})
    assert (await clocked.cluster.released(["g-2-again"]))["g-2-again"] == placed["g-2"]
    assert plan_of(await clocked.cluster.pod("fresh")) is None


async def test_the_node_of_a_lost_member_is_left_free_until_its_controller_makes_another(
    clocked: Clocked,
) -> None:
    """A Job waits ten seconds after a failure; whoever waits meanwhile does not get the node."""
    gang = Gang("g", 3, required=names.RACK)
    placed = await clocked.place(gang, bind=True)
    for index in range(3):
        await clocked.stranger(f"squatter-{index}", f"{_other(placed)}-{index}")
    await clocked.fresh()
    await clocked.cluster.api.patch(f"{PODS}/g-2/status", {"status": {"phase": "Failed"}})
    await clocked.cluster.settled()
    await clocked.plan(after=10)
    assert plan_of(await clocked.cluster.pod("fresh")) is None
    await clocked.lose("g-2")
    await clocked.recreate(gang, 2)
    assert (await clocked.cluster.released(["g-2"]))["g-2"] == placed["g-2"]
    assert plan_of(await clocked.cluster.pod("fresh")) is None


@pytest.mark.parametrize("owned", [True, False])
async def test_a_vacancy_is_not_held_for_ever_and_not_where_nobody_makes_another(
    clocked: Clocked, *, owned: bool
) -> None:
    gang = Gang("g", 3, required=names.RACK)
    placed = await clocked.place(gang, owned=owned, bind=True)
    for index in range(3):
        await clocked.stranger(f"squatter-{index}", f"{_other(placed)}-{index}")
    await clocked.fresh()
    await clocked.lose("g-2")
    await clocked.cluster.settled()
    if owned:
        assert plan_of(await clocked.cluster.pod("fresh")) is None
        await clocked.plan(after=16)
    assert (await clocked.cluster.released(["fresh"]))["fresh"] == placed["g-2"]


async def test_no_vacancy_is_held_of_a_gang_that_is_deleted_whole(clocked: Clocked) -> None:
    gang = Gang("g", 3, required=names.RACK)
    placed = await clocked.place(gang, bind=True)
    for index in range(3):
        await clocked.stranger(f"squatter-{index}", f"{_other(placed)}-{index}")
    await clocked.fresh()
    for rank in range(3):
        await clocked.lose(f"g-{rank}")
    await clocked.plan(after=2)
    assert rack((await clocked.cluster.released(["fresh"]))["fresh"]) == rack(placed["g-0"])


def _other(placed: dict[str, str]) -> str:
    (here,) = {rack(node) for node in placed.values()}
    return "r2" if here == "r1" else "r1"


async def test_spares_take_over_from_a_tainted_node_without_a_write() -> None:
    async with world(spare_count=1) as cluster:
        await cluster.nodes({"r1": 3})
        await cluster.gang(Gang("g", 1))
        node = (await cluster.released(["g-0"]))["g-0"]
        before = await cluster.pod("g-0")
        (spare,) = (plan_of(before) or {})["spares"]
        await cluster.api.patch(f"{NODES}/{node}", TAINT)

        async def moved() -> bool:
            return bool((await cluster.filter(before, [spare]))["NodeNames"])

        await eventually(moved)
        assert await cluster.pod("g-0") == before
