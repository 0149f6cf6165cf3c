"""Which victims: inside the right domain, whole gangs or surplus, the least of them."""

from support.clusters.roomscene import NOW, RoomScene, names_of
from support.clusters.scene import RACK, pod_class

from muster.decisions.roomplan import WhyNoRoom
from muster.decisions.tenancy import GangTerms
from muster.placement.victims.costs import CostKind, CostOrder

FOUR = "a/r1 n1 n2\na/r2 n3 n4"


def test_one_member_of_an_elastic_gang_goes_and_not_ten() -> None:
    """volcano#5994: a gang of 11 single-GPU pods, minimum 1; one GPU is wanted."""
    scene = RoomScene("a/r1 n1:11", a=11)
    scene.runs("x", ["n1"] * 11, 1, queue="a", minimum=1)
    made = scene.made(scene.wants("w", 1, 1, queue="a", priority=9))
    assert len(made.rows) == 1
    assert not made.victims[0].is_whole
    assert made.proven


def test_the_first_member_in_rank_order_stays_unless_all_go() -> None:
    """n1 has 8 GPUs, n2 has 4: only the first member's end makes room for a pod of 8."""
    scene = RoomScene("a/r1 n1 n2:4", a=12)
    scene.runs("x", ["n1", "n2"], 4, queue="a", minimum=1)
    made = scene.made(scene.wants("w", 1, 8, queue="a", priority=5))
    assert (len(made.rows), made.victims[0].is_whole) == (2, True)
    smaller = scene.made(scene.wants("v", 2, 4, queue="a", priority=5))
    assert (len(smaller.rows), smaller.victims[0].is_whole) == (1, False)


def test_members_go_down_to_the_minimum_and_no_further() -> None:
    """An elastic gang of four, minimum 2: two go; where three are wanted, all four do."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n1", "n2", "n3", "n4"], queue="a", minimum=2)
    two = scene.made(scene.wants("w", 2, queue="a", priority=9))
    assert (len(two.rows), two.victims[0].is_whole) == (2, False)
    three = scene.made(scene.wants("w3", 3, queue="a", priority=9))
    assert (len(three.rows), three.victims[0].is_whole) == (4, True)


def test_half_a_gang_never_goes() -> None:
    """volcano#4607: two gangs over n1 to n4; one node is wanted; one gang goes whole."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n1", "n3"], queue="a")
    scene.runs("y", ["n2", "n4"], queue="a")
    made = scene.made(scene.wants("w", 1, queue="a", priority=9))
    assert len(made.victims) == 1
    assert len(made.rows) == 2


def test_a_gang_without_surplus_goes_whole_where_partial_is_not_allowed() -> None:
    """volcano#4535: its minimum does not make a gang untouchable."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8, c=0)
    scene.runs("x", ["n1"], queue="b")
    scene.runs("y", ["n2"], queue="c", minimum=1)
    assert names_of(scene.made(scene.wants("w", 1, queue="a"))) == ["y"]


def test_victims_are_inside_one_domain_of_the_required_level() -> None:
    """volcano#4533: low priority on n2 and n3, n1 and n4 are free; a pair needs a rack."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n2"], queue="a", since=NOW - 10)
    scene.runs("y", ["n3"], queue="a", since=NOW - 9_000)
    made = scene.made(scene.wants("w", 2, queue="a", priority=9, required_level=RACK))
    assert names_of(made) == ["x"]
    assert set(scene.racks_of(made.plan)) == {"a/r1"}


def test_a_domain_that_is_full_of_lower_priorities_is_looked_at() -> None:
    """KAI-Scheduler#1591: r1 is full of priority 0, r2 of priority 9; a pair needs a rack."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("low", ["n1", "n2"], queue="a")
    scene.runs("high", ["n3", "n4"], queue="a", priority=9)
    made = scene.made(scene.wants("w", 2, queue="a", priority=5, required_level=RACK))
    assert names_of(made) == ["low"]


def test_nobody_goes_where_no_single_node_can_be_freed() -> None:
    """kueue#5243: 4 nodes, each 6 pods of priority 9 and 2 of 0; a pod of 8 GPUs waits."""
    scene = RoomScene(FOUR, a=32)
    for node in ("n1", "n2", "n3", "n4"):
        for number in range(8):
            priority = 0 if number < 2 else 9
            scene.runs(f"{node}-{number}", [node], 1, queue="a", priority=priority)
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9))
    assert refused.reason is WhyNoRoom.NOT_ENOUGH
    assert refused.certain


def test_the_work_lost_counts_from_the_last_checkpoint() -> None:
    """kueue#477: x runs for a day and saved a minute ago, y has run for an hour unsaved."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    x = scene.runs("x", ["n1"], queue="a", since=NOW - 86_400)
    scene.runs("y", ["n2"], queue="a", since=NOW - 3_600)
    key = scene.wants("w", 1, queue="a", priority=9)
    assert names_of(scene.made(key)) == ["y"]
    made = scene.made(key, terms={x: GangTerms(checkpointed_at=NOW - 60)})
    assert names_of(made) == ["x"]
    assert made.cost.lost == 8 * 60


def test_a_lower_priority_goes_before_less_lost_work_unless_told_otherwise() -> None:
    """x: priority 0, an hour; y: priority 1, a second."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    scene.runs("x", ["n1"], queue="a", since=NOW - 3_600)
    scene.runs("y", ["n2"], queue="a", priority=1, since=NOW - 1)
    key = scene.wants("w", 1, queue="a", priority=9)
    assert names_of(scene.made(key)) == ["x"]
    assert names_of(scene.made(key, order=CostOrder((CostKind.LOST,)))) == ["y"]


