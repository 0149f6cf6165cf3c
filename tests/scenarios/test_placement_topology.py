"""Where on the fabric: fewest domains, least left over, ranks along the cables, slices."""

import pytest
from support.scene import BLOCK, GPU, HOST, RACK, Scene, pod_class

from placement.decision import Plan, Wait

NVLINK = "nvidia.com/gpu.clique"


def test_large_empty_racks_are_kept_for_large_gangs() -> None:
    #  r1 half taken ─ 2 nodes free      r2 empty ─ 4 nodes free
    scene = Scene("""
        a/r1  n1 n2 n3 n4
        a/r2  n5 n6 n7 n8
    """)
    scene.run("n1")
    scene.run("n2")
    assert set(scene.racks_of(scene.place(scene.gang("g", 2)))) == {"a/r1"}


def test_many_single_gpu_pods_fill_one_rack_before_they_open_the_next() -> None:
    #  33 racks of 18 nodes with 4 GPUs
    scene = Scene(
        "\n".join(
            f"a/r{r:02} " + " ".join(f"n{r:02}{i:02}:4" for i in range(18)) for r in range(33)
        )
    )
    racks = set()
    for number in range(80):  # one rack has 72 GPUs
        plan = scene.place(scene.gang(f"g{number}", 1, gpu=1))
        scene.bind(plan)
        racks |= set(scene.racks_of(plan))
    assert len(racks) == 2


def test_a_single_pod_takes_the_fullest_host_that_has_room() -> None:
    scene = Scene("a/r1 n1 n2 n3")
    scene.run("n2", gpu=6)
    assert scene.nodes_of(scene.place(scene.gang("g", 1, gpu=2))) == ["n2"]


def test_seven_pods_on_hosts_of_three_three_two_and_one_take_three_hosts() -> None:
    scene = Scene("a/r1 n1:3 n2:3 n3:2 n4:1")
    plan = scene.place(scene.gang("g", 7, gpu=1))
    assert dict(plan.domains)[HOST] == 3
    assert scene.nodes_of(plan) == ["n1"] * 3 + ["n2"] * 3 + ["n4"]


def test_ranks_follow_the_fabric() -> None:
    scene = Scene("""
        a/r1  n1:2 n2:2
        a/r2  n3:2 n4:2
    """)
    plan = scene.place(scene.gang("g", 8, gpu=1))
    assert scene.nodes_of(plan) == ["n1"] * 2 + ["n2"] * 2 + ["n3"] * 2 + ["n4"] * 2


def test_racks_of_the_same_name_in_two_blocks_are_two_racks() -> None:
    scene = Scene("""
        a/r1  n1 n2
        b/r1  n3 n4
    """)
    assert isinstance(scene.decide(scene.gang("g", 3, required_level=RACK)), Wait)


def test_a_required_block_and_a_preferred_rack_at_once() -> None:
    #  block a: six nodes in three racks      block b: six nodes in two racks
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
        a/r3  n5 n6
        b/r4  n7 n8 n9
        b/r5  n10 n11 n12
    """)
    plan = scene.place(scene.gang("g", 5, required_level=BLOCK, preferred_level=RACK))
    assert dict(plan.domains) == {BLOCK: 1, RACK: 2, HOST: 5}
    assert {rack[0] for rack in scene.racks_of(plan)} == {"b"}


def test_a_preferred_rack_prefers_few_racks_to_one_block() -> None:
    #  three racks in one block, or two racks in two blocks
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
        a/r3  n5 n6
        b/r4  n7 n8 n9
        c/r5  n10 n11 n12
    """)
    plan = scene.place(scene.gang("g", 6, preferred_level=RACK))
    assert dict(plan.domains) == {BLOCK: 2, RACK: 2, HOST: 6}
    plan = scene.place(scene.gang("h", 6))
    assert dict(plan.domains)[BLOCK] == 1


def test_nodes_without_a_rack_never_satisfy_a_required_rack() -> None:
    scene = Scene("""
        a/-   n1 n2 n3
        a/r1  n4 n5
    """)
    assert set(scene.racks_of(scene.place(scene.gang("g", 2, required_level=RACK)))) == {"a/r1"}
    assert isinstance(scene.decide(scene.gang("h", 3, required_level=RACK)), Wait)
    assert isinstance(scene.decide(scene.gang("i", 5)), Plan)


