"""Who gives way to whom in the queues of Volcano, KAI, YuniKorn and ElasticQuotas.

A node has 8 GPUs. Each test draws what runs; the contract is that of the dialect's own scheduler,
with the source in its reader (``muster.workloads.queues.preemption``).
"""

from dataclasses import replace

import pytest
from support.clusters.queuescene import ALL, QueueScene
from support.clusters.roomscene import NOW, RoomScene, keeps_of, names_of
from support.clusters.scene import pod_class
from support.dialects.clusterqueues import cluster_queue
from support.dialects.clusterqueues import scene as kueue_scene
from support.dialects.kaiqueues import kai

from muster.cluster.specs.gangspec import Preemptibility
from muster.decisions.roomplan import NoRoom, RoomPlan, WhyNoRoom
from muster.kube.wire import ObjectMeta
from muster.queueing.preemption.policies import PreemptionPolicies, RoomPermission
from muster.queueing.preemption.rules import Keeps
from muster.workloads.queues.yunikorn import queues_yaml

CONFIG = ObjectMeta(name="yunikorn-configs", namespace="yunikorn", uid="u")


def given(made: QueueScene, **wants: object) -> set[str]:
    """Return who gives way to a gang that waits; nobody where there is no room for it."""
    count = wants.pop("count", 1)
    answer = made.room(made.wants("w", count, **wants))  # type: ignore[arg-type]
    return set() if isinstance(answer, NoRoom) else set(names_of(answer))


# --- Volcano --------------------------------------------------------------------------------


def volcano(name: str, deserved: int, **spec: object) -> str:
    """Return a Queue that deserves so many GPUs."""
    more = "".join(f"  {field}: {value}\n" for field, value in spec.items())
    return f"""
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec:
  deserved: {{nvidia.com/gpu: {deserved}}}
{more}"""


def test_a_queue_that_is_not_reclaimable_gives_nothing_to_others() -> None:
    """b and c each use a node above what they deserve; b is not reclaimable."""
    made = QueueScene(
        "a/r1 n1 n2", [volcano("a", 8), volcano("b", 0, reclaimable="false"), volcano("c", 0)]
    )
    made.runs("x", ["n1"], queue="b")
    made.runs("y", ["n2"], queue="c", priority=9)
    assert given(made, queue="a") == {"y"}
    refused = made.refused(made.wants("w2", 2, queue="a"))
    assert keeps_of(refused)[Keeps.NOT_RECLAIMABLE] == 1


def test_a_queue_gives_back_what_it_does_not_deserve_but_never_its_guarantee() -> None:
    """b deserves 8, guarantees 4 and runs one gang of 16: with it the guarantee would go, too."""
    guarantee = "{resource: {nvidia.com/gpu: 4}}"
    made = QueueScene("a/r1 n1 n2", [volcano("a", 8), volcano("b", 8, guarantee=guarantee)])
    made.runs("x", ["n1", "n2"], queue="b")
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.WOULD_FALL: 1}


def test_a_queue_without_a_guarantee_may_be_taken_below_what_it_deserves() -> None:
    made = QueueScene("a/r1 n1 n2", [volcano("a", 8), volcano("b", 8)])
    made.runs("x", ["n1", "n2"], queue="b")
    assert given(made, queue="a") == {"x"}


@pytest.mark.parametrize(
    ("permission", "gives"),
    [
        (RoomPermission(within=False, between=False), set()),
        (RoomPermission(between=False), {"own"}),
        (RoomPermission(within=False), {"other"}),
    ],
)
def test_each_action_is_done_where_it_is_allowed(
    permission: RoomPermission, gives: set[str]
) -> None:
    """a deserves two nodes and runs one lower priority; b runs on the other and deserves none."""
    made = QueueScene("a/r1 n1 n2", [volcano("a", 16), volcano("b", 0)])
    made.runs("own", ["n1"], queue="a", priority=1)
    made.runs("other", ["n2"], queue="b", priority=1)
    policies = PreemptionPolicies({"volcano": permission})
    answer = made.room(made.wants("w", 1, queue="a", priority=5), policies=policies)
    assert (set() if isinstance(answer, NoRoom) else set(names_of(answer))) == gives


