"""The rule that decides is the rule that is named: every filter tried as the only obstacle.

::

    a/r1   n1   n2      a gang of two, one on each; something about n2, or between the members
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clusters.scene import HOST, NAMESPACE, RACK, Scene, pod_class

from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import (
    HostPort,
    LabelSelector,
    NodeTerm,
    Operator,
    PodAffinityTerm,
    PodClass,
    Requirement,
    SpreadConstraint,
    Taint,
    TaintEffect,
)
from muster.placement.decision import Decision, Plan, Wait, WaitReason
from muster.placement.gang import plan_now
from muster.placement.question import Question
from muster.placement.reasons.explanation import render
from muster.placement.rules import feasibility as rules

PORT = HostPort("", "TCP", 2222)
MARKED = NodeTerm((Requirement("pool", Operator.IN, ("a",)),))
TAINTED = (Taint("team", "b", TaintEffect.NO_SCHEDULE),)


def term(labels: dict[str, str], key: str = HOST) -> PodAffinityTerm:
    wanted = tuple(Requirement(name, Operator.IN, (value,)) for name, value in labels.items())
    return PodAffinityTerm(key, LabelSelector(wanted), frozenset({NAMESPACE}))


def spread(key: str) -> SpreadConstraint:
    return SpreadConstraint(key, 1, term({"gang": "g"}).selector, NAMESPACE)


@dataclass(frozen=True)
class Case:
    """``node``: fields of the last node; ``pods``: constraints of the members; ``others``: pods on
    the last node; ``question``: what the question leaves out. ``gpus`` of a member: as many as keep
    two members on one node where the rule is one between them.
    """

    rule: str
    node: dict[str, Any]
    pods: dict[str, Any]
    others: Callable[[Scene, str], object] | None = None
    question: str = ""
    detail: str = ""
    reason: WaitReason = WaitReason.NOT_ENOUGH_ROOM

    def __str__(self) -> str:
        return f"{self.rule}-{bool(self.others)}"


def running(**fields: Any) -> Callable[[Scene, str], object]:
    def run(scene: Scene, node: str) -> object:
        return scene.run(node, gpu=0, like=pod_class(0, **fields), labels={"app": "x"})

    return run


APART = WaitReason.SPREAD_UNSATISFIABLE
OF_NODES = [
    Case(rules.NOT_READY, {"ready": False}, {}),
    Case(rules.CORDONED, {"unschedulable": True}, {}),
    Case(rules.TAINT, {"taints": TAINTED}, {}, detail="team=b:NoSchedule"),
    Case(rules.SELECTOR, {}, {"node_selector": (("pool", "a"),)}, detail="pool=a"),
    Case(rules.NODE_AFFINITY, {}, {"node_affinity": (MARKED,)}),
    Case(rules.VOLUMES, {}, {"volume_affinity": ((MARKED,),)}),
    Case(rules.REFUSED, {}, {}, question="refused"),
    Case(rules.KEPT, {}, {}, question="kept"),
    Case(rules.PROMISED, {}, {}, question="promised"),
    Case(
        rules.PORTS, {}, {"host_ports": (PORT,)}, running(host_ports=(PORT,)), "", "2222/TCP", APART
    ),
    Case(
        rules.ANTI_AFFINITY,
        {},
        {"pod_anti_affinity": (term({"app": "x"}),)},
        running(),
        "",
        HOST,
        APART,
    ),
    Case(
        rules.REPELLED,
        {},
        {},
        running(pod_anti_affinity=(term({"gang": "g"}),)),
        "",
        "",
        APART,
    ),
]


def of_nodes(case: Case, count: int, *, noise: int = 0, held: bool = True) -> Decision:
    """A gang with a member for each of ``count`` nodes; the case is about the last, if ``held``."""
    names = [f"n{number}" for number in range(count)]
    scene = Scene("")
    for name in names[:-1]:
        scene.node(name, block="a", rack="r1", labels={"pool": "a"})
    last = case.node if held else {}
    labels = {} if held else {"pool": "a"}
    scene.node(names[-1], block="a", rack="r1", labels=labels, **last)
    for number in range(noise):  # nodes that could take nobody anyway
        scene.node(f"cpu{number}:0", unschedulable=True, allocatable={"nvidia.com/gpu": 0})
    if held and case.others is not None:
        case.others(scene, names[-1])
    key = scene.gang("g", count, like=pod_class(8, **case.pods))
    left_out = {case.question: (names[-1],)} if held and case.question else {}
    return plan_now(scene.snapshot, Question(key, **left_out))  # type: ignore[arg-type]


def named(decision: Decision) -> str:
    assert isinstance(decision, Wait), decision
    return decision.explanation.remedy


@pytest.mark.parametrize("case", OF_NODES, ids=str)
def test_the_only_rule_about_nodes_or_other_pods_is_named(case: Case) -> None:
    assert isinstance(of_nodes(case, 2, held=False), Plan)
    decision = of_nodes(case, 2)
    detail = f" ({case.detail})" if case.detail else ""
    assert named(decision).startswith(f"{case.rule}{detail}: ")
    assert "; or " not in named(decision)
    assert decision.reason is case.reason  # type: ignore[union-attr]
    text = "\n".join(render(decision))
    assert "lacks" not in text
    assert "even empty" not in text


@given(st.sampled_from(OF_NODES), st.integers(2, 5), st.integers(0, 4))
def test_whatever_else_there_is_the_only_obstacle_is_named(
    case: Case, count: int, noise: int
) -> None:
    assert named(of_nodes(case, count, noise=noise)).startswith(case.rule)
    assert isinstance(of_nodes(case, count, noise=noise, held=False), Plan)


# -- between the members ---------------------------------------------------------------------------


BETWEEN_MEMBERS = [
    (rules.PORTS, {"host_ports": (PORT,)}, "2222/TCP"),
    (rules.ANTI_AFFINITY, {"pod_anti_affinity": (term({"gang": "g"}),)}, HOST),
    (rules.ANTI_AFFINITY, {"pod_anti_affinity": (term({"gang": "g"}, RACK),)}, RACK),
]


@pytest.mark.parametrize(("rule", "pods", "detail"), BETWEEN_MEMBERS)
@pytest.mark.parametrize("required", [None, RACK])
def test_what_members_forbid_each_other_is_named_and_no_resource(
    rule: str, pods: dict[str, Any], detail: str, required: str | None
) -> None:
    """Two of four GPUs fit on the one node by all that is counted."""
    level = {"required_level": required} if required else {}

    def decided(like: PodClass) -> Decision:
        scene = Scene("a/r1 n1")
        return scene.decide(scene.gang("g", 2, like=like, **level))

    assert isinstance(decided(pod_class(4)), Plan)
    decision = decided(pod_class(4, **pods))
    assert named(decision).startswith(f"{rule} ({detail}): ")
    assert decision.reason is WaitReason.SPREAD_UNSATISFIABLE  # type: ignore[union-attr]
    assert "lacks" not in "\n".join(render(decision))


def test_a_spread_that_a_rack_without_gpus_stops_is_named() -> None:
    #  a/r1 n1 n2 (8 GPUs each)    a/r2 n3 (none): the second member would make a skew of two
    def decided(like: PodClass) -> Decision:
        scene = Scene("a/r1 n1 n2")
        scene.node("n3", block="a", rack="r2", allocatable={"nvidia.com/gpu": 0})
        return scene.decide(scene.gang("g", 2, like=like))

    assert isinstance(decided(pod_class(8)), Plan)
    decision = decided(pod_class(8, spread=(spread(RACK),)))
    assert named(decision).startswith(f"{rules.SPREAD} ({RACK}): ")
    assert decision.reason is WaitReason.SPREAD_UNSATISFIABLE  # type: ignore[union-attr]


def test_an_affinity_to_pods_beside_which_there_is_no_room_for_all_is_named() -> None:
    def decided(like: PodClass) -> Decision:
        scene = Scene("a/r1 n1 n2")
        scene.run("n1", gpu=0, like=pod_class(0), labels={"app": "x"})
        return scene.decide(scene.gang("g", 2, like=like))

    assert isinstance(decided(pod_class(8)), Plan)
    decision = decided(pod_class(8, pod_affinity=(term({"app": "x"}),)))
    assert named(decision).startswith(f"{rules.POD_AFFINITY} ({HOST}): ")


# -- several, and none -----------------------------------------------------------------------------


def test_two_rules_each_of_which_would_do_are_both_named() -> None:
    #  n1 suits; n2 is cordoned, n3 is tainted: either would do for the second member
    scene = Scene("a/r1 n1")
    scene.node("n2", block="a", rack="r1", unschedulable=True)
    scene.node("n3", block="a", rack="r1", taints=TAINTED)
    remedy = named(scene.decide(scene.gang("g", 2)))
    assert remedy.startswith(f"{rules.CORDONED}: ")
    assert f"; or {rules.TAINT} (team=b:NoSchedule): " in remedy


def test_where_a_resource_would_do_as_well_it_comes_first() -> None:
    #  n1 is free, n2 is full, n3 is cordoned
    scene = Scene("a/r1 n1 n2")
    scene.node("n3", block="a", rack="r1", unschedulable=True)
    scene.run("n2")
    remedy = named(scene.decide(scene.gang("g", 2)))
    assert remedy == (
        "goes when 8 more nvidia.com/gpu are free in the cluster; it would go now but for cordoned"
    )


def blocked(key: GangKey, scene: Scene) -> Iterator[str]:
    yield from render(scene.decide(key))


def test_a_rule_that_removes_most_nodes_and_decides_nothing_is_not_named() -> None:
    #  nine tainted nodes without GPUs; what is missing is GPUs
    scene = Scene("a/r1 n1")
    for number in range(9):
        scene.node(f"cpu{number}", taints=TAINTED, allocatable={"nvidia.com/gpu": 0})
    scene.run("n1", gpu=1)
    lines = [*blocked(scene.gang("g", 1), scene)]
    assert lines[-1].startswith("remedy: goes when 1 more nvidia.com/gpu are free in the cluster")
