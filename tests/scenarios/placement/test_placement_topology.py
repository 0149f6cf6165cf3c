"""Where on the fabric: fewest domains, least left over, ranks along the cables, slices."""

import pytest
from support.clusters.scene import BLOCK, GPU, HOST, RACK, Scene, pod_class

from muster.placement.decision import Plan, Reject, RejectReason, Wait
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.reasons.explanation import render

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


@pytest.fixture
def blocks() -> Scene:
    #  block a: racks of 3, 3 and 2 nodes      block b: racks of 4 and 4 nodes
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        a/r3  n7 n8
        b/r4  n9 n10 n11 n12
        b/r5  n13 n14 n15 n16
    """)


def test_slices_of_slices_are_whole_in_one_block_and_one_rack(blocks: Scene) -> None:
    wishes = {"slice_size": 2, "slice_level": RACK, "wider_slices": ((BLOCK, 6),)}
    plan = blocks.place(blocks.gang("g", 12, **wishes))
    assert all(len(racks) == 1 for racks in by_slice(blocks, plan, 2))
    assert [{rack[0] for rack in six} for six in by_slice(blocks, plan, 6)] == [{"a"}, {"b"}]


def test_a_block_is_worth_only_the_wider_slices_that_its_racks_make(blocks: Scene) -> None:
    # block a has 8 nodes and b 8, but a only 3 slices of two: one wider slice of 6 each
    wishes = {"slice_size": 2, "slice_level": RACK, "wider_slices": ((BLOCK, 8),)}
    assert isinstance(blocks.decide(blocks.gang("g", 16, **wishes)), Wait)
    assert isinstance(blocks.decide(blocks.gang("h", 8, **wishes)), Plan)


def test_a_lost_member_goes_back_to_its_slice_of_a_slice(blocks: Scene) -> None:
    wishes = {"slice_size": 2, "slice_level": RACK, "wider_slices": ((BLOCK, 4),)}
    key = blocks.gang("g", 8, **wishes)
    plan = blocks.place(key)
    uids = blocks.bind(plan)
    homes = blocks.racks_of(plan)
    for rank in (0, 1, 6):
        blocks.end(uids[rank])
    blocks.members(key, [0, 1, 6], pod_class(8))
    again = blocks.racks_of(blocks.place(key))
    assert again[2] == homes[6]
    assert {rack[0] for rack in again[:2]} == {homes[2][0]}


def test_the_partial_slice_comes_last_on_every_level() -> None:
    #  r1 holds one slice and a half: the half is the end of the gang, so block a is too
    scene = Scene("""
        a/r1  n1 n2 n3
        b/r2  n4 n5
        b/r3  n6 n7
    """)
    plan = scene.place(scene.gang("g", 7, slice_size=2, slice_level=RACK))
    assert by_slice(scene, plan, 2)[-1] == {"a/r1"}
    blocks_in_turn = [rack[0] for rack in scene.racks_of(plan)]
    assert blocks_in_turn == sorted(blocks_in_turn, reverse=True)


# --- nodes without labels -------------------------------------------------------------


def test_nodes_without_a_rack_are_no_rack_together() -> None:
    #  four nodes that lack the label could be anywhere: two racks are better
    scene = Scene("""
        a/-   n1 n2 n3 n4
        a/r1  n5 n6
        a/r2  n7 n8
    """)
    plan = scene.place(scene.gang("g", 4, preferred_level=RACK))
    assert set(scene.racks_of(plan)) == {"a/r1", "a/r2"}
    assert dict(plan.domains)[RACK] == 2


def test_a_rack_without_a_block_is_a_block_of_its_own() -> None:
    #  r1 and r2 lack the block's label: two blocks, where b is one
    scene = Scene("""
        -/r1  n1 n2
        -/r2  n3 n4
        b/r3  n5 n6
        b/r4  n7 n8
    """)
    assert dict(scene.place(scene.gang("g", 4)).domains)[BLOCK] == 1
    assert set(scene.racks_of(scene.place(scene.gang("h", 4)))) == {"b/r3", "b/r4"}


# --- below the first level ------------------------------------------------------------


def test_racks_are_chosen_so_that_the_hosts_in_them_are_few() -> None:
    #  13 pods need two racks whichever; r1 with r3 does it on two hosts
    scene = Scene("""
        a/r1  n1:8
        a/r2  n2:1 n3:1 n4:1 n5:1 n6:1 n7:1 n8:1 n9:1
        a/r3  n10:5 n11:1 n12:1 n13:1
    """)
    plan = scene.place(scene.gang("g", 13, gpu=1))
    assert dict(plan.domains) == {BLOCK: 1, RACK: 2, HOST: 2}
    assert plan.proven


# --- a preference that is a requirement for a while -----------------------------------


def test_a_preferred_rack_is_required_until_it_relaxes() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
    """)
    wishes = {"preferred_level": RACK, "relax_after": 600.0, "submitted_at": 1_000.0}
    key = scene.gang("g", 3, **wishes)
    early = plan_now(scene.snapshot, Question(key, now=1_599.0))
    assert isinstance(early, Wait)
    assert early.explanation.relaxes_at == 1_600.0
    assert render(early)[-1] == (
        "one rack is required until 1970-01-01T00:26:40Z, from then on it is only preferred"
    )
    late = plan_now(scene.snapshot, Question(key, now=1_600.0))
    assert isinstance(late, Plan)
    assert dict(late.domains)[RACK] == 2


