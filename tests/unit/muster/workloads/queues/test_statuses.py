"""What the statuses of queue objects say, kind by kind, without a cluster."""

from typing import Any

import msgspec
import pytest
from support.clusters.queuesights import charged_tree, sight_of
from support.pods.manifest import read

from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.quota.tree import QuotaTree
from muster.workloads.queues import kai, kueue, kueuestatus, muster, statuses, volcano
from muster.workloads.queues.elasticquota import ElasticQuota
from muster.workloads.queues.sight import GangCounts, QueueSight, Verdict, changes, verdict

GPU = "nvidia.com/gpu"
CPU_CELL, GPU_CELL, MEMORY_CELL = Cell("", "cpu"), Cell("", GPU), Cell("", "memory")
QUOTAS = {
    GPU_CELL: Quota(8),
    CPU_CELL: Quota(64_000),
    MEMORY_CELL: Quota(64 * 2**30),
}
TEAM = QueueSpec(QueueName("muster/team"), QueueName("muster/top"), QUOTAS, is_whole=True)
TOP = QueueSpec(QueueName("muster/top"), None, QUOTAS, is_whole=True)
BUSY = charged_tree([TOP, TEAM], {TEAM.name: {GPU_CELL: 6, CPU_CELL: 1500, MEMORY_CELL: 2**31}})
OWN = """
metadata: {name: team, generation: 3}
status: {}
"""


def own(**status: Any) -> muster.OwnQueue:
    found: muster.OwnQueue = read(OWN, muster.OwnQueue)
    return msgspec.structs.replace(found, status=status)


def test_a_queue_of_muster_shows_every_number_of_every_resource() -> None:
    said = statuses.own_status(own(), sight_of(BUSY, TEAM.name, gangs=GangCounts(2, 1, 3, "a/b/c")))
    assert said["resources"] == [
        {"resource": "cpu", "used": "1500m", "entitled": "64", "borrowed": "0",
         "available": "62500m"},
        {"resource": "memory", "used": "2147483648", "entitled": "68719476736", "borrowed": "0",
         "available": "66571993088"},
        {"resource": GPU, "used": "6", "entitled": "8", "borrowed": "0", "available": "2"},
    ]  # fmt: skip
    counts = said["waiting"], said["running"], said["first"], said["observedGeneration"]
    assert counts == (2, 3, "a/b/c", 3)


def test_people_see_the_scarcest_resources_first() -> None:
    said = statuses.own_status(own(), sight_of(BUSY, TEAM.name))
    assert said["used"] == f"{GPU} 6/8, memory 2Gi/64Gi"


def test_a_queue_above_shows_what_those_below_it_use() -> None:
    said = statuses.own_status(own(), sight_of(BUSY, TOP.name))
    assert f"{GPU} 6/8" in str(said["used"])


def test_a_queue_that_is_not_ready_has_nothing_available() -> None:
    lost = charged_tree([TEAM], {})
    said: Any = statuses.own_status(own(), sight_of(lost, TEAM.name))
    assert {row["available"] for row in said["resources"]} == {"0"}
    assert said["conditions"][0]["reason"] == "ParentMissing"


@pytest.mark.parametrize(
    ("specs", "reason", "is_wrong"),
    [
        ([TOP, TEAM], "Ready", False),
        ([TEAM], "ParentMissing", True),
        ([QueueSpec(TOP.name, TEAM.name), TEAM], "ParentCycle", True),
        ([TOP, QueueSpec(TEAM.name, TOP.name, is_open=False)], "Closed", False),
        ([QueueSpec(TOP.name, is_open=False), TEAM], "ParentClosed", False),
        ([TOP], "QueueMissing", True),
    ],
)
def test_a_queue_that_admits_nothing_has_a_reason(
    specs: list[QueueSpec], reason: str, *, is_wrong: bool
) -> None:
    found = verdict(charged_tree(specs, {}), TEAM.name, ())
    assert (found.reason, found.is_ready, found.is_wrong) == (reason, reason == "Ready", is_wrong)


