"""What people report of victims and topology in other schedulers, as what must hold here.

::

    r1  n1 n2      8 GPUs a node; a line of a drawing is a rack
    r2  n3 n4

Each test names the reports that it answers.
"""

import pytest
from support.clusters.roomscene import NOW, RoomScene, names_of
from support.clusters.scene import RACK

from muster.decisions.roomplan import WhyNoRoom
from muster.placement.victims import roomsearch

FOUR = "a/r1 n1 n2\na/r2 n3 n4"


def test_a_victim_that_stands_in_two_racks_goes_whole_for_a_gang_in_one() -> None:
    """volcano#4533: of a pair on n2 and n3 only the half inside the chosen domain was evicted."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n2", "n3"], queue="a")
    made = scene.made(scene.wants("w", 2, queue="a", priority=9, required_level=RACK))
    assert [(victim.is_whole, len(victim.rows)) for victim in made.victims] == [(True, 2)]
    assert len(set(scene.racks_of(made.plan))) == 1


def test_no_victim_is_outside_the_domain_that_the_gang_gets() -> None:
    """volcano#4533: r1 is free but for n2; the cheapest pods of all are in r2, and stay."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n2"], queue="a", since=NOW - 12)
    for node in ("n3", "n4"):
        for number in range(8):
            scene.runs(f"{node}-{number}", [node], 1, queue="a", since=NOW - 10)
    made = scene.made(scene.wants("w", 2, queue="a", priority=9, required_level=RACK))
    assert names_of(made) == ["x"]
    assert set(scene.racks_of(made.plan)) == {"a/r1"}


def test_members_above_a_minimum_go_only_in_the_domain_that_the_gang_gets() -> None:
    """volcano#5994, volcano#4533: an elastic gang over both racks gives up the two of one rack."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n1", "n2", "n3", "n4"], queue="a", minimum=2)
    made = scene.made(scene.wants("w", 2, queue="a", priority=9, required_level=RACK))
    (victim,) = made.victims
    assert not victim.is_whole
    nodes, pods = scene.snapshot.nodes, scene.snapshot.pods
    assert {nodes.name(int(pods.node[row])) for row in victim.rows} == {"n3", "n4"}


def test_nobody_goes_for_two_pods_on_a_node_that_takes_one() -> None:
    """kueue#11287: a node for one pod was counted for each of two pod sets."""
    scene = RoomScene("a/r1 n2:0", a=16)
    scene.node("n1", block="a", rack="r1", allocatable={"pods": 1})
    scene.runs("x", ["n1"], 1, queue="a")
    two = scene.refused(scene.wants("w", 2, 1, queue="a", priority=9))
    assert two.reason is WhyNoRoom.NOT_ENOUGH
    assert two.certain
    assert names_of(scene.made(scene.wants("v", 1, 1, queue="a", priority=9))) == ["x"]


def test_nobody_goes_where_freed_devices_are_spread_over_nodes() -> None:
    """kueue#5243: 8 GPUs could be freed in the rack, and 4 on each of two nodes."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    for node in ("n1", "n2"):
        scene.runs(f"high-{node}", [node], 4, queue="a", priority=9)
        scene.runs(f"low-{node}", [node], 4, queue="a")
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9))
    assert refused.reason is WhyNoRoom.NOT_ENOUGH
    assert names_of(scene.made(scene.wants("v", 2, 4, queue="a", priority=9))) == [
        "low-n1", "low-n2",
    ]  # fmt: skip


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The plans that are made while sets of victims are verified, one entry each."""
    found, decided = list[int](), roomsearch.decided

    def counted(*asked: object) -> object:
        found.append(1)
        return decided(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr(roomsearch, "decided", counted)
    return found


def test_of_a_hundred_full_racks_few_are_planned_for_the_victims_of_one(plans: list[int]) -> None:
    """volcano#4899: 100 tier-1 groups of ten nodes; each tier was tried by a dry run.

    All racks are full, and r57 has lost least; ten nodes of one rack are wanted.
    """
    racks = range(100)
    drawing = "\n".join(f"a/r{r} " + " ".join(f"n{r}-{at}" for at in range(10)) for r in racks)
    scene = RoomScene(drawing, a=8_000)
    for rack in racks:
        since = NOW - (10 if rack == 57 else 10_000)
        for at in range(0, 10, 5):
            nodes = [f"n{rack}-{at + step}" for step in range(5)]
            scene.runs(f"x{rack}-{at}", nodes, queue="a", since=since)
    made = scene.made(scene.wants("w", 10, queue="a", priority=9, required_level=RACK))
    assert names_of(made) == ["x57-0", "x57-5"]
    assert len(plans) <= 3