def test_a_rack_that_is_free_is_taken_at_once_and_nothing_is_waited_for() -> None:
    scene = Scene("a/r1 n1 n2")
    wishes = {"preferred_level": RACK, "relax_after": 600.0, "submitted_at": 1_000.0}
    key = scene.gang("g", 2, **wishes)
    assert isinstance(plan_now(scene.snapshot, Question(key, now=1_000.0)), Plan)


# --- wishes that contradict themselves ------------------------------------------------


@pytest.mark.parametrize(
    ("wishes", "reason", "named"),
    [
        (
            {"slice_size": 4, "slice_level": RACK},
            RejectReason.LARGER_THAN_ANY_DOMAIN,
            "has 4 members; the largest muster.dev/rack takes 3 when empty",
        ),
        (
            {"slice_size": 2, "slice_level": RACK, "wider_slices": ((BLOCK, 3),)},
            RejectReason.CONTRADICTORY_SPEC,
            'slice_size: "3" is not allowed: such slices are to consist of whole slices of 2',
        ),
        (
            {"slice_size": 2, "slice_level": BLOCK, "wider_slices": ((RACK, 4),)},
            RejectReason.CONTRADICTORY_SPEC,
            'slice_level: "muster.dev/block" is not allowed: such slices are parts of slices in',
        ),
        (
            {"slice_size": 2, "slice_level": RACK, "wider_slices": ((BLOCK, 8),)},
            RejectReason.CONTRADICTORY_SPEC,
            'slice_size: "8" is not allowed: the gang has 6 members',
        ),
        (
            {"slice_size": 2, "slice_level": RACK, "wider_slices": (("row", 4),)},
            RejectReason.UNKNOWN_LEVEL,
            'slice_level: "row" is not allowed',
        ),
        ({"relax_after": 60.0}, RejectReason.CONTRADICTORY_SPEC, "no preferred level to relax"),
        (
            {"min_count": 7},
            RejectReason.CONTRADICTORY_SPEC,
            'min_count: "7" is not allowed: the gang has 6 members',
        ),
    ],
)
def test_a_wish_that_cannot_be_met_is_rejected_at_once(
    racks: Scene, wishes: dict[str, object], reason: RejectReason, named: str
) -> None:
    racks.remove_node("n10")
    racks.remove_node("n11")
    decision = racks.decide(racks.gang("g", 6, **wishes))
    assert isinstance(decision, Reject)
    assert decision.reason is reason
    assert named in decision.message
