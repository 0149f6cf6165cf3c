"""A Workload as a claim, and the statuses that are written into it."""

from typing import Any

import msgspec

from muster.cluster.claims import Grant, PartGrant
from muster.cluster.quota.queuespec import QueueName
from muster.workloads.claims import workloadstatus
from muster.workloads.claims.kueueworkload import KueueWorkload, claim

GRANT = Grant(
    QueueName("kueue/a"),
    (PartGrant("main", 3, {"cpu": "f", "memory": "f"}, {"cpu": 1500, "memory": 2**30}),),
)


def workload(**status: Any) -> KueueWorkload:
    """Return a Workload of three pods with half a CPU each."""
    container = {"name": "c", "resources": {"requests": {"cpu": "500m"}}}
    return msgspec.convert(
        {
            "metadata": {"name": "w", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
            "spec": {
                "queueName": "main",
                "priority": 5,
                "podSets": [
                    {"name": "main", "count": 3, "template": {"spec": {"containers": [container]}}}
                ],
            },
            "status": status,
        },
        KueueWorkload,
    )


def condition(found: KueueWorkload, type_: str) -> tuple[str, str]:
    """Return status and reason of a condition."""
    one = next(one for one in found.status.conditions if one["type"] == type_)
    return str(one["status"]), str(one["reason"])


def test_a_workload_asks_for_its_pod_sets_and_holds_nothing_before_it_is_admitted() -> None:
    found = claim(workload())
    assert (found.key, found.user.text, found.priority, found.version) == ("ns/w", "main", 5, 7)
    assert [(part.count, dict(part.requests)) for part in found.parts] == [
        (3, {"cpu": 500, "pods": 1})
    ]
    assert found.asks
    assert found.grant is None


def test_what_was_written_is_read_back_as_what_it_holds() -> None:
    admitted = workloadstatus.granted(workload(), GRANT, 1000.0)
    found = claim(admitted)
    assert found.grant == GRANT
    assert found.granted_at == 1000.0
    body = workloadstatus.applied(admitted)
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] == {
        "cpu": "1500m",
        "memory": str(2**30),
    }


def test_an_evicted_one_keeps_its_quota_and_is_leaving_until_the_reservation_is_taken_back() -> (
    None
):
    admitted = workloadstatus.granted(workload(), GRANT, 1000.0)
    evicted = workloadstatus.evicted(admitted, "InClusterQueue", "other", 1001.0)
    assert claim(evicted).is_leaving
    assert condition(evicted, "Evicted") == ("True", "Preempted")
    assert condition(evicted, "Preempted") == ("True", "InClusterQueue")
    assert workloadstatus.applied(evicted)["status"]["admission"]
    waits = workloadstatus.waiting(evicted, "Pending", "evicted", 1002.0)
    assert claim(waits).grant is None
    again = workloadstatus.granted(waits, GRANT, 1003.0)
    assert condition(again, "Evicted") == ("False", "QuotaReserved")
    assert not claim(again).is_leaving


def test_a_finished_one_holds_nothing_and_asks_for_nothing() -> None:
    admitted = workloadstatus.granted(workload(), GRANT, 1000.0)
    end = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "-"}
    conditions = (*admitted.status.conditions, end)
    status = msgspec.structs.replace(admitted.status, conditions=conditions)
    found = claim(msgspec.structs.replace(admitted, status=status))
    assert (found.grant, found.asks) == (None, False)
    body = workloadstatus.applied(msgspec.structs.replace(admitted, status=status))
    assert "Finished" not in {one["type"] for one in body["status"]["conditions"]}


def test_a_quantity_that_is_none_is_a_problem_of_the_workload() -> None:
    found = msgspec.to_builtins(workload())
    container = found["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "many"
    assert "many" in claim(msgspec.convert(found, KueueWorkload)).problem
