"""Devices that fail under running pods.

::

    block a ── rack r1 ── n1 n2 n3        (8 GPUs each)
"""

import pytest
from support.clusters.scene import GPU, RACK, pod_class
from support.clusters.standby import Standby

from muster.cluster.effects import Overcommitted, PlanBroken
from muster.cluster.events import DeviceSpec, NodeUpserted
from muster.placement.decision import Plan


@pytest.fixture
def scene() -> Standby:
    return Standby("a/r1 n1 n2 n3")


def shrink(scene: Standby, node: str, gpus: int) -> list[object]:
    """Let a node report fewer GPUs, as the kubelet does when devices become unhealthy."""
    labels = {"kubernetes.io/hostname": node, "muster.dev/block": "a", RACK: "r1"}
    room = {"cpu": 64_000, "pods": 110, GPU: gpus}
    found = scene.state.apply(NodeUpserted(node, labels, room), now=0.0)
    scene.state.validate()
    return list(found)


def test_a_member_on_a_node_with_a_failed_device_stays_and_the_shortage_is_reported(
    scene: Standby,
) -> None:
    gang = scene.gang("g", 2, required_level=RACK)
    uids = scene.start(gang)
    node = scene.node_of(uids[0])
    effects = shrink(scene, node, 7)
    assert Overcommitted(node, GPU, 1) in effects
    assert not any(isinstance(effect, PlanBroken) for effect in effects)
    assert scene.node_of(uids[0]) == node


def test_nothing_is_planned_on_a_node_that_has_less_than_is_used(scene: Standby) -> None:
    gang = scene.gang("g", 2, required_level=RACK)
    node = scene.node_of(scene.start(gang)[0])
    shrink(scene, node, 7)
    small = scene.gang("small", 9, gpu=1, members=9, min_count=1)
    plan = scene.ask(small)
    assert isinstance(plan, Plan)
    assert node not in scene.nodes_of(plan)


def test_the_successor_goes_elsewhere_and_the_healthy_devices_are_of_use_to_others(
    scene: Standby,
) -> None:
    gang = scene.gang("g", 2, required_level=RACK)
    uids = scene.start(gang)
    node = scene.node_of(uids[0])
    shrink(scene, node, 7)
    scene.end(uids[0])
    (new,) = scene.members(gang, [0], pod_class())
    scene.start(gang)
    assert scene.node_of(new) not in {node, scene.node_of(uids[1])}
    small = scene.gang("small", 7, gpu=1)
    scene.start(small)
    assert scene.used_by(small) == {node}


def test_a_hot_spare_yields_to_the_members_when_its_node_becomes_less(scene: Standby) -> None:
    gang = scene.gang("g", 1, gpu=6, standby=1)
    (uid,) = scene.start(gang)
    small = scene.gang("small", 1, gpu=2)
    scene.start(small)
    (spare,) = scene.hot_spares(gang)
    assert spare != scene.node_of(uid)
    shrink(scene, spare, 5)
    assert scene.hot_spares(gang) == []
    scene.keep(gang)
    assert scene.hot_spares(gang) not in ([], [spare])


def test_an_unhealthy_device_is_given_to_no_pod(scene: Standby) -> None:
    """The device plugin says so before the kubelet has taken it off the node's allocatable."""
    labels = {"kubernetes.io/hostname": "n1", "muster.dev/block": "a", RACK: "r1"}
    room = {"cpu": 64_000, "pods": 110, GPU: 8}
    devices = tuple(DeviceSpec(f"gpu-{n}", GPU, healthy=n != 3) for n in range(8))
    scene.state.apply(NodeUpserted("n1", labels, room, devices=devices), now=0.0)
    for node in ("n2", "n3"):
        scene.run(node)
    gang = scene.gang("g", 7, gpu=1, members=8)
    plan = scene.ask(gang)
    assert isinstance(plan, Plan)
    assert len(plan.left_over) == 1
    taken = {name for each in scene.as_held(plan).assignments for name in each.devices["n1"]}
    assert taken == {f"gpu-{n}" for n in range(8)} - {"gpu-3"}
