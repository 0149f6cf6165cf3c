"""Disruption budgets are known while victims are looked for: whoever they keep is not chosen."""

from collections.abc import Mapping

from support.clusters.roomscene import NOW, RoomScene, keeps_of, names_of
from support.clusters.scene import NAMESPACE

from muster.cluster.specs.podconstraints import LabelSelector, Operator, Requirement
from muster.decisions import roomtext
from muster.decisions.roomplan import WhyNoRoom
from muster.queueing.preemption.disruptionbudgets import DisruptionAllowance, NamespaceBudgets
from muster.queueing.preemption.rules import Keeps

ROW = "a/r1 n1 n2 n3 n4"


def selector(*apps: str) -> LabelSelector:
    """Return a selector of pods by label."""
    return LabelSelector((Requirement("app", Operator.IN, apps),))


def budgets(**of: tuple[tuple[str, ...], int]) -> Mapping[str, NamespaceBudgets]:
    """Return budgets by name: the apps that each counts, and how many pods it allows."""
    found = (
        DisruptionAllowance(f"{NAMESPACE}/{name}", selector(*apps), allowed)
        for name, (apps, allowed) in of.items()
    )
    return {NAMESPACE: NamespaceBudgets(found)}


def scene_of(*, size: int = 1, **since: float) -> RoomScene:
    """Return a row of four nodes with a gang a node; ``since``: for how many seconds each runs."""
    scene = RoomScene(ROW, a=32)
    nodes = iter(["n1", "n2", "n3", "n4"])
    for name, seconds in since.items():
        at = [next(nodes) for _ in range(size)]
        scene.runs(name, at, queue="a", since=NOW - seconds, labels={"app": name})
    return scene


def test_a_gang_that_its_budget_keeps_is_not_chosen_where_another_one_is_enough() -> None:
    """x has lost least, and its budget allows one of its two pods."""
    scene = scene_of(size=2, x=10, y=9_000)
    wants = scene.wants("w", 2, queue="a", priority=9)
    assert names_of(scene.made(wants)) == ["x"]
    assert names_of(scene.made(wants, budgets=budgets(keep=(("x",), 1)))) == ["y"]
    assert names_of(scene.made(wants, budgets=budgets(keep=(("x",), 2)))) == ["x"]


def test_gangs_under_one_budget_share_what_it_allows() -> None:
    """x, y and z would be the cheapest; the budget allows two of them to go."""
    scene = scene_of(x=10, y=20, z=30, old=90_000)
    wants = scene.wants("w", 3, queue="a", priority=9)
    assert names_of(scene.made(wants)) == ["x", "y", "z"]
    shared = budgets(keep=(("x", "y", "z"), 2))
    assert names_of(scene.made(wants, budgets=shared)) == ["old", "x", "y"]


def test_of_an_elastic_gang_as_many_members_go_as_its_budget_allows() -> None:
    """Three are above the minimum, the budget allows two."""
    scene = RoomScene(ROW, a=32)
    nodes = ["n1", "n2", "n3", "n4"]
    scene.runs("x", nodes, queue="a", minimum=1, labels={"app": "x"})
    two = scene.wants("w", 2, queue="a", priority=9)
    three = scene.wants("v", 3, queue="a", priority=9)
    known = budgets(keep=(("x",), 2))
    assert len(scene.made(two, budgets=known).rows) == 2
    assert scene.refused(three, budgets=known).reason is WhyNoRoom.NOT_ENOUGH


def test_nobody_goes_where_budgets_keep_all_and_the_answer_names_them() -> None:
    """One budget each."""
    scene = scene_of(size=2, x=10, y=20)
    known = budgets(one=(("x",), 1), none=(("y",), 0))
    answer = scene.refused(scene.wants("w", 2, queue="a", priority=9), budgets=known)
    assert answer.reason is WhyNoRoom.NOBODY
    assert keeps_of(answer) == {Keeps.HELD: 2}
    assert roomtext.lines_of(answer)[2:] == [
        "  muster/ns/x: its budget ns/one allows 1 of 2",
        "  muster/ns/y: its budget ns/none allows 0 of 2",
    ]
    assert roomtext.why_nobody(answer).endswith("; muster/ns/y: its budget ns/none allows 0 of 2")


def test_the_answer_names_a_budget_that_keeps_only_several_together() -> None:
    """Each of the two may go, both may not."""
    scene = scene_of(size=2, x=10, y=20)
    known = budgets(both=(("x", "y"), 3))
    answer = scene.refused(scene.wants("w", 4, queue="a", priority=9), budgets=known)
    assert answer.reason is WhyNoRoom.NOT_ENOUGH
    text = "budget ns/both allows 3 of the 4 pods of gangs that may give way"
    assert [str(one) for one in answer.held] == [text]


def test_what_a_budget_allows_is_used_up_by_those_that_give_way_already() -> None:
    """z ends for another gang: of the two pods that the budget allows one is left."""
    scene = scene_of(x=10, y=20, z=30, old=90_000)
    z = next(key for key in scene.state.gangs() if key.endswith("/z"))
    wants = scene.wants("w", 2, queue="a", priority=9)
    known = budgets(keep=(("x", "y", "z"), 2))
    assert names_of(scene.made(wants, budgets=known)) == ["x", "y"]
    assert names_of(scene.made(wants, budgets=known, going={z: ()})) == ["old", "x"]


def test_a_gang_that_may_not_be_asked_is_counted_by_that_rule_and_not_by_its_budget() -> None:
    """Its priority is as high."""
    scene = scene_of(size=2, x=10, y=20)
    known = budgets(none=(("x", "y"), 0))
    answer = scene.refused(scene.wants("w", 2, queue="a", priority=0), budgets=known)
    assert keeps_of(answer) == {Keeps.NOT_LOWER: 2}
    assert not answer.held


def test_a_budget_counts_the_pods_of_its_own_namespace_alone() -> None:
    """The same labels elsewhere."""
    scene = scene_of(size=2, x=10, y=9_000)
    wants = scene.wants("w", 2, queue="a", priority=9)
    elsewhere = {"other": budgets(keep=(("x",), 0))[NAMESPACE]}
    assert names_of(scene.made(wants, budgets=elsewhere)) == ["x"]


def test_what_members_of_its_own_queue_give_back_counts_though_a_budget_keeps_their_gang() -> None:
    """a uses 16 of its 24 and wants 16: with x's second member gone it is entitled to y's node."""
    scene = RoomScene(ROW, a=24, b=8)
    scene.runs("x", ["n1", "n2"], queue="a", minimum=1, labels={"app": "x"})
    scene.runs("y", ["n3"], queue="b", since=NOW - 10, labels={"app": "y"})
    scene.runs("z", ["n4"], queue="b", since=NOW - 9_000, labels={"app": "z"})
    wants = scene.wants("w", 2, queue="a", priority=9)
    made = scene.made(wants, budgets=budgets(keep=(("x",), 1)))
    assert [(one.gang[-1], len(one.rows)) for one in made.victims] == [("x", 1), ("y", 1)]
