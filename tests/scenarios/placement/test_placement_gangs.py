"""Gangs on a drawn fleet: whole or not at all, close together, near their own."""

from dataclasses import replace

import numpy as np
import pytest
from support.clusters.scene import BLOCK, GPU, HOST, NAMESPACE, RACK, Scene, pod_class, roles

from muster.cluster.events import BudgetUpserted
from muster.cluster.specs.podconstraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
    SpreadConstraint,
)
from muster.placement.decision import Plan, Reject, RejectReason, Wait, WaitReason


def mine(name: str, key: str) -> PodAffinityTerm:
    selector = LabelSelector((Requirement("gang", Operator.IN, (name,)),))
    return PodAffinityTerm(key, selector, frozenset({NAMESPACE}))


def spread(name: str, key: str, skew: int = 1) -> SpreadConstraint:
    term = mine(name, key)
    return SpreadConstraint(key, skew, term.selector, NAMESPACE)


@pytest.fixture
def scene() -> Scene:
    #  block a ─┬─ r1  n1 n2
    #           └─ r2  n3 n4 n5
    #  block b ─┬─ r3  n6 n7 n8 n9
    #           └─ r4  n10              8 GPUs a node
    return Scene("""
        a/r1  n1 n2
        a/r2  n3 n4 n5
        b/r3  n6 n7 n8 n9
        b/r4  n10
    """)


# --- whole or not at all --------------------------------------------------------------


def test_a_gang_takes_the_smallest_rack_that_holds_it(scene: Scene) -> None:
    assert scene.nodes_of(scene.place(scene.gang("g", 2))) == ["n1", "n2"]


def test_a_gang_waits_rather_than_straddle_two_racks_when_the_rack_is_required(
    scene: Scene,
) -> None:
    decision = scene.decide(scene.gang("g", 5, required_level=RACK))
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.NO_DOMAIN_FITS


def test_the_same_gang_without_the_requirement_takes_two_racks_of_one_block(
    scene: Scene,
) -> None:
    plan = scene.place(scene.gang("g", 5))
    assert dict(plan.domains) == {BLOCK: 1, RACK: 2, HOST: 5}


def test_two_gangs_that_cannot_both_fit_one_is_whole_and_the_other_holds_nothing() -> None:
    #  100 nodes, one pod per node, two gangs of 100
    names = " ".join(f"n{i}:1" for i in range(100))
    scene = Scene(f"a/r1 {names}")
    first, second = scene.gang("first", 100, gpu=1), scene.gang("second", 100, gpu=1)
    scene.hold(scene.place(first))
    decision = scene.decide(second)
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.NOT_ENOUGH_ROOM
    assert decision.explanation.nearest is not None
    assert decision.explanation.nearest.held_by == ((first, 100),)


def test_a_gang_with_missing_members_waits_for_them(scene: Scene) -> None:
    decision = scene.decide(scene.gang("g", 4, members=3))
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.MEMBERS_MISSING


def test_a_node_with_one_pod_slot_takes_one_of_two_kinds() -> None:
    scene = Scene("")
    scene.node("n1", allocatable={"pods": 1})
    key = scene.gang("g", 2, members=0)
    scene.members(key, [0], pod_class(1))
    scene.members(key, [1], pod_class(2))
    assert isinstance(scene.decide(key), Wait)


def test_a_node_whose_last_job_is_still_terminating_is_not_free(scene: Scene) -> None:
    scene.run("n1", terminating=True)
    plan = scene.place(scene.gang("g", 2, required_level=RACK))
    assert set(scene.racks_of(plan)) == {"a/r2"}


def test_a_gang_waits_whole_and_goes_when_space_appears(scene: Scene) -> None:
    busy = [scene.run(name) for name in ("n6", "n3")]
    key = scene.gang("g", 4, required_level=RACK)
    assert isinstance(scene.decide(key), Wait)
    scene.end(busy[0])
    assert set(scene.racks_of(scene.place(key))) == {"b/r3"}


# --- more than the minimum ------------------------------------------------------------


