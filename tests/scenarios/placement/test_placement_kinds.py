"""Gangs of several kinds of pods: launcher and workers, parameter servers, leaders of slices."""

from itertools import pairwise

from support.clusters.scene import BLOCK, GPU, HOST, RACK, Scene, pod_class

from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
)
from muster.placement.decision import Plan, Wait

LAUNCHER = pod_class(0, 2000)
WORKER = pod_class(8)
SERVER = pod_class(0, 32_000)


def mixed(scene: Scene, name: str, *kinds: tuple[object, int], **spec: object) -> GangKey:
    """Create a gang whose ranks go through the kinds in order."""
    size = sum(count for _, count in kinds)
    key = scene.gang(name, size, members=0, **spec)
    rank = 0
    for number, (kind, count) in enumerate(kinds):
        scene.members(key, range(rank, rank + count), kind, role=f"kind{number}-")
        rank += count
    return key


def crossings(places: list[str]) -> int:
    return sum(a != b for a, b in pairwise([*places, places[0]]))


def test_a_launcher_takes_no_host_of_its_own() -> None:
    scene = Scene("a/r1 n1 n2 n3")
    plan = scene.place(mixed(scene, "g", (LAUNCHER, 1), (WORKER, 2)))
    assert dict(plan.domains)[HOST] == 2
    assert plan.proven


def test_the_launchers_host_is_where_the_ring_closes() -> None:
    #  three workers on three hosts and a launcher beside one of them: three crossings
    scene = Scene("a/r1 n1 n2 n3 n4")
    plan = scene.place(mixed(scene, "g", (LAUNCHER, 1), (WORKER, 3)))
    assert crossings(scene.nodes_of(plan)) == 3


def test_large_and_small_pods_are_packed_against_each_other() -> None:
    #  hosts of 8 GPUs: 5 + 3 twice, while largest first and smallest first both need a third
    scene = Scene("a/r1 n1 n2", levels=(BLOCK, RACK, HOST))
    plan = scene.place(mixed(scene, "g", (pod_class(5), 2), (pod_class(3), 2)))
    assert dict(plan.domains)[HOST] == 2


def test_a_fit_that_no_order_of_kinds_finds_is_found() -> None:
    #  n1: 6 GPUs, n2: 9 GPUs     kinds of 2, 3 and 4: only 2+4 beside 2+3+4 fill both
    scene = Scene("a/r1 n1:6 n2:9")
    kinds = ((pod_class(2), 2), (pod_class(3), 1), (pod_class(4), 2))
    plan = scene.place(mixed(scene, "g", *kinds))
    assert len(plan.pods) == 5


def test_servers_and_workers_share_a_rack_where_they_can() -> None:
    #  r1: two hosts, r2: three hosts; servers leave no room for a worker's CPU on their host
    scene = Scene("""
        a/r1  n1 n2
        b/r2  n3 n4 n5
    """)
    busy = pod_class(8, 40_000)
    plan = scene.place(mixed(scene, "g", (SERVER, 2), (busy, 2)))
    assert set(scene.racks_of(plan)) == {"b/r2"}


