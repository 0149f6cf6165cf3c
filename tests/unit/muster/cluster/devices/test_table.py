"""Devices: published by nodes, claimed by holds and bound pods, never by two."""

from dataclasses import replace
from weakref import ref

import pytest
from support.clusters.builders import (
    GPU,
    apply,
    gang,
    gpus_of,
    node,
    note,
    plan,
    pod,
    pod_class,
    state,
    uid,
)
from support.clusters.devicekinds import asking

from muster.cluster.devices.claims import unpack
from muster.cluster.devices.rooms import UNLIMITED
from muster.cluster.devices.sharenames import share_name
from muster.cluster.devices.view import MOST_ROOMS
from muster.cluster.effects import CapacityFreed
from muster.cluster.errors import PlanStale
from muster.cluster.events import DeviceSpec, NodeGone, PodForgotten, PodGone, PodReleased
from muster.cluster.ids import PodUid
from muster.cluster.specs.deviceasks import Memory
from muster.cluster.state import ClusterState

G0 = uid("ns/g-0#0")


def two_nodes() -> ClusterState:
    """n1 and n2 with gpu-0 … gpu-3 each, two per NUMA node; a gang of 2-GPU pods."""
    nodes = [node(n, gpus=4, devices=gpus_of(4, per_numa=2)) for n in ("n1", "n2")]
    return state(nodes, gang("g", 2, gpus=2))


def free(cluster: ClusterState, name: str) -> list[str]:
    snapshot = cluster.snapshot()
    row = snapshot.nodes.row(name)
    assert row is not None
    names = snapshot.devices.free_devices(row, GPU)
    room = snapshot.devices.rooms(pod_class(1), snapshot.nodes.count)[row]
    assert room == (len(names) if snapshot.devices.slots(row) else UNLIMITED)
    return names


def holders(cluster: ClusterState, name: str) -> dict[str, PodUid]:
    """Return who has which device of a node, presumed claims included."""
    view = cluster.snapshot().devices
    row = cluster.snapshot().nodes.row(name)
    assert row is not None
    return {
        share_name(view.slots(row), view.names[row], claim.share): cluster.pod_uid(claim.pod)
        for claim in unpack(view.claims[row])
    }


def test_free_devices_come_in_the_order_of_the_fabric() -> None:
    shuffled = (
        DeviceSpec("c", GPU, numa=1, parent="0"),
        DeviceSpec("b", GPU, numa=0, parent="9"),
        DeviceSpec("d", GPU, numa=0, parent="1"),
        DeviceSpec("a", GPU, numa=1, parent="0", healthy=False),
        DeviceSpec("nic", "rdma/hca", numa=0),
    )
    cluster = state(node("n1", devices=shuffled))
    assert free(cluster, "n1") == ["d", "b", "c"]


def test_a_node_that_lists_no_devices_sets_no_limit() -> None:
    cluster = state(node("n1"), node("n2", devices=gpus_of(2)))
    assert cluster.snapshot().devices.rooms(pod_class(1), 2).tolist() == [UNLIMITED, 2]


def test_the_rooms_of_many_classes_are_not_cached_for_ever_while_no_device_changes_hands() -> None:
    devices = two_nodes().snapshot().devices
    asked = [ref(devices.rooms(pod_class(1, cpu=cpu), 2)) for cpu in range(1, 101)]
    assert sum(rooms() is not None for rooms in asked) <= MOST_ROOMS
    last = asked[-1]()
    assert last is devices.rooms(pod_class(1, cpu=100), 2)


def test_planned_devices_are_taken_and_given_back() -> None:
    cluster = two_nodes()
    apply(cluster, plan("g", {"g-0": "n1"}, devices={"g-0": {"n1": ("gpu-1", "gpu-3")}}))
    assert free(cluster, "n1") == ["gpu-0", "gpu-2"]
    apply(cluster, PodForgotten(G0, "refused"))
    assert free(cluster, "n1") == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_devices_of_a_spare_are_given_to_no_other_pod() -> None:
    cluster = two_nodes()
    devices = {"g-0": {"n1": ("gpu-0", "gpu-1"), "n2": ("gpu-0", "gpu-1")}}
    apply(cluster, plan("g", {"g-0": "n1"}, spares={"g-0": ("n2",)}, devices=devices))
    assert free(cluster, "n2") == ["gpu-2", "gpu-3"]
    for spares in ({}, {"g-1": ("n1",)}):
        with pytest.raises(PlanStale, match="are not free"):
            apply(
                cluster,
                plan(
                    "g", {"g-1": "n2"}, spares=spares, devices={"g-1": {"n2": ("gpu-1", "gpu-2")}}
                ),
            )
    apply(cluster, PodReleased(G0), pod("g-0", gang="g", gpus=2, rank=0, on="n1"))
    assert free(cluster, "n2") == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


