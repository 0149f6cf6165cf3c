"""Trees whose branches differ in width and in depth; leaves of one are racks of another.

::

    block a ── rack r1    n1 n2 n3 n4 n5 n6
    block b ─┬ rack r1    m1 m2
             ├ rack r2    m3 m4
             └ rack r3    m5
    block c ── (no rack)  k1 k2 k3
"""

import pytest
from support.clusters.scene import BLOCK, RACK, Scene

from muster.placement.decision import Wait


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2 n3 n4 n5 n6
        b/r1  m1 m2
        b/r2  m3 m4
        b/r3  m5
        c/-   k1 k2 k3
    """)


def test_a_small_gang_takes_the_small_rack_and_leaves_the_wide_one_whole(scene: Scene) -> None:
    plan = scene.place(scene.gang("g", 2, required_level=RACK))
    assert set(scene.racks_of(plan)) <= {"b/r1", "b/r2"}


def test_a_gang_of_six_takes_the_one_wide_rack_although_its_block_has_no_other(
    scene: Scene,
) -> None:
    assert set(scene.racks_of(scene.place(scene.gang("g", 6)))) == {"a/r1"}


def test_where_the_wide_rack_is_taken_a_block_of_small_racks_is_shared(scene: Scene) -> None:
    scene.run("n1")
    scene.run("n2")
    plan = scene.place(scene.gang("g", 5, required_level=BLOCK, preferred_level=RACK))
    assert sorted(scene.nodes_of(plan)) == ["m1", "m2", "m3", "m4", "m5"]


def test_a_block_without_racks_is_a_block_and_never_a_rack(scene: Scene) -> None:
    for node in ("n1", "n2", "n3", "n4", "m1", "m3", "m5"):
        scene.run(node)
    in_a_block = scene.place(scene.gang("blocked", 3, required_level=BLOCK))
    assert sorted(scene.nodes_of(in_a_block)) == ["k1", "k2", "k3"]
    waits = scene.decide(scene.gang("racked", 3, required_level=RACK))
    assert isinstance(waits, Wait)


def test_slices_use_racks_of_any_width_and_fill_the_wide_one_with_several(scene: Scene) -> None:
    plan = scene.place(scene.gang("g", 10, slice_size=2, slice_level=RACK))
    racks = scene.racks_of(plan)
    assert all(racks[i] == racks[i + 1] for i in range(0, 10, 2))
    assert sorted(racks) == ["a/r1"] * 6 + ["b/r1"] * 2 + ["b/r2"] * 2
