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


def checked(*states: str) -> KueueWorkload:
    """Return a Workload with quota whose checks c0, c1, … say these states."""
    names = tuple(f"c{place}" for place in range(len(states)))
    found = workloadstatus.granted(workload(), GRANT, 1000.0, names)
    said = [
        {"name": name, "state": state, "lastTransitionTime": "t", "message": "m"}
        for name, state in zip(names, states, strict=True)
    ]
    status = msgspec.structs.replace(found.status, admission_checks=tuple(said))
    return msgspec.structs.replace(found, status=status)


def types(found: KueueWorkload) -> set[str]:
    return {str(one["type"]) for one in found.status.conditions if one["status"] == "True"}


def test_with_checks_it_has_quota_and_is_not_admitted_before_they_are_ready() -> None:
    found = workloadstatus.granted(workload(), GRANT, 1000.0, ("budget",))
    assert types(found) == {"QuotaReserved"}
    assert workloadstatus.applied(found)["status"]["admissionChecks"] == [
        {
            "name": "budget",
            "state": "Pending",
            "lastTransitionTime": "1970-01-01T00:16:40Z",
            "message": "",
        }
    ]
    assert claim(found).checks == {"budget": "Pending"}
    assert not claim(found).is_admitted
    after = workloadstatus.admitted(checked("Ready"), 1001.0)
    assert types(after) == {"QuotaReserved", "Admitted"}
    assert claim(after).is_admitted


def test_what_checks_said_already_stands_when_others_are_listed() -> None:
    after = workloadstatus.listing(checked("Ready", "Pending"), ("c0", "new"), 1001.0)
    assert claim(after).checks == {"c0": "Ready", "new": "Pending"}
    assert after.status.admission_checks[0]["message"] == "m"


def test_a_check_that_asks_for_another_try_evicts_and_all_begin_anew() -> None:
    after = workloadstatus.unchecked(checked("Ready", "Retry"), 1001.0, is_final=False)
    assert condition(after, "Evicted") == ("True", "AdmissionCheck")
    assert claim(after).checks == {"c0": "Pending", "c1": "Pending"}
    assert [one["message"] for one in after.status.admission_checks] == [
        "Reset to Pending after eviction. Previously: Ready",
        "Reset to Pending after eviction. Previously: Retry",
    ]
    assert claim(after).is_leaving
    assert claim(after).grant == GRANT


def test_a_rejected_one_says_which_check_it_was() -> None:
    after = workloadstatus.unchecked(checked("Ready", "Rejected"), 1001.0, is_final=True)
    assert condition(after, "Evicted") == ("True", "DeactivatedDueToAdmissionCheck")
    (text,) = (one["message"] for one in after.status.conditions if one["type"] == "Evicted")
    assert text.endswith("due to Admission check(s): c1, were rejected")


def test_a_pod_set_may_say_how_few_are_enough() -> None:
    found = workload()
    (pods,) = found.spec.pod_sets
    spec = msgspec.structs.replace(
        found.spec, pod_sets=(msgspec.structs.replace(pods, min_count=2),)
    )
    (part,) = claim(msgspec.structs.replace(found, spec=spec)).parts
    assert (part.count, part.least) == (3, 2)


def retrying(*after: int | None, **status: Any) -> KueueWorkload:
    """Return one with a check for each number of seconds; all asked for another try at 14:00."""
    entries = [
        {"name": str(number), "state": "Retry", "lastTransitionTime": "2026-11-28T14:00:00Z"}
        | ({} if seconds is None else {"requeueAfterSeconds": seconds})
        for number, seconds in enumerate(after)
    ]
    return workload(admissionChecks=entries, **status)


TWO = 1_795_874_400.0  # 2026-11-28T14:00:00Z


def test_the_latest_time_of_all_checks_that_ask_for_another_try_counts() -> None:
    found = retrying(60, None, 300, requeueState={"count": 2})
    after = workloadstatus.unchecked(found, TWO + 1, is_final=False)
    assert claim(after).not_before == TWO + 300
    body = workloadstatus.applied(after)["status"]
    assert body["requeueState"] == {"count": 2, "requeueAt": "2026-11-28T14:05:00Z"}
    assert [one.get("requeueAfterSeconds") for one in body["admissionChecks"]] == [60, None, 300]
    assert [one["retryCount"] for one in body["admissionChecks"]] == [1, 1, 1]


def test_a_check_that_names_no_time_is_asked_again_at_once() -> None:
    after = workloadstatus.unchecked(retrying(None), TWO + 1, is_final=False)
    assert claim(after).not_before == 0
    assert "requeueState" not in workloadstatus.applied(after)["status"]


def test_a_time_that_has_come_or_is_sooner_than_another_changes_nothing() -> None:
    late = workloadstatus.unchecked(retrying(60), TWO + 60, is_final=False)
    assert claim(late).not_before == 0
    other = {"requeueAt": "2026-11-28T15:00:00Z"}
    after = workloadstatus.unchecked(retrying(60, requeueState=other), TWO + 1, is_final=False)
    assert claim(after).not_before == TWO + 3600


def test_a_check_that_is_rejected_ends_the_waiting() -> None:
    after = workloadstatus.unchecked(retrying(60, requeueState={"count": 1}), TWO, is_final=True)
    assert "requeueState" not in workloadstatus.applied(after)["status"]


def test_with_quota_the_waiting_is_over_and_the_number_of_tries_stays() -> None:
    said = {"type": "Requeued", "status": "False", "lastTransitionTime": "2026-11-28T14:00:00Z"}
    state = {"count": 3, "requeueAt": "2026-11-28T14:05:00Z"}
    for reason, becomes in (("AdmissionCheck", "BackoffFinished"), ("Deactivated", "Reactivated")):
        found = workload(conditions=[said | {"reason": reason}], requeueState=state)
        after = workloadstatus.granted(found, GRANT, TWO + 300)
        assert condition(after, "Requeued") == ("True", becomes)
        assert claim(after).not_before == 0
        assert workloadstatus.applied(after)["status"]["requeueState"] == {"count": 3}


def test_a_write_in_between_keeps_the_time() -> None:
    state = {"requeueAt": "2026-11-28T14:05:00Z"}
    after = workloadstatus.waiting(workload(requeueState=state), "WaitingForQuota", "-", TWO)
    assert workloadstatus.applied(after)["status"]["requeueState"] == state
