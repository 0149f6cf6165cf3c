"""Kueue's Workloads admitted by Muster, on a real control plane with Kueue's own definitions.

::

    cohort all ─┬─ ClusterQueue vision   4 CPUs, takes back what it lent   LocalQueue default/vision
                └─ ClusterQueue speech   4 CPUs, takes back what it lent   LocalQueue default/speech

    ClusterQueue shared   4 CPUs, by use   LocalQueues default/busy, quiet, other
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import until

from loadtest.benches.kueuerunner import install_crds
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC, Muster

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"
SETTINGS = {
    "queueing": {
        "kueue": {"workloads": True, "statusSeconds": 0.2},
        "usage": {"halfLifeSeconds": 3600, "intervalSeconds": 1},
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        yield it


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(plane: ControlPlane) -> AsyncIterator[Api]:
    """An administrator's client of a control plane with the two queues."""
    async with plane.api("admin") as it:
        await install_crds(it)
        await it.create(f"{KUEUE}/resourceflavors", named("ResourceFlavor", "f"))
        for name in ("vision", "speech"):
            await it.create(f"{KUEUE}/clusterqueues", cluster_queue(name))
            queue = named("LocalQueue", name) | {"spec": {"clusterQueue": name}}
            await it.create(f"{KUEUE}/namespaces/default/localqueues", queue)
        yield it


@pytest_asyncio.fixture(scope="module", loop_scope="module", autouse=True)
async def muster(plane: ControlPlane, api: Api) -> AsyncIterator[Muster]:
    """Muster on it, which lists the queues as it starts."""
    assert api
    async with Muster(plane, extender=SETTINGS, with_webhook=False) as it:
        yield it


def named(kind: str, name: str) -> JSON:
    """Return the head of an object."""
    return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}


def cluster_queue(name: str) -> JSON:
    """Return a ClusterQueue of the cohort."""
    flavor = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
    return named("ClusterQueue", name) | {
        "spec": {
            "cohortName": "all",
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [flavor]}],
            "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
        }
    }


def workload(name: str, queue: str, cpus: str, pods: int = 1) -> JSON:
    """Return a Workload of so many pods."""
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpus}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    return named("Workload", name) | {
        "spec": {
            "active": True,
            "queueName": queue,
            "podSets": [{"name": "main", "count": pods, "template": template}],
        }
    }


def is_true(found: JSON, type_: str) -> bool:
    """Whether a condition is true."""
    conditions = found.get("status", {}).get("conditions", ())
    return any(one["type"] == type_ and one["status"] == "True" for one in conditions)


async def reached(api: Api, name: str, *types: str) -> JSON:
    """Wait until conditions of a Workload are true; return it."""
    found: JSON = {}

    async def holds() -> bool:
        found.update(await api.get(f"{WORKLOADS}/{name}"))
        return all(is_true(found, type_) for type_ in types)

    await until(holds)
    return found


