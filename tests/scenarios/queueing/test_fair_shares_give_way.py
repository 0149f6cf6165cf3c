"""Who gives way in queues of KAI to one whose queue stays within its fair share.

A node has 8 GPUs. Queues have no quota and weight 1, so that what each gets is by weight and
demand. Source: NVIDIA/KAI-Scheduler, plugins/proportion/reclaimable
(``MaintainFairShareStrategy``).
"""

from support.clusters.queuescene import QueueScene
from support.clusters.roomscene import keeps_of, names_of
from support.clusters.scene import GPU
from support.dialects.kaiqueues import kai

from muster.cluster.specs.podconstraints import PodClass
from muster.decisions.roomplan import NoRoom, RoomAnswer, RoomPlan, RoomRight, WhyNoRoom
from muster.queueing.preemption.rules import Keeps

NIC = "example.com/nic"


def shared(name: str, parent: str = "", quota: int = 0, **spec: object) -> str:
    """Return a Queue with a weight of 1 beyond its quota."""
    return kai(name, quota, parent, **spec).replace(
        f"gpu: {{quota: {quota},", f"gpu: {{quota: {quota}, overQuotaWeight: 1,"
    )


def by_share(made: QueueScene, count: int = 1, **wants: object) -> RoomAnswer:
    """Return who gives way to a gang, where it is known what is divided."""
    key = made.wants("w", count, **wants)  # type: ignore[arg-type]
    return made.room(key, divided=made.shares())


def test_a_queue_takes_up_to_its_fair_share_from_one_that_uses_more_than_its_own() -> None:
    """Of 32 GPUs each gets 16; b uses all. KAI's MaintainFairShareStrategy."""
    made = QueueScene("a/r1 n1 n2 n3 n4", [shared("a"), shared("b")])
    for node in ("n1", "n2", "n3", "n4"):
        made.runs(f"x{node}", [node], queue="b", priority=50)
    plan = by_share(made, 2, queue="a", priority=1)
    assert isinstance(plan, RoomPlan)
    assert {victim.right for victim in plan.victims} == {RoomRight.FAIR_SHARE}
    assert len(plan.victims) == 2


def test_no_queue_takes_more_than_its_fair_share() -> None:
    """Each gets 16 of 32 GPUs: three nodes are 24."""
    made = QueueScene("a/r1 n1 n2 n3 n4", [shared("a"), shared("b")])
    for node in ("n1", "n2", "n3", "n4"):
        made.runs(f"x{node}", [node], queue="b")
    answer = by_share(made, 3, queue="a")
    assert isinstance(answer, NoRoom)
    assert keeps_of(answer) == {Keeps.OVER_SHARE: 4}


def test_a_queue_within_its_fair_share_gives_nothing() -> None:
    """Of 32 GPUs b uses 24 and c 8, which is less than a third: b gives."""
    made = QueueScene("a/r1 n1 n2 n3 n4", [shared("a"), shared("b"), shared("c")])
    for node in ("n1", "n2", "n3"):
        made.runs(f"x{node}", [node], queue="b", priority=90)
    made.runs("y", ["n4"], queue="c", priority=1)
    plan = by_share(made, queue="a")
    assert isinstance(plan, RoomPlan)
    assert {name[0] for name in names_of(plan)} == {"x"}


def test_what_a_queue_has_by_its_quota_is_no_surplus() -> None:
    """b's quota is 16 and it uses 16; of the other 16 each gets 8."""
    made = QueueScene("a/r1 n1 n2 n3 n4", [shared("a"), shared("b", quota=16), shared("c")])
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="b")
    for node in ("n3", "n4"):
        made.runs(f"y{node}", [node], queue="c", priority=90)
    plan = by_share(made, queue="a")
    assert isinstance(plan, RoomPlan)
    assert {name[0] for name in names_of(plan)} == {"y"}


def test_what_is_above_the_quotas_goes_to_the_higher_priority_of_queues_first() -> None:
    """b comes first, and asks for all: a gets nothing."""
    made = QueueScene("a/r1 n1 n2", [shared("a", priority=100), shared("b", priority=200)])
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="b")
    refused = by_share(made, queue="a")
    assert isinstance(refused, NoRoom)
    assert keeps_of(refused) == {Keeps.OVER_SHARE: 2}


def test_a_gang_that_never_gives_way_takes_only_within_its_quota() -> None:
    made = QueueScene("a/r1 n1 n2", [shared("a"), shared("b")])
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="b")
    refused = by_share(made, queue="a", priority=100)
    assert isinstance(refused, NoRoom)
    assert refused.reason is WhyNoRoom.FIRM


def test_between_departments_the_shares_of_teams_and_departments_count() -> None:
    """d and e get 16 of 32 GPUs each; e uses 24, of which its team c 8: c is within its share."""
    queues = [shared("d"), shared("a", "d"), shared("e"), shared("b", "e"), shared("c", "e")]
    made = QueueScene("a/r1 n1 n2 n3 n4", queues)
    made.runs("z", ["n1"], queue="a", priority=9)
    for node in ("n2", "n3"):
        made.runs(f"x{node}", [node], queue="b", priority=90)
    made.runs("y", ["n4"], queue="c", priority=1)
    plan = by_share(made, queue="a", priority=1)
    assert isinstance(plan, RoomPlan)
    assert {name[0] for name in names_of(plan)} == {"x"}


def test_a_resource_that_no_queue_names_keeps_nobody_from_its_quota() -> None:
    """a has a quota of 8 GPUs and no weight; its gang asks for a NIC as well (volcano#4658)."""
    made = QueueScene("", [kai("a", 8), shared("b")])
    made.node("n1", allocatable={NIC: 2})
    like = PodClass((("cpu", 1000), (NIC, 1), (GPU, 8), ("pods", 1)))
    made.runs("x", ["n1"], queue="b", like=like, priority=90)
    key = made.wants("w", 1, queue="a", like=like)
    plan = made.room(key, divided=made.shares())
    assert isinstance(plan, RoomPlan)
    assert [victim.right for victim in plan.victims] == [RoomRight.RECLAIM]


def test_nobody_takes_by_shares_that_are_not_known() -> None:
    made = QueueScene("a/r1 n1 n2", [shared("a"), shared("b")])
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="b")
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.ENTITLED: 2}