@pytest.mark.parametrize(("ran", "gives"), [(59, False), (61, True)])
@pytest.mark.parametrize("queue", ["a", "b"])
def test_a_gang_runs_for_its_cooldown_time_before_it_gives_way(
    queue: str, ran: int, *, gives: bool
) -> None:
    """Plugin cdp, for both actions: to a of the same queue, and from b, which deserves nothing."""
    made = QueueScene("a/r1 n1", [volcano("a", 8), volcano("b", 0)])
    made.runs("x", ["n1"], queue=queue, since=NOW - ran, cooldown=60.0)
    key = made.wants("w", 1, queue="a", priority=5)
    if gives:
        assert names_of(made.made(key)) == ["x"]
    else:
        assert keeps_of(made.refused(key)) == {Keeps.COOLING: 1}


def test_a_cooldown_time_means_nothing_in_other_queues() -> None:
    made = QueueScene("a/r1 n1", [kai("a", 8), kai("b", 0)])
    made.runs("x", ["n1"], queue="b", since=NOW - 1, cooldown=60.0)
    assert given(made, queue="a") == {"x"}


# --- KAI ------------------------------------------------------------------------------------


def test_a_gang_runs_for_the_least_time_of_its_queue_before_it_is_preempted() -> None:
    """The department grants 10 minutes, the team one: the team's counts."""
    queues = [
        kai("d", 24, preemptMinRuntime="10m"),
        kai("a", 16, "d", preemptMinRuntime="1m"),
        kai("b", 8, "d"),
    ]
    made = QueueScene("a/r1 n1 n2 n3", queues)
    made.runs("young", ["n1"], queue="a", since=NOW - 59)
    made.runs("grown", ["n2"], queue="a", since=NOW - 61)
    made.runs("other", ["n3"], queue="b", since=NOW - 500)
    assert given(made, queue="a", priority=5) == {"grown"}


def test_between_departments_the_department_of_the_victim_says_how_long_it_runs() -> None:
    """b of d2 says nothing and d2 an hour; c of d3 says an hour and d3 a minute."""
    queues = [
        kai("d1", 8),
        kai("a", 8, "d1"),
        kai("d2", 0, reclaimMinRuntime="1h"),
        kai("b", 0, "d2", reclaimMinRuntime="1m"),
        kai("d3", 0, reclaimMinRuntime="1m"),
        kai("c", 0, "d3", reclaimMinRuntime="1h"),
    ]
    made = QueueScene("a/r1 n1 n2", queues)
    made.runs("x", ["n1"], queue="b", since=NOW - 600)
    made.runs("y", ["n2"], queue="c", since=NOW - 600, priority=9)
    assert given(made, queue="a") == {"y"}


def test_the_least_run_time_protects_a_gangs_minimum_and_not_what_is_above_it() -> None:
    """b runs a young gang of minimum 1 on two nodes, above its quota."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 0, reclaimMinRuntime="1h")])
    made.runs("x", ["n1", "n2"], queue="b", since=NOW - 60, minimum=1)
    plan = made.made(made.wants("w", 1, queue="a"))
    assert [victim.is_whole for victim in plan.victims] == [False]


def test_a_young_gang_gives_no_member_where_no_rule_would_take_it() -> None:
    """b is within its quota."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 16, reclaimMinRuntime="1h")])
    made.runs("x", ["n1", "n2"], queue="b", since=NOW - 60, minimum=1)
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.YOUNG: 1}


