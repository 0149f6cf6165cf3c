"""Bad devices and devices given to somebody else, through the extender.

::

    zone z ── block b ── rack r1 ── r1-0 r1-1     (4 GPUs each: GPU-0 … GPU-3)
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import pytest
from support.apiservers.apifaults import api_server
from support.devices.nodefacts import given, tell, topology
from support.extenders.extenders import PODS, World, plan_of, running_extender, until

from extender.config.settings import ExtenderConfig
from loadtest.testbed.client.api import JSON, ApiFailed
from loadtest.testbed.client.pods import Gang
from muster.kube import names

EVICT_S = 300.0
PAIR = Gang("g", 2, gpus=2)
XID = {"GPU-0": "XID 79"}


@dataclass
class Scene:
    """A cluster whose extender is told the time, and to look at devices, by the test."""

    cluster: World = field(init=False)
    url: str = ""
    now: float = 1_000_000.0

    async def place(self, gang: Gang, *, owned: bool = True, bind: bool = True) -> dict[str, JSON]:
        """Have a gang released, and bound where it was planned; return its pods' plans."""
        await self.cluster.gang(gang, owned=owned)
        nodes = await self.cluster.released([f"{gang.name}-{n}" for n in range(gang.size)])
        for name, node in nodes.items() if bind else ():
            await self.cluster.bind(name, node)
        await self.cluster.settled()
        return {name: plan_of(await self.cluster.pod(name)) or {} for name in nodes}

    async def reported(self, node: str, **facts: str | None) -> None:
        """Have the device plugin of a node write something, and the extender read it."""
        before = self.read("muster_watch_events_total", resource="nodes")
        await tell(self.cluster.api, node, **facts)
        await until(lambda: self.read("muster_watch_events_total", resource="nodes") > before)
        await self.cluster.settled()

    async def look(self, after: float = 0.0) -> int:
        self.now += after
        await self.cluster.extender.repairer.look()
        sent = await self.cluster.extender.devices.report_due()
        await self.cluster.settled()
        return sent

    async def condition(self, pod: str) -> JSON:
        found = (await self.cluster.pod(pod)).get("status", {}).get("conditions", [])
        return next((c for c in found if c["type"] == names.DEVICES_HEALTHY), {})

    async def explained(self, pod: str) -> list[str]:
        async with self.cluster.http.get(f"/v1/explain/default/{pod}") as reply:
            lines: list[str] = (await reply.json())["lines"]
        return lines

    async def uid(self, pod: str) -> str:
        uid: str = (await self.cluster.pod(pod))["metadata"]["uid"]
        return uid

    async def exists(self, pod: str) -> bool:
        try:
            await self.cluster.pod(pod)
        except ApiFailed as error:
            return error.code != 404
        return True

    def gauge(self, kind: str) -> float:
        return self.read("muster_device_troubles", kind=kind)

    def read(self, metric: str, **labels: str) -> float:
        registry = self.cluster.extender.parts.metrics.registry
        return registry.get_sample_value(metric, labels) or 0.0


CONFIG = ExtenderConfig(
    evict_after_seconds=EVICT_S, spare_count=0, debounce_seconds=0.0, drain_seconds=2.0
)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    async with (
        api_server() as (server, made.url),
        running_extender(server, made.url, CONFIG, lambda: made.now, ("devices",)) as cluster,
    ):
        made.cluster = cluster
        await cluster.nodes({"r1": 2}, gpus=4)
        for node in ("r1-0", "r1-1"):
            await made.reported(node, topology=topology(4))
        yield made


def holder(plans: dict[str, JSON], device: str) -> str:
    """Return whose plan names a device, all pods being on one node."""
    return next(name for name, plan in plans.items() if device in plan["devices"][plan["node"]])


async def test_a_running_member_with_a_bad_device_is_reported_and_stays(scene: Scene) -> None:
    plans = await scene.place(PAIR)
    sick = holder(plans, "GPU-0")
    node = plans[sick]["node"]
    await scene.reported(node, topology=topology(4, XID))
    assert await scene.look() == 1
    condition = await scene.condition(sick)
    assert (condition["status"], condition["reason"]) == ("False", "DeviceUnhealthy")
    assert condition["message"] == f"device GPU-0 of node {node} is unhealthy: XID 79"
    assert await scene.condition(({"g-0", "g-1"} - {sick}).pop()) == {}
    assert f"its device GPU-0 on node {node} is unhealthy: XID 79" in await scene.explained(sick)
    assert await scene.look(after=EVICT_S) == 0
    assert await scene.exists(sick)


