"""Moves that make room, on drawn fleets: the fewest, the cheapest, and nobody who must stay.

Every proposal is carried out on paper and verified pod by pod (``support.movescheck``).
"""

from collections.abc import Sequence

import pytest
from support.clusters.movescheck import problems
from support.clusters.scene import RACK, Scene, pod_class

from muster.cluster.events import DeviceSpec
from muster.cluster.ids import GangKey
from muster.cluster.resumable import run
from muster.cluster.specs.podconstraints import (
    LabelSelector,
    Operator,
    PodAffinityTerm,
    Requirement,
)
from muster.placement.moves import text
from muster.placement.moves.movablepods import Price, Stays
from muster.placement.moves.proposals import Answer, NoHelp, Proposal, Unhelpful, propose
from muster.placement.question import Question


def ask(scene: Scene, key: GangKey) -> Answer:
    answer = run(propose(scene.snapshot, Question(key)))
    if isinstance(answer, Proposal):
        assert problems(scene.snapshot, answer) == []
    return answer


def proposed(scene: Scene, key: GangKey) -> Proposal:
    answer = ask(scene, key)
    assert isinstance(answer, Proposal), answer
    return answer


def ways(scene: Scene, proposal: Proposal) -> list[tuple[str, str]]:
    name = scene.snapshot.nodes.name
    return [(name(move.source), name(move.target)) for move in proposal.moves]


def stayed(answer: Answer) -> dict[Stays, int]:
    assert isinstance(answer, Unhelpful)
    return dict(answer.staying)


@pytest.fixture
def scene() -> Scene:
    #  rack r1   n1 n2 n3 n4      8 GPUs a node
    #  rack r2   n5 n6 n7 n8
    return Scene("""
        a/r1  n1 n2 n3 n4
        a/r2  n5 n6 n7 n8
    """)


def fill(scene: Scene, nodes: Sequence[str], gpu: int = 8) -> None:
    """Let pods run that nobody may move: they are not Muster's."""
    for node in nodes:
        scene.run(node, gpu)


# --- the fewest -------------------------------------------------------------------------


def test_three_small_pods_that_break_three_nodes_of_a_rack_move_to_one_node(scene: Scene) -> None:
    #  r1  n1 [2······] n2 [2······] n3 [2······] n4 [········]
    #  r2  n5 [8] n6 [8] n7 [8] n8 [········]           the gang: 4 x 8 GPUs in one rack
    for node in ("n1", "n2", "n3"):
        scene.alone(f"on-{node}", node, 2)
    fill(scene, ("n5", "n6", "n7"))
    proposal = proposed(scene, scene.gang("big", 4, required_level=RACK))
    assert ways(scene, proposal) == [("n1", "n8"), ("n2", "n8"), ("n3", "n8")]
    assert proposal.price == Price(0, 6000, 3, 3, 6000)
    assert proposal.proven


def test_the_rack_that_needs_one_move_is_cleared_and_not_the_one_that_needs_two(
    scene: Scene,
) -> None:
    for node in ("n1", "n2", "n5"):
        scene.alone(f"on-{node}", node, 4)
    fill(scene, ("n4", "n8"), 1)
    proposal = proposed(scene, scene.gang("big", 3, required_level=RACK))
    assert ways(scene, proposal) == [("n5", "n1")]


def test_on_a_node_the_pods_that_make_room_move_and_the_others_stay(scene: Scene) -> None:
    #  n1 [3][4][·]   n8 [5][···]   the others full      the gang: 1 x 4 GPUs
    fill(scene, ("n2", "n3", "n4", "n5", "n6", "n7"))
    fill(scene, ("n8",), 5)
    scene.alone("three", "n1", 3)
    scene.alone("four", "n1", 4)
    proposal = proposed(scene, scene.gang("g", 1, 4))
    assert ways(scene, proposal) == [("n1", "n8")]
    assert proposal.disturbed[0].gang.endswith("three")


