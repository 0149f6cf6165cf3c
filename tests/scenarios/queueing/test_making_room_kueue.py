"""Who gives way to whom in Kueue's queues, as ClusterQueuePreemption says.

::

    cohort all ─┬─ a   nominal so many GPUs, the policy of the test
                └─ b   nominal so many GPUs

Source: kubernetes-sigs/kueue, apis/kueue/v1beta2/clusterqueue_types.go at 0.19.
"""

from dataclasses import replace

import pytest
from support.clusters.queuescene import ALL, QueueScene
from support.clusters.roomscene import NOW, keeps_of, names_of
from support.dialects.clusterqueues import cluster_queue, scene

from muster.cluster.quota.preemptionpolicy import FAIR_RULES, FairRule
from muster.decisions.roomplan import NoRoom, RoomRight, WhyNoRoom
from muster.queueing.preemption.policies import PreemptionPolicies
from muster.queueing.preemption.rules import Keeps

WAITING_SINCE = NOW - 100


def gives_way(made: QueueScene, priority: int, queue: str = "a") -> set[str]:
    """Return which gangs could give way to one that waits; each holds a node by itself."""
    key = made.wants("w", 1, queue=queue, priority=priority, submitted_at=WAITING_SINCE)
    kept = made.room(key)
    return set() if isinstance(kept, NoRoom) else set(names_of(kept))


# --- withinClusterQueue ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "priority", "since", "gives"),
    [
        ("Never", 1, NOW - 500, False),
        ("LowerPriority", 1, NOW - 500, True),
        ("LowerPriority", 5, NOW - 50, False),
        ("LowerPriority", 9, NOW - 50, False),
        ("LowerOrNewerEqualPriority", 1, NOW - 500, True),
        ("LowerOrNewerEqualPriority", 5, NOW - 50, True),
        ("LowerOrNewerEqualPriority", 5, NOW - 500, False),
        ("LowerOrNewerEqualPriority", 9, NOW - 50, False),
    ],
)
def test_within_a_cluster_queue_the_policy_says_who_gives_way_to_priority_5(
    policy: str, priority: int, since: float, *, gives: bool
) -> None:
    """One gang runs; the gang that waits was submitted 100 s ago."""
    made = scene("a/r1 n1", cluster_queue("a", 8, f"{{withinClusterQueue: {policy}}}"))
    made.runs("x", ["n1"], queue="a", priority=priority, since=since)
    assert gives_way(made, 5) == ({"x"} if gives else set())


def test_nobody_gives_way_in_a_cluster_queue_that_says_nothing() -> None:
    made = scene("a/r1 n1", cluster_queue("a", 8))
    made.runs("x", ["n1"], queue="a")
    refused = made.refused(made.wants("w", 1, queue="a", priority=9))
    assert keeps_of(refused) == {Keeps.WITHIN_NEVER: 1}


# --- reclaimWithinCohort --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "priority", "gives"),
    [
        ("Never", 1, False),
        ("LowerPriority", 1, True),
        ("LowerPriority", 5, False),
        ("LowerPriority", 9, False),
        ("Any", 1, True),
        ("Any", 5, True),
        ("Any", 9, True),
    ],
)
def test_within_a_cohort_the_policy_says_which_borrowers_give_way_to_priority_5(
    policy: str, priority: int, *, gives: bool
) -> None:
    """a has a nominal node that b borrows; b's own node runs priority 9."""
    made = scene(
        "a/r1 n1 n2",
        cluster_queue("a", 8, f"{{reclaimWithinCohort: {policy}}}"),
        cluster_queue("b", 8),
    )
    made.runs("borrows", ["n1"], queue="b", priority=priority)
    made.runs("own", ["n2"], queue="b", priority=9)
    assert len(gives_way(made, 5)) == int(gives)


def test_a_cluster_queue_reclaims_only_from_those_above_their_nominal_quota() -> None:
    """b uses its nominal node; a is entitled to a node that a gang without a queue has."""
    made = scene(
        "a/r1 n1 n2",
        cluster_queue("a", 8, "{reclaimWithinCohort: Any}"),
        cluster_queue("b", 8),
    )
    made.runs("own", ["n1"], queue="b")
    made.runs("alien", ["n2"])
    refused = made.refused(made.wants("w", 1, queue="a", priority=9))
    assert keeps_of(refused) == {Keeps.ENTITLED: 1, Keeps.OUTSIDE: 1}