async def test_the_gang_its_job_the_status_and_the_metric_show_it(scene: Scene) -> None:
    plans = await scene.place(PAIR)
    await scene.reported(plans["g-0"]["node"], topology=topology(4, XID))
    await scene.look()
    async with scene.cluster.http.get("/v1/gangs") as reply:
        (row,) = await reply.json()
    assert row["unhealthy"] == 1
    async with scene.cluster.http.get("/v1/status") as reply:
        problems = (await reply.json())["problems"]
    assert problems == ["1 gangs have members with unhealthy devices: muster gangs names them"]
    assert scene.gauge("unhealthy") == 1
    recorded = await _events(scene, "DeviceUnhealthy", 2)
    regarding = {event["regarding"]["kind"]: event["note"] for event in recorded}
    where = f"device GPU-0 of node {plans['g-0']['node']} is unhealthy: XID 79; the pod stays"
    assert regarding["Pod"] == where
    assert regarding["Job"] == f"pod {holder(plans, 'GPU-0')}: {where}"


async def _events(scene: Scene, reason: str, count: int) -> list[JSON]:
    found: list[JSON] = []
    while len(found) < count:  # the recorder writes once a second
        found = await scene.cluster.events(reason)
    return found


async def test_a_device_that_is_well_again_is_reported_too(scene: Scene) -> None:
    plans = await scene.place(PAIR)
    sick = holder(plans, "GPU-0")
    await scene.reported(plans[sick]["node"], topology=topology(4, XID))
    await scene.look()
    await scene.reported(plans[sick]["node"], topology=topology(4))
    assert await scene.look() == 1
    condition = await scene.condition(sick)
    assert (condition["status"], condition["message"]) == ("True", "")
    assert scene.gauge("unhealthy") == 0
    assert not any("unhealthy" in line for line in await scene.explained(sick))


async def test_two_bad_devices_of_one_pod_are_one_condition(scene: Scene) -> None:
    plans = await scene.place(Gang("g", 1, gpus=4))
    await scene.reported(plans["g-0"]["node"], topology=topology(4, XID | {"GPU-3": ""}))
    assert await scene.look() == 1
    assert (await scene.condition("g-0"))["message"] == (
        f"device GPU-0 of node {plans['g-0']['node']} is unhealthy: XID 79; "
        f"device GPU-3 of node {plans['g-0']['node']} is unhealthy"
    )


@pytest.mark.parametrize("well", [False, True])
async def test_whoever_starts_anew_repeats_nothing_and_takes_back_what_is_over(
    scene: Scene, *, well: bool
) -> None:
    plans = await scene.place(PAIR)
    node = plans["g-0"]["node"]
    await scene.reported(node, topology=topology(4, XID))
    await scene.look()
    if well:  # and the one that wrote it never hears of it
        await tell(scene.cluster.api, node, topology=topology(4))
    async with AsyncExitStack() as stack:
        server, jobs = scene.cluster.server, ("devices", "events")
        again = await stack.enter_async_context(
            running_extender(server, scene.url, CONFIG, lambda: scene.now, jobs)
        )
        assert await again.extender.devices.report_due() == int(well)
        assert await again.extender.devices.report_due() == 0
    assert (await scene.condition(holder(plans, "GPU-0")))["status"] == str(well)


async def test_a_nominated_pod_whose_device_fails_is_planned_again(scene: Scene) -> None:
    plans = await scene.place(Gang("g", 1, gpus=2), owned=False, bind=False)
    node = plans["g-0"]["node"]
    (first, *_) = plans["g-0"]["devices"][node]
    await scene.reported(node, topology=topology(4, {first: "XID 79"}))
    await scene.look()
    await scene.cluster.released(["g-0"])
    after = plan_of(await scene.cluster.pod("g-0"))
    assert after is not None
    assert after["id"] != plans["g-0"]["id"]
    assert (after["node"], first) not in {(after["node"], d) for d in after["devices"][node]}