def test_of_two_pods_that_could_make_room_the_smaller_moves() -> None:
    #  n1 [4 a][····]   n2 [3 b][·····]   n3 [5 x][···]      the gang: 1 x 8 GPUs
    scene = Scene("a/r1  n1 n2 n3")
    scene.alone("a", "n1", 4)
    scene.alone("b", "n2", 3)
    fill(scene, ("n3",), 5)
    proposal = proposed(scene, scene.gang("g", 1, 8))
    assert ways(scene, proposal) == [("n2", "n3")]


def test_moves_that_only_make_room_for_moves_are_found() -> None:
    #  n1:8 [6 a]    n2:6 [2 b]    n3:2 free      the gang: 1 x 8 GPUs
    #  a must leave n1 and fits on n2 alone, once b has gone to n3
    scene = Scene("a/r1  n1:8 n2:6 n3:2")
    scene.alone("a", "n1", 6)
    scene.alone("b", "n2", 2)
    proposal = proposed(scene, scene.gang("g", 1, 8))
    assert ways(scene, proposal) == [("n1", "n2"), ("n2", "n3")]
    assert proposal.proven


# --- the cheapest -----------------------------------------------------------------------


def test_a_gang_is_left_alone_where_lone_pods_suffice(scene: Scene) -> None:
    #  r1  n1 [train 8] n2 n3 n4 [train 8]   r2  n5 [x 4] n6 [y 4] n7 n8 [8]
    scene.crew("train", ["n1", "n4"], 8)
    scene.alone("x", "n5", 4)
    scene.alone("y", "n6", 4)
    fill(scene, ("n8",))
    proposal = proposed(scene, scene.gang("big", 3, required_level=RACK))
    assert {each.gang.rpartition("/")[2] for each in proposal.disturbed} == {"x", "y"}
    assert proposal.price.interrupted == 8000


def test_one_member_of_a_gang_costs_all_of_its_devices(scene: Scene) -> None:
    fill(scene, ("n5", "n6", "n7"))
    scene.crew("train", ["n1", "n2"], 8)
    proposal = proposed(scene, scene.gang("big", 3, required_level=RACK))
    assert proposal.price == Price(0, 16_000, 1, 1, 8000)
    assert proposal.disturbed[0].stops


def test_an_elastic_gang_that_keeps_its_minimum_costs_only_what_moves(scene: Scene) -> None:
    fill(scene, ("n5", "n6", "n7"))
    scene.crew("train", ["n1", "n2"], 8, spec={"min_count": 1})
    proposal = proposed(scene, scene.gang("big", 3, required_level=RACK))
    assert proposal.price == Price(0, 8000, 1, 1, 8000)
    assert not proposal.disturbed[0].stops


def test_a_lower_priority_moves_first_even_if_more_of_it_must(scene: Scene) -> None:
    fill(scene, ("n3", "n4", "n7", "n8"))
    scene.alone("precious", "n1", 2, priority=5)
    scene.alone("x", "n5", 3, priority=1)
    scene.alone("y", "n6", 3, priority=1)
    proposal = proposed(scene, scene.gang("big", 2, required_level=RACK, priority=9))
    assert {each.gang.rpartition("/")[2] for each in proposal.disturbed} == {"x", "y"}
    assert proposal.price.priority == 1


# --- who must stay ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stays": True}, Stays.ASKED),
        ({"preemptible": False}, Stays.ASKED),
        ({"owned": False}, Stays.NOT_OWNED),
        ({"terminating": True}, Stays.ON_ITS_WAY),
        ({"priority": 1}, Stays.HIGHER),
    ],
)
def test_a_pod_that_must_stay_is_named_and_not_moved(
    scene: Scene, fields: dict[str, object], reason: Stays
) -> None:
    fill(scene, ("n5", "n6", "n7"))
    scene.alone("x", "n1", 2, **fields)
    answer = ask(scene, scene.gang("big", 4, required_level=RACK))
    assert isinstance(answer, Unhelpful)
    assert answer.reason is NoHelp.HELD_FAST
    assert answer.certain
    assert stayed(answer) == {Stays.NOT_MANAGED: 3, reason: 1}