async def unreserve(api: Api, name: str) -> None:
    """End an eviction as Kueue's job controllers and its runner do."""
    found = await api.get(f"{WORKLOADS}/{name}")
    kept = [one for one in found["status"]["conditions"] if one["type"] in ("Evicted", "Preempted")]
    now = {"reason": "Pending", "message": "-", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    kept += [{"type": type_, "status": "False"} | now for type_ in ("QuotaReserved", "Admitted")]
    rest = {
        key: found["status"][key]
        for key in ("requeueState", "admissionChecks")
        if key in found["status"]
    }
    body = named("Workload", name) | {"status": {"conditions": kept, **rest}}
    path = f"{WORKLOADS}/{name}/status?fieldManager=kueue-admission&force=true"
    await api.patch(path, body, kind="application/apply-patch+yaml")


async def finish(api: Api, name: str) -> None:
    """End a Workload as its job's controller does."""
    found = await api.get(f"{WORKLOADS}/{name}")
    end = {
        "type": "Finished", "status": "True", "reason": "Succeeded", "message": "done",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    conditions = [*found["status"]["conditions"], end]
    await api.patch(f"{WORKLOADS}/{name}/status", {"status": {"conditions": conditions}})


async def counters(api: Api, queue: str, pending: int, admitted: int, used: str) -> None:
    """Wait until a ClusterQueue says so."""

    async def says() -> bool:
        status = (await api.get(f"{KUEUE}/clusterqueues/{queue}")).get("status", {})
        numbers = [
            status.get(name) or 0
            for name in ("pendingWorkloads", "reservingWorkloads", "admittedWorkloads")
        ]
        rows = [status.get(name) for name in ("flavorsReservation", "flavorsUsage")]
        is_active = is_true({"status": status}, "Active")
        return (
            is_active
            and numbers == [pending, admitted, admitted]
            and all(row and row[0]["resources"][0]["total"] == used for row in rows)
        )

    await until(says)


async def test_workloads_borrow_are_reclaimed_and_finish_with_counters_at_each_step(
    api: Api,
) -> None:
    for name in ("first", "second", "third"):
        await api.create(WORKLOADS, workload(name, "speech", "1", pods=2))
        found = await reached(api, name, "QuotaReserved", "Admitted")
    assert found["status"]["admission"] == {
        "clusterQueue": "speech",
        "podSetAssignments": [
            {"name": "main", "count": 2, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "2"}}
        ],
    }
    await counters(api, "speech", 0, 3, "6")

    await api.create(WORKLOADS, workload("owner", "vision", "4"))
    victim = await reached(api, "third", "Evicted", "Preempted")  # reserved last
    assert is_true(victim, "QuotaReserved")
    await counters(api, "vision", 1, 0, "0")
    await unreserve(api, "third")
    await reached(api, "owner", "Admitted")
    assert "admission" not in (await api.get(f"{WORKLOADS}/third"))["status"]
    await counters(api, "speech", 1, 2, "4")
    await counters(api, "vision", 0, 1, "4")

    await finish(api, "owner")
    again = await reached(api, "third", "Admitted")
    assert not is_true(again, "Evicted")
    await counters(api, "speech", 0, 3, "6")
    await api.delete(f"{WORKLOADS}/third")
    await counters(api, "speech", 0, 2, "4")


async def checked_queue(api: Api, name: str, check: str = "budget") -> None:
    """Create a ClusterQueue with a check, and its LocalQueue."""
    found = cluster_queue(name)
    found["spec"]["cohortName"] = f"only-{name}"  # nothing is lent to the queues of other tests
    found["spec"]["admissionChecksStrategy"] = {"admissionChecks": [{"name": check}]}
    await api.create(f"{KUEUE}/clusterqueues", found)
    queue = named("LocalQueue", name) | {"spec": {"clusterQueue": name}}
    await api.create(f"{KUEUE}/namespaces/default/localqueues", queue)


async def says_of_check(api: Api, status: str, check: str = "budget") -> None:
    """Have the check's controller say whether it is active; create the check if need be."""
    made = named("AdmissionCheck", check) | {"spec": {"controllerName": "example.com/budget"}}
    await api.ensure(f"{KUEUE}/admissionchecks", made)
    condition = {
        "type": "Active", "status": status, "reason": "Said", "message": "as the service has it",
        "lastTransitionTime": "2026-11-28T14:00:00Z",
    }  # fmt: skip
    body = {"status": {"conditions": [condition]}}
    await api.patch(f"{KUEUE}/admissionchecks/{check}/status", body)


async def inactive_because(api: Api, queue: str, reason: str, text: str) -> None:
    """Wait until a ClusterQueue is inactive for a reason, and says so in these words."""

    async def is_said() -> bool:
        status = (await api.get(f"{KUEUE}/clusterqueues/{queue}")).get("status", {})
        said = [
            one["message"]
            for one in status.get("conditions", ())
            if (one["type"], one["status"], one["reason"]) == ("Active", "False", reason)
        ]
        return bool(said) and text in said[0]

    await until(is_said)


async def test_a_check_that_is_missing_or_inactive_closes_the_queue_and_holds_no_quota(
    api: Api,
) -> None:
    """The check is this test's own: others create theirs."""
    await checked_queue(api, "mistyped", "budgte")
    await api.create(WORKLOADS, workload("early", "mistyped", "1"))
    text = "Can't admit new workloads: references missing AdmissionCheck(s): budgte: create them"
    await inactive_because(api, "mistyped", "AdmissionCheckNotFound", text)
    await says_of_check(api, "False", "budgte")
    text = "budgte: as the service has it"
    await inactive_because(api, "mistyped", "AdmissionCheckInactive", text)
    status = (await api.get(f"{KUEUE}/clusterqueues/mistyped"))["status"]
    assert (status["pendingWorkloads"], status.get("reservingWorkloads") or 0) == (1, 0)
    assert not is_true(await api.get(f"{WORKLOADS}/early"), "QuotaReserved")
    await says_of_check(api, "True", "budgte")
    found = await reached(api, "early", "QuotaReserved")
    assert not is_true(found, "Admitted")
    await api.delete(f"{WORKLOADS}/early")


async def says(api: Api, name: str, state: str, **more: int) -> None:
    """Have the controller of the check say something, under its own name."""
    entry = {
        "name": "budget",
        "state": state,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "message": "as the budget has it",
        **more,
    }
    await api.patch(f"{WORKLOADS}/{name}/status", {"status": {"admissionChecks": [entry]}})


async def test_a_workload_is_admitted_once_its_checks_are_ready(api: Api) -> None:
    await says_of_check(api, "True")
    await checked_queue(api, "checked")
    await api.create(WORKLOADS, workload("paid", "checked", "1"))
    found = await reached(api, "paid", "QuotaReserved")
    (entry,) = found["status"]["admissionChecks"]
    assert (entry["name"], entry["state"]) == ("budget", "Pending")
    assert not is_true(found, "Admitted")
    await says(api, "paid", "Ready")
    found = await reached(api, "paid", "QuotaReserved", "Admitted")
    (entry,) = found["status"]["admissionChecks"]
    assert (entry["state"], entry["message"]) == ("Ready", "as the budget has it")


async def test_a_check_evicts_for_another_try_and_deactivates_for_ever(api: Api) -> None:
    await says_of_check(api, "True")
    await checked_queue(api, "doubted")
    await api.create(WORKLOADS, workload("again", "doubted", "1"))
    await reached(api, "again", "QuotaReserved")
    await says(api, "again", "Retry")
    found = await reached(api, "again", "Evicted")
    assert found["status"]["admissionChecks"][0]["state"] == "Pending"
    await unreserve(api, "again")
    await reached(api, "again", "QuotaReserved")
    await says(api, "again", "Rejected")

    async def is_inactive() -> bool:
        return (await api.get(f"{WORKLOADS}/again"))["spec"]["active"] is False

    await until(is_inactive)
    found = await reached(api, "again", "Evicted")
    reasons = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
    assert reasons["Evicted"] == "DeactivatedDueToAdmissionCheck"


async def test_a_check_that_asks_for_another_try_later_has_its_workload_wait_so_long(
    api: Api,
) -> None:
    await says_of_check(api, "True")
    await checked_queue(api, "patient")
    await api.create(WORKLOADS, workload("later", "patient", "1"))
    await reached(api, "later", "QuotaReserved")
    await says(api, "later", "Retry", requeueAfterSeconds=8)
    found = await reached(api, "later", "Evicted")
    at = datetime.fromisoformat(found["status"]["requeueState"]["requeueAt"])
    assert found["status"]["admissionChecks"][0]["retryCount"] == 1
    await unreserve(api, "later")
    found = await reached(api, "later", "QuotaReserved")
    (reserved,) = (one for one in found["status"]["conditions"] if one["type"] == "QuotaReserved")
    assert datetime.fromisoformat(reserved["lastTransitionTime"]) >= at
    assert "requeueAt" not in found["status"].get("requeueState", {})


async def test_a_workload_that_allows_it_gets_quota_for_fewer_pods(api: Api) -> None:
    alone = cluster_queue("alone")
    alone["spec"]["cohortName"] = "only-alone"
    await api.create(f"{KUEUE}/clusterqueues", alone)
    queue = named("LocalQueue", "alone") | {"spec": {"clusterQueue": "alone"}}
    await api.create(f"{KUEUE}/namespaces/default/localqueues", queue)
    large = workload("large", "alone", "1", pods=9)
    large["spec"]["podSets"][0]["minCount"] = 2
    await api.create(WORKLOADS, large)
    found = await reached(api, "large", "Admitted")
    assert found["status"]["admission"]["podSetAssignments"] == [
        {"name": "main", "count": 4, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}}
    ]


