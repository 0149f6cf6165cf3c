"""Which gangs wait for nodes that are not there, and what of them has to be placed.

::

    block a ─┬─ rack r1 ── n1 n2      (8 GPUs each)
             └─ rack r2 ── n3 n4
"""

import pytest
from support.clusters.scene import RACK, Scene, pod_class, roles

from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import Taint
from muster.placement.reasons.missingnodes import NodeNeed, PodSet, demand, lacks_nodes

WAYS = (NodeNeed.BEYOND_CLUSTER, NodeNeed.NO_ROOM)


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2
        a/r2  n3 n4
    """)


def lacking(scene: Scene, gang: GangKey) -> tuple[bool, bool]:
    """Return whether nodes are lacking by the narrow and by the wide meaning."""
    decision = scene.decide(gang)
    narrow, wide = (lacks_nodes(scene.snapshot, decision, need) for need in WAYS)
    return narrow, wide


def test_a_gang_that_fits_lacks_nothing(scene: Scene) -> None:
    assert lacking(scene, scene.gang("g", 4)) == (False, False)


def test_more_members_than_the_empty_cluster_holds(scene: Scene) -> None:
    scene.run("n1")
    assert lacking(scene, scene.gang("g", 5)) == (True, True)


def test_more_members_than_the_largest_rack_holds(scene: Scene) -> None:
    assert lacking(scene, scene.gang("g", 3, required_level=RACK)) == (True, True)


def test_room_that_others_hold_is_lacking_only_in_the_wide_meaning(scene: Scene) -> None:
    scene.run("n1")
    assert lacking(scene, scene.gang("g", 4)) == (False, True)


def test_kinds_of_members_that_fit_one_by_one_and_not_together(scene: Scene) -> None:
    gang = scene.gang("g", 5, members=0)
    scene.members(gang, range(4), pod_class(8))
    scene.members(gang, [4], pod_class(4))
    assert lacking(scene, gang) == (True, True)


def test_a_member_larger_than_any_node(scene: Scene) -> None:
    assert lacking(scene, scene.gang("g", 1, 16)) == (True, True)


def test_no_node_at_all() -> None:
    empty = Scene("")
    assert lacking(empty, empty.gang("g", 1)) == (True, True)


def test_no_node_of_the_kind_that_is_asked_for(scene: Scene) -> None:
    """A node group that is scaled to zero."""
    like = pod_class(node_selector=(("pool", "h100"),))
    assert lacking(scene, scene.gang("g", 1, like=like)) == (True, True)


def test_only_tainted_nodes_are_as_good_as_none(scene: Scene) -> None:
    for name in ("n1", "n2", "n3", "n4"):
        scene.node(name, taints=(Taint("reserved", "", "NoSchedule"),))
    assert lacking(scene, scene.gang("g", 1)) == (True, True)


def test_missing_members_are_not_cured_by_nodes(scene: Scene) -> None:
    assert lacking(scene, scene.gang("g", 5, members=4)) == (False, False)


def test_a_contradiction_is_not_cured_by_nodes(scene: Scene) -> None:
    assert lacking(scene, scene.gang("g", 5, problems=("x",))) == (False, False)


def test_the_minimum_is_asked_for_and_no_more(scene: Scene) -> None:
    gang = scene.gang("g", 5, size=8, members=8)
    assert [each.count for each in demand(scene.snapshot, gang)] == [5]


def test_members_that_are_placed_are_not_asked_for_again(scene: Scene) -> None:
    gang = scene.gang("g", 2)
    uids = scene.bind(scene.place(gang))
    scene.end(uids[1])
    scene.members(gang, [1], pod_class())
    (each,) = demand(scene.snapshot, gang)
    assert each.count == 1


def test_each_kind_of_member_is_counted_by_itself(scene: Scene) -> None:
    gang = scene.gang("g", 3, members=0, roles=roles(master=1, worker=2))
    (master,) = scene.members(gang, [0], pod_class(1), role="master")
    worker, _ = scene.members(gang, [1, 2], pod_class(8), role="worker")
    row = scene.state.pod_row
    assert set(demand(scene.snapshot, gang)) == {
        PodSet(row(master), 1),
        PodSet(row(worker), 2),
    }


def test_nothing_is_asked_for_a_gang_that_is_gone_or_not_complete(scene: Scene) -> None:
    assert demand(scene.snapshot, GangKey("muster/ns/nobody")) == ()
    assert demand(scene.snapshot, scene.gang("g", 5, members=1)) == ()