def test_what_is_wrong_with_an_object_is_its_message() -> None:
    found = verdict(QuotaTree(), None, ("spec.a: wrong", "spec.b: wrong"))
    assert (found.reason, found.message) == ("ObjectWrong", "spec.a: wrong; spec.b: wrong")


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    closed = charged_tree([TOP, QueueSpec(TEAM.name, TOP.name, is_open=False)], {})
    lost = charged_tree([TEAM], {})
    first: Any = statuses.own_status(own(), sight_of(closed, TEAM.name, now=10.0))
    then: Any = statuses.own_status(own(**first), sight_of(lost, TEAM.name, now=20.0))
    at_last: Any = statuses.own_status(own(**then), sight_of(BUSY, TEAM.name, now=30.0))
    times = [said["conditions"][0]["lastTransitionTime"][-3:] for said in (first, then, at_last)]
    assert times == ["10Z", "10Z", "30Z"]


def test_conditions_of_others_stay() -> None:
    theirs = {"type": "Theirs", "status": "True"}
    said: Any = statuses.own_status(own(conditions=[theirs]), sight_of(BUSY, TEAM.name))
    assert [one["type"] for one in said["conditions"]] == ["Theirs", "Ready", "Obeyed"]


@pytest.mark.parametrize("odd", [None, "x", {}, [7, None], [{"type": "Ready", "status": "True"}]])
def test_conditions_that_are_none_are_no_obstacle(odd: object) -> None:
    said: Any = statuses.own_status(own(conditions=odd), sight_of(BUSY, TEAM.name, now=7.0))
    ready = next(one for one in said["conditions"] if isinstance(one, dict))
    assert (ready["type"], ready["lastTransitionTime"][-3:]) == ("Ready", "07Z")


def test_a_field_that_is_not_obeyed_is_named_in_a_condition() -> None:
    sight = sight_of(BUSY, TEAM.name, unobeyed=("spec.priority: shares decide",))
    said: Any = statuses.own_status(own(), sight)
    _, obeyed = said["conditions"]
    assert (obeyed["status"], obeyed["message"]) == ("False", "spec.priority: shares decide")


def test_a_patch_holds_only_what_differs_and_takes_away_what_is_gone() -> None:
    before = {"used": {"cpu": "1", GPU: "8"}, "waiting": 1, "kept": "x"}
    assert changes(before, {"used": {"cpu": "2"}, "waiting": 1, "first": None}) == {
        "used": {"cpu": "2", GPU: None}
    }


# --- other dialects -------------------------------------------------------------------------------


def test_volcano_reads_amounts_and_counts_and_a_state_where_there_is_none() -> None:
    found = volcano.Queue()
    sight = sight_of(BUSY, TEAM.name, gangs=GangCounts(2, 1, 3))
    assert statuses.volcano_status(found, sight) == {
        "allocated": {"cpu": "1500m", "memory": "2147483648", GPU: "6"},
        "pending": 2, "inqueue": 1, "running": 3, "state": "Open",
    }  # fmt: skip
    closing = msgspec.structs.replace(found, status={"state": "Closing"})
    assert "state" not in statuses.volcano_status(closing, sight)


def test_kai_reads_what_is_asked_for_on_top_of_what_is_allocated() -> None:
    said = statuses.kai_status(kai.Queue(), sight_of(BUSY, TEAM.name, asked={GPU: 4}))
    assert said["requested"] == {"cpu": "1500m", "memory": "2147483648", GPU: "10"}


def test_an_elastic_quota_shows_the_resources_that_it_names() -> None:
    found = read("spec: {min: {nvidia.com/gpu: 4}, max: {x/y: 1}}", ElasticQuota)
    said = statuses.elastic_quota_status(found, sight_of(BUSY, TEAM.name))
    assert said == {"used": {GPU: "6", "x/y": "0"}}


# --- Kueue ----------------------------------------------------------------------------------------

ALL, TEAM_A = QueueName("kueue/cohort/all"), QueueName("kueue/team-a")
H100 = Cell("h100", GPU)
COHORT = [
    QueueSpec(ALL),
    QueueSpec(TEAM_A, ALL, {H100: Quota(4)}, weight=2000),
    QueueSpec(QueueName("kueue/team-b"), ALL, {H100: Quota(12)}),
]
CLUSTER_QUEUE = """
metadata: {name: team-a, generation: 1}
spec:
  stopPolicy: None
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
"""


