"""Preferred nodes decide where the objective does not: they never cost a domain or a room."""

import pytest
from support.clusters.scene import HOST, RACK, Scene, pod_class
from support.clusters.standing import pairs

from muster.cluster.ids import GangKey
from muster.cluster.specs.podconstraints import (
    NodeTerm,
    Operator,
    PodClass,
    PreferredTerm,
    Requirement,
    Taint,
    TaintEffect,
    Toleration,
)

DISK = "disk"


def prefers(*wanted: tuple[int, str], gpu: int = 8, key: str = DISK) -> PodClass:
    """Return a class that prefers nodes by the value of a label; pairs of weight and value."""
    terms = tuple(
        PreferredTerm(weight, NodeTerm(labels=(Requirement(key, Operator.IN, (value,)),)))
        for weight, value in wanted
    )
    return pod_class(gpu, preferred_nodes=terms)


def scene_of(*racks: str) -> Scene:
    """Return racks of nodes: ``r1 n1 n2=ssd``, the word after ``=`` is the node's disk."""
    scene = Scene("")
    for line in racks:
        rack, *nodes = line.split()
        for text in nodes:
            name, _, disk = text.partition("=")
            scene.node(name, block="a", rack=rack, labels={DISK: disk} if disk else {})
    return scene


def test_a_preferred_host_is_taken_where_hosts_are_equal() -> None:
    scene = scene_of("r1 n1 n2 n3=ssd n4")
    assert scene.nodes_of(scene.place(scene.gang("g", 1, like=prefers((1, "ssd"))))) == ["n3"]


def test_a_gang_goes_to_the_preferred_rack_of_two_that_are_equal() -> None:
    scene = scene_of("r1 n1 n2", "r2 n3=ssd n4=ssd", "r3 n5 n6=ssd")
    plan = scene.place(scene.gang("g", 2, like=prefers((10, "ssd"))))
    assert set(scene.racks_of(plan)) == {"a/r2"}


def test_a_preference_never_costs_a_rack() -> None:
    """The gang of two fits r2 exactly; r1 has the preferred host and would be broken."""
    scene = scene_of("r1 n1=ssd n2 n3", "r2 n4 n5")
    plan = scene.place(scene.gang("g", 2, like=prefers((100, "ssd"))))
    assert dict(plan.domains)[RACK] == 1
    assert set(scene.racks_of(plan)) == {"a/r2"}


def test_a_preference_never_costs_a_host() -> None:
    scene = Scene("")
    scene.node("n1:8", block="a", rack="r1", labels={DISK: "ssd"})
    scene.node("n2:8", block="a", rack="r1")
    scene.run("n2", gpu=4)
    plan = scene.place(scene.gang("g", 4, like=prefers((100, "ssd"), gpu=1)))
    assert dict(plan.domains)[HOST] == 1
    assert set(scene.nodes_of(plan)) == {"n2"}


def test_the_weights_of_all_matching_terms_add_up() -> None:
    scene = scene_of("r1 n1=hdd n2=ssd n3=ram")
    like = prefers((40, "hdd"), (30, "ssd"), (30, "ssd"), (50, "ram"))
    assert scene.nodes_of(scene.place(scene.gang("g", 1, like=like))) == ["n2"]


def test_a_taint_that_only_advises_is_avoided_unless_it_is_tolerated() -> None:
    scene = Scene("")
    taint = Taint("spot", "true", TaintEffect.PREFER_NO_SCHEDULE)
    scene.node("n1", block="a", rack="r1", taints=(taint,))
    scene.node("n2", block="a", rack="r1")
    assert scene.nodes_of(scene.place(scene.gang("g", 1))) == ["n2"]
    tolerant = pod_class(8, tolerations=(Toleration("spot", exists=True),))
    assert scene.nodes_of(scene.place(scene.gang("h", 1, like=tolerant))) == ["n1"]


def test_advice_against_a_node_weighs_more_than_a_preference_for_it() -> None:
    """As with kube-scheduler's default plugins: 3 for taints, 2 for node affinity."""
    scene = Scene("")
    taint = Taint("spot", "true", TaintEffect.PREFER_NO_SCHEDULE)
    scene.node("n1", block="a", rack="r1", taints=(taint,), labels={DISK: "ssd"})
    scene.node("n2", block="a", rack="r1")
    assert scene.nodes_of(scene.place(scene.gang("g", 1, like=prefers((100, "ssd"))))) == ["n2"]


def test_members_of_a_rack_are_on_its_preferred_hosts() -> None:
    scene = scene_of("r1 n1 n2 n3=ssd n4=ssd", "r2 n5=ssd")
    plan = scene.place(scene.gang("g", 2, like=prefers((1, "ssd")), required_level=RACK))
    assert set(scene.nodes_of(plan)) == {"n3", "n4"}


def test_a_late_member_goes_to_a_preferred_host_beside_the_others() -> None:
    """n1 runs a member of r1; n2, n3 and n4 are as near, n5 is farther and preferred, too."""
    scene = scene_of("r1 n1 n2 n3=ssd n4", "r2 n5=ssd")
    like = prefers((1, "ssd"))
    gang = scene.crew("g", ["n1"], like=like)
    scene.members(gang, [1], like)
    assert scene.nodes_of(scene.place(gang)) == ["n3"]


# --- three racks of three, by the names of racks and hosts ------------------------------


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
