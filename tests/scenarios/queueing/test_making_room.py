"""Who gives way to whom, and whether it lasts: scenarios from the issues of other schedulers.

GPUs are 8 a node unless a node says otherwise; queues are below one root and entitled to what
``RoomScene`` is given. The numbers of issues are where their scenario comes from.
"""

from dataclasses import replace

import pytest
from support.clusters.roomscene import GPUS, NOW, RoomScene, keeps_of, names_of
from support.clusters.scene import RACK, pod_class

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.preemptionpolicy import (
    BorrowWithin,
    PreemptionPolicy,
    ReclaimWithin,
    WithinQueue,
)
from muster.decisions.roomplan import RoomRight, WhyNoRoom
from muster.decisions.tenancy import GangTerms
from muster.queueing.preemption.rules import Keeps

CPU = Cell("", "cpu")
FOUR = "a/r1 n1 n2\na/r2 n3 n4"


# --- inside one queue -----------------------------------------------------------------------


def test_a_lower_priority_of_the_same_queue_gives_way() -> None:
    """Queue a (32) fills n1 to n4 with priorities 1, 1, 5, 9; priority 5 waits."""
    scene = RoomScene(FOUR, a=32)
    for node, priority in (("n1", 1), ("n2", 1), ("n3", 5), ("n4", 9)):
        scene.runs(f"p{node}", [node], queue="a", priority=priority, since=NOW - 100)
    made = scene.made(scene.wants("w", 2, queue="a", priority=5))
    assert names_of(made) == ["pn1", "pn2"]
    assert {victim.right for victim in made.victims} == {RoomRight.PRIORITY}
    refused = scene.refused(scene.wants("w3", 3, queue="a", priority=5))
    assert refused.reason is WhyNoRoom.NOT_ENOUGH
    assert keeps_of(refused) == {Keeps.NOT_LOWER: 2}


def test_nobody_gives_way_to_an_equal_priority_of_the_same_queue() -> None:
    """n1 runs priority 5 of queue a; priority 5 waits."""
    scene = RoomScene("a/r1 n1", a=8)
    scene.runs("x", ["n1"], queue="a", priority=5)
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=5))
    assert refused.reason is WhyNoRoom.NOBODY
    assert keeps_of(refused) == {Keeps.NOT_LOWER: 1}


def test_a_newer_gang_of_equal_priority_gives_way_where_the_policy_says_so() -> None:
    """n1 runs a gang submitted after the one that waits; n2 one submitted before it."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    scene.runs("newer", ["n1"], queue="a", since=500.0)
    scene.runs("older", ["n2"], queue="a", since=100.0)
    policy = PreemptionPolicy(within_queue=WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)
    key = scene.wants("w", 1, queue="a", submitted_at=300.0)
    assert names_of(scene.made(key, policy=policy)) == ["newer"]


def test_a_gang_that_makes_nobody_give_way_waits() -> None:
    """preemptionPolicy Never on the gang that waits."""
    scene = RoomScene("a/r1 n1", a=8)
    scene.runs("x", ["n1"], queue="a")
    key = scene.wants("w", 1, queue="a", priority=9)
    refused = scene.refused(key, terms={key: GangTerms(preempts=False)})
    assert refused.reason is WhyNoRoom.PREEMPTS_NEVER


def test_a_group_that_says_so_itself_makes_nobody_give_way() -> None:
    """preemptionPolicy Never of a PodGroup."""
    scene = RoomScene("a/r1 n1", a=8)
    scene.runs("x", ["n1"], queue="a")
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9, preempts=False))
    assert refused.reason is WhyNoRoom.PREEMPTS_NEVER


# --- between queues -------------------------------------------------------------------------


def test_a_queue_takes_back_what_it_is_entitled_to_whatever_the_priority() -> None:
    """a and b are entitled to two nodes each; b runs four gangs of priority 9."""
    scene = RoomScene(FOUR, a=16, b=16)
    for node in ("n1", "n2", "n3", "n4"):
        scene.runs(f"b{node}", [node], queue="b", priority=9)
    made = scene.made(scene.wants("w", 2, queue="a"))
    assert len(made.victims) == 2
    assert {victim.right for victim in made.victims} == {RoomRight.RECLAIM}
    scene.carry_out(made)
    assert (scene.used("a"), scene.used("b")) == (16, 16)


def test_a_queue_takes_no_more_than_it_is_entitled_to() -> None:
    """a is entitled to two nodes and asks for three."""
    scene = RoomScene(FOUR, a=16, b=16)
    scene.runs("x", ["n1", "n2", "n3", "n4"], queue="b", minimum=1)
    refused = scene.refused(scene.wants("w", 3, queue="a", priority=9))
    assert refused.reason is WhyNoRoom.NOBODY
    assert keeps_of(refused) == {Keeps.BORROWER: 1}


def test_sixteen_units_come_from_two_queues_that_keep_what_they_are_entitled_to() -> None:
    """volcano#5896: 64 units, deserved A32 B16 C16, usage 16/24/24; A grows to 32."""
    scene = RoomScene("a/r1 " + " ".join(f"n{n}" for n in range(8)), a=32, b=16, c=16)
    scene.runs("a0", ["n0", "n1"], queue="a")
    for queue, nodes in (("b", (2, 3, 4)), ("c", (5, 6, 7))):
        for node in nodes:
            for unit in range(8):
                scene.runs(f"{queue}{node}-{unit}", [f"n{node}"], 1, queue=queue)
    made = scene.made(scene.wants("w", 16, 1, queue="a"))
    assert len(made.rows) == 16
    scene.carry_out(made)
    assert (scene.used("a"), scene.used("b"), scene.used("c")) == (32, 16, 16)