@pytest.mark.parametrize("named", [True, False])
def test_a_binding_that_gives_devices_of_a_spare_back_wakes_who_waits(*, named: bool) -> None:
    cluster = two_nodes()
    devices = {"g-0": {"n1": ("gpu-0", "gpu-1"), "n2": ("gpu-0", "gpu-1")} if named else {}}
    apply(cluster, plan("g", {"g-0": "n1"}, spares={"g-0": ("n2",)}, devices=devices))
    apply(cluster, PodReleased(G0))
    bound = pod("g-0", gang="g", gpus=2, rank=0, on="n1")
    assert (CapacityFreed() in apply(cluster, bound)) is named


def test_a_pod_that_lands_on_its_spare_has_the_devices_chosen_there() -> None:
    cluster = two_nodes()
    devices = {"g-0": {"n1": ("gpu-0", "gpu-1"), "n2": ("gpu-2", "gpu-3")}}
    noted = note("n1", "n2", devices=devices["g-0"])
    apply(cluster, plan("g", {"g-0": "n1"}, spares={"g-0": ("n2",)}, devices=devices))
    apply(cluster, replace(pod("g-0", gang="g", gpus=2, rank=0, on="n2"), plan=noted))
    assert (free(cluster, "n1"), free(cluster, "n2")) == (
        ["gpu-0", "gpu-1", "gpu-2", "gpu-3"],
        ["gpu-0", "gpu-1"],
    )
    found = cluster.hold(G0)
    assert found is not None
    assert found.devices == {"n2": ("gpu-2", "gpu-3")}


def test_one_device_is_not_assigned_twice_in_one_plan() -> None:
    cluster = two_nodes()
    same = {"n1": ("gpu-0", "gpu-1")}
    with pytest.raises(PlanStale, match="are not free"):
        apply(
            cluster,
            plan("g", {"g-0": "n1", "g-1": "n1"}, devices={"g-0": same, "g-1": same}),
        )


def test_a_restart_finds_the_devices_of_bound_pods_even_before_their_node() -> None:
    bound = pod("p", gpus=2, on="n1", plan=note("n1", devices={"n1": ("gpu-0", "gpu-1")}))
    cluster = state(bound, node("n1", gpus=4, devices=gpus_of(4)))
    assert free(cluster, "n1") == ["gpu-2", "gpu-3"]


def test_two_pods_that_claim_one_device_get_it_one_after_the_other() -> None:
    # Contradictory annotations: one of them has it, the other one is presumed elsewhere, and
    # has it as soon as the first one goes.
    claim = note("n1", devices={"n1": ("gpu-0",)})
    first, second = (pod(name, gpus=1, on="n1", plan=claim) for name in ("p1", "p2"))
    cluster = state(node("n1", gpus=4, devices=gpus_of(4)), first)
    apply(cluster, second)
    found = holders(cluster, "n1")
    assert len(found) == 2
    one = found["gpu-0"]
    (other,) = {first.uid, second.uid} - {one}
    apply(cluster, PodGone(one))
    assert holders(cluster, "n1") == {"gpu-0": other}
    apply(cluster, PodGone(other))
    assert holders(cluster, "n1") == {}


def test_a_node_that_reboots_finds_its_devices_held() -> None:
    bound = pod("p", gpus=2, on="n1", plan=note("n1", devices={"n1": ("gpu-0", "gpu-1")}))
    n1 = node("n1", gpus=4, devices=gpus_of(4))
    cluster = state(n1, bound)
    apply(cluster, NodeGone("n1"), node("n1", gpus=4), n1)
    assert free(cluster, "n1") == ["gpu-2", "gpu-3"]
    assert [free(cluster, "n1") for _ in [apply(cluster, PodGone(bound.uid))]] == [
        ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    ]


def test_a_device_that_falls_ill_is_not_free_and_stays_held() -> None:
    held = pod("p", gpus=1, on="n1", plan=note("n1", devices={"n1": ("gpu-0",)}))
    cluster = state(node("n1", gpus=2, devices=gpus_of(2)), held)
    ill = tuple(replace(device, healthy=False) for device in gpus_of(2))
    apply(cluster, node("n1", gpus=2, devices=ill))
    assert free(cluster, "n1") == []
    assert holders(cluster, "n1") == {"gpu-0": held.uid}