def test_ranks_turn_where_a_kind_ends() -> None:
    #  servers on both racks, workers on both racks: there and back, two crossings of racks
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
    """)
    plan = scene.place(mixed(scene, "g", (SERVER, 4), (WORKER, 4)))
    assert crossings(scene.racks_of(plan)) == 2


def test_a_required_rack_holds_all_kinds_or_the_gang_waits() -> None:
    #  r1 has the GPUs, r2 has the CPUs: each kind fits, both together do not
    scene = Scene("")
    for name in ("n1", "n2"):
        scene.node(name, block="a", rack="r1", allocatable={"cpu": 2000})
        scene.node(f"{name}-cpu:0", block="a", rack="r2")
    key = mixed(scene, "g", (SERVER, 1), (WORKER, 2), required_level=RACK)
    assert isinstance(scene.decide(key), Wait)
    again = mixed(scene, "h", (SERVER, 1), (WORKER, 2), required_level=BLOCK)
    assert isinstance(scene.decide(again), Plan)


def test_where_pods_speak_of_each_other_nothing_is_proven() -> None:
    scene = Scene("a/r1 n1 n2 n3")
    apart = PodAffinityTerm(
        HOST, LabelSelector((Requirement("gang", Operator.IN, ("g",)),)), frozenset({"ns"})
    )
    lonely = pod_class(4, pod_anti_affinity=(apart,))
    plan = scene.place(mixed(scene, "g", (lonely, 1), (pod_class(4), 1)))
    assert not plan.proven


def test_every_leader_is_in_the_rack_of_its_workers_and_the_racks_are_few() -> None:
    #  four hosts a rack; a slice is a leader and three workers of whole hosts
    scene = Scene("""
        a/r1  n1 n2 n3 n4
        a/r2  n5 n6 n7
        a/r3  n8 n9 n10 n11 n12 n13
    """)
    key = scene.gang("g", 8, members=0, slice_size=4, slice_level=RACK)
    for first in (0, 4):
        scene.members(key, [first], LAUNCHER, role="leader")
        scene.members(key, range(first + 1, first + 4), WORKER, role="worker")
    plan = scene.place(key)
    assert set(scene.racks_of(plan)) == {"a/r3"}
    assert plan.proven


def test_extended_resources_of_both_kinds_count() -> None:
    scene = Scene("")
    scene.node("n1", rack="r1", allocatable={GPU: 4, "rdma/hca": 1})
    scene.node("n2", rack="r1", allocatable={GPU: 8, "rdma/hca": 1})
    wide = pod_class(4)
    wide = type(wide)(requests=(*wide.requests, ("rdma/hca", 1)))
    plan = scene.place(mixed(scene, "g", (wide, 2), (pod_class(4), 1)))
    assert len(plan.pods) == 3


def driver_and_slices_of_workers() -> tuple[Scene, GangKey]:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
        b/r3  n5
    """)
    key = scene.gang("g", 5, members=0, slice_size=2, slice_level=RACK, slice_roles=("worker",))
    scene.members(key, [0], WORKER, role="driver")
    scene.members(key, range(1, 5), WORKER, role="worker")
    return scene, key


def test_only_the_workers_are_in_slices_where_only_they_ask_for_it() -> None:
    #  the driver is rank 0: counted with it, slices of two would straddle the racks
    scene, key = driver_and_slices_of_workers()
    plan = scene.place(key)
    racks = scene.racks_of(plan)
    assert racks[0] == "b/r3"
    assert [len(set(racks[i : i + 2])) for i in (1, 3)] == [1, 1]


def test_a_lost_worker_goes_back_to_its_slice_beside_a_driver_that_is_in_none() -> None:
    scene, key = driver_and_slices_of_workers()
    plan = scene.place(key)
    uids, homes = scene.bind(plan), scene.racks_of(plan)
    scene.end(uids[3])
    scene.members(key, [3], WORKER, role="worker")
    assert scene.racks_of(scene.place(key)) == [homes[4]]


def test_in_a_large_cluster_a_mixed_gang_is_searched_rack_by_rack() -> None:
    #  70 racks of 16 hosts; the first host of all racks but one is taken
    scene = Scene(
        "\n".join(
            f"b{r // 32}/r{r:02} " + " ".join(f"n{r:02}-{i:02}" for i in range(16))
            for r in range(70)
        )
    )
    for rack in range(70):
        if rack != 41:
            scene.run(f"n{rack:02}-00")
    plan = scene.place(mixed(scene, "g", (LAUNCHER, 1), (WORKER, 16)))
    assert set(scene.racks_of(plan)) == {"b1/r41"}
    assert plan.proven


def test_more_kinds_than_are_searched_exactly_are_placed_all_the_same() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5
    """)
    kinds = tuple((pod_class(gpu), 1) for gpu in (1, 2, 3, 4, 5))
    plan = scene.place(mixed(scene, "g", *kinds))
    assert dict(plan.domains)[RACK] == 1
    assert not plan.proven