def test_another_rack_is_cleared_when_the_best_one_has_a_pod_that_must_stay(scene: Scene) -> None:
    scene.alone("x", "n1", 1, stays=True)
    scene.alone("y", "n5", 2)
    scene.alone("z", "n6", 2)
    proposal = proposed(scene, scene.gang("big", 4, required_level=RACK))
    assert {each.gang.rpartition("/")[2] for each in proposal.disturbed} == {"y", "z"}


def test_a_member_of_a_running_gang_stays_in_the_rack_that_its_gang_requires(
    scene: Scene,
) -> None:
    #  train requires one rack and runs on n1 n2; n5 and n6 are free, n3 is not enough
    scene.crew("train", ["n1", "n2"], 4, spec={"required_level": RACK})
    fill(scene, ("n4", "n7", "n8"))
    fill(scene, ("n3",), 4)
    fill(scene, ("n5", "n6"), 1)
    proposal = proposed(scene, scene.gang("g", 1, 8))
    targets = {target for _, target in ways(scene, proposal)}
    assert targets <= {"n1", "n2", "n3"}
    assert len(proposal.moves) == 1


def test_a_whole_gang_moves_to_another_rack_where_its_own_has_no_room_for_it(
    scene: Scene,
) -> None:
    scene.crew("train", ["n1", "n2"], 8, spec={"required_level": RACK})
    fill(scene, ("n7", "n8"))
    proposal = proposed(scene, scene.gang("big", 4, required_level=RACK))
    assert sorted(ways(scene, proposal)) == [("n1", "n5"), ("n2", "n6")]


def test_a_pod_moves_only_where_its_own_selector_lets_it(scene: Scene) -> None:
    scene.node("n8", block="a", rack="r2", labels={"disk": "fast"})
    fill(scene, ("n5", "n6"), 7)
    like = pod_class(1, node_selector=(("disk", "fast"),))
    scene.node("n1", block="a", rack="r1", labels={"disk": "fast"})
    scene.crew("x", ["n1"], like=like)
    proposal = proposed(scene, scene.gang("big", 4, required_level=RACK))
    assert ways(scene, proposal) == [("n1", "n8")]


def test_pods_that_repel_each_other_are_not_moved_together(scene: Scene) -> None:
    selector = LabelSelector((Requirement("app", Operator.IN, ("db",)),))
    apart = PodAffinityTerm("kubernetes.io/hostname", selector, frozenset({"ns"}))
    like = pod_class(1, pod_anti_affinity=(apart,))
    for number, node in enumerate(("n1", "n2")):
        scene.run_managed(f"db-{number}", node, like, {"app": "db"})
    fill(scene, ("n5", "n6"), 7)
    proposal = proposed(scene, scene.gang("big", 4, required_level=RACK))
    assert len({target for _, target in ways(scene, proposal)}) == 2


# --- nothing to propose -----------------------------------------------------------------


def test_nothing_has_to_move_for_a_gang_that_fits(scene: Scene) -> None:
    answer = ask(scene, scene.gang("g", 2))
    assert isinstance(answer, Unhelpful)
    assert answer.reason is NoHelp.FITS_NOW


def test_a_gang_larger_than_any_rack_is_not_helped_by_moves(scene: Scene) -> None:
    scene.alone("x", "n1", 2)
    answer = ask(scene, scene.gang("big", 5, required_level=RACK))
    assert isinstance(answer, Unhelpful)
    assert (answer.reason, answer.certain) == (NoHelp.HELD_FAST, True)


def test_a_full_cluster_has_no_room_for_those_that_would_move(scene: Scene) -> None:
    for number in range(1, 9):
        scene.alone(f"x{number}", f"n{number}", 5)
    answer = ask(scene, scene.gang("big", 1, 8))
    assert isinstance(answer, Unhelpful)
    assert answer.reason is NoHelp.NO_ROOM


def test_a_gang_that_is_not_complete_is_told_so(scene: Scene) -> None:
    answer = ask(scene, scene.gang("g", 4, members=2))
    assert isinstance(answer, Unhelpful)
    assert answer.reason is NoHelp.NOT_READY