def test_a_gang_of_priority_100_never_gives_way() -> None:
    """Both run above the quota of b; priority 99 is preemptible."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 0)])
    made.runs("firm", ["n1"], queue="b", priority=100)
    made.runs("loose", ["n2"], queue="b", priority=99)
    assert given(made, queue="a") == {"loose"}
    refused = made.refused(made.wants("w2", 1, queue="b", priority=99))
    assert keeps_of(refused) == {Keeps.NOT_PREEMPTABLE: 1, Keeps.NOT_LOWER: 1}


def test_a_gang_gives_way_to_one_within_its_quota_whatever_the_priority() -> None:
    made = QueueScene("a/r1 n1", [kai("a", 8), kai("b", 0)])
    made.runs("x", ["n1"], queue="b", priority=90)
    assert given(made, queue="a", priority=1) == {"x"}


def test_a_gang_that_never_gives_way_runs_only_within_its_quota() -> None:
    """a (8) runs 8 of priority 100 and 8 of 50; another of 100 would exceed the quota."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 8)])
    made.runs("firm", ["n1"], queue="a", priority=100)
    made.runs("loose", ["n2"], queue="a", priority=50)
    refused = made.refused(made.wants("more", 1, queue="a", priority=100))
    assert refused.reason is WhyNoRoom.FIRM
    assert "8 of 8 nvidia.com/gpu are used by such gangs" in refused.detail
    assert given(made, queue="a", priority=60) == {"loose"}


def test_what_preemptible_gangs_use_of_a_quota_is_there_for_one_that_is_not() -> None:
    """a (8) runs 8 of priority 50 and borrows 8 more."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 8)])
    for node in ("n1", "n2"):
        made.runs(f"x{node}", [node], queue="a", priority=50)
    assert len(given(made, queue="a", priority=100)) == 1


def test_the_quota_of_the_department_counts_too() -> None:
    """a and b are teams of d (8), each with a quota of 8."""
    made = QueueScene("a/r1 n1 n2", [kai("d", 8), kai("a", 8, "d"), kai("b", 8, "d")])
    made.runs("firm", ["n1"], queue="a", priority=100)
    made.runs("loose", ["n2"], queue="b", priority=50)
    refused = made.refused(made.wants("w", 1, queue="b", priority=100))
    assert refused.reason is WhyNoRoom.FIRM
    assert "queue kai/d is entitled to" in refused.detail


@pytest.mark.parametrize("priority", [50, 100])
def test_a_semi_preemptible_gang_gives_members_above_its_minimum_and_no_more(
    priority: int,
) -> None:
    """b (16) runs a gang of minimum 2 on three nodes, one more than its quota."""
    made = QueueScene("a/r1 n1 n2 n3", [kai("a", 8), kai("b", 16)])
    nodes, semi = ["n1", "n2", "n3"], Preemptibility.SEMI
    made.runs("x", nodes, queue="b", minimum=2, priority=priority, preemptibility=semi)
    (victim,) = made.made(made.wants("w", 1, queue="a")).victims
    assert not victim.is_whole
    assert len(victim.rows) == 1


def test_a_semi_preemptible_gang_at_its_minimum_stays() -> None:
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 0)])
    semi = Preemptibility.SEMI
    made.runs("x", ["n1", "n2"], queue="b", minimum=2, preemptibility=semi)
    refused = made.refused(made.wants("w", 1, queue="a"))
    assert keeps_of(refused) == {Keeps.NOT_PREEMPTABLE: 1}


def test_the_surplus_of_a_semi_preemptible_gang_stays_where_no_rule_would_take_it() -> None:
    """Of the same queue, and of no lower priority."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 16)])
    semi = Preemptibility.SEMI
    made.runs("x", ["n1", "n2"], queue="a", minimum=1, priority=5, preemptibility=semi)
    refused = made.refused(made.wants("w", 1, queue="a", priority=5))
    assert keeps_of(refused) == {Keeps.NOT_PREEMPTABLE: 1}


@pytest.mark.parametrize(
    ("word", "priority", "gives"),
    [
        (Preemptibility.PREEMPTIBLE, 125, True),
        (Preemptibility.PREEMPTIBLE, 50, True),
        (Preemptibility.NONE, 50, False),
        (Preemptibility.UNSAID, 125, False),
        (Preemptibility.UNSAID, 50, True),
    ],
)
def test_what_a_gang_says_of_itself_comes_before_its_priority(
    word: Preemptibility, priority: int, *, gives: bool
) -> None:
    made = QueueScene("a/r1 n1", [kai("a", 8), kai("b", 0)])
    made.runs("x", ["n1"], queue="b", priority=priority, preemptibility=word)
    assert given(made, queue="a") == ({"x"} if gives else set())