def test_a_cluster_queue_above_its_nominal_quota_may_be_taken_below_it_by_one_gang() -> None:
    """b (nominal one node) runs one gang on two nodes; Muster's own queues would keep it."""
    made = scene(
        "a/r1 n1 n2",
        cluster_queue("a", 8, "{reclaimWithinCohort: Any}"),
        cluster_queue("b", 8),
    )
    made.runs("wide", ["n1", "n2"], queue="b")
    plan = made.made(made.wants("w", 1, queue="a"))
    assert names_of(plan) == ["wide"]
    assert {victim.right for victim in plan.victims} == {RoomRight.RECLAIM}


def test_the_gang_that_takes_a_cluster_queue_below_is_the_last() -> None:
    """b (nominal 12) runs two gangs of 12; a asks for the room of both."""
    made = scene(
        "a/r1 n1 n2 n3",
        cluster_queue("a", 24, "{reclaimWithinCohort: Any}"),
        cluster_queue("b", 12),
    )
    made.runs("x", ["n1", "n2", "n3"], 4, queue="b")
    made.runs("y", ["n1", "n2", "n3"], 4, queue="b")
    refused = made.refused(made.wants("w", 3, queue="a"))
    assert refused.reason is WhyNoRoom.NOT_ENOUGH


def test_a_cluster_queue_takes_nothing_from_another_cohort() -> None:
    """c borrows from the cohort "other"."""
    made = scene(
        "a/r1 n1 n2",
        cluster_queue("a", 8, "{reclaimWithinCohort: Any, withinClusterQueue: LowerPriority}"),
        cluster_queue("b", 0, cohort="other"),
        cluster_queue("c", 16, cohort="other"),
    )
    made.runs("x", ["n1"], queue="b")
    made.runs("y", ["n2"], queue="b")
    refused = made.refused(made.wants("w", 1, queue="a", priority=9))
    assert keeps_of(refused) == {Keeps.OUTSIDE: 2}


# --- borrowWithinCohort ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("borrow", "priority", "keeps"),
    [
        ("{policy: Never}", 1, Keeps.BORROWER),
        ("{policy: LowerPriority}", 1, None),
        ("{policy: LowerPriority}", 5, Keeps.NOT_LOWER),
        ("{policy: LowerPriority, maxPriorityThreshold: 3}", 3, None),
        ("{policy: LowerPriority, maxPriorityThreshold: 3}", 4, Keeps.OVER_THRESHOLD),
    ],
)
def test_who_would_borrow_takes_lower_priorities_up_to_the_threshold(
    borrow: str, priority: int, keeps: Keeps | None
) -> None:
    """a and b have nothing of their own, c lends two nodes; b has borrowed both."""
    made = scene(
        "a/r1 n1 n2",
        cluster_queue("a", 0, f"{{reclaimWithinCohort: Any, borrowWithinCohort: {borrow}}}"),
        cluster_queue("b", 0),
        cluster_queue("c", 16),
    )
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="b", priority=priority)
    answer = made.room(made.wants("w", 1, queue="a", priority=5))
    if keeps is not None:
        assert isinstance(answer, NoRoom)
        assert keeps_of(answer) == {keeps: 2}
    else:
        assert not isinstance(answer, NoRoom), answer
        assert len(answer.victims) == 1


# --- by shares ------------------------------------------------------------------------------

FAIR = replace(ALL, fair=FAIR_RULES)
FINAL_ALONE = replace(ALL, fair=(FairRule.FINAL,))
ANY = "{reclaimWithinCohort: Any}"