def test_members_above_the_minimum_go_along_when_the_rack_has_room(scene: Scene) -> None:
    plan = scene.place(scene.gang("g", 4, min_count=3, required_level=RACK))
    assert set(scene.racks_of(plan)) == {"b/r3"}
    assert len(plan.left_over) == 0


def test_members_above_the_minimum_are_left_over_when_no_rack_has_room(scene: Scene) -> None:
    plan = scene.place(scene.gang("g", 6, min_count=3, required_level=RACK))
    assert set(scene.racks_of(plan)) == {"b/r3"}
    assert len(plan.left_over) == 2


def test_members_above_the_minimum_do_not_push_the_minimum_out_of_its_rack(
    scene: Scene,
) -> None:
    plan = scene.place(scene.gang("g", 6, min_count=4))
    assert len(plan.pods) == 6
    assert set(scene.racks_of(plan)[:4]) == {"b/r3"}


# --- near their own -------------------------------------------------------------------


def test_a_lost_member_goes_back_to_the_rack_of_the_others(scene: Scene) -> None:
    key = scene.gang("g", 3)
    uids = scene.bind(scene.place(key))  # r2
    scene.end(uids[1])
    scene.members(key, [1], pod_class(8))
    assert scene.nodes_of(scene.place(key)) == ["n4"]


def test_a_required_rack_stays_binding_for_a_replacement(scene: Scene) -> None:
    key = scene.gang("g", 3, required_level=RACK)
    uids = scene.bind(scene.place(key))  # all of r2
    scene.end(uids[2])
    scene.remove_node("n5")
    scene.members(key, [2], pod_class(8))
    decision = scene.decide(key)
    assert isinstance(decision, Wait)
    assert decision.explanation.nearest is not None
    assert decision.explanation.nearest.domain == "a/r2"


def test_two_of_five_hundred_members_are_replaced_and_the_others_stay() -> None:
    #  32 racks of 16 nodes, 500 members: 12 nodes are left
    drawing = "\n".join(
        f"a/r{r:02} " + " ".join(f"n{r * 16 + i:03}" for i in range(16)) for r in range(32)
    )
    scene = Scene(drawing)
    key = scene.gang("g", 500)
    plan = scene.place(key)
    uids = scene.bind(plan)
    lost = [20, 333]
    homes = [scene.racks_of(plan)[rank] for rank in lost]
    for rank in lost:
        scene.end(uids[rank])
        scene.remove_node(scene.nodes_of(plan)[rank])
    scene.members(key, lost, pod_class(8))
    again = scene.place(key)
    assert len(again.pods) == 2
    assert len(set(scene.racks_of(again))) == 1  # the one rack with room
    assert not set(scene.racks_of(again)) & set(homes)


def test_replacements_sit_by_the_neighbours_of_their_rank(scene: Scene) -> None:
    key = scene.gang("g", 7)
    plan = scene.place(key)  # two racks
    uids = scene.bind(plan)
    for rank in (0, 6):
        scene.end(uids[rank])
    scene.members(key, [0, 6], pod_class(8))
    assert scene.nodes_of(scene.place(key)) == [scene.nodes_of(plan)[i] for i in (0, 6)]


# --- several kinds of members ---------------------------------------------------------


def test_launcher_and_workers_share_the_required_rack(scene: Scene) -> None:
    key = scene.gang("g", 4, members=0, required_level=RACK)
    scene.members(key, [0], pod_class(0, 4000), role="launcher")
    scene.members(key, [1, 2, 3], pod_class(8), role="worker")
    plan = scene.place(key)
    assert set(scene.racks_of(plan)) == {"a/r2"}


def test_a_candidate_that_holds_each_kind_alone_but_not_both_is_passed_over(
    scene: Scene,
) -> None:
    #  r1 has room for two big members or for two small ones; r2 for all
    key = scene.gang("g", 4, members=0, required_level=RACK)
    scene.members(key, [0, 1], pod_class(8))
    scene.members(key, [2, 3], pod_class(4))
    plan = scene.place(key)
    assert set(scene.racks_of(plan)) == {"a/r2"}