def test_nodes_that_are_alike_share_one_layout_and_one_state() -> None:
    cluster = state(*(node(f"n{i}", devices=gpus_of(8)) for i in range(9)))
    view = cluster.snapshot().devices
    assert (len(view.layouts), len(view.states)) == (1, 1)
    apply(cluster, *(node(f"n{i}") for i in range(9)))
    assert not cluster.snapshot().devices.known


def test_a_device_reads_back_as_it_was_published() -> None:
    spec = DeviceSpec(
        "GPU-1",
        GPU,
        "gpu.example.com",
        "pool",
        "h200",
        1,
        "0000:1b:00.0",
        True,
        {"memory": 1000},
    )
    devices = state(node("n1", devices=(spec,))).snapshot().devices
    assert devices.specs(0) == (spec,)


def test_a_node_that_publishes_a_name_twice_is_refused() -> None:
    double = (DeviceSpec("gpu-0", GPU), DeviceSpec("gpu-0", GPU))
    with pytest.raises(ValueError, match="'gpu-0' is published twice"):
        apply(state(), node("n1", devices=double))


def test_a_pod_without_names_is_presumed_on_a_device_and_moves_aside_for_one_that_names_it() -> (
    None
):
    anonymous = pod("a", gpus=1, on="n1", managed=False)
    cluster = state(node("n1", gpus=2, devices=gpus_of(2)), anonymous)
    assert holders(cluster, "n1") == {"gpu-0": anonymous.uid}
    planned = pod("t", gpus=1, on="n1", plan=note("n1", devices={"n1": ("gpu-0",)}))
    apply(cluster, planned)
    assert holders(cluster, "n1") == {"gpu-0": planned.uid, "gpu-1": anonymous.uid}


@pytest.mark.parametrize(
    "names", [("gpu-0",), ("gpu-0", "gpu-0"), ("gpu-0", "gpu-9"), ("gpu-0",) * 3]
)
def test_names_that_are_not_what_the_pod_asks_for_are_not_believed(names: tuple[str, ...]) -> None:
    tampered = pod("p", gpus=2, on="n1", plan=note("n1", devices={"n1": names}))
    cluster = state(node("n1", gpus=4, devices=gpus_of(4)), tampered)
    assert set(holders(cluster, "n1").values()) == {tampered.uid}
    assert len(holders(cluster, "n1")) == 2


def test_names_from_a_pod_that_asks_for_no_device_take_none() -> None:
    thief = pod("p", gpus=0, on="n1", plan=note("n1", devices={"n1": ("gpu-0",)}))
    cluster = state(node("n1", gpus=4, devices=gpus_of(4)), thief)
    assert holders(cluster, "n1") == {}


def test_pods_that_were_there_before_their_node_published_devices_are_presumed_on_them() -> None:
    cluster = state(node("n1", gpus=4), pod("p", gpus=3, on="n1"))
    apply(cluster, node("n1", gpus=4, devices=gpus_of(4)))
    assert free(cluster, "n1") == ["gpu-3"]


def test_more_than_ten_devices_stand_in_the_order_of_their_numbers() -> None:
    cluster = state(node("n1", gpus=12, devices=gpus_of(12, per_numa=12)))
    assert free(cluster, "n1") == [f"gpu-{i}" for i in range(12)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_who_asks_for_no_cores_keeps_its_place_beside_those_who_took_all_later(
    order: tuple[int, ...],
) -> None:
    """Where all cores are taken no pod is placed any more; pods that are there stay, in any order.

    ::

        gpu-0: 5 GiB │ 70 % of the cores, 5 GiB │ 30 %, 5 GiB
    """
    gpu = DeviceSpec("gpu-0", GPU, counters={"memory": 81920}, family="nvidia")
    pods = [
        pod(
            name,
            on="n1",
            kind=asking(Memory("nvidia", 1, 5120, cores=cores)),
            plan=note("n1", devices={"n1": ("gpu-0",)}),
        )
        for name, cores in (("alone-0", 0), ("g-70", 70), ("g-30", 30))
    ]
    assert pods[0].uid == max(each.uid for each in pods)  # claims are met by UID
    cluster = state(node("n1", gpus=1, devices=(gpu,)), [pods[number] for number in order])
    view = cluster.snapshot().devices
    assert len(unpack(view.claims[0])) == 3
    assert not view.open