def test_a_queue_below_its_entitlement_takes_one_gang_and_nobody_comes_back() -> None:
    """volcano#4947: b deserves 3 and runs 4 units, a deserves 5, runs 1 and wants 4; 8 GPUs."""
    scene = RoomScene("a/r1 n1", a=5, b=3)
    for unit in range(4):
        scene.runs(f"b{unit}", ["n1"], 1, queue="b")
    scene.runs("a0", ["n1"], 1, queue="a")
    made = scene.made(scene.wants("w", 4, 1, queue="a"))
    assert len(made.victims) == 1
    victim = made.victims[0].gang.rpartition("/")[2]
    scene.carry_out(made)
    again = scene.refused(scene.wants(f"{victim}-again", 1, 1, queue="b"))
    assert again.reason is WhyNoRoom.NOBODY


def test_a_gang_whose_end_would_take_its_queue_below_its_entitlement_stays() -> None:
    """b is entitled to one node and runs one gang on two."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8)
    scene.runs("x", ["n1", "n2"], queue="b")
    refused = scene.refused(scene.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.WOULD_FALL: 1}


def test_its_surplus_goes_where_the_whole_gang_may_not() -> None:
    """The same with an elastic gang of minimum 1: one member goes."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8)
    scene.runs("x", ["n1", "n2"], queue="b", minimum=1)
    made = scene.made(scene.wants("w", 1, queue="a"))
    assert [victim.is_whole for victim in made.victims] == [False]
    assert len(made.rows) == 1


def test_no_gang_ends_whole_for_members_above_a_minimum() -> None:
    """Every minimum goes before any extras: w has its minimum, so only members give way to it."""
    scene = RoomScene("a/r1 n1 n2 n3", a=16, b=0)
    key = scene.runs("w", ["n1"], queue="a", minimum=1, size=2)
    scene.members(key, [1], pod_class())
    scene.runs("x", ["n2", "n3"], queue="b")
    refused = scene.refused(key)
    assert keeps_of(refused) == {Keeps.ITSELF: 1, Keeps.IS_WHOLE: 1}


def test_members_above_a_minimum_give_way_to_those_of_a_queue_that_is_entitled_to_them() -> None:
    scene = RoomScene("a/r1 n1 n2 n3", a=16, b=0)
    key = scene.runs("w", ["n1"], queue="a", minimum=1, size=2)
    scene.members(key, [1], pod_class())
    scene.runs("x", ["n2", "n3"], queue="b", minimum=1)
    made = scene.made(key)
    assert [(victim.is_whole, len(victim.rows)) for victim in made.victims] == [(False, 1)]