def test_the_minimum_of_every_role_is_placed_first(scene: Scene) -> None:
    key = scene.gang(
        "g", 12, members=0, min_count=3, roles=roles(worker=2, ps=1), required_level=RACK
    )
    scene.members(key, range(10), pod_class(8), role="worker")
    scene.members(key, [10, 11], pod_class(8, 2000), role="ps")
    plan = scene.place(key)
    assert len(plan.pods) >= 3
    kinds = scene.snapshot.pods.role[plan.pods]
    assert len(np.unique(kinds)) == 2


def test_a_role_whose_members_have_succeeded_is_not_waited_for(scene: Scene) -> None:
    key = scene.gang("g", 3, members=0, roles=roles(launcher=1, worker=2))
    scene.finish(scene.members(key, [0], pod_class(0), role="launcher"))
    scene.members(key, [1, 2], pod_class(8), role="worker")
    assert len(scene.place(key).pods) == 2


def test_kinds_that_repel_each_other_go_to_different_racks(scene: Scene) -> None:
    key = scene.gang("g", 3, members=0)
    apart = PodAffinityTerm(
        RACK, LabelSelector((Requirement("kind", Operator.IN, ("a",)),)), frozenset({NAMESPACE})
    )
    scene.members(key, [0, 1], pod_class(8), labels={"kind": "a"})
    scene.members(key, [2], pod_class(8, pod_anti_affinity=(apart,)), labels={"kind": "b"})
    racks = scene.racks_of(scene.place(key))
    assert racks[2] not in racks[:2]


def test_a_kind_that_follows_another_is_placed_after_it(scene: Scene) -> None:
    key = scene.gang("g", 2, members=0)
    to_a = PodAffinityTerm(
        RACK, LabelSelector((Requirement("kind", Operator.IN, ("a",)),)), frozenset({NAMESPACE})
    )
    scene.members(key, [0], pod_class(8, pod_affinity=(to_a,)), labels={"kind": "b"})
    scene.members(key, [1], pod_class(4), labels={"kind": "a"})
    assert len(set(scene.racks_of(scene.place(key)))) == 1


# --- members against each other -------------------------------------------------------


def test_one_member_per_host_by_anti_affinity(scene: Scene) -> None:
    kind = pod_class(1, pod_anti_affinity=(mine("g", HOST),))
    plan = scene.place(scene.gang("g", 3, like=kind))
    assert dict(plan.domains) == {BLOCK: 1, RACK: 1, HOST: 3}


def test_one_member_per_rack_by_anti_affinity(scene: Scene) -> None:
    kind = pod_class(1, pod_anti_affinity=(mine("g", RACK),))
    assert dict(scene.place(scene.gang("g", 4, like=kind)).domains)[RACK] == 4
    more = pod_class(1, pod_anti_affinity=(mine("h", RACK),))
    decision = scene.decide(scene.gang("h", 5, like=more))
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.SPREAD_UNSATISFIABLE


def test_members_that_attract_each_other_share_one_block(scene: Scene) -> None:
    kind = pod_class(8, pod_affinity=(mine("g", BLOCK),))
    plan = scene.place(scene.gang("g", 5, like=kind))
    assert dict(plan.domains)[BLOCK] == 1
    too_many = pod_class(8, pod_affinity=(mine("h", BLOCK),))
    assert isinstance(scene.decide(scene.gang("h", 6, like=too_many)), Wait)


def test_members_spread_over_blocks_raise_the_minimum_turn_by_turn(scene: Scene) -> None:
    kind = pod_class(8, spread=(spread("g", BLOCK),))
    plan = scene.place(scene.gang("g", 9, like=kind))
    blocks = [rack[0] for rack in scene.racks_of(plan)]
    assert abs(blocks.count("a") - blocks.count("b")) <= 1


def test_members_spread_over_blocks_and_hosts_at_once(scene: Scene) -> None:
    kind = pod_class(2, spread=(spread("g", BLOCK), spread("g", HOST)))
    plan = scene.place(scene.gang("g", 10, like=kind))
    assert dict(plan.domains) == {BLOCK: 2, RACK: 4, HOST: 10}