def test_one_gang_goes_rather_than_three_that_lose_a_little_less() -> None:
    """Three of one node lose 30 s each, one of three nodes 35 s: within a factor of eight."""
    scene = RoomScene("a/r1 n1 n2 n3 n4 n5 n6", a=48)
    for node in ("n1", "n2", "n3"):
        scene.runs(f"x{node}", [node], queue="a", since=NOW - 30)
    scene.runs("y", ["n4", "n5", "n6"], queue="a", since=NOW - 35)
    key = scene.wants("w", 3, queue="a", priority=9)
    assert names_of(scene.made(key)) == ["y"]
    exact = CostOrder((CostKind.PRIORITY, CostKind.LOST))
    assert names_of(scene.made(key, order=exact)) == ["xn1", "xn2", "xn3"]


def test_the_answer_is_the_same_for_the_same_cluster() -> None:
    """Equal gangs everywhere: the names decide, twice alike."""
    scene = RoomScene(FOUR, a=32)
    for node in ("n4", "n3", "n2", "n1"):
        scene.runs(f"x{node}", [node], queue="a", since=NOW - 20)
    key = scene.wants("w", 2, queue="a", priority=9)
    first, second = scene.made(key), scene.made(key)
    assert first.victims == second.victims
    assert names_of(first) == ["xn1", "xn2"]


def test_members_of_several_kinds_get_room_together() -> None:
    """A launcher of 4 GPUs and a worker of 8 in one rack: r2's gangs go, verified by a plan."""
    scene = RoomScene(FOUR, a=32)
    scene.runs("x", ["n1", "n2"], queue="a", priority=9)
    scene.runs("y", ["n3"], queue="a", since=NOW - 10)
    scene.runs("z", ["n4"], queue="a", since=NOW - 10)
    key = scene.gang("w", 2, members=0, queue="a", required_level=RACK)
    scene.members(key, [0], pod_class(4), priority=5)
    scene.members(key, [1], pod_class(8), priority=5)
    made = scene.made(key)
    assert names_of(made) == ["y", "z"]
    assert not made.proven


def test_the_minimum_of_an_elastic_gang_is_given_room_and_no_more() -> None:
    """A gang of four with minimum 1 waits: one victim, not four."""
    scene = RoomScene(FOUR, a=32)
    for node in ("n1", "n2", "n3", "n4"):
        scene.runs(f"x{node}", [node], queue="a", since=NOW - 20)
    made = scene.made(scene.wants("w", 4, queue="a", priority=9, min_count=1))
    assert len(made.victims) == 1
    assert len(made.plan.pods) == 1


def test_among_very_many_gangs_those_that_lose_least_go() -> None:
    """80 gangs on as many nodes, those of rack r1 the younger ones; four nodes of a rack."""
    drawing = "\n".join(
        f"a/r{rack} " + " ".join(f"n{rack}-{at}" for at in range(10)) for rack in range(8)
    )
    scene = RoomScene(drawing, a=640)
    for rack in range(8):
        for at in range(10):
            age = at + 1 if rack == 1 else 10_000
            scene.runs(f"x{rack}-{at}", [f"n{rack}-{at}"], queue="a", since=NOW - age)
    made = scene.made(scene.wants("w", 4, queue="a", priority=9, required_level=RACK))
    assert names_of(made) == ["x1-0", "x1-1", "x1-2", "x1-3"]
    assert not made.proven


def test_all_gangs_are_looked_at_where_the_first_give_no_way() -> None:
    """80 gangs; the young ones, looked at first, are protected; one old gang is not."""
    nodes = [f"n{at}" for at in range(80)]
    scene = RoomScene("a/r1 " + " ".join(nodes), a=640)
    keys = [scene.runs(f"x-{node}", [node], queue="a", since=NOW - 5) for node in nodes[1:]]
    scene.runs("old", ["n0"], queue="a", since=NOW - 50_000)
    key = scene.wants("w", 1, queue="a", priority=9)
    terms = {key: GangTerms(is_protected=True) for key in keys}
    assert names_of(scene.made(key, terms=terms)) == ["old"]


def test_whoever_is_not_needed_stays_among_many_candidates() -> None:
    """6 GPUs on one node: n1 has 1 free, a (1) and b (5); n2 never has 6; n3 to n5 neither."""
    scene = RoomScene("a/r1 n1:7 n2 n3 n4 n5", a=64)
    scene.runs("a", ["n1"], 1, queue="a", since=NOW - 1)
    scene.runs("b", ["n1"], 5, queue="a", since=NOW - 90)
    scene.runs("c", ["n2"], 5, queue="a", since=NOW - 2)
    scene.runs("d", ["n2"], 3, queue="a", priority=9)
    for node in ("n3", "n4", "n5"):
        scene.runs(f"high-{node}", [node], 3, queue="a", priority=9)
        for number in range(5):
            scene.runs(f"{node}-{number}", [node], 1, queue="a", since=NOW - 3)
    for number in range(6):
        scene.alone(f"z{number}", "n1", 0, priority=0)
    made = scene.made(scene.wants("w", 1, 6, queue="a", priority=5))
    assert names_of(made) == ["b"]
