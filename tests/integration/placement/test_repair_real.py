"""Plans that break, and gangs that lack nodes, on the real control plane.

::

    zone z ── block b ─┬─ r0 ── r0-h00 …      hosts of 8 GPUs
                       └─ r1 ── r1-h00 …
"""

from collections.abc import Callable

import pytest
from support.extenders.realcluster import (
    PODS,
    Cluster,
    cluster,
    explained,
    is_released,
    racks,
    recreate,
    reported,
    until,
)

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, ApiFailed
from loadtest.testbed.client.nodes import GPU
from loadtest.testbed.controlplane.controlplane import CONTROLLERS, SCHEDULER, ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

DRIVER = "disks.example.com"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CSI_NODES = "/apis/storage.k8s.io/v1/csinodes"


# The Job controller puts new pods off after pods that failed, for 10 s doubled with each
# (pkg/controller/job/backoff_utils.go): 40 s after three that fail at once.
PUT_OFF_S = 180.0


async def exists(fleet: Cluster, name: str) -> bool:
    try:
        await fleet.api.get(f"{PODS}/{name}")
    except ApiFailed as error:
        assert error.code == 404, error  # noqa: PT017 - anything else is no answer
        return False
    return True


# --- refused by kube-scheduler's own filters ----------------------------------------------


async def disk(fleet: Cluster, full: list[str]) -> JSON:
    """Create a bound disk whose driver attaches no more to the nodes ``full``."""
    access, size = ["ReadWriteMany"], {"storage": "1Gi"}
    claim = {
        "metadata": {
            "name": "data",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": access, "storageClassName": "", "volumeName": "disk",
            "resources": {"requests": size},
        },
    }  # fmt: skip
    made = await fleet.api.create(CLAIMS, claim)
    await fleet.api.patch(f"{CLAIMS}/data/status", {"status": {"phase": "Bound"}})
    reference = {"namespace": "default", "name": "data", "uid": made["metadata"]["uid"]}
    volume = {
        "metadata": {"name": "disk"},
        "spec": {
            "accessModes": access, "capacity": size, "claimRef": reference,
            "csi": {"driver": DRIVER, "volumeHandle": "disk"},
        },
    }  # fmt: skip
    await fleet.api.create(VOLUMES, volume)
    for name in full:
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": 0}}
        await fleet.api.create(
            CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": [driver]}}
        )
    return {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}


async def clear_disks(fleet: Cluster) -> None:
    for path in (CLAIMS, VOLUMES, CSI_NODES):
        items, _ = await fleet.api.list_all(path)
        for item in items:
            own = f"{path}/{item['metadata']['name']}"
            await fleet.api.patch(own, {"metadata": {"finalizers": None}})
            try:
                await fleet.api.delete(own)
            except ApiFailed as error:
                assert error.code == 404, error  # noqa: PT017


async def test_a_member_that_kube_scheduler_refuses_goes_to_another_node_of_its_rack(
    real_plane: ControlPlane,
) -> None:
    """Attach limits are not in the model: only the refusal tells of them."""
    async with cluster(real_plane, refusedAfterSeconds=2) as fleet:
        await fleet.add_racks([0, 1], hosts=4)
        try:
            await disk_gang(fleet)
        finally:
            await clear_disks(fleet)


async def disk_gang(fleet: Cluster) -> None:
    full = [f"r{rack}-h{host:02d}" for rack in (0, 1) for host in (0, 1)]
    volume = await disk(fleet, full)
    gang = pods.Gang("train", 2, required=names.RACK)
    first, second = pods.members(gang, await pods.create_owner(fleet.api, gang))
    first["spec"]["volumes"] = [volume]
    for pod in (first, second):
        await fleet.api.create(PODS, pod)
    await fleet.bound(gang)
    placed = await fleet.placement(gang)
    assert len(racks(placed)) == 1
    assert placed["train-0"] not in full


# --- nodes lost, gangs that cannot be completed -------------------------------------------


async def test_a_gang_that_cannot_be_completed_is_rolled_back_and_goes_whole_elsewhere(
    real_plane: ControlPlane,
) -> None:
    """One of its three nodes goes between plan and bind; its rack has no fourth."""
    async with cluster(
        real_plane, spareCount=0, partialAfterSeconds=1, rollBackAfterSeconds=3
    ) as fleet:
        await fleet.add_racks([0, 1], hosts=3)
        gang = pods.Gang("train", 3, required=names.RACK)
        fleet.plane.program(SCHEDULER).suspend()
        await fleet.submit(gang)
        await fleet.released(gang)
        lost = await pinned_to(fleet, "train-2")
        await lose(fleet, lost)
        fleet.plane.program(SCHEDULER).resume()
        await explained(fleet, lambda: absent(fleet, "train-2"))
        await recreate(fleet, gang, 2)
        await until(lambda: reported(fleet, "GangPartial"))
        await until(lambda: absent(fleet, "train-0", "train-1"))
        await recreate(fleet, gang, 0, 1)
        await fleet.bound(gang)
        assert racks(await fleet.placement(gang)) == {"r0", "r1"} - {lost.partition("-")[0]}