def test_a_budget_caps_what_a_gang_may_take(scene: Scene) -> None:
    in_b = (Requirement(BLOCK, Operator.IN, ("b",)),)
    scene.state.apply(BudgetUpserted("pool-b", {GPU: 24}, in_b), now=0.0)
    plan = scene.place(scene.gang("g", 8))
    assert sum(rack.startswith("b") for rack in scene.racks_of(plan)) == 3
    decision = scene.decide(scene.gang("h", 9))
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.BUDGET_EXHAUSTED


# --- spares ---------------------------------------------------------------------------


def test_spares_lie_in_the_rack_of_their_member_and_never_under_another_member(
    scene: Scene,
) -> None:
    plan = scene.place(scene.gang("g", 2, required_level=RACK), spares=1)
    assert scene.nodes_of(plan) == ["n1", "n2"]
    assert (plan.spares == -1).all()  # the rack is full
    other = scene.place(scene.gang("h", 3, preferred_level=RACK), spares=2)
    assert other.spares.shape == (3, 2)
    assert not set(other.spares.ravel().tolist()) & set(other.nodes.tolist())


def test_spares_of_two_plans_never_share_room(scene: Scene) -> None:
    first = scene.place(scene.gang("g", 2), spares=1)
    scene.hold(first)
    second = scene.place(scene.gang("h", 2), spares=1)
    kept = {int(row) for row in first.spares.ravel() if row >= 0}
    assert kept
    assert not kept & {int(row) for row in second.spares.ravel()}


# --- never as written -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason", "words"),
    [
        ({"min_count": 5, "size": 4}, RejectReason.CONTRADICTORY_SPEC, "at most 4"),
        ({"problems": ("a and b",)}, RejectReason.CONTRADICTORY_SPEC, "a and b"),
        ({"required_level": "row"}, RejectReason.UNKNOWN_LEVEL, RACK),
        ({"preferred_level": "row"}, RejectReason.UNKNOWN_LEVEL, 'preferred_level: "row"'),
        ({"slice_size": 2}, RejectReason.CONTRADICTORY_SPEC, "needs the level of a slice"),
        (
            {"slice_size": 9, "slice_level": RACK},
            RejectReason.CONTRADICTORY_SPEC,
            'slice_size: "9"',
        ),
        ({"slice_size": 2, "slice_level": "x"}, RejectReason.UNKNOWN_LEVEL, 'slice_level: "x"'),
    ],
)
def test_contradictions_are_rejected_at_once_and_named(
    scene: Scene, fields: dict[str, object], reason: RejectReason, words: str
) -> None:
    decision = scene.decide(scene.gang("g", 4, **fields))  # type: ignore[arg-type]
    assert isinstance(decision, Reject)
    assert decision.reason is reason
    assert words in decision.message


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pod_class(16), "16 nvidia.com/gpu; the largest node has 8"),
        (replace(pod_class(8, 65_000)), "65000 cpu; the largest node has 64000"),
    ],
)
def test_a_member_larger_than_any_node_is_rejected(scene: Scene, kind: object, words: str) -> None:
    decision = scene.decide(scene.gang("g", 1, like=kind))  # type: ignore[arg-type]
    assert isinstance(decision, Reject)
    assert decision.reason is RejectReason.LARGER_THAN_ANY_NODE
    assert words in decision.message


def test_a_member_that_no_single_node_has_everything_for_is_rejected() -> None:
    scene = Scene("a/r1 n1:8 n2:2")
    scene.node("n1:8", block="a", rack="r1", allocatable={"cpu": 1000})
    decision = scene.decide(scene.gang("g", 1, like=pod_class(8, 2000)))
    assert isinstance(decision, Reject)
    assert "no single node" in decision.message


def test_an_unknown_gang_is_a_mistake_of_the_caller(scene: Scene) -> None:
    with pytest.raises(KeyError, match="nobody"):
        scene.decide("muster/ns/nobody")  # type: ignore[arg-type]


def test_a_gang_in_an_empty_cluster_waits() -> None:
    scene = Scene("")
    decision = scene.decide(scene.gang("g", 2))
    assert isinstance(decision, Wait)
    assert decision.reason is WaitReason.NO_FEASIBLE_NODE
    assert not isinstance(decision, Plan)
