"""Lost members: what the gang requires holds for those that come after them."""

from dataclasses import replace

import pytest
from support.clusters.scene import BLOCK, HOST, RACK, Scene, pod_class, roles
from support.clusters.standby import Standby
from support.clusters.standing import pairs, standing

from muster.placement.decision import Wait, WaitReason
from muster.placement.search import joint

TWO_BLOCKS = """
    a/r1  n0
    b/r2  n1 n2
"""


def test_a_lost_leader_outside_the_slices_stays_in_the_required_block() -> None:
    scene = Scene(TWO_BLOCKS + "b/r3  n3")
    key = standing(
        scene,
        "g",
        ["leader - 8", "worker n1 8", "worker n2 8"],
        required_level=BLOCK,
        **pairs("worker"),
    )
    assert scene.nodes_of(scene.place(key)) == ["n3"]


def test_a_lost_leader_outside_the_slices_waits_when_the_required_block_is_full() -> None:
    scene = Scene(TWO_BLOCKS)
    key = standing(
        scene,
        "g",
        ["leader - 8", "worker n1 8", "worker n2 8"],
        required_level=BLOCK,
        **pairs("worker"),
    )
    assert isinstance(scene.decide(key), Wait)


def test_a_lost_worker_waits_when_the_rack_of_its_slice_is_full() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
    """)
    key = standing(scene, "g", ["master n1 8", "worker n2 8", "worker - 8"], **pairs("worker"))
    found = scene.decide(key)
    assert isinstance(found, Wait)
    assert found.reason is WaitReason.NO_DOMAIN_FITS


def test_it_waits_there_too_where_the_exact_search_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(joint, "MOST_HOSTS", 0)
    test_a_lost_worker_waits_when_the_rack_of_its_slice_is_full()


def test_lost_members_of_two_kinds_wait_when_no_node_of_their_rack_has_room() -> None:
    scene = Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
    """)
    members = ["leader - 4", "worker n1 8", "worker n2 8", "worker - 8"]
    found = scene.decide(standing(scene, "g", members, required_level=RACK))
    assert isinstance(found, Wait)
    assert found.reason is WaitReason.NOT_ENOUGH_ROOM


def test_a_lost_worker_is_not_rejected_for_the_size_of_its_slice() -> None:
    """The node of its leader counts as room for the leader, not for a second worker."""
    scene = Scene("a/r1  n0:2 n1:4")
    key = standing(scene, "g", ["leader n0 1", "worker - 4"], **pairs())
    assert scene.nodes_of(scene.place(key)) == ["n1"]


def test_a_lost_member_stays_on_the_host_of_its_gang() -> None:
    """The other host of the rack would be filled exactly."""
    scene = Scene("a/r1  n0:4 n1:8")
    key = standing(scene, "g", ["w n1 4", "w - 4"])
    assert scene.nodes_of(scene.place(key)) == ["n1"]


def test_a_lost_member_of_a_slice_stays_on_the_host_of_its_gang() -> None:
    scene = Scene("a/r1  n0:4 n1:8")
    key = standing(scene, "g", ["w n1 4", "w - 4"], **pairs())
    assert scene.nodes_of(scene.place(key)) == ["n1"]


def test_a_lost_slice_goes_where_its_gang_is() -> None:
    """Another block would be filled exactly; the rack of the gang has room for one of the two."""
    scene = Scene("""
        a/r1  n0:4 n1:4
        b/r2  n2 n3:4
        b/r3  n4 n5
    """)
    scene.run("n3", gpu=1)
    key = standing(scene, "g", ["w n2 4", "w n2 4", "w - 4", "w - 4"], **pairs())
    assert scene.nodes_of(scene.place(key)) == ["n4", "n4"]


def test_a_lost_slice_of_hosts_stays_on_the_hosts_of_its_gang() -> None:
    scene = Scene("a/r1  n0:4 n1:12")
    key = standing(scene, "g", ["w n1 4", "w n1 2", "w - 2", "w - 2"], **pairs(level=HOST))
    assert scene.nodes_of(scene.place(key)) == ["n1", "n1"]


def test_a_lost_worker_belongs_to_its_slice_while_the_leader_is_lost_too() -> None:
    """Workers are counted among themselves, the leader that is not there yet before them."""
    scene = Scene("""
        a/r1  n1 n2 n0
        a/r2  n3 n4 n5
    """)
    members = ["leader n3 4", "worker n3 4", "worker n1 8", "worker n4 8", "worker n5 8"]
    key = standing(scene, "g", members, size=5, roles=roles(leader=1, worker=4), **pairs("worker"))
    uids = [uid for uid, pod in scene._pods.items() if pod.gang == key]
    scene.end(uids[0])
    scene.end(uids[1])
    scene.members(key, [1], pod_class(4), role="worker")
    assert scene.racks_of(scene.place(key)) == ["a/r1"]


def test_members_that_are_ending_still_count_where_ranks_are_counted_by_role() -> None:
    scene = Standby("""
        a/r1  n1 n2
        a/r2  n3 n4 n5
    """)
    scene.node("n0", block="a", rack="r3")
    members = ["leader n0 8", "worker n1 8", "worker n2 8", "worker n3 8", "worker - 8"]
    key = standing(scene, "g", members, size=5, **pairs("worker"))
    leader = next(uid for uid, pod in scene._pods.items() if pod.role == "leader")
    scene._apply(replace(scene._pods[leader], terminating=True))
    assert scene.racks_of(scene.place(key)) == ["a/r2"]


def test_members_of_several_jobs_are_in_slices_by_rank_and_not_by_number() -> None:
    """Two jobs of three pods: member 0 of the second job is the fourth of the gang."""
    scene = Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
    """)
    runs = {"rank_runs": ((2, 3),), "slice_size": 3, "slice_level": RACK}
    key = scene.gang("g", 6, members=0, **runs)
    numbers = [0, 1, 2, 1 << 14, (1 << 14) + 1, (1 << 14) + 2]
    uids = scene.members(key, numbers, pod_class())
    for uid, node in zip(uids[:5], ["n1", "n2", "n3", "n4", "n5"], strict=True):
        scene._apply(replace(scene._pods[uid], node=node, gates=frozenset()))
    scene.end(uids[2])
    scene.members(key, numbers[2:3], pod_class())
    assert scene.nodes_of(scene.place(key)) == ["n3", "n6"]
