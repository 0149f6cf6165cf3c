"""Kueue's Workloads with fair sharing, on a real control plane with Kueue's own definitions.

::

    cohort all   4 CPUs ─┬─ ClusterQueue a   4 CPUs
    of its own           └─ ClusterQueue b   4 CPUs, takes from others by their shares
"""

from collections.abc import AsyncIterator
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
LOCAL = f"{KUEUE}/namespaces/default/localqueues"
WORKLOADS = f"{KUEUE}/namespaces/default/workloads"
SETTINGS = {"queueing": {"kueue": {"workloads": True, "fairSharing": True}}}


def named(kind: str, name: str, spec: JSON | None = None) -> JSON:
    head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}}
    return head if spec is None else head | {"spec": spec}


FLAVOR = {"name": "f", "resources": [{"name": "cpu", "nominalQuota": "4"}]}
GROUPS = [{"coveredResources": ["cpu"], "flavors": [FLAVOR]}]


def cluster_queue(name: str) -> JSON:
    spec = {
        "cohortName": "all",
        "namespaceSelector": {},
        "resourceGroups": GROUPS,
        "preemption": {"reclaimWithinCohort": "Any"},
    }
    return named("ClusterQueue", name, spec)


def workload(name: str, queue: str, cpus: str) -> JSON:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpus}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    pods = [{"name": "main", "count": 1, "template": template}]
    return named("Workload", name, {"active": True, "queueName": queue, "podSets": pods})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(minor: Minor) -> AsyncIterator[Api]:
    """A control plane with the two queues, and Muster on it."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane, plane.api("admin") as it:
        await install_crds(it)
        await it.create(f"{KUEUE}/resourceflavors", named("ResourceFlavor", "f"))
        await it.create(f"{KUEUE}/cohorts", named("Cohort", "all", {"resourceGroups": GROUPS}))
        for name in "ab":
            await it.create(f"{KUEUE}/clusterqueues", cluster_queue(name))
            await it.create(LOCAL, named("LocalQueue", name, {"clusterQueue": name}))
        async with Muster(plane, extender=SETTINGS, with_webhook=False):
            yield it


async def reasons(api: Api, type_: str) -> dict[str, str]:
    """Return the reasons of a condition, by the Workloads for which it is true."""
    return {
        found["metadata"]["name"]: one["reason"]
        for found in (await api.get(WORKLOADS))["items"]
        for one in found.get("status", {}).get("conditions", ())
        if one["type"] == type_ and one["status"] == "True"
    }


async def test_a_workload_that_borrows_takes_from_a_queue_with_a_greater_share(api: Api) -> None:
    for number in range(12):
        await api.create(WORKLOADS, workload(f"a{number}", "a", "1"))

    async def all_run() -> bool:
        return len(await reasons(api, "Admitted")) == 12

    await until(all_run)
    await api.create(WORKLOADS, workload("b", "b", "6"))  # both borrow 2 then

    async def took() -> bool:
        return list((await reasons(api, "Preempted")).values()) == ["InCohortFairSharing"] * 6

    await until(took)