def active(said: Any) -> tuple[str, str, str]:
    (one,) = said["conditions"]
    return one["status"], one["reason"], one["message"]


def test_kueues_users_see_total_and_borrowed_of_each_flavor() -> None:
    tree = charged_tree(COHORT, {TEAM_A: {H100: 8}})
    sight = sight_of(tree, TEAM_A, gangs=GangCounts(5, 1, 2))
    said = kueuestatus.cluster_queue_status(read(CLUSTER_QUEUE, kueue.ClusterQueue), sight)
    rows = [{"name": "h100", "resources": [{"name": GPU, "total": "8", "borrowed": "4"}]}]
    assert said["flavorsUsage"] == said["flavorsReservation"] == rows
    assert (said["pendingWorkloads"], said["admittedWorkloads"]) == (5, 3)
    # 4 borrowed of 16 that the cohort has are 250 thousandths, by weight 2
    assert said["fairSharing"] == {"weightedShare": 125}
    assert active(said) == ("True", "Ready", "Can admit new workloads")


@pytest.mark.parametrize(
    ("change", "sight", "reason"),
    [
        ({"stop_policy": "Hold"}, {}, "Stopped"),
        ({}, {"missing_flavors": ("h100",)}, "FlavorNotFound"),
        ({}, {"problems": ("spec.a: wrong",)}, "ObjectWrong"),
        ({}, {"verdict": Verdict(is_ready=False, reason="ParentCycle", message="")}, "ParentCycle"),
    ],
)
def test_a_cluster_queue_that_admits_nothing_says_why_in_kueues_words(
    change: dict[str, Any], sight: dict[str, Any], reason: str
) -> None:
    found = read(CLUSTER_QUEUE, kueue.ClusterQueue)
    found = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, **change))
    status, word, message = active(kueuestatus.cluster_queue_status(found, QueueSight(**sight)))
    assert (status, word) == ("False", reason)
    assert message.startswith("Can't admit new workloads: ")


@pytest.mark.parametrize(
    ("weight", "used", "share"), [(0, 8, kueuestatus.INFINITE_SHARE), (0, 4, 0), (1000, 5, 63)]
)
def test_a_share_is_rounded_up_and_infinite_without_a_weight(
    weight: int, used: int, share: int
) -> None:
    specs = [COHORT[0], QueueSpec(TEAM_A, ALL, {H100: Quota(4)}, weight=weight), COHORT[2]]
    node = charged_tree(specs, {TEAM_A: {H100: used}}).find(TEAM_A)
    assert node is not None
    assert kueuestatus.weighted_share(node) == share


def test_a_local_queue_shows_what_is_used_in_its_name() -> None:
    tree = charged_tree(COHORT, {TEAM_A: {H100: 8}})
    found = read("spec: {clusterQueue: team-a}", kueue.LocalQueue)
    sight = sight_of(tree, TEAM_A, named={H100: 3}, version="v1beta2")
    said = kueuestatus.local_queue_status(found, sight)
    assert said["flavorsUsage"] == [
        {"name": "h100", "resources": [{"name": GPU, "total": "3"}]}
    ]  # fmt: skip
    assert active(said)[1] == "Ready"
    older = kueuestatus.local_queue_status(found, sight_of(tree, TEAM_A, version="v1beta1"))
    assert {"flavorUsage", "flavorsUsage"} & set(older) == {"flavorUsage"}


def test_a_local_queue_of_a_cluster_queue_that_is_missing_or_inactive_is_not_active() -> None:
    found = read("spec: {clusterQueue: team-a}", kueue.LocalQueue)
    missing = kueuestatus.local_queue_status(found, QueueSight())
    assert active(missing)[1] == "ClusterQueueDoesNotExist"
    stopped = charged_tree([COHORT[1]], {})
    inactive = kueuestatus.local_queue_status(found, sight_of(stopped, TEAM_A))
    assert active(inactive)[1] == "ClusterQueueIsInactive"