@pytest.mark.parametrize(
    ("word", "priority", "used"),
    [
        (Preemptibility.NONE, 50, 16),
        (Preemptibility.SEMI, 50, 8),
        (Preemptibility.SEMI, 125, 8),
        (Preemptibility.PREEMPTIBLE, 125, 0),
    ],
)
def test_only_what_never_gives_way_of_a_gang_counts_as_such_use_of_the_quota(
    word: Preemptibility, priority: int, used: int
) -> None:
    """a (16) runs a gang of minimum 1 on two nodes; a gang that never gives way wants three."""
    made = QueueScene("a/r1 n1 n2 n3 n4 n5", [kai("a", 16), kai("b", 24)])
    made.runs("x", ["n1", "n2"], queue="a", minimum=1, priority=priority, preemptibility=word)
    refused = made.refused(made.wants("w", 3, queue="a", priority=100))
    assert refused.reason is WhyNoRoom.FIRM
    assert f": {used} of 16 nvidia.com/gpu are used by such gangs" in refused.detail


def test_the_minimum_of_a_semi_preemptible_gang_never_borrows() -> None:
    """a is entitled to one node, and two are free."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 8)])
    semi = Preemptibility.SEMI
    waits = made.wants("w", 2, queue="a", preemptibility=semi)
    assert made.refused(waits).reason is WhyNoRoom.FIRM
    one = made.wants("v", 1, queue="a", preemptibility=semi)
    assert made.refused(one).reason is WhyNoRoom.FITS_NOW


def test_members_above_the_minimum_of_a_semi_preemptible_gang_are_borrowed() -> None:
    """a is entitled to one node, where the gang has its minimum; its second member waits."""
    made = QueueScene("a/r1 n1 n2", [kai("a", 8), kai("b", 8)])
    key = made.runs("x", ["n1"], queue="a", minimum=1, preemptibility=Preemptibility.SEMI)
    made.members(key, [1], pod_class(8))
    assert made.refused(key).reason is WhyNoRoom.FITS_NOW


@pytest.mark.parametrize(("queues", "obeyed"), [("kai", True), ("kueue", False)])
def test_a_mark_counts_where_the_queues_scheduler_has_one(queues: str, *, obeyed: bool) -> None:
    """In Kueue's queues nobody can say of itself that it never gives way."""
    if queues == "kai":
        made = QueueScene("a/r1 n1", [kai("a", 8), kai("b", 0)])
    else:
        reclaims = "{reclaimWithinCohort: Any}"
        made = kueue_scene("a/r1 n1", cluster_queue("a", 8, reclaims), cluster_queue("b", 0))
    made.runs("x", ["n1"], queue="b", firm=True)
    assert given(made, queue="a") == (set() if obeyed else {"x"})


# --- YuniKorn -------------------------------------------------------------------------------


def yunikorn(drawing: str, queues: str) -> QueueScene:
    """Return a cluster with the queues of a text, which stand below the root."""
    made = QueueScene(drawing, [])
    text = f"partitions:\n- name: default\n  queues:\n  - name: root\n    queues: {queues}\n"
    made.read("configmaps", CONFIG, queues_yaml(text))
    return made


def leaf(name: str, guaranteed: int, **properties: object) -> str:
    """Return a queue that is guaranteed so many GPUs."""
    said = ", ".join(f"{key.replace('_', '.')}: '{word}'" for key, word in properties.items())
    resources = f"{{guaranteed: {{nvidia.com/gpu: {guaranteed}}}}}"
    return f"{{name: {name}, resources: {resources}, properties: {{{said}}}}}"


@pytest.mark.parametrize(("priority", "gives"), [(4, True), (5, True), (6, False)])
def test_a_queue_takes_its_guarantee_back_from_lower_and_equal_priorities(
    priority: int, *, gives: bool
) -> None:
    made = yunikorn("a/r1 n1", f"[{leaf('a', 8)}, {leaf('b', 0)}]")
    made.runs("x", ["n1"], queue="root.b", priority=priority)
    found = given(made, queue="root.a", priority=5, submitted_at=NOW - 60)
    assert found == ({"x"} if gives else set())


