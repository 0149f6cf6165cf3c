"""Each filter of kube-scheduler on its own: which nodes are left, which rule removed the rest."""

from dataclasses import replace

import pytest
from support.clusters.scene import GPU, HOST, NAMESPACE, RACK, Scene, pod_class

from muster.cluster.events import BudgetUpserted
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
    Toleration,
)
from muster.placement.rules import feasibility as rules
from muster.placement.rules.feasibility import Feasibility, feasible

WEB = LabelSelector((Requirement("app", Operator.IN, ("web",)),))
MINE = LabelSelector((Requirement("gang", Operator.IN, ("g",)),))


@pytest.fixture
def scene() -> Scene:
    #  block a ─┬─ rack r1 ── n1 n2
    #           └─ rack r2 ── n3
    #  no label ───────────── n4
    return Scene("""
        a/r1  n1 n2
        a/r2  n3
        -/-   n4
    """)


def ask(scene: Scene, kind: PodClass) -> Feasibility:
    key = scene.gang("g", 1, like=kind)
    view = scene.snapshot.gang(key)
    assert view is not None
    return feasible(scene.snapshot, kind, int(scene.snapshot.pods.labels[int(view.waiting[0])]))


def left(scene: Scene, kind: PodClass) -> list[str]:
    mask = ask(scene, kind).mask
    return [scene.snapshot.nodes.name(row) for row in range(len(mask)) if mask[row]]


def removed(found: Feasibility) -> dict[str, int]:
    return {rule.rule: rule.removed for rule in found.rules if rule.removed}


def on(key: str, operator: Operator, *values: str) -> PodClass:
    return pod_class(node_affinity=(NodeTerm((Requirement(key, operator, values),)),))


def test_a_plain_pod_may_go_anywhere_and_every_rule_has_its_row(scene: Scene) -> None:
    found = ask(scene, pod_class())
    assert found.mask.all()
    assert removed(found) == {}
    assert [rule.rule for rule in found.rules][:3] == [rules.NOT_READY, rules.CORDONED, rules.TAINT]


def test_taken_resources_remove_a_node_and_name_the_resource(scene: Scene) -> None:
    scene.run("n1", gpu=1)
    found = ask(scene, pod_class(8))
    assert removed(found) == {rules.RESOURCE: 1}
    assert [r.detail for r in found.rules if r.removed] == [GPU]


def test_a_full_node_of_pods_takes_no_pod(scene: Scene) -> None:
    scene.node("n5", allocatable={"pods": 1})
    scene.run("n5", gpu=0)
    assert "n5" not in left(scene, pod_class(0, 0))


def test_an_overcommitted_resource_that_is_not_asked_for_does_not_matter(scene: Scene) -> None:
    scene.run("n3", gpu=8)
    scene.node("n3:4", block="a", rack="r2")
    assert "n3" in left(scene, pod_class(0))


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("k", exists=True), True),
        (Toleration("k", exists=False, value="v"), True),
        (Toleration("k", exists=False, value="w"), False),
        (Toleration("", exists=True), True),
        (Toleration("k", exists=True, effect=TaintEffect.NO_EXECUTE), False),
        (Toleration("other", exists=True), False),
    ],
)
def test_a_taint_keeps_pods_away_that_do_not_tolerate_it(
    scene: Scene, toleration: Toleration, *, tolerated: bool
) -> None:
    scene.node("n5", taints=(Taint("k", "v", TaintEffect.NO_SCHEDULE),))
    found = ask(scene, pod_class(tolerations=(toleration,)))
    assert removed(found) == ({} if tolerated else {rules.TAINT: 1})
    assert tolerated or [r.detail for r in found.rules if r.removed] == ["k=v:NoSchedule"]


def test_a_taint_that_is_only_preferred_keeps_nobody_away(scene: Scene) -> None:
    scene.node("n5", taints=(Taint("k", "v", TaintEffect.PREFER_NO_SCHEDULE),))
    assert "n5" in left(scene, pod_class())


