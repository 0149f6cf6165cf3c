"""What users and tools read in the statuses of queues, on a real API server with Muster beside it.

::

    rack r0 ── 2 hosts with 8 GPUs
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from support.apiservers.eventually import eventually
from support.dialects.customkinds import until_served
from support.extenders.realcluster import EVENTS, Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OWN = Path(__file__).parents[3] / "manifests" / "crds" / "queues.yaml"
QUEUES = "/apis/muster.dev/v1alpha1/queues"
GPU = "nvidia.com/gpu"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(minor: Minor) -> AsyncIterator[Cluster]:
    """A rack of two hosts, every kind of queue that is asked for here, and Muster."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as plane:
        async with plane.api() as api:
            await api.create(CRDS, yaml.safe_load(OWN.read_text(encoding="utf-8")))
            await until_served(api, QUEUES)
        async with cluster(plane, queueStatuses={"everySeconds": 0.5}) as found:
            await found.add_racks([0], hosts=2)
            yield found


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