@pytest.mark.parametrize(
    ("firm", "priority", "gives"),
    [((), 4, True), ((4,), 4, False), ((4,), 3, True)],
    ids=["no class", "its class", "another class"],
)
def test_pods_whose_class_says_so_give_way_to_nobody(
    firm: tuple[int, ...], priority: int, *, gives: bool
) -> None:
    """`yunikorn.apache.org/allow-preemption: "false"` on the PriorityClass of 4."""
    made = yunikorn("a/r1 n1", f"[{leaf('a', 8)}, {leaf('b', 0)}]")
    made.runs("x", ["n1"], queue="root.b", priority=priority)
    policies = replace(ALL, firm_classes=frozenset(firm))
    key = made.wants("w", 1, queue="root.a", priority=5, submitted_at=NOW - 60)
    answer = made.room(key, policies=policies)
    assert isinstance(answer, NoRoom) != gives
    if not gives:
        assert keeps_of(made.refused(key, policies=policies)) == {Keeps.NOT_PREEMPTABLE: 1}


def test_a_class_of_yunikorn_counts_in_its_queues_alone() -> None:
    made = RoomScene("a/r1 n1", a=8)
    made.runs("x", ["n1"], queue="a", priority=4)
    policies = replace(ALL, firm_classes=frozenset({4}))
    key = made.wants("w", 1, queue="a", priority=5)
    assert isinstance(made.room(key, policies=policies), RoomPlan)


def test_nobody_gives_way_to_a_higher_priority_of_its_own_queue() -> None:
    made = yunikorn("a/r1 n1", f"[{leaf('a', 8)}]")
    made.runs("x", ["n1"], queue="root.a", priority=1)
    key = made.wants("w", 1, queue="root.a", priority=5, submitted_at=NOW - 60)
    assert keeps_of(made.refused(key)) == {Keeps.WITHIN_NEVER: 1}


@pytest.mark.parametrize(("waited", "gives"), [(9, False), (11, True)])
def test_a_gang_waits_for_the_delay_of_its_queue_before_it_takes(
    waited: int, *, gives: bool
) -> None:
    made = yunikorn("a/r1 n1", f"[{leaf('a', 8, preemption_delay='10s')}, {leaf('b', 0)}]")
    made.runs("x", ["n1"], queue="root.b")
    answer = made.room(made.wants("w", 1, queue="root.a", submitted_at=NOW - waited))
    assert isinstance(answer, NoRoom) != gives
    assert getattr(answer, "reason", None) is (None if gives else WhyNoRoom.DELAYED)


def test_a_fenced_queue_takes_only_from_queues_below_it() -> None:
    """root.f is fenced; a of it is guaranteed a node; b of it and c beside it borrow."""
    inside = f"[{leaf('a', 8)}, {leaf('b', 0)}]"
    fenced = f"{{name: f, properties: {{preemption.policy: fence}}, queues: {inside}}}"
    made = yunikorn("a/r1 n1 n2", f"[{fenced}, {leaf('c', 0)}]")
    made.runs("inside", ["n1"], queue="root.f.b", priority=1)
    made.runs("outside", ["n2"], queue="root.c")
    assert given(made, queue="root.f.a", priority=1, submitted_at=NOW - 60) == {"inside"}
    key = made.wants("w2", 1, queue="root.f.a", submitted_at=NOW - 60)
    assert keeps_of(made.refused(key)) == {Keeps.FENCED: 1, Keeps.HIGHER: 1}


def test_a_fence_keeps_nobody_out() -> None:
    """c is guaranteed a node, and takes it back from b of the fenced f."""
    fenced = f"{{name: f, properties: {{preemption.policy: fence}}, queues: [{leaf('b', 0)}]}}"
    made = yunikorn("a/r1 n1", f"[{fenced}, {leaf('c', 8)}]")
    made.runs("inside", ["n1"], queue="root.f.b")
    assert given(made, queue="root.c", submitted_at=NOW - 60) == {"inside"}