def borrowing(*sizes: int, weight: int = 1, policy: str = ANY) -> QueueScene:
    """b borrows all of four hosts from c, with gangs of so many hosts; a has none."""
    made = scene(
        "a/r1 n1 n2 n3 n4",
        cluster_queue("a", 0, policy),
        cluster_queue("b", 0, weight=weight),
        cluster_queue("c", 32),
    )
    nodes = iter(("n1", "n2", "n3", "n4"))
    for number, size in enumerate(sizes):
        made.runs(f"x{number}", [next(nodes) for _ in range(size)], queue="b")
    return made


@pytest.mark.parametrize(("hosts", "gone"), [(1, 1), (2, 2), (3, None)])
def test_a_queue_that_borrows_less_takes_until_shares_are_even(
    hosts: int, gone: int | None
) -> None:
    """b has four gangs of a host each. Three hosts would leave b one, and a would have three."""
    made = borrowing(1, 1, 1, 1)
    answer = made.room(made.wants("w", hosts, queue="a"), policies=FAIR)
    if gone is None:
        assert isinstance(answer, NoRoom)
        assert answer.reason is WhyNoRoom.NOT_ENOUGH
    else:
        assert not isinstance(answer, NoRoom), answer
        assert [victim.right for victim in answer.victims] == [RoomRight.SHARE] * gone


@pytest.mark.parametrize(("policies", "goes"), [(FAIR, True), (FINAL_ALONE, False)])
def test_by_the_second_rule_the_last_one_may_leave_the_other_queue_with_less(
    policies: PreemptionPolicies, *, goes: bool
) -> None:
    """b has one gang of four hosts. a with two has less than b with it, more than b without."""
    made = borrowing(4)
    answer = made.room(made.wants("w", 2, queue="a"), policies=policies)
    assert isinstance(answer, NoRoom) != goes
    if isinstance(answer, NoRoom):
        assert keeps_of(answer) == {Keeps.SHARE: 1}


@pytest.mark.parametrize(("weight", "hosts"), [(1, 2), (3, 1)])
def test_shares_count_by_weight(weight: int, hosts: int) -> None:
    """With weight 3, b may have three hosts while a has one."""
    made = borrowing(1, 1, 1, 1, weight=weight)
    assert len(names_of(made.made(made.wants("w", hosts, queue="a"), policies=FAIR))) == hosts
    assert isinstance(made.room(made.wants("v", hosts + 1, queue="a"), policies=FAIR), NoRoom)


def test_shares_count_only_with_fair_sharing_and_where_the_queue_takes_at_all() -> None:
    made = borrowing(1, 1, 1, 1)
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.BORROWER: 4}
    never = borrowing(1, 1, 1, 1, policy="{}")
    refused = never.refused(never.wants("w", 1, queue="a"), policies=FAIR)
    assert keeps_of(refused) == {Keeps.RECLAIM_NEVER: 4}


def test_by_shares_lower_priorities_alone_give_way_where_the_policy_says_so() -> None:
    made = borrowing(policy="{reclaimWithinCohort: LowerPriority}")
    for node, priority in (("n1", 5), ("n2", 2), ("n3", 1), ("n4", 5)):
        made.runs(node, [node], queue="b", priority=priority)
    assert names_of(made.made(made.wants("w", 1, queue="a", priority=2), policies=FAIR)) == ["n3"]


# --- whose queues ---------------------------------------------------------------------------


def test_nothing_happens_where_kueues_queues_make_no_room() -> None:
    """The default of ``makingRoom.queues`` is Muster's own."""
    made = scene(
        "a/r1 n1",
        cluster_queue("a", 8, "{reclaimWithinCohort: Any}"),
        cluster_queue("b", 0),
    )
    made.runs("x", ["n1"], queue="b")
    refused = made.refused(made.wants("w", 1, queue="a"), policies=PreemptionPolicies())
    assert keeps_of(refused) == {Keeps.NOT_RECLAIMABLE: 1}


def test_nothing_happens_where_kueues_own_controller_admits() -> None:
    made = scene(
        "a/r1 n1",
        cluster_queue("a", 8, "{reclaimWithinCohort: Any}"),
        cluster_queue("b", 0),
    )
    made.describe(cluster_queue("b", 0), is_elsewhere=True)
    made.runs("x", ["n1"], queue="b")
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.NOT_RECLAIMABLE: 1}