def test_a_gang_that_ends_whole_gives_no_member_by_itself() -> None:
    """KEP-5710, disruptionMode all: the same gang stays, as its end would take b too far."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8)
    scene.runs("x", ["n1", "n2"], queue="b", minimum=1, ends_whole=True)
    refused = scene.refused(scene.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.WOULD_FALL: 1}


def test_a_resource_that_one_queue_does_not_declare_does_not_keep_another_from_its_own() -> None:
    """volcano#4658, #4536: a declares GPUs, b CPU alone; a asks for GPUs and CPU."""
    scene = RoomScene("a/r1 n1 n2", a=8)
    scene.queue("b", {CPU: Quota(64_000)})
    scene.runs("x", ["n1"], queue="b", priority=9)
    scene.runs("y", ["n2"], queue="b", priority=9)
    made = scene.made(scene.wants("w", 1, queue="a"))
    assert len(made.victims) == 1
    scene.carry_out(made)
    again = scene.refused(scene.wants("again", 1, queue="b", priority=9))
    assert again.reason is WhyNoRoom.NOBODY


def test_a_queue_that_is_entitled_keeps_its_gangs_though_the_one_above_borrows() -> None:
    """kueue#10131: b1 is within its own, b2 borrows beside it; only b2 gives way."""
    scene = RoomScene(FOUR, a=16)
    above = scene.queue("b", {})
    scene.queue("b1", {GPUS: Quota(8)}, above)
    scene.queue("b2", {GPUS: Quota(8)}, above)
    scene.runs("kept", ["n1"], queue="b1")
    for node in ("n2", "n3", "n4"):
        scene.runs(f"b2{node}", [node], queue="b2", priority=9)
    made = scene.made(scene.wants("w", 2, queue="a"))
    assert all(name.startswith("b2") for name in names_of(made))
    assert len(made.victims) == 2


def test_what_neighbours_below_lend_is_taken_back_from_outside() -> None:
    """a1 has nothing of its own, a2 lends it 16 while idle; b has borrowed all of it."""
    scene = RoomScene(FOUR, b=16)
    above = scene.queue("a", {})
    scene.queue("a1", {}, above)
    scene.queue("a2", {GPUS: Quota(16)}, above)
    for node in ("n1", "n2", "n3", "n4"):
        scene.runs(f"b{node}", [node], queue="b")
    assert len(scene.made(scene.wants("w", 2, queue="a1")).victims) == 2


def test_a_queue_gives_up_its_own_lower_priority_to_be_entitled_to_what_others_borrow() -> None:
    """a (24) runs two nodes of r1, one of them of priority 9, and wants all of r2 from b (0)."""
    scene = RoomScene(FOUR, a=24, b=0)
    scene.runs("own", ["n1"], queue="a")
    scene.runs("high", ["n2"], queue="a", priority=9)
    scene.runs("x", ["n3"], queue="b")
    scene.runs("y", ["n4"], queue="b")
    made = scene.made(scene.wants("w", 2, queue="a", priority=5, required_level=RACK))
    assert names_of(made) == ["own", "x", "y"]
    scene.carry_out(made)
    assert scene.used("a") == 24


def test_a_gang_reclaims_before_its_queue_could_admit_it() -> None:
    """volcano#4817: the limit above both queues leaves nothing; reclaim works all the same."""
    scene = RoomScene(FOUR)
    above = scene.queue("half", {GPUS: Quota(16, limit=16)}, is_whole=True)
    scene.queue("a", {GPUS: Quota(8)}, above)
    scene.queue("b", {GPUS: Quota(8)}, above)
    scene.runs("x", ["n1"], queue="b")
    scene.runs("y", ["n2"], queue="b")
    made = scene.made(scene.wants("w", 1, queue="a"))
    assert len(made.victims) == 1


def test_only_as_much_quota_as_is_short_is_taken_where_nodes_have_room() -> None:
    """n4 is free, the limit of a is reached: one of its lower priority gives way, not two."""
    scene = RoomScene(FOUR)
    scene.queue("a", {GPUS: Quota(24, limit=24)})
    for node in ("n1", "n2", "n3"):
        scene.runs(f"x{node}", [node], queue="a")
    made = scene.made(scene.wants("w", 1, queue="a", priority=5))
    assert len(made.victims) == 1
    assert made.proven