async def test_a_pinned_pod_whose_device_fails_keeps_its_node_while_others_would_do(
    scene: Scene,
) -> None:
    plans = await scene.place(Gang("g", 1, gpus=2), bind=False)
    node = plans["g-0"]["node"]
    await scene.reported(node, topology=topology(4, XID))
    await scene.look()
    assert await scene.explained("g-0") == [
        f"released to node {node} and cannot bind: planned device unhealthy",
        f"its device GPU-0 on node {node} is unhealthy: XID 79",
    ]
    await scene.look(after=2 * EVICT_S)
    assert await scene.exists("g-0")


async def test_a_pinned_pod_is_made_anew_where_no_other_device_is_left(scene: Scene) -> None:
    plans = await scene.place(Gang("g", 1, gpus=4), bind=False)
    await scene.reported(plans["g-0"]["node"], topology=topology(4, XID))
    await scene.look(after=EVICT_S - 1)
    assert await scene.exists("g-0")
    await scene.look(after=EVICT_S)
    assert not await scene.exists("g-0")


async def test_plans_go_by_what_the_kubelet_gave(scene: Scene) -> None:
    plans = await scene.place(Gang("g", 1, gpus=3))
    node = plans["g-0"]["node"]
    assert plans["g-0"]["devices"][node] == ["GPU-0", "GPU-1", "GPU-2"]
    uid = await scene.uid("g-0")
    await scene.reported(node, allocations=given(**{uid: ["GPU-1", "GPU-2", "GPU-3"]}))
    await scene.look()
    where = f"device GPU-1 GPU-2 GPU-3 on node {node}"
    assert await scene.explained("g-0") == [
        f"Confirmed: node {node}",
        f"the kubelet gave it {where}, which is not what its plan names",
    ]
    assert scene.gauge("otherwise") == 1
    beside = await scene.place(Gang("one", 1, gpus=1))
    assert beside["one-0"]["devices"] == {node: ["GPU-0"]}


async def test_a_member_whose_device_another_pod_has_says_so(scene: Scene) -> None:
    await scene.cluster.api.patch("/api/v1/nodes/r1-1", {"spec": {"unschedulable": True}})
    plans = await scene.place(PAIR)
    taken, thief = holder(plans, "GPU-0"), holder(plans, "GPU-2")
    uid = await scene.uid(thief)
    await scene.reported("r1-0", allocations=given(**{uid: ["GPU-0", "GPU-3"]}))
    await scene.look()
    (line,) = (await scene.explained(taken))[1:]
    assert line == (
        "its plan names device GPU-0 on node r1-0, which the kubelet gave to the pod with UID "
        f"{uid}: it gets another one, if there is any"
    )
    assert (scene.gauge("taken"), scene.gauge("otherwise")) == (1, 1)


async def test_what_cannot_be_read_is_reported_and_changes_nothing(scene: Scene) -> None:
    plans = await scene.place(Gang("g", 1, gpus=3))
    node, uid = plans["g-0"]["node"], await scene.uid("g-0")
    await scene.reported(node, allocations=given(**{uid: ["GPU-1", "GPU-2", "GPU-3"]}))
    await scene.reported(node, allocations='{"version":7}')
    hold = scene.cluster.extender.engine.state.device_troubles(node)
    assert [trouble.device for trouble in hold] == ["GPU-1 GPU-2 GPU-3"]
    assert scene.read("muster_unreadable_objects_total", resource="nodes") == 1


async def test_pods_of_others_are_counted_and_not_written_to(scene: Scene) -> None:
    obj = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs", "namespace": "default"},
        "spec": {"schedulerName": "theirs", "nodeName": "r1-0", "containers": [
            {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}},
        ]},
    }  # fmt: skip
    made = await scene.cluster.api.create(PODS, obj)
    allocations = given(**{made["metadata"]["uid"]: ["GPU-0"]})
    await scene.reported("r1-0", topology=topology(4, XID), allocations=allocations)
    assert await scene.look() == 0
    assert scene.gauge("unhealthy") == 1
