"""Nodes that kube-scheduler refused, and what they say about their neighbours.

::

    block a ─┬─ rack r1 ── n1 n2 n3        block b ─┬─ rack r3 ── n7 n8 n9
             └─ rack r2 ── n4 n5 n6                 └─ rack r4 ── m1
                                                       (8 GPUs each)
"""

import pytest
from support.clusters.scene import RACK, Scene

from muster.placement.decision import Plan, Wait


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        b/r3  n7 n8 n9
        b/r4  m1
    """)


def goes_to(scene: Scene, count: int, *refused: str, required: str | None = None) -> set[str]:
    """Return the nodes of the plan for a gang of ``count``."""
    gang = scene.gang("g", count, required_level=required)
    decision = scene.decide(gang, refused=refused, spares=1)
    assert isinstance(decision, Plan), decision
    spares = decision.spares[decision.spares >= 0].tolist()
    assert not {scene.snapshot.nodes.name(row) for row in spares} & set(refused)
    return set(scene.nodes_of(decision))


def test_a_node_that_refused_is_neither_planned_nor_a_spare(scene: Scene) -> None:
    assert "n1" not in goes_to(scene, 9, "n1")


def test_one_refusal_says_nothing_of_the_rack(scene: Scene) -> None:
    assert goes_to(scene, 2, "n7", "n1", "n4", required=RACK) <= {f"n{i}" for i in range(1, 10)}


def test_two_refusals_keep_a_gang_off_the_rack_while_there_is_another(scene: Scene) -> None:
    for rack in (("n1", "n2"), ("n4", "n5"), ("n7", "n8")):
        single = scene.gang(f"on-{rack[0]}", 1)
        decision = scene.decide(single, refused=rack)
        assert isinstance(decision, Plan)
        (node,) = scene.nodes_of(decision)
        assert scene.rack_of(node) != scene.rack_of(rack[0])


def test_two_racks_that_refused_keep_a_gang_off_their_block(scene: Scene) -> None:
    assert goes_to(scene, 1, "n1", "n2", "n4", "n5") <= {"n7", "n8", "n9", "m1"}
    assert goes_to(scene, 4, "n1", "n2", "n4", "n5") == {"n7", "n8", "n9", "m1"}


def test_a_rack_of_one_node_is_refused_with_it(scene: Scene) -> None:
    assert goes_to(scene, 1, "m1", "n7", "n8") <= {f"n{i}" for i in range(1, 7)}


def test_a_guess_about_a_rack_never_costs_a_gang_its_only_place(scene: Scene) -> None:
    for name in ("n1", "n2", "n3", "n7", "n8", "n9", "m1"):
        scene.run(name)
    assert goes_to(scene, 1, "n4", "n5") == {"n6"}


def test_nodes_that_all_refused_are_told_as_the_rule_that_removed_them(scene: Scene) -> None:
    gang = scene.gang("g", 1)
    every = [f"n{i}" for i in range(1, 10)] + ["m1"]
    decision = scene.decide(gang, refused=every)
    assert isinstance(decision, Wait)
    (rule,) = [r for r in decision.explanation.rules if r.rule == "refused by kube-scheduler"]
    assert rule.removed == 10


def test_names_of_nodes_that_are_gone_are_ignored(scene: Scene) -> None:
    scene.remove_node("n1")
    assert goes_to(scene, 9, "n1", "never-was") == {f"n{i}" for i in range(2, 10)} | {"m1"}