# --- harder gangs -----------------------------------------------------------------------


def test_room_is_made_for_two_kinds_of_members_too(scene: Scene) -> None:
    for node in ("n1", "n2", "n5", "n6"):
        scene.alone(f"on-{node}", node, 2)
    key = scene.gang("g", 4, members=0, required_level=RACK)
    scene.members(key, [0], pod_class(4))
    scene.members(key, [1, 2, 3], pod_class(8))
    proposal = proposed(scene, key)
    assert not proposal.proven
    assert len(proposal.moves) == 1


def test_room_is_made_for_slices(scene: Scene) -> None:
    for node in ("n1", "n2", "n5", "n6", "n7"):
        scene.alone(f"on-{node}", node, 2)
    key = scene.gang("g", 4, slice_size=4, slice_level=RACK)
    proposal = proposed(scene, key)
    assert len({source for source, _ in ways(scene, proposal)} & {"n1", "n2"}) == 2


def test_fractions_are_moved_so_that_a_whole_device_becomes_free() -> None:
    devices = tuple(
        DeviceSpec(f"gpu-{i}", "nvidia.com/gpu", family="nvidia", counters={"memory": 80_000})
        for i in range(2)
    )
    scene = Scene("")
    for name in ("n1", "n2"):
        scene.node(f"{name}:2", block="a", rack="r1", devices=devices)
    for name, node in (("p", "n1"), ("q", "n2")):
        scene.alone(name, node, 1)
    proposal = proposed(scene, scene.gang("g", 1, 2))
    assert len(proposal.moves) == 1


def test_small_pods_all_over_a_large_fleet_close_ranks_so_that_a_large_one_can_move() -> None:
    #  rack r1   n1 [8 large] n2 [2······]      the gang: 2 x 8 GPUs, in r1 only
    #  rack r2   m0 [2······] m1 [2······] … m59 [2······]
    scene = Scene("a/r2 " + " ".join(f"m{number}" for number in range(60)))
    for name in ("n1", "n2"):
        scene.node(name, block="a", rack="r1", labels={"pool": "x"})
    scene.alone("large", "n1", 8)
    scene.alone("small", "n2", 2)
    for number in range(60):
        scene.alone(f"s{number}", f"m{number}", 2)
    like = pod_class(8, node_selector=(("pool", "x"),))
    proposal = proposed(scene, scene.gang("g", 2, like=like))
    assert len(proposal.moves) == 3
    assert not proposal.proven


# --- the words --------------------------------------------------------------------------


def test_a_proposal_names_each_move_and_what_stops(scene: Scene) -> None:
    fill(scene, ("n5", "n6", "n7"))
    scene.crew("train", ["n1", "n2"], 8)
    proposal = proposed(scene, scene.gang("big", 3, required_level=RACK))
    row = proposal.moves[0].pod
    assert text.lines(scene.snapshot, proposal, {row: "ns/train-0"}) == [
        (
            "muster/ns/big would fit after 1 move that interrupts 16 devices of 1 gang "
            "(no cheaper moves do)"
        ),
        "",
        (
            "muster/ns/train, priority 0: 1 of 2 pods move, all of it stops and starts again; "
            "16 devices interrupted"
        ),
        f"  ns/train-0  {ways(scene, proposal)[0][0]} -> n8",
        "",
        "then muster/ns/big goes: 3 members on 1 block, 1 rack, 3 hosts",
        "nothing was changed: this is a proposal",
    ]


def test_what_nothing_may_move_is_counted_in_words(scene: Scene) -> None:
    fill(scene, ("n5", "n6", "n7"))
    scene.alone("x", "n1", 2, stays=True)
    answer = ask(scene, scene.gang("big", 4, required_level=RACK))
    assert text.lines(scene.snapshot, answer, {}) == [
        "muster/ns/big: no moves are proposed: moving pods does not make room for it",
        "pods on the nodes it could use that nothing may move:",
        "  3 not placed by Muster",
        "  1 not to be moved (annotation)",
    ]
