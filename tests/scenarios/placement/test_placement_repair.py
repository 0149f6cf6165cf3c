"""Members that were lost: where their successors go.

::

    block a ─┬─ rack r1 ── n1 n2 n3        block b ── rack r3 ── n7 n8 n9
             └─ rack r2 ── n4 n5 n6        (8 GPUs each)
"""

from dataclasses import replace

import pytest
from support.clusters.scene import BLOCK, RACK, Scene, pod_class

from muster.cluster.ids import PodUid
from muster.placement.decision import Wait


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        b/r3  n7 n8 n9
    """)


def leave(scene: Scene, uid: PodUid) -> None:
    """Have a pod terminate: it keeps its room until it is gone."""
    scene._apply(replace(scene._pods[uid], terminating=True))


def test_a_gang_made_anew_is_not_drawn_to_members_that_are_ending(scene: Scene) -> None:
    gang = scene.gang("g", 2, required_level=RACK)
    for uid in scene.bind(scene.place(gang)):
        leave(scene, uid)
    scene.members(gang, range(2), pod_class())
    (old,) = {scene.rack_of(node) for node in scene.used_by(gang)}
    assert set(scene.racks_of(scene.place(gang))).isdisjoint({old})


def test_a_gang_made_anew_waits_whole_while_its_old_members_end(scene: Scene) -> None:
    gang = scene.gang("g", 3, required_level=RACK)
    for uid in scene.bind(scene.place(gang)):
        leave(scene, uid)
    assert scene.used_by(gang) == {"n7", "n8", "n9"}
    scene.run("n1")
    scene.run("n4")
    scene.members(gang, range(3), pod_class())
    assert isinstance(scene.decide(gang), Wait)


def test_the_successor_of_a_member_that_is_ending_is_placed_beside_those_that_stay(
    scene: Scene,
) -> None:
    gang = scene.gang("g", 2, required_level=RACK)
    first, _ = scene.bind(scene.place(gang))
    leave(scene, first)
    scene.members(gang, range(1), pod_class())
    (old,) = {scene.rack_of(node) for node in scene.used_by(gang)}
    assert scene.racks_of(scene.place(gang)) == [old]


@pytest.mark.parametrize("lost", [0, 3])
def test_a_lost_member_is_replaced_on_the_rack_where_its_neighbours_in_rank_are(
    scene: Scene, lost: int
) -> None:
    """The other rack of the gang has less room to spare, so size alone would choose it."""
    kept_free = [scene.run("n3"), scene.run("n6")]
    gang = scene.gang("g", 4, required_level=BLOCK)
    placed = scene.place(gang)
    racks = scene.racks_of(placed)
    assert racks[0] == racks[1] != racks[2] == racks[3]
    uids = scene.bind(placed)
    for uid in [*kept_free, uids[lost]]:
        scene.end(uid)
    scene.members(gang, [lost], pod_class())
    assert scene.racks_of(scene.place(gang)) == [racks[lost]]


def test_members_lost_on_two_racks_are_replaced_each_on_its_own(scene: Scene) -> None:
    """One rack could take both."""
    kept_free = scene.run("n3"), scene.run("n6")
    gang = scene.gang("g", 4, required_level=BLOCK)
    placed = scene.place(gang)
    racks = scene.racks_of(placed)
    uids = scene.bind(placed)
    for uid in (kept_free[0], uids[0], uids[3]):
        scene.end(uid)
    scene.members(gang, [0, 3], pod_class())
    assert scene.racks_of(scene.place(gang)) == [racks[0], racks[3]]


def test_a_lost_member_goes_elsewhere_when_the_rack_of_its_neighbours_is_full(
    scene: Scene,
) -> None:
    gang = scene.gang("g", 6, required_level=BLOCK)
    placed = scene.place(gang)
    uids = scene.bind(placed)
    lost = scene.nodes_of(placed)[0]
    scene.end(uids[0])
    scene.run(lost)
    scene.node("n10", block="a", rack="r9")
    scene.members(gang, [0], pod_class())
    assert scene.nodes_of(scene.place(gang)) == ["n10"]


def test_members_lost_in_two_slices_go_back_each_to_the_rack_of_its_own_slice(
    scene: Scene,
) -> None:
    gang = scene.gang("g", 4, slice_size=2, slice_level=RACK)
    placed = scene.place(gang)
    racks, nodes = scene.racks_of(placed), scene.nodes_of(placed)
    uids = scene.bind(placed)
    for rank in (1, 2):
        scene.end(uids[rank])
        scene.run(nodes[rank])
    scene.members(gang, [1, 2], pod_class())
    assert scene.racks_of(scene.place(gang)) == [racks[0], racks[3]]


def test_a_member_of_a_slice_waits_rather_than_leave_the_rack_of_its_slice(scene: Scene) -> None:
    gang = scene.gang("g", 4, slice_size=2, slice_level=RACK)
    placed = scene.place(gang)
    racks = scene.racks_of(placed)
    uids = scene.bind(placed)
    scene.end(uids[1])
    for node in ("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9"):
        if scene.rack_of(node) == racks[0] and node not in scene.used_by(gang):
            scene.run(node)
    scene.members(gang, [1], pod_class())
    assert isinstance(scene.decide(gang), Wait)


def test_a_lost_leader_goes_back_beside_its_workers(scene: Scene) -> None:
    """The emptier block could take it just as well."""
    gang = scene.gang("g", 3, members=0, preferred_level=RACK)
    scene.members(gang, [0], pod_class(gpu=2), role="leader")
    scene.members(gang, [1, 2], pod_class(gpu=8), role="worker")
    placed = scene.place(gang)
    (rack,) = set(scene.racks_of(placed))
    uids = scene.bind(placed)
    scene.end(uids[0])
    scene.members(gang, [0], pod_class(gpu=2), role="leader")
    assert scene.racks_of(scene.place(gang)) == [rack]
