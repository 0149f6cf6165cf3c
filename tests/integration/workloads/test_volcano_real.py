"""Volcano's own job controller, built from its Go module, with its scheduler absent.

::

    Volcano Job ─► job controller ─► PodGroup, phase ""          Muster: Inqueue
                        └─ waits for Inqueue ─► pods ─► webhook: gate, scheduler name
                                                   └─► planned whole ─► bound    Muster: Running
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from support.dialects.kinds import serve
from support.extenders.realcluster import PATIENCE_S, PODS, Cluster, cluster, is_bound

from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.controlplane.assets import Minor, ensure_volcano
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.controlplane.programs import Program
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
BATCH, SCHEDULING = "batch.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
JOBS = f"/apis/{BATCH}/namespaces/default/jobs"
GROUPS = f"/apis/{SCHEDULING}/namespaces/default/podgroups"
KINDS = (
    (BATCH, "Job"),
    (SCHEDULING, "PodGroup"),
    (SCHEDULING, "Queue"),
    ("bus.volcano.sh/v1alpha1", "Command"),
    ("flow.volcano.sh/v1alpha1", "JobFlow"),
    ("flow.volcano.sh/v1alpha1", "JobTemplate"),
    ("nodeinfo.volcano.sh/v1alpha1", "Numatopology"),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane that serves Volcano's kinds, with its queue."""
    options = Options(minor=minor, rbac=RBAC)
    async with ControlPlane(options) as running, running.api() as api:
        for api_version, kind in KINDS:
            # As in Volcano's own manifests, the PodGroup has no status subresource.
            await serve(api, api_version, kind, status=kind != "PodGroup")
        queue = {
            "apiVersion": SCHEDULING,
            "kind": "Queue",
            "metadata": {"name": "default"},
            "spec": {"weight": 1},
        }
        await retried(api.create, f"/apis/{SCHEDULING}/queues", queue)
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def volcano(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Muster beside Volcano's controller; one rack of four hosts with 8 GPUs."""
    program = await asyncio.to_thread(ensure_volcano)
    flags = ["--leader-elect=false", "--controllers=+job-controller"]
    command = [program, f"--kubeconfig={plane.kubeconfig()}", *flags]
    controller = Program("volcano", command, directory=plane.directory, ready=always)
    async with cluster(plane, "recommended") as it:
        await it.add_racks([0], hosts=4)
        controller.start()
        try:
            yield it
        finally:
            await controller.stop()
            for path in (JOBS, GROUPS):
                await it.api.delete(path)


async def always() -> bool:
    return True


async def retried(create: Callable[..., Any], path: str, obj: JSON) -> None:
    """Create an object of a kind that was defined a moment ago."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await create(path, obj)
            except ApiFailed as refused:
                if refused.code not in (404, 429):
                    raise
                await asyncio.sleep(0.1)
            else:
                return


async def until(what: Callable[[], Any]) -> Any:
    """Poll until a coroutine returns something true; return that."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await what()):  # noqa: ASYNC110 - several programs make it true
            await asyncio.sleep(0.1)
        return found


def job(name: str, workers: int) -> JSON:
    """A Job of a master and workers, each a whole host; all of them or none."""
    limits = {"nvidia.com/gpu": "8"}
    container = {"name": "main", "image": "example.com/train", "resources": {"limits": limits}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "minAvailable": workers + 1,
            "schedulerName": "volcano",
            "queue": "default",
            "maxRetry": 3,
            "tasks": [
                {"name": "master", "replicas": 1, "template": template},
                {"name": "worker", "replicas": workers, "template": template},
            ],
        },
    }


async def test_volcanos_controller_gets_its_phases_and_its_jobs_are_placed_whole(
    volcano: Cluster,
) -> None:
    await volcano.api.create(JOBS, job("train", 3))

    async def all_bound() -> bool:
        pods = (await volcano.api.get(PODS))["items"]
        return len(pods) == 4 and all(is_bound(pod) for pod in pods)

    await until(all_bound)
    pods = (await volcano.api.get(PODS))["items"]
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"default-scheduler"}
    assert len({pod["spec"]["nodeName"] for pod in pods}) == 4

    async def running() -> bool:
        (group,) = (await volcano.api.get(GROUPS))["items"]
        return bool(group["status"].get("phase") == "Running")

    await until(running)


async def test_a_volcano_job_that_does_not_fit_beside_another_waits_whole(
    volcano: Cluster,
) -> None:
    await volcano.api.create(JOBS, job("large", 4))

    async def made() -> bool:
        return len((await volcano.api.get(PODS))["items"]) == 5

    await until(made)  # five members, four hosts
    await asyncio.sleep(1.0)
    assert not any(is_bound(pod) for pod in (await volcano.api.get(PODS))["items"])
    await volcano.add_racks([1], hosts=1)

    async def all_bound() -> bool:
        pods = (await volcano.api.get(PODS))["items"]
        return all(is_bound(pod) for pod in pods)

    await until(all_bound)
