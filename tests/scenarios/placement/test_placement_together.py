"""Rules that hold for each member alone have to hold for all of them, and with each other."""

from support.clusters.scene import GPU, HOST, NAMESPACE, RACK, Scene, pod_class

from muster.cluster.events import BudgetUpserted
from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
)
from muster.placement.decision import Plan, Wait

EVERYWHERE = (Requirement(HOST, Operator.EXISTS),)


def two_kinds(scene: Scene) -> GangKey:
    #  a/r1  n1 n2        8 GPUs a node
    key = scene.gang("g", 2, members=0)
    scene.members(key, range(1), pod_class(4))
    scene.members(key, range(1, 2), pod_class(8))
    return key


def test_a_budget_with_room_for_each_kind_of_member_but_not_for_both_makes_the_gang_wait() -> None:
    for cap in (8, 11):
        scene = Scene("a/r1  n1 n2")
        scene.state.apply(BudgetUpserted("pool", {GPU: cap}, EVERYWHERE), now=0.0)
        assert isinstance(scene.decide(two_kinds(scene)), Wait)


def test_with_room_for_both_it_goes() -> None:
    scene = Scene("a/r1  n1 n2")
    scene.state.apply(BudgetUpserted("pool", {GPU: 12}, EVERYWHERE), now=0.0)
    assert isinstance(scene.decide(two_kinds(scene)), Plan)


def test_members_that_want_one_host_want_it_in_a_rack_where_a_rack_is_required() -> None:
    #  block a ─── no rack  n1      block b ─── r1  n2 (4 GPUs)
    selector = LabelSelector((Requirement("gang", Operator.IN, ("g",)),))
    near = PodAffinityTerm(HOST, selector, frozenset({NAMESPACE}))
    kind = pod_class(2, pod_affinity=(near,))
    for size, fits in ((2, True), (3, False)):
        scene = Scene("")
        scene.node("n1:8", block="a")
        scene.node("n2:4", block="b", rack="r1")
        key = scene.gang("g", size, like=kind, required_level=RACK)
        decision = scene.decide(key)
        assert isinstance(decision, Plan) == fits
        if isinstance(decision, Plan):
            assert scene.nodes_of(decision) == ["n2", "n2"]
