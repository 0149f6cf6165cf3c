"""Equally good places: the one that leaves least over, so that large hosts and racks stay whole."""

import pytest
from support.clusters.scene import BLOCK, HOST, RACK, Scene, pod_class
from support.clusters.standing import pairs, standing

LARGE_AND_SMALL = """
    a/r1  n1 n2 n3
    a/r2  n4
"""


def test_a_lone_pod_goes_to_the_rack_that_it_fills() -> None:
    scene = Scene(LARGE_AND_SMALL)
    assert scene.nodes_of(scene.place(scene.gang("g", 1))) == ["n4"]


def test_a_lone_pod_goes_to_the_block_that_has_least_left() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
        b/r3  n5 n6
    """)
    assert scene.nodes_of(scene.place(scene.gang("g", 1))) == ["n5"]


def test_a_lone_pod_without_gpus_fills_the_small_rack_too() -> None:
    scene = Scene(LARGE_AND_SMALL)
    scene.gang("those to come", 2)
    assert scene.nodes_of(scene.place(scene.gang("g", 1, 0))) == ["n4"]


def test_slices_go_to_the_racks_that_they_fill() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5
        a/r3  n6 n7 n8
        a/r4  n9 n10
    """)
    key = standing(scene, "g", ["w - 8"] * 4, **pairs())
    assert set(scene.racks_of(scene.place(key))) == {"a/r2", "a/r4"}


def test_a_slice_goes_to_the_smallest_rack_that_holds_it() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5
    """)
    key = standing(scene, "g", ["w - 8"] * 2, **pairs())
    assert set(scene.racks_of(scene.place(key))) == {"a/r2"}


@pytest.mark.parametrize("level", [RACK, HOST])
def test_a_slice_goes_to_the_smallest_host_that_holds_it(level: str) -> None:
    scene = Scene("a/r1  n1 n2:4 n3")
    key = standing(scene, "g", ["w - 2"] * 2, **pairs(level=level))
    assert set(scene.nodes_of(scene.place(key))) == {"n2"}


def test_a_slice_goes_to_the_host_where_it_leaves_the_least() -> None:
    """Both have room for one whole slice; n1 for half of another."""
    scene = Scene("a/r1  n1:6 n2:4")
    key = standing(scene, "g", ["w - 2"] * 2, **pairs(level=HOST))
    assert set(scene.nodes_of(scene.place(key))) == {"n2"}


def test_slices_of_two_hosts_take_the_small_hosts() -> None:
    scene = Scene("a/r1  n1:16 n2 n3:16 n4")
    key = standing(scene, "g", ["w - 4"] * 4, **pairs(level=HOST))
    plan = scene.place(key)
    assert set(scene.nodes_of(plan)) == {"n1"}  # fewest hosts come first
    scene.hold(plan)
    key = standing(scene, "h", ["w - 8"] * 2, **pairs(size=1, level=HOST))
    assert set(scene.nodes_of(scene.place(key))) == {"n3"}


def test_slices_of_one_role_leave_the_large_rack_whole() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3 n4
        a/r2  n5 n6
        a/r3  n7 n8 n9
    """)
    key = standing(scene, "g", ["l - 8", "w - 8", "w - 8"], **pairs("w"))
    assert scene.racks_of(scene.place(key)) == ["a/r3"] * 3  # one rack is fewer than two


def test_a_gang_of_equal_members_leaves_the_large_block_whole() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
        b/r3  n5 n6
    """)
    key = scene.gang("g", 2, required_level=BLOCK)
    assert set(scene.racks_of(scene.place(key))) == {"b/r3"}


def test_a_small_pod_goes_to_the_small_host() -> None:
    scene = Scene("a/r1  n1 n2:4 n3")
    scene.gang("those to come", 2, like=pod_class(8))
    assert scene.nodes_of(scene.place(scene.gang("g", 1, 4))) == ["n2"]