JOBS = "/apis/batch/v1/namespaces/default/jobs"


def forgiving_job(count: int) -> JSON:
    """Return a Job that does not count evicted pods as failed."""
    ignore = {"type": "DisruptionTarget", "status": "True"}
    container = {
        "name": "main",
        "image": "example.com/train",
        "resources": {"limits": {GPU: "8"}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "default",
            "annotations": {names.TOPOLOGY_REQUIRED: names.RACK},
        },
        "spec": {
            "completionMode": "Indexed",
            "parallelism": count,
            "completions": count,
            "backoffLimit": 0,
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onPodConditions": [ignore]}],
            },
            "template": {
                "metadata": {"annotations": {names.TOPOLOGY_REQUIRED: names.RACK}},
                "spec": {
                    "restartPolicy": "Never",
                    "terminationGracePeriodSeconds": 0,
                    "containers": [container],
                },
            },
        },
    }


@pytest.mark.timeout(600)
async def test_the_job_controller_makes_a_gang_anew_that_is_rolled_back(
    real_plane: ControlPlane,
) -> None:
    """Every pod of it is evicted once, and the Job has not failed.

    Kubelets and the pod garbage collector are absent: the test ends deleted pods for them.
    """
    async with cluster(
        real_plane, spareCount=0, partialAfterSeconds=1, rollBackAfterSeconds=8
    ) as fleet:
        await fleet.add_racks([0, 1], hosts=3)
        await fleet.plane.start_controllers("job")
        try:
            fleet.plane.program(SCHEDULER).suspend()
            await fleet.api.create(JOBS, forgiving_job(3))
            await until(lambda: are(fleet, is_released, 3))
            (last,) = [p for p in await fleet.list_pods() if _index(p) == "2"]
            lost = await pinned_to(fleet, last["metadata"]["name"])
            await lose(fleet, lost)
            fleet.plane.program(SCHEDULER).resume()
            (other,) = {"r0", "r1"} - {lost.partition("-")[0]}

            async def moved() -> bool:
                await reap(fleet)
                return await are(fleet, lambda pod: _rack(pod) == other, 3)

            await explained(fleet, moved, PUT_OFF_S)
            job = await fleet.api.get(f"{JOBS}/train")
            assert not job["status"].get("conditions")
        finally:
            await fleet.api.delete(JOBS)
            await fleet.api.delete(PODS)
            await until(lambda: are(fleet, lambda _: True, 0))
            await fleet.plane.stop(CONTROLLERS)


async def reap(fleet: Cluster) -> None:
    """Let deleted pods fail, which is what a Job with a podFailurePolicy waits for."""
    for pod in await fleet.list_pods():
        if "deletionTimestamp" in pod["metadata"] and pod["status"]["phase"] != "Failed":
            path = f"{PODS}/{pod['metadata']['name']}/status"
            await fleet.api.patch(path, {"status": {"phase": "Failed"}})


async def are(fleet: Cluster, which: Callable[[JSON], bool], count: int) -> bool:
    return len([pod for pod in await fleet.list_pods() if which(pod)]) == count


def _index(pod: JSON) -> str:
    return str(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def _rack(pod: JSON) -> str:
    return str(pod["spec"].get("nodeName", "")).partition("-")[0]


async def test_a_lost_member_of_a_running_gang_is_replaced_on_its_rack(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=4)
        gang = pods.Gang("train", 3, preferred=names.RACK)
        await fleet.submit(gang)
        await fleet.bound(gang)
        await fleet.add_racks([1], hosts=4)
        placed = await fleet.placement(gang)
        await fleet.api.delete(f"/api/v1/nodes/{placed['train-1']}")
        await fleet.api.delete(f"{PODS}/train-1")
        await recreate(fleet, gang, 1)
        await fleet.bound(gang)
        again = await fleet.placement(gang)
        assert racks(again) == {"r0"}
        assert again["train-1"] not in placed.values()


async def lose(fleet: Cluster, node: str) -> None:
    """Delete a node and wait until Muster knows.

    Else kube-scheduler, which knows as little, may bind a pod to it before either has heard, and
    only the pod garbage collector would take that away.
    """
    before = (await fleet.muster.get("/v1/status"))["nodes"]
    await fleet.api.delete(f"/api/v1/nodes/{node}")

    async def known() -> bool:
        return bool((await fleet.muster.get("/v1/status"))["nodes"] < before)

    await until(known)


async def absent(fleet: Cluster, *named: str) -> bool:
    return not any([await exists(fleet, name) for name in named])


async def pinned_to(fleet: Cluster, name: str) -> str:
    pod = await fleet.api.get(f"{PODS}/{name}")
    required = pod["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    ((field,),) = (term["matchFields"] for term in required["nodeSelectorTerms"])
    (node,) = field["values"]
    return str(node)