def test_a_request_beyond_the_limit_makes_nobody_give_way() -> None:
    """a is limited to one node; two are asked for."""
    scene = RoomScene(FOUR)
    scene.queue("a", {GPUS: Quota(8, limit=8)})
    scene.runs("x", ["n1"], queue="a")
    refused = scene.refused(scene.wants("w", 2, queue="a", priority=5))
    assert refused.reason is WhyNoRoom.OVER_LIMIT


@pytest.mark.parametrize(
    ("policy", "keeps"),
    [
        (PreemptionPolicy(reclaim=ReclaimWithin.NEVER), Keeps.RECLAIM_NEVER),
        (PreemptionPolicy(reclaim=ReclaimWithin.LOWER_PRIORITY), Keeps.NOT_LOWER),
        (PreemptionPolicy(is_reclaimable=False), Keeps.NOT_RECLAIMABLE),
        (PreemptionPolicy(reclaim_min_run=60.0), Keeps.YOUNG),
    ],
)
def test_policies_keep_gangs_of_other_queues(policy: PreemptionPolicy, keeps: Keeps) -> None:
    """b borrows with a gang of priority 9 that has run for 50 s; a wants its node back."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8)
    for node in ("n1", "n2"):
        scene.runs(f"b{node}", [node], queue="b", priority=9, since=NOW - 50)
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9), policy=policy)
    assert keeps_of(refused) == {keeps: 2}


def test_who_borrows_takes_only_lower_priorities_up_to_the_threshold() -> None:
    """a is entitled to nothing; b borrows with priorities 1 and 5; the threshold is 3."""
    scene = RoomScene("a/r1 n1 n2 n3", a=0, b=8)
    for node, priority in (("n1", 1), ("n2", 5), ("n3", 5)):
        scene.runs(f"b{node}", [node], queue="b", priority=priority)
    key = scene.wants("w", 1, queue="a", priority=9)
    refused = scene.refused(key)
    assert keeps_of(refused) == {Keeps.BORROWER: 3}
    policy = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY, borrow_threshold=3)
    assert names_of(scene.made(key, policy=policy)) == ["bn1"]


# --- never ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "keeps"),
    [
        (GangTerms(is_protected=True), Keeps.PROTECTED),
        (GangTerms(is_preemptable=False), Keeps.NOT_PREEMPTABLE),
    ],
)
def test_who_is_protected_or_not_preemptable_never_gives_way(
    terms: GangTerms, keeps: Keeps
) -> None:
    """n1 runs priority 0 of queue a; priority 9 waits."""
    scene = RoomScene("a/r1 n1", a=8)
    key = scene.runs("x", ["n1"], queue="a")
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9), terms={key: terms})
    assert keeps_of(refused) == {keeps: 1}


def test_system_pods_never_give_way() -> None:
    """A gang of a priority that only the system's classes have, beneath an even higher one."""
    scene = RoomScene("a/r1 n1", a=8)
    scene.runs("x", ["n1"], priority=2_000_000_000)
    refused = scene.refused(scene.wants("w", 1, priority=2_000_001_000))
    assert keeps_of(refused) == {Keeps.SYSTEM: 1}


