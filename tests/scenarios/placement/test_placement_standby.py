"""Hot spares: room held for members that a gang may lose.

::

    block a ─┬─ rack r1 ── n1 n2 n3           block b ── rack r3 ── n7 n8 n9
             └─ rack r2 ── n4 n5 n6 n10       (8 GPUs each)
"""

from dataclasses import replace

import pytest
from support.clusters.scene import BLOCK, RACK, pod_class
from support.clusters.standby import Standby

from muster.cluster.effects import CapacityFreed
from muster.cluster.errors import PlanStale
from muster.cluster.events import Assignment, PlanHeld, PodGone, StandbyHeld
from muster.cluster.ids import PodUid
from muster.cluster.state import ClusterState
from muster.placement.decision import Plan, Wait


@pytest.fixture
def scene() -> Standby:
    return Standby("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6 n10
        b/r3  n7 n8 n9
    """)


def test_a_gang_with_a_spare_takes_the_rack_that_has_room_for_it_too(scene: Standby) -> None:
    plain = scene.gang("plain", 3, required_level=RACK)
    assert set(scene.racks_of(scene.place(plain))) <= {"a/r1", "b/r3"}
    gang = scene.gang("g", 3, required_level=RACK, standby=1)
    scene.start(gang)
    assert {scene.rack_of(node) for node in scene.used_by(gang)} == {"a/r2"}
    assert [scene.rack_of(node) for node in scene.hot_spares(gang)] == ["a/r2"]


def test_a_gang_starts_without_spares_that_have_no_room(scene: Standby) -> None:
    gang = scene.gang("g", 3, required_level=RACK, standby=2)
    scene.start(gang)
    assert len(scene.used_by(gang)) == 3
    assert len(scene.hot_spares(gang)) == 1
    assert scene.view(gang).lacks_standby == 1


def test_members_are_not_spread_further_for_the_sake_of_a_spare(scene: Standby) -> None:
    """Nothing is required: the three would fit one rack, and the spare goes to the next."""
    for node in ("n4", "n5", "n7", "n8"):
        scene.run(node)
    gang = scene.gang("g", 3, preferred_level=RACK, standby=1)
    scene.start(gang)
    assert {scene.rack_of(node) for node in scene.used_by(gang)} == {"a/r1"}
    assert [scene.rack_of(node) for node in scene.hot_spares(gang)] == ["a/r2"]


def test_a_gang_of_equal_priority_does_not_get_the_hot_spare_of_another(scene: Standby) -> None:
    for node in ("n1", "n2", "n3", "n7", "n8", "n9"):
        scene.run(node)
    scene.start(scene.gang("g", 3, required_level=RACK, standby=1))
    other = scene.gang("other", 1)
    assert isinstance(scene.ask(other), Wait)


def test_a_gang_of_higher_priority_takes_a_hot_spare_when_nothing_else_is_left(
    scene: Standby,
) -> None:
    for node in ("n1", "n2", "n3", "n7", "n8"):
        scene.run(node)
    gang = scene.gang("g", 3, required_level=RACK, standby=1)
    scene.start(gang)
    first, second = scene.urgent("first"), scene.urgent("second")
    scene.start(first)
    assert scene.used_by(first) == {"n9"}
    spares = scene.hot_spares(gang)
    assert len(spares) == 1
    scene.start(second)
    assert scene.used_by(second) == set(spares)
    assert scene.hot_spares(gang) == []


def test_two_lost_members_find_the_hot_spare_and_what_is_nearest(scene: Standby) -> None:
    gang = scene.gang("g", 3, required_level=BLOCK, preferred_level=RACK, standby=1)
    uids = scene.start(gang)
    stayed = scene.node_of(uids[2])
    (spare,) = scene.hot_spares(gang)
    assert scene.rack_of(spare) == "a/r2"
    for node in ("n1", "n2", "n7", "n8", "n9"):
        scene.run(node)
    for uid in uids[:2]:
        node = scene.node_of(uid)
        scene.end(uid)
        scene.remove_node(node)
    scene.members(gang, (0, 1), pod_class())
    scene.start(gang)
    assert scene.used_by(gang) == {stayed, spare, "n3"}
    assert scene.node_of(uids[2]) == stayed


def test_a_hot_spare_that_was_used_is_taken_again_elsewhere(scene: Standby) -> None:
    gang = scene.gang("g", 2, required_level=RACK, standby=1)
    uids = scene.start(gang)
    (spare,) = scene.hot_spares(gang)
    rack = scene.rack_of(spare)
    for node in ("n1", "n2", "n3", "n4", "n5", "n6", "n10", "n7", "n8", "n9"):
        if node not in scene.used_by(gang) | {spare}:
            scene.run(node)
    lost = scene.node_of(uids[0])
    scene.node(lost, block="a", rack=rack.split("/")[1], unschedulable=True)
    scene.end(uids[0])
    scene.members(gang, [0], pod_class())
    scene.start(gang)
    assert spare in scene.used_by(gang)
    assert scene.hot_spares(gang) == []
    block, name = rack.split("/")
    scene.node("fresh", block=block, rack=name)
    scene.keep(gang)
    assert scene.hot_spares(gang) == ["fresh"]


def test_hot_spares_end_with_the_last_member_that_holds_room(scene: Standby) -> None:
    gang = scene.gang("g", 2, standby=2)
    uids = scene.start(gang)
    assert len(scene.hot_spares(gang)) == 2
    scene.end(uids[0])
    assert len(scene.hot_spares(gang)) == 2
    scene.finish(uids[1:])
    assert scene.hot_spares(gang) == []
    scene.state.validate()


@pytest.mark.parametrize("change", ["cordon", "gone", "filled"])
def test_a_hot_spare_is_given_up_before_anything_else_and_found_anew(
    scene: Standby, change: str
) -> None:
    gang = scene.gang("g", 2, required_level=RACK, standby=1)
    scene.start(gang)
    (spare,) = scene.hot_spares(gang)
    block, rack = scene.rack_of(spare).split("/")
    if change == "cordon":
        scene.node(spare, block=block, rack=rack, unschedulable=True)
    elif change == "gone":
        scene.remove_node(spare)
    else:
        scene.run(spare, gpu=1)
    assert scene.hot_spares(gang) == []
    scene.state.validate()
    scene.node("fresh", block=block, rack=rack)
    scene.keep(gang)
    assert len(scene.hot_spares(gang)) == 1
    assert scene.hot_spares(gang) != [spare]


def test_each_slice_has_a_spare_in_its_own_rack() -> None:
    scene = Standby("""
        a/r1  n1 n2 n3
        a/r2  n4 n5
        b/r3  n7 n8 n9
    """)
    gang = scene.gang("g", 4, slice_size=2, slice_level=RACK, standby=1)
    uids = scene.start(gang)
    racks = [scene.rack_of(scene.node_of(uid)) for uid in uids]
    assert racks[0] == racks[1]
    assert racks[2] == racks[3]
    assert {*racks} == {"a/r1", "b/r3"}
    assert sorted(scene.rack_of(node) for node in scene.hot_spares(gang)) == ["a/r1", "b/r3"]


def test_the_successor_of_a_slices_member_gets_the_slices_own_hot_spare() -> None:
    scene = Standby("""
        a/r1  n1 n2 n3
        b/r3  n7 n8 n9
    """)
    gang = scene.gang("g", 4, slice_size=2, slice_level=RACK, standby=1)
    uids = scene.start(gang)
    own = {scene.rack_of(node): node for node in scene.hot_spares(gang)}
    for rank in (1, 2):
        lost = scene.node_of(uids[rank])
        scene.end(uids[rank])
        scene.run(lost)
    new = scene.members(gang, (1, 2), pod_class())
    scene.start(gang)
    for rank, uid in zip((1, 2), new, strict=True):
        sibling = scene.rack_of(scene.node_of(uids[rank ^ 1]))
        assert scene.node_of(uid) == own[sibling]


def test_a_spare_of_a_mixed_gang_is_as_large_as_its_largest_member(scene: Standby) -> None:
    gang = scene.gang("g", 3, members=0, required_level=RACK, standby=1)
    scene.members(gang, [0], pod_class(gpu=1), role="launcher")
    scene.members(gang, [1, 2], pod_class(gpu=8), role="worker")
    scene.start(gang)
    (row,) = scene.view(gang).standby.tolist()
    kind = scene.snapshot.classes[int(scene.snapshot.pods.pod_class[row])]
    assert kind.request("nvidia.com/gpu") == 8


def test_a_spare_level_keeps_hot_spares_in_the_racks_of_the_members(scene: Standby) -> None:
    for node in ("n4", "n5", "n7", "n8"):
        scene.run(node)
    gang = scene.gang("g", 3, preferred_level=RACK, standby=1, standby_level=RACK)
    scene.start(gang)
    assert {scene.rack_of(node) for node in scene.used_by(gang)} == {"a/r1"}
    assert scene.hot_spares(gang) == []


def test_a_state_with_hot_spares_is_the_same_after_dump_and_load(scene: Standby) -> None:
    gang = scene.gang("g", 2, standby=2)
    scene.start(gang)
    other = ClusterState.load(scene.state.dump())
    other.validate()
    assert other.dump() == scene.state.dump()
    view = other.gang(gang)
    assert view is not None
    assert len(view.standby) == 2
    for row in scene.view(gang).bound.tolist():
        other.apply(PodGone(scene.snapshot.pods.uid(row)), now=0.0)
    other.validate()
    assert other.gang(gang) is None or not len(other.snapshot().gang(gang).standby)  # type: ignore[union-attr]


def test_a_plan_may_not_displace_a_hot_spare_of_the_same_priority(scene: Standby) -> None:
    gang = scene.gang("g", 2, standby=1)
    scene.start(gang)
    other = scene.gang("other", 1)
    found = scene.ask(other)
    assert isinstance(found, Plan)
    spare = scene.snapshot.pods.uid(int(scene.view(gang).standby[0]))
    held = scene.as_held(found)
    before = scene.state.dump()
    with pytest.raises(PlanStale, match="no lower priority"):
        scene.state.apply(replace(held, displaced=(spare,)), now=0.0)
    assert scene.state.dump() == before


def test_room_of_a_displaced_hot_spare_that_the_plan_leaves_is_told(scene: Standby) -> None:
    """Whoever waits for it would else sleep on: the plan goes elsewhere, the hot spare is gone."""
    gang = scene.gang("g", 2, standby=1)
    scene.start(gang)
    spare = scene.snapshot.pods.uid(int(scene.view(gang).standby[0]))
    left = scene.hot_spares(gang)
    found = scene.ask(scene.urgent("first"))
    assert isinstance(found, Plan)
    held = replace(scene.as_held(found), displaced=(spare,))
    assert left != [one.node for one in held.assignments]
    assert CapacityFreed() in scene.state.apply(held, now=0.0)
    assert scene.hot_spares(gang) == []
    scene.state.validate()


def test_a_stale_plan_leaves_the_hot_spares_that_it_would_displace(scene: Standby) -> None:
    gang = scene.gang("g", 2, standby=1)
    uids = scene.start(gang)
    spare = scene.snapshot.pods.uid(int(scene.view(gang).standby[0]))
    (late,) = scene.members(gang, [7], pod_class())
    taken = Assignment(late, scene.node_of(uids[0]))
    with pytest.raises(PlanStale):
        scene.state.apply(PlanHeld(gang, "p", (taken,), 1e9, 0, displaced=(spare,)), now=0.0)
    assert len(scene.hot_spares(gang)) == 1
    scene.state.validate()


def test_hot_spares_are_for_members_that_hold_room(scene: Standby) -> None:
    gang = scene.gang("g", 1, standby=1)
    waiting = scene.snapshot.pods.uid(int(scene.view(gang).waiting[0]))
    spare = Assignment(PodUid(b"s" * 16), "n1")
    with pytest.raises(PlanStale, match="holds no room"):
        scene.state.apply(StandbyHeld(gang, waiting, (spare,)), now=0.0)