def test_a_cordoned_node_takes_only_pods_that_tolerate_the_cordon(scene: Scene) -> None:
    scene.node("n5", unschedulable=True)
    assert "n5" not in left(scene, pod_class())
    tolerant = pod_class(tolerations=(Toleration("node.kubernetes.io/unschedulable", exists=True),))
    assert "n5" in left(scene, tolerant)


def test_a_node_that_is_not_ready_takes_nobody(scene: Scene) -> None:
    scene.node("n5", ready=False)
    assert removed(ask(scene, pod_class())) == {rules.NOT_READY: 1}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (pod_class(node_selector=((RACK, "r1"),)), ["n1", "n2"]),
        (on(RACK, Operator.IN, "r2", "nowhere"), ["n3"]),
        (on(RACK, Operator.NOT_IN, "r1"), ["n3", "n4"]),  # absent labels are not in
        (on(RACK, Operator.EXISTS), ["n1", "n2", "n3"]),
        (on(RACK, Operator.DOES_NOT_EXIST), ["n4"]),
        (on("never-seen", Operator.DOES_NOT_EXIST), ["n1", "n2", "n3", "n4"]),
        (on("never-seen", Operator.GT, "1"), []),
        (on("size", Operator.GT, "9"), ["n5"]),
        (on("size", Operator.LT, "10"), ["n6"]),
        (pod_class(node_affinity=()), []),
        (pod_class(node_affinity=(NodeTerm(),)), []),
        (
            pod_class(
                node_affinity=(
                    NodeTerm(fields=(Requirement("metadata.name", Operator.IN, ("n2",)),)),
                    NodeTerm((Requirement(RACK, Operator.IN, ("r2",)),)),
                )
            ),
            ["n2", "n3"],
        ),
        (
            pod_class(
                node_affinity=(
                    NodeTerm(fields=(Requirement("metadata.name", Operator.NOT_IN, ("n2",)),)),
                )
            ),
            ["n1", "n3", "n4"],
        ),
        (
            pod_class(volume_affinity=((NodeTerm((Requirement(RACK, Operator.IN, ("r1",)),)),),)),
            ["n1", "n2"],
        ),
    ],
)
def test_selectors_and_affinity_choose_nodes(
    scene: Scene, kind: PodClass, names: list[str]
) -> None:
    if "size" in repr(kind):
        scene.node("n5", labels={"size": "16"})
        scene.node("n6", labels={"size": "9"})
        scene.node("n7", labels={"size": "many"})
        scene.node("n8", labels={"size": "1_0"})  # no number to Go
    assert left(scene, kind) == names


def test_a_host_port_in_use_removes_the_node_unless_the_addresses_differ(scene: Scene) -> None:
    scene.run("n1", like=pod_class(0, host_ports=(HostPort("10.0.0.1", "TCP", 80),)))
    other = pod_class(0, host_ports=(HostPort("10.0.0.2", "TCP", 80),))
    assert "n1" in left(scene, other)
    every = pod_class(0, host_ports=(HostPort("", "TCP", 80),))
    assert "n1" not in left(scene, every)
    assert "n1" in left(scene, pod_class(0, host_ports=(HostPort("", "UDP", 80),)))


def test_anti_affinity_works_in_both_directions(scene: Scene) -> None:
    term = PodAffinityTerm(RACK, WEB, frozenset({NAMESPACE}))
    scene.run("n1", 0, labels={"app": "web"})
    assert left(scene, pod_class(pod_anti_affinity=(term,))) == ["n3", "n4"]
    against_me = replace(term, selector=MINE)
    scene.run("n3", like=pod_class(0, pod_anti_affinity=(against_me,)))
    assert left(scene, pod_class()) == ["n1", "n2", "n4"]


