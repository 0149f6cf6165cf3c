"""Slices of members whose numbers say nothing: Jobs of one gang that count from 0 each, or none.

::

    a/r1  n1 n2      Job one: 0 1 2 3
    a/r2  n3 n4      Job two: 0 1 2 3      slices of two, 8 GPUs each
    …
"""

from dataclasses import replace

import pytest
from support.clusters.scene import BLOCK, RACK, Scene, pod_class
from support.clusters.standby import Standby

from muster.cluster.ids import GangKey
from muster.placement.decision import Plan, Wait

RACKS = """
    a/r1  n1 n2
    a/r2  n3 n4
    a/r3  n5 n6
    a/r4  n7 n8
"""
PAIRS: dict[str, object] = {"slice_size": 2, "slice_level": RACK}


def two_jobs(scene: Scene, **more: object) -> GangKey:
    """Create a gang of two Jobs that count from 0 each; the first Job asks for more CPUs."""
    key = scene.gang("g", 8, members=0, **PAIRS, **more)  # type: ignore[arg-type]
    for cpu in (4000, 1000):
        scene.members(key, range(4), pod_class(cpu=cpu))
    return key


def lose(scene: Scene, key: GangKey, node: str) -> None:
    """End the member on a node, and create its successor."""
    (uid,) = (u for u, pod in scene._pods.items() if pod.gang == key and pod.node == node)
    lost = scene._pods[uid]
    scene.end(uid)
    scene.members(key, [lost.rank], lost.pod_class, role=lost.role)


def test_two_jobs_that_count_from_0_each_are_placed_in_slices() -> None:
    scene = Scene(RACKS)
    key = two_jobs(scene)
    racks = scene.racks_of(scene.place(key))
    assert racks[::2] == racks[1::2]
    assert len(set(racks)) == 4


def test_a_slice_has_members_of_one_job_where_it_can() -> None:
    scene = Scene(RACKS)
    key = two_jobs(scene)
    plan = scene.place(key)
    kinds = scene.snapshot.pods.pod_class[plan.pods].tolist()
    assert [kinds[at] == kinds[at + 1] for at in range(0, 8, 2)] == [True] * 4
    assert scene.snapshot.pods.rank[plan.pods].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


@pytest.mark.parametrize("node", [f"n{n}" for n in range(1, 9)])
def test_a_lost_member_goes_back_to_the_rack_that_lacks_one(node: str) -> None:
    scene = Standby(RACKS)
    key = two_jobs(scene)
    scene.start(key)
    lose(scene, key, node)
    found = scene.ask(key)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == [node]


def test_a_lost_member_waits_where_no_rack_that_lacks_one_has_room() -> None:
    scene = Standby(RACKS + "a/r5  n9")
    key = two_jobs(scene)
    scene.start(key)
    lose(scene, key, "n5")
    scene.run("n5")
    assert isinstance(scene.ask(key), Wait)


def test_of_two_racks_that_lack_one_the_one_with_room_gets_the_member_that_is_back() -> None:
    scene = Standby(RACKS)
    key = two_jobs(scene)
    scene.start(key)
    for node in ("n2", "n8"):
        (uid,) = (u for u, pod in scene._pods.items() if pod.gang == key and pod.node == node)
        scene.end(uid)
    scene.run("n2")
    scene.members(key, [1], pod_class())
    found = scene.ask(key)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == ["n8"]


def test_a_job_that_comes_later_makes_slices_of_its_own() -> None:
    scene = Standby(RACKS)
    key = scene.gang("g", 4, size=8, members=0, **PAIRS)  # type: ignore[arg-type]
    scene.members(key, range(4), pod_class())
    scene.start(key)
    scene.members(key, range(4), pod_class())
    found = scene.ask(key)
    assert isinstance(found, Plan)
    assert scene.racks_of(found) == ["a/r3", "a/r3", "a/r4", "a/r4"]


def test_slices_of_slices_keep_their_block_where_numbers_come_twice() -> None:
    scene = Standby("""
        a/r1  n1 n2
        a/r2  n3 n4
        b/r3  n5 n6
        b/r4  n7 n8
        c/r5  n9 n10
    """)
    key = two_jobs(scene, wider_slices=((BLOCK, 4),))
    scene.start(key)
    for node in ("n1", "n2"):
        lose(scene, key, node)
    found = scene.ask(key)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == ["n1", "n2"]


def test_members_without_numbers_that_others_bound_are_repaired_where_they_stand() -> None:
    """Nobody gave them numbers: they ran before Muster came."""
    scene = Standby(RACKS)
    key = scene.gang("g", 8, members=0, **PAIRS)
    uids = scene.members(key, range(8), pod_class())
    for number, uid in enumerate(uids):
        scene._apply(replace(scene._pods[uid], node=f"n{number + 1}", rank=-1, gates=frozenset()))
    lose(scene, key, "n2")
    found = scene.ask(key)
    assert isinstance(found, Plan)
    assert scene.nodes_of(found) == ["n2"]


def test_hot_spares_stand_beside_each_slice_where_numbers_come_twice() -> None:
    scene = Standby("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
    """)
    key = scene.gang("g", 4, members=0, standby=1, **PAIRS)
    for _ in range(2):
        scene.members(key, range(2), pod_class())
    scene.start(key)
    assert {scene.rack_of(node) for node in scene.hot_spares(key)} == {"a/r1", "a/r2"}