def test_gangs_of_a_queue_where_preemption_is_disabled_give_nothing() -> None:
    """They may take all the same."""
    queues = f"[{leaf('a', 8, preemption_policy='disabled')}, {leaf('b', 8)}]"
    made = yunikorn("a/r1 n1 n2", queues)
    made.runs("x", ["n1", "n2"], queue="root.a", minimum=1)
    key = made.wants("w", 1, queue="root.b", submitted_at=NOW - 60)
    assert keeps_of(made.refused(key)) == {Keeps.NOT_RECLAIMABLE: 1}
    other = yunikorn("a/r1 n1 n2", queues)
    other.runs("x", ["n1", "n2"], queue="root.b", minimum=1)
    assert given(other, queue="root.a", submitted_at=NOW - 60) == {"x"}


@pytest.mark.parametrize(
    ("offset", "policy", "priority", "gives"),
    [
        (3, "default", 2, True),  # counts as 5
        (3, "default", 3, False),  # counts as 6
        (3, "fence", 100, True),  # counts as 3
        (6, "fence", 0, False),  # counts as 6
    ],
)
def test_priorities_count_with_the_offset_or_as_the_offset_beside_other_queues(
    offset: int, policy: str, priority: int, *, gives: bool
) -> None:
    """Priority 5 of a, without an offset, wants its node back."""
    b = leaf("b", 0, priority_offset=offset, priority_policy=policy)
    made = yunikorn("a/r1 n1", f"[{leaf('a', 8)}, {b}]")
    made.runs("x", ["n1"], queue="root.b", priority=priority)
    found = given(made, queue="root.a", priority=5, submitted_at=NOW - 60)
    assert found == ({"x"} if gives else set())


# --- ElasticQuotas --------------------------------------------------------------------------


def koordinator(name: str, least: int) -> str:
    """Return an ElasticQuota of Koordinator."""
    return f"""
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {{name: {name}, namespace: quotas}}
spec:
  min: {{nvidia.com/gpu: {least}}}
  max: {{nvidia.com/gpu: 64}}
"""


def test_a_quota_takes_its_min_back_from_borrowers_whatever_the_priority() -> None:
    made = QueueScene("a/r1 n1", [koordinator("a", 8), koordinator("b", 0)])
    made.runs("x", ["n1"], queue="b", priority=9)
    assert given(made, queue="a") == {"x"}


def test_a_quota_above_its_min_takes_only_lower_priorities_of_its_own() -> None:
    """a uses its node of 8 and asks for another; b borrows with a lower priority."""
    made = QueueScene("a/r1 n1 n2", [koordinator("a", 8), koordinator("b", 0)])
    made.runs("own", ["n1"], queue="a", priority=1)
    made.runs("other", ["n2"], queue="b", priority=1)
    refused = made.refused(made.wants("w", 2, queue="a", priority=1))
    assert keeps_of(refused) == {Keeps.BORROWER: 1, Keeps.NOT_LOWER: 1}
    assert given(made, queue="a", priority=5) == {"own"}


def elastic(namespace: str, least: int) -> str:
    """Return an ElasticQuota of scheduler-plugins; gangs of its namespace name no queue."""
    return f"""
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {{name: quota, namespace: {namespace}}}
spec:
  min: {{nvidia.com/gpu: {least}, cpu: 64}}
  max: {{nvidia.com/gpu: 64, cpu: 64, memory: 1Ti}}
"""


def test_a_namespace_takes_its_min_back_from_another_whatever_the_priority() -> None:
    """c has no quota: it is compared with no namespace that has one."""
    made = QueueScene("a/r1 n1 n2", [elastic("a", 8), elastic("b", 8)])
    made.runs("x", ["n1", "n2"], namespace="b", priority=9)
    assert given(made, namespace="a") == {"x"}
    other = QueueScene("a/r1 n1", [elastic("a", 8)])
    other.runs("y", ["n1"], namespace="c")
    refused = other.refused(other.wants("w", 1, namespace="a", priority=9))
    assert keeps_of(refused) == {Keeps.OUTSIDE: 1}
