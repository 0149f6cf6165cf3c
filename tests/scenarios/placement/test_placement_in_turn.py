"""Slices beside other members, one after the other: where the gang may go at all.

Exactly or in turn, where the cluster is too large for that: the answers are the same here.
"""

import pytest
from support.clusters.scene import BLOCK, Scene
from support.clusters.standing import pairs, standing

from muster.placement.decision import Wait
from muster.placement.search import joint

MASTER_AND_FOUR = ["master - 4", *["worker - 8"] * 4]
FULL = """
    a/r1  n1 n2
    a/r2  n3
"""


@pytest.fixture(params=[joint.MOST_HOSTS, 0], ids=["exactly", "in turn"], autouse=True)
def _search(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MOST_HOSTS", request.param)


def test_slices_stay_in_one_block_though_racks_of_another_would_be_filled() -> None:
    scene = Scene(
        FULL
        + """
        b/r3  n4 n5 n6
        b/r4  n7 n8 n9
    """
    )
    key = standing(scene, "g", MASTER_AND_FOUR, required_level=BLOCK, **pairs("worker"))
    assert {rack[0] for rack in scene.racks_of(scene.place(key))} == {"b"}


def test_slices_go_to_the_block_that_holds_them_though_another_has_as_much_room() -> None:
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4
        a/r3  n5
        b/r4  n6 n7
        b/r5  n8 n9
        b/r6  n10
    """)
    key = standing(scene, "g", MASTER_AND_FOUR, required_level=BLOCK, **pairs("worker"))
    assert {rack[0] for rack in scene.racks_of(scene.place(key))} == {"b"}


def test_a_lost_slice_stays_in_the_block_of_its_gang_and_waits_where_no_rack_there_holds_it() -> (
    None
):
    scene = Scene(
        FULL
        + """
        a/r4  n6
        a/r5  n8
        b/r3  n4 n5
    """
    )
    members = ["master n3 4", "worker n1 8", "worker n2 8", "worker - 8", "worker - 8"]
    key = standing(scene, "g", members, required_level=BLOCK, **pairs("worker"))
    assert isinstance(scene.decide(key), Wait)
    scene.node("n7", block="a", rack="r4")
    assert scene.nodes_of(scene.place(key)) == ["n6", "n7"]


@pytest.mark.parametrize("required", [{}, {"required_level": BLOCK}], ids=["anywhere", "one block"])
def test_no_member_goes_to_a_node_without_the_labels_of_the_slices(
    required: dict[str, str],
) -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/-   n3
    """)
    members = ["master - 4", "worker - 8", "worker - 8"]
    key = standing(scene, "g", members, **required, **pairs("worker"))
    assert isinstance(scene.decide(key), Wait)
    scene.node("n4", block="a", rack="r2")
    assert scene.nodes_of(scene.place(key)) == ["n4", "n1", "n2"]
