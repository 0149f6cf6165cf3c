"""Preferred node affinity: of what is equally good, what the pods prefer.

::

    a/r1  n1 n2 n3      a/r2  n4 n5 n6      a/r3  n7 n8 n9      (8 GPUs each)
"""

import pytest
from support.clusters.scene import RACK, Scene, pod_class
from support.clusters.standing import pairs

from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import (
    NodeTerm,
    Operator,
    PodClass,
    PreferredTerm,
    Requirement,
)


@pytest.fixture
def scene() -> Scene:
    return Scene("""
        a/r1  n1 n2 n3
        a/r2  n4 n5 n6
        a/r3  n7 n8 n9
    """)


def in_racks(weight: int, *racks: str) -> PreferredTerm:
    return PreferredTerm(weight, NodeTerm(labels=(Requirement(RACK, Operator.IN, racks),)))


def preferring(*terms: PreferredTerm, gpu: int = 8) -> PodClass:
    return pod_class(gpu, preferred_nodes=terms)


def racks(scene: Scene, key: GangKey) -> set[str]:
    return set(scene.racks_of(scene.place(key)))


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("level", [None, RACK])
def test_of_equal_racks_a_gang_goes_to_the_one_that_it_prefers(
    scene: Scene, count: int, level: str | None
) -> None:
    key = scene.gang("g", count, like=preferring(in_racks(1, "r2")), required_level=level)
    assert racks(scene, key) == {"a/r2"}


def test_of_equal_hosts_a_lone_pod_goes_to_the_one_that_it_prefers(scene: Scene) -> None:
    name = Requirement("metadata.name", Operator.IN, ("n5",))
    term = PreferredTerm(1, NodeTerm(fields=(name,)))
    assert scene.nodes_of(scene.place(scene.gang("g", 1, like=preferring(term)))) == ["n5"]


def test_the_weights_of_all_terms_that_match_add_up(scene: Scene) -> None:
    terms = in_racks(30, "r1", "r3"), in_racks(20, "r2", "r3"), in_racks(25, "r2")
    assert racks(scene, scene.gang("g", 3, like=preferring(*terms))) == {"a/r3"}


def test_a_preference_never_costs_a_domain(scene: Scene) -> None:
    for name in ("n5", "n6"):
        scene.run(name)
    key = scene.gang("g", 3, like=preferring(in_racks(100, "r2")))
    assert len(racks(scene, key)) == 1


def test_a_preference_never_breaks_a_large_rack_where_a_small_one_fits(scene: Scene) -> None:
    scene.node("n10", block="a", rack="r4")
    key = scene.gang("g", 1, like=preferring(in_racks(100, "r1")))
    assert racks(scene, key) == {"a/r4"}


def test_slices_go_to_the_racks_that_they_prefer(scene: Scene) -> None:
    key = scene.gang(
        "g", 4, like=preferring(in_racks(1, "r2", "r3")), slice_size=2, slice_level=RACK
    )
    assert racks(scene, key) == {"a/r2", "a/r3"}


def test_members_of_several_kinds_go_where_they_prefer_together(scene: Scene) -> None:
    key = scene.gang("g", 3, members=0, **pairs("w"))
    scene.members(key, [0], preferring(in_racks(10, "r1"), gpu=4), role="l")
    scene.members(key, [1, 2], preferring(in_racks(10, "r3")), role="w")
    assert racks(scene, key) == {"a/r3"}


def test_a_lost_member_goes_beside_the_others_whatever_it_prefers(scene: Scene) -> None:
    key = scene.gang("g", 2, like=preferring(in_racks(1, "r2")))
    _, second = scene.bind(scene.place(key))
    scene.end(second)
    scene.members(key, [1], preferring(in_racks(100, "r3")))
    assert racks(scene, key) == {"a/r2"}