def test_a_gang_is_spared_for_its_least_run_time_and_not_longer() -> None:
    """kueue#8522, KAI's minRuntime: 60 s are granted; one has run for 59 s, one for 61 s."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    scene.runs("young", ["n1"], queue="a", since=NOW - 59)
    scene.runs("grown", ["n2"], queue="a", since=NOW - 61)
    key = scene.wants("w", 1, queue="a", priority=9)
    made = scene.made(key, policy=PreemptionPolicy(preempt_min_run=60.0))
    assert names_of(made) == ["grown"]
    assert names_of(scene.made(key, policy=PreemptionPolicy())) == ["young"]


def test_the_least_run_time_of_a_queue_holds_for_those_below_it_that_say_nothing() -> None:
    """Both gangs have run for 50 s: b of the team is granted 60 s, c of it none."""
    scene = RoomScene("a/r1 n1 n2", a=8)
    policy = PreemptionPolicy(preempt_min_run=60.0, reclaim_min_run=60.0)
    team = scene.queue("team", {}, preemption=policy)
    scene.queue("b", {GPUS: Quota(0)}, team)
    own = PreemptionPolicy(preempt_min_run=0.0, reclaim_min_run=0.0)
    scene.queue("c", {GPUS: Quota(0)}, team, preemption=own)
    scene.runs("young", ["n1"], queue="b", since=NOW - 50)
    scene.runs("free", ["n2"], queue="c", since=NOW - 50, priority=9)
    assert names_of(scene.made(scene.wants("w", 1, queue="a"))) == ["free"]


# --- stability ------------------------------------------------------------------------------


def test_two_queues_at_their_entitlement_take_nothing_from_each_other() -> None:
    """volcano#3869: each of two queues runs what it is entitled to; each wants more."""
    scene = RoomScene("a/r1 n1 n2", a=8, b=8)
    scene.runs("a0", ["n1"], queue="a")
    scene.runs("b0", ["n2"], queue="b")
    for queue in "ab":
        refused = scene.refused(scene.wants(f"{queue}-more", 1, queue=queue, priority=0))
        assert keeps_of(refused) == {Keeps.NOT_LOWER: 1, Keeps.BORROWER: 1}


def test_victims_do_not_take_their_room_back() -> None:
    """kueue#14543: reclaim is carried out, and each victim asks for room again at once."""
    scene = RoomScene(FOUR, a=16, b=8, c=8)
    for node, queue in (("n1", "b"), ("n2", "b"), ("n3", "c"), ("n4", "c")):
        scene.runs(f"{queue}{node}", [node], queue=queue, priority=9)
    made = scene.made(scene.wants("w", 2, queue="a"))
    queues = [name[0] for name in names_of(made)]
    assert sorted(queues) == ["b", "c"]
    scene.carry_out(made)
    for number, queue in enumerate(queues):
        again = scene.wants(f"again{number}", 1, queue=queue, priority=9)
        assert scene.refused(again).reason is WhyNoRoom.NOBODY


def test_room_that_is_being_freed_takes_no_further_victim() -> None:
    """kueue#10076: the pod on n1 is terminating; n2 runs a lower priority."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    scene.runs("x", ["n2"], queue="a")
    key = scene.gang("leaving", 1, queue="a")
    view = scene.snapshot.gang(key)
    assert view is not None
    pod = scene._pods[scene.snapshot.pods.uid(int(view.waiting[0]))]
    scene._apply(replace(pod, node="n1", gates=frozenset(), terminating=True))
    one = scene.wants("w", 1, queue="a", priority=9)
    assert scene.refused(one).reason is WhyNoRoom.FREEING
    two = scene.wants("w2", 2, queue="a", priority=9)
    assert names_of(scene.made(two)) == ["x"]


def test_a_gang_that_fits_makes_nobody_give_way() -> None:
    """n2 is free."""
    scene = RoomScene("a/r1 n1 n2", a=16)
    scene.runs("x", ["n1"], queue="a")
    refused = scene.refused(scene.wants("w", 1, queue="a", priority=9))
    assert refused.reason is WhyNoRoom.FITS_NOW


def test_gangs_without_queues_give_way_by_priority_alone() -> None:
    """No queue is named: as kube-scheduler has it."""
    scene = RoomScene("a/r1 n1 n2")
    scene.runs("low", ["n1"], priority=1)
    scene.runs("high", ["n2"], priority=7)
    made = scene.made(scene.wants("w", 1, priority=5, required_level=RACK))
    assert names_of(made) == ["low"]
    assert made.victims[0].right is RoomRight.FOREIGN
    assert made.plan.nodes.tolist() == [0]


def test_a_gang_without_devices_is_given_room_by_what_it_asks_for() -> None:
    """64 CPU a node are taken by a gang of b; a is entitled to them."""
    scene = RoomScene("a/r1 n1")
    scene.queue("a", {CPU: Quota(64_000)})
    scene.queue("b", {CPU: Quota(0)})
    scene.runs("x", ["n1"], queue="b", like=pod_class(0, cpu=64_000))
    key = scene.wants("w", 1, queue="a", like=pod_class(0, cpu=32_000))
    assert names_of(scene.made(key)) == ["x"]
