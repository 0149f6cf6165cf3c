"""What users and tools read in the statuses of queues, on a real API server with Muster beside it.

::

    rack r0 ── 2 hosts with 8 GPUs
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.apiservers.eventually import eventually
from support.dialects.customkinds import install, until_served
from support.extenders.realcluster import EVENTS, PODS, Cluster, cluster, until
from support.machine import quickyaml

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane import crds
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OWN = Path(__file__).parents[3] / "manifests" / "crds" / "queues.yaml"
QUEUES = "/apis/muster.dev/v1alpha1/queues"
KUEUE = "/apis/kueue.x-k8s.io/v1beta1"
GPU = "nvidia.com/gpu"
OTHERS: list[JSON] = list(
    quickyaml.load_all("""
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team-a}
spec:
  namespaceSelector: {}
  stopPolicy: HoldAndDrain
  resourceGroups:
  - coveredResources: [nvidia.com/gpu, cpu, memory]
    flavors:
    - name: h100
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 8}
      - {name: cpu, nominalQuota: 4}
      - {name: memory, nominalQuota: 8Gi}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: main, namespace: default}
spec: {clusterQueue: team-a}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: h100}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: speech}
spec: {deserved: {nvidia.com/gpu: 8}}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: quota, namespace: default}
spec: {min: {nvidia.com/gpu: 4}}
---
apiVersion: scheduling.sigs.k8s.io/v1alpha1
kind: ElasticQuota
metadata: {name: drawing, namespace: default}
spec: {min: {nvidia.com/gpu: 4}, max: {nvidia.com/gpu: 6}}
""")
)
PLURALS = {"ElasticQuota": "elasticquotas", "Queue": "queues"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(minor: Minor) -> AsyncIterator[Cluster]:
    """A rack of two hosts, every kind of queue that is asked for here, and Muster."""
    definitions = await asyncio.to_thread(crds.ensure)
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane:
        async with plane.api() as api:
            await install(api, definitions, OTHERS)
            await api.create(CRDS, quickyaml.load(OWN.read_text(encoding="utf-8")))
            await until_served(api, QUEUES)
        async with cluster(plane, queueStatuses={"everySeconds": 0.5}) as found:
            await found.add_racks([0], hosts=2)
            yield found


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def room(fleet: Cluster) -> AsyncIterator[None]:
    """Take the pods away after each test."""
    yield
    for path in (PODS, "/apis/batch/v1/namespaces/default/jobs"):
        await fleet.api.delete(path)


def queue(name: str, gpus: int | str, **spec: object) -> JSON:
    quotas = [{"resource": GPU, "entitled": gpus}]
    return {
        "apiVersion": "muster.dev/v1alpha1", "kind": "Queue",
        "metadata": {"name": name}, "spec": {"quotas": quotas, **spec},
    }  # fmt: skip


def condition(found: JSON, kind: str) -> JSON:
    entries = found.get("status", {}).get("conditions") or []
    return next((one for one in entries if one["type"] == kind), {})


def says(kind: str, reason: str) -> Callable[[JSON], bool]:
    return lambda found: condition(found, kind).get("reason") == reason


async def test_a_queue_shows_what_its_gangs_use_and_who_waits(fleet: Cluster) -> None:
    await fleet.api.create(QUEUES, queue("vision", 8))
    empty = await eventually(fleet.api, f"{QUEUES}/vision", says("Ready", "Ready"))
    assert empty["status"]["used"] == f"{GPU} 0/8"
    assert empty["status"]["observedGeneration"] == empty["metadata"]["generation"]
    runs = pods.Gang("runs", 2, labels={names.QUEUE: "vision"})
    waits = pods.Gang("waits", 2, labels={names.QUEUE: "vision"})
    await fleet.submit(runs)
    await fleet.bound(runs)
    await fleet.submit(waits)
    found = await eventually(
        fleet.api,
        f"{QUEUES}/vision",
        lambda one: (one["status"].get("running"), one["status"].get("waiting")) == (1, 1),
    )
    status = found["status"]
    assert status["first"].endswith("/waits")
    assert status["used"].startswith(f"{GPU} 16/8")
    (gpus,) = (one for one in status["resources"] if one["resource"] == GPU)
    assert gpus == {
        "resource": GPU, "used": "16", "entitled": "8", "borrowed": "8", "available": "0",
    }  # fmt: skip
    assert condition(found, "Ready") == condition(empty, "Ready")


async def test_a_missing_parent_is_told_and_heals_when_it_comes(fleet: Cluster) -> None:
    await fleet.api.create(QUEUES, queue("child", 1, parent="late"))
    found = await eventually(fleet.api, f"{QUEUES}/child", says("Ready", "ParentMissing"))
    assert "parent muster/late does not exist" in condition(found, "Ready")["message"]
    assert await recorded(fleet, "child", "QueueNotReady")
    await fleet.api.create(QUEUES, queue("late", 4))
    healed = await eventually(fleet.api, f"{QUEUES}/child", says("Ready", "Ready"))
    assert condition(healed, "Ready")["status"] == "True"


async def recorded(fleet: Cluster, name: str, reason: str) -> str:
    """Wait for an Event on an object; return its text."""
    found: list[str] = []

    async def is_there() -> bool:
        events = (await fleet.api.get(EVENTS))["items"]
        mine = [one for one in events if one["regarding"]["name"] == name]
        found[:] = [one["note"] for one in mine if one["reason"] == reason]
        return bool(found)

    await until(is_there)
    (note,) = found
    return note


async def test_a_field_that_is_not_obeyed_is_named(fleet: Cluster) -> None:
    await fleet.api.create(QUEUES, queue("odd", 1, priority=3))
    found = await eventually(fleet.api, f"{QUEUES}/odd", says("Obeyed", "FieldNotObeyed"))
    assert condition(found, "Obeyed")["message"].startswith("spec.priority: ")
    assert condition(found, "Ready")["status"] == "True"
    assert await recorded(fleet, "odd", "FieldNotObeyed") == condition(found, "Obeyed")["message"]


async def put(fleet: Cluster, written: JSON) -> str:
    """Create an object; return its path."""
    namespace = written["metadata"].get("namespace")
    where = f"/namespaces/{namespace}" if namespace else ""
    plural = PLURALS.get(written["kind"], written["kind"].lower() + "s")
    path = f"/apis/{written['apiVersion']}{where}/{plural}"
    await fleet.api.create(path, written)
    return f"{path}/{written['metadata']['name']}"


async def test_kueues_tools_read_their_statuses(fleet: Cluster) -> None:
    """A chain of objects, the last first: each says what is missing until it comes."""
    cluster_queue, local_queue, flavor, *_ = OTHERS
    held = copy.deepcopy(cluster_queue)
    name = await put(fleet, local_queue)
    await eventually(fleet.api, name, says("Active", "ClusterQueueDoesNotExist"))
    path = await put(fleet, held)
    stopped = await eventually(fleet.api, path, says("Active", "Stopped"))
    assert condition(stopped, "Active")["message"] == "Can't admit new workloads: is stopped."
    assert "HoldAndDrain" in await recorded(fleet, "team-a", "FieldNotObeyed")
    await fleet.api.patch(path, {"spec": {"stopPolicy": None}})
    lacks = await eventually(fleet.api, path, says("Active", "FlavorNotFound"))
    assert "h100" in condition(lacks, "Active")["message"]
    await put(fleet, flavor)
    empty = await eventually(fleet.api, path, says("Active", "Ready"))
    await eventually(fleet.api, name, says("Active", "Ready"))
    assert usage(empty, "flavorsUsage") == {"name": GPU, "total": "0", "borrowed": "0"}
    gang = pods.Gang("kq", 1, labels={"kueue.x-k8s.io/queue-name": "main"})
    await fleet.submit(gang)
    for at, key in ((path, "flavorsUsage"), (name, "flavorUsage")):
        found = await eventually(fleet.api, at, lambda one: counts(one) == (0, 1), seconds=20)
        extra = {"borrowed": "0"} if at == path else {}
        assert usage(found, key) == {"name": GPU, "total": "8", **extra}


def usage(found: JSON, key: str) -> JSON:
    (flavor,) = found["status"][key]
    gpus: JSON = flavor["resources"][0]
    return gpus


async def test_a_wrong_number_in_a_cluster_queue_is_named(fleet: Cluster) -> None:
    odd = copy.deepcopy(OTHERS[0])
    odd["metadata"]["name"] = "odd-numbers"
    field = "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"
    odd["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = "-1"
    path = await put(fleet, odd)
    found = await eventually(fleet.api, path, says("Active", "ObjectWrong"))
    assert f'{field}: "-1" is not allowed' in condition(found, "Active")["message"]
    assert field in await recorded(fleet, "odd-numbers", "QueueNotReady")


async def test_what_somebody_else_writes_is_left_alone(fleet: Cluster) -> None:
    own = queue("mine", 1)
    other = copy.deepcopy(OTHERS[3])
    path = await put(fleet, other)
    written = await eventually(fleet.api, path, lambda one: "pending" in one.get("status", {}))
    assert written["status"]["state"] == "Open"
    await asyncio.sleep(1.1)  # the API server notes who wrote when in seconds
    theirs = {"status": {"pending": 7}}
    await fleet.api.patch(f"{path}/status", theirs)
    await put(fleet, own)  # a look after that
    await eventually(fleet.api, f"{QUEUES}/mine", says("Ready", "Ready"))
    assert (await fleet.api.get(path))["status"]["pending"] == 7


async def test_elastic_quotas_show_what_is_used_with_a_status_of_their_own_or_without(
    fleet: Cluster,
) -> None:
    for one in OTHERS[4:]:
        path = await put(fleet, one)
        found = await eventually(fleet.api, path, lambda one: "used" in one.get("status", {}))
        assert found["status"]["used"] == {GPU: "0"}


def counts(found: JSON) -> tuple[int, int]:
    status = found["status"]
    return status["pendingWorkloads"], status["admittedWorkloads"]