def test_a_flat_cluster_without_any_topology_label_works() -> None:
    scene = Scene("-/- n1 n2 n3")
    assert dict(scene.place(scene.gang("g", 3)).domains)[HOST] == 3


def test_any_number_of_levels() -> None:
    levels = ("dc", BLOCK, "row", RACK, NVLINK, HOST)
    scene = Scene("", levels=levels)
    for number in range(16):
        bits = [number >> shift & 1 for shift in (3, 2, 1)]
        labels = {"dc": "d", "row": f"w{bits[1]}", NVLINK: f"c{number // 2}"}
        scene.node(f"n{number:02}", block=f"b{bits[0]}", rack=f"r{number // 4}", labels=labels)
    plan = scene.place(scene.gang("g", 2, required_level=NVLINK))
    assert dict(plan.domains)[NVLINK] == 1
    assert dict(scene.place(scene.gang("h", 8)).domains)[BLOCK] == 1


def test_eighteen_hosts_of_an_nvlink_domain_hold_seventy_two_pods() -> None:
    scene = Scene("", levels=(BLOCK, NVLINK, HOST))
    for clique in range(3):
        for host in range(18):
            scene.node(f"c{clique}-{host:02}:4", block="a", labels={NVLINK: f"c{clique}"})
    scene.run("c0-00", gpu=1)
    plan = scene.place(scene.gang("g", 72, gpu=1, required_level=NVLINK))
    assert {name[:2] for name in scene.nodes_of(plan)} == {"c1"}


# --- slices ---------------------------------------------------------------------------


@pytest.fixture
def racks() -> Scene:
    #  r1 ─ 3 nodes      r2 ─ 3 nodes      r3 ─ 5 nodes
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        b/r3  n7 n8 n9 n10 n11
    """)


def by_slice(scene: Scene, plan: Plan, size: int) -> list[set[str]]:
    found = scene.racks_of(plan)
    return [set(found[i : i + size]) for i in range(0, len(found), size)]


def test_every_slice_is_whole_in_one_rack(racks: Scene) -> None:
    plan = racks.place(racks.gang("g", 8, slice_size=2, slice_level=RACK))
    assert all(len(found) == 1 for found in by_slice(racks, plan, 2))


def test_slices_that_do_not_fit_rack_by_rack_wait(racks: Scene) -> None:
    # 11 nodes are free, but only 1 + 1 + 2 slices of two
    assert isinstance(racks.decide(racks.gang("g", 10, slice_size=2, slice_level=RACK)), Wait)


def test_slices_inside_a_required_block(racks: Scene) -> None:
    plan = racks.place(racks.gang("g", 6, slice_size=3, slice_level=RACK, required_level=BLOCK))
    assert by_slice(racks, plan, 3) == [{"a/r1"}, {"a/r2"}]


def test_a_lost_member_goes_back_to_its_slice(racks: Scene) -> None:
    key = racks.gang("g", 4, slice_size=2, slice_level=RACK, required_level=BLOCK, gpu=4)
    plan = racks.place(key)
    uids = racks.bind(plan)
    homes = racks.racks_of(plan)
    for rank in (0, 3):
        racks.end(uids[rank])
    racks.members(key, [0, 3], pod_class(4))
    assert racks.racks_of(racks.place(key)) == [homes[0], homes[3]]


def test_leader_and_workers_of_a_slice_stay_together(racks: Scene) -> None:
    key = racks.gang("g", 6, members=0, slice_size=3, slice_level=RACK)
    for first in (0, 3):
        racks.members(key, [first], pod_class(0, 2000), role="leader")
        racks.members(key, [first + 1, first + 2], pod_class(8), role="worker")
    plan = racks.place(key)
    assert all(len(found) == 1 for found in by_slice(racks, plan, 3))


def test_extended_resources_are_the_ones_asked_for() -> None:
    scene = Scene("")
    scene.node("gpu", rack="r1")
    scene.node("npu:0", rack="r1", allocatable={"huawei.com/Ascend910": 8, GPU: 0})
    kind = pod_class(0)
    kind = type(kind)(requests=(*kind.requests, ("huawei.com/Ascend910", 8)))
    assert scene.nodes_of(scene.place(scene.gang("g", 1, like=kind))) == ["npu"]