def test_affinity_needs_a_partner_unless_the_pod_is_the_first_of_its_kind(scene: Scene) -> None:
    to_web = PodAffinityTerm(RACK, WEB, frozenset({NAMESPACE}))
    assert left(scene, pod_class(pod_affinity=(to_web,))) == []
    to_itself = replace(to_web, selector=MINE)
    assert left(scene, pod_class(pod_affinity=(to_itself,))) == ["n1", "n2", "n3"]
    scene.run("n2", 0, labels={"app": "web", "gang": "g"})
    assert left(scene, pod_class(pod_affinity=(to_itself,))) == ["n1", "n2"]


def test_a_pod_counts_as_partner_only_when_it_matches_all_terms(scene: Scene) -> None:
    terms = tuple(PodAffinityTerm(RACK, s, frozenset({NAMESPACE})) for s in (WEB, MINE))
    scene.run("n1", 0, labels={"app": "web"})
    assert left(scene, pod_class(pod_affinity=terms)) == []
    scene.run("n3", 0, labels={"app": "web", "gang": "g"})
    assert left(scene, pod_class(pod_affinity=terms)) == ["n3"]


def spread(**fields: object) -> PodClass:
    constraint = SpreadConstraint(RACK, max_skew=1, selector=WEB, namespace=NAMESPACE)
    return pod_class(0, spread=(replace(constraint, **fields),))  # type: ignore[arg-type]


def test_spread_keeps_the_skew_and_needs_the_label(scene: Scene) -> None:
    scene.run("n1", 0, labels={"app": "web"})
    scene.run("n2", 0, labels={"app": "web"})
    assert left(scene, spread()) == ["n3"]  # n4 has no rack, r1 is two ahead
    assert left(scene, spread(max_skew=2)) == ["n1", "n2", "n3"]


def test_spread_ignores_pods_that_are_going_and_pods_of_other_namespaces(scene: Scene) -> None:
    scene.run("n1", 0, labels={"app": "web"}, terminating=True)
    scene.run("n2", 0, labels={"app": "web"}, terminating=True)
    assert left(scene, spread()) == ["n1", "n2", "n3"]


def test_spread_treats_missing_domains_as_empty(scene: Scene) -> None:
    for name in ("n1", "n3"):
        for _ in range(2):
            scene.run(name, 0, labels={"app": "web"})
    assert left(scene, spread()) == ["n1", "n2", "n3"]
    assert left(scene, spread(min_domains=3)) == []


def test_spread_counts_only_nodes_the_pod_could_use(scene: Scene) -> None:
    for _ in range(3):
        scene.run("n1", 0, labels={"app": "web"})
    inside = replace(spread(), node_selector=((RACK, "r1"),))
    assert left(scene, inside) == ["n1", "n2"]  # r2 is no domain for it
    ignore = spread(honor_node_affinity=False)
    assert left(scene, replace(ignore, node_selector=((RACK, "r1"),))) == []


def test_an_exhausted_budget_removes_its_nodes(scene: Scene) -> None:
    scene.run("n1", 4)
    in_r1 = (Requirement(RACK, Operator.IN, ("r1",)),)
    scene.state.apply(BudgetUpserted("pool", {GPU: 6}, in_r1), now=0.0)
    assert left(scene, pod_class(2)) == ["n1", "n2", "n3", "n4"]
    found = ask(scene, pod_class(4))
    assert [(r.removed, r.detail) for r in found.rules if r.rule == rules.BUDGET] == [(2, "pool")]


def test_what_is_not_modelled_is_passed_on(scene: Scene) -> None:
    found = ask(scene, pod_class(unmodelled=("WaitForFirstConsumer volume",)))
    assert found.unmodelled == ("WaitForFirstConsumer volume",)


def test_the_host_label_is_a_label_like_any_other(scene: Scene) -> None:
    term = PodAffinityTerm(HOST, WEB, frozenset({NAMESPACE}))
    scene.run("n1", 0, labels={"app": "web"})
    assert left(scene, pod_class(pod_anti_affinity=(term,))) == ["n2", "n3", "n4"]
