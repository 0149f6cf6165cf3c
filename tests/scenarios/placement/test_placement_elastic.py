"""Elastic gangs: placed whenever their minimum is, and beyond it as many as fit, slice by slice."""

from collections import Counter

import pytest
from support.clusters.scene import BLOCK, HOST, Scene, pod_class, roles
from support.clusters.standing import pairs, standing

from muster.placement.decision import Plan, Reject, Wait

MASTER_AND_FOUR = ["master - 8", *["worker - 8"] * 4]


def test_a_gang_with_slices_of_one_role_is_placed_at_its_minimum() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
    """)
    key = standing(scene, "g", MASTER_AND_FOUR, min_count=3, **pairs("worker"))
    assert scene.nodes_of(scene.place(key)) == ["n3", "n1", "n2"]


def test_all_whole_slices_that_fit_are_placed() -> None:
    scene = Scene("a/r1  n1 n2 n3 n4 n5 n6 n7")
    members = ["master - 8", *["worker - 8"] * 8]
    key = standing(scene, "g", members, min_count=3, **pairs("worker"))
    plan = scene.place(key)
    assert len(plan.pods) == 7
    assert len(plan.left_over) == 2


@pytest.mark.parametrize(("hosts", "placed"), [(2, 2), (3, 2), (4, 4), (5, 4), (6, 6)])
def test_beyond_the_minimum_of_equal_members_only_whole_slices_are_placed(
    hosts: int, placed: int
) -> None:
    scene = Scene("a/r1 " + " ".join(f"n{i}" for i in range(hosts)))
    key = standing(scene, "g", ["w - 8"] * 6, min_count=2, **pairs())
    assert len(scene.place(key).pods) == placed


def test_equal_members_in_slices_are_counted_by_what_racks_hold_in_whole_slices() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        a/r3  n7 n8 n9
    """)
    key = standing(scene, "g", ["w - 8"] * 10, min_count=2, **pairs())
    assert len(scene.place(key).pods) == 6


def test_slices_that_come_late_to_a_running_gang_come_whole() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
    """)
    key = standing(scene, "g", ["w n1 8", "w n2 8", "w - 8", "w - 8"], min_count=2, **pairs())
    assert isinstance(scene.decide(key), Wait)
    scene.node("n4", block="a", rack="r2")
    assert scene.nodes_of(scene.place(key)) == ["n3", "n4"]


def test_the_rest_of_a_slice_that_the_minimum_cut_follows_before_other_slices() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
    """)
    key = standing(scene, "g", ["w - 8"] * 4, min_count=3, **pairs())
    plan = scene.place(key)
    assert Counter(scene.racks_of(plan)) == {"a/r1": 2, "a/r2": 1}
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3
        a/r3  n4 n5
    """)
    key = standing(scene, "g", ["w - 8"] * 6, min_count=3, **pairs())
    assert Counter(scene.racks_of(scene.place(key))) == {"a/r1": 2, "a/r3": 2}


def selecting(scene: Scene, places: list[str], **spec: object) -> Plan | Wait | Reject:
    """Decide about a gang whose members select one node each, by name."""
    key = scene.gang("g", len(places), members=0, **spec)
    for rank, place in enumerate(places):
        like = pod_class(8, node_selector=((HOST, place),))
        scene.members(key, [rank], like, role=f"role{rank}")
    return scene.decide(key)


def test_any_members_make_up_the_minimum() -> None:
    scene = Scene("a/r1  n1 n2")
    found = selecting(scene, ["nowhere", "n1"], min_count=1)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == ["n1"]
    assert len(found.left_over) == 1


def test_any_members_make_up_the_minimum_where_some_would_leave_the_required_block() -> None:
    scene = Scene("""
        a/r1  n1
        b/r2  n2 n3
    """)
    found = selecting(scene, ["n1", "n2", "n3"], min_count=2, required_level=BLOCK)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == ["n2", "n3"]


def test_a_role_still_needs_its_own_minimum() -> None:
    scene = Scene("a/r1  n1 n2")
    found = selecting(scene, ["nowhere", "n1"], min_count=1, roles=roles(role0=1))
    assert isinstance(found, Wait)


def test_a_member_larger_than_any_node_does_not_keep_the_others_from_their_minimum() -> None:
    scene = Scene("a/r1  n1 n2")
    key = standing(scene, "g", ["big - 16", "small - 8"], min_count=1)
    assert scene.nodes_of(scene.place(key)) == ["n1"]
    key = standing(scene, "h", ["big - 16", "small - 8"], min_count=2)
    assert isinstance(scene.decide(key), Reject)


def test_the_slices_that_fit_make_up_the_minimum_where_the_first_does_not() -> None:
    scene = Scene("""
        a/r1  n1:4 n2:4
        a/r2  n3:2
    """)
    members = ["big - 8", "big - 8", "small - 4", "small - 4"]
    scene.node("n9", block="a", rack="r9")
    scene.run("n9", gpu=5)
    key = standing(scene, "g", members, min_count=2, **pairs())
    assert scene.nodes_of(scene.place(key)) == ["n1", "n2"]


def test_more_of_the_small_kind_are_placed_rather_than_fewer_of_the_large() -> None:
    scene = Scene("a/r1  n1 n2")
    members = ["lead - 8", "big - 8", "small - 4", "small - 4"]
    key = standing(scene, "g", members, min_count=1)
    assert len(scene.place(key).pods) == 3