async def test_who_used_less_lately_goes_first_in_a_queue_that_goes_by_use_after_a_restart_too(
    api: Api, muster: Muster
) -> None:
    shared = cluster_queue("shared")
    shared["spec"]["cohortName"] = "only-shared"
    shared["spec"]["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    await api.create(f"{KUEUE}/clusterqueues", shared)
    for name in ("busy", "quiet", "other"):
        queue = named("LocalQueue", name) | {"spec": {"clusterQueue": "shared"}}
        await api.create(f"{KUEUE}/namespaces/default/localqueues", queue)
    await api.create(WORKLOADS, workload("past", "busy", "4"))
    await reached(api, "past", "Admitted")

    async def is_written() -> bool:
        found = await api.get(f"{KUEUE}/namespaces/default/localqueues/busy")
        said = found.get("status", {}).get("fairSharing", {}).get("admissionFairSharingStatus", {})
        return "cpu" in said.get("consumedResources", {})

    await until(is_written)
    muster.extender.kill()
    await finish(api, "past")
    await api.create(WORKLOADS, workload("holder", "other", "4"))
    await muster.start(muster.extender)
    await reached(api, "holder", "Admitted")
    for name, queue in (("older", "busy"), ("younger", "quiet")):
        await api.create(WORKLOADS, workload(name, queue, "4"))
    await finish(api, "holder")
    await reached(api, "younger", "Admitted")
    assert not is_true(await api.get(f"{WORKLOADS}/older"), "QuotaReserved")
