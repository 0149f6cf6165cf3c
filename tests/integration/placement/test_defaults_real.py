"""Reserved pods with what the API server's plugins add to them: what a RuntimeClass costs, what a
LimitRange gives to containers that ask for nothing, and the number of a PriorityClass.

::

    block b ── r0 ─┬─ r0-h00   8 GPUs, 192 CPUs    by GPUs two pods of four go on a host,
                   └─ r0-h01   8 GPUs, 192 CPUs    by 100 CPUs more for each one does

The plugins run before the webhook, and once more after it has changed the pod. Then the webhook is
called once more, too.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import count
from typing import Final

import pytest
import pytest_asyncio
from support.extenders.realcluster import Cluster, cluster, is_released, until

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import JSON, Api
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

MORE: Final = {"cpu": "100"}
FABRIC = """
apiVersion: muster.dev/v1alpha1
kind: FabricProfile
metadata: {name: helped}
spec:
  version: "1"
  summary: a sidecar that asks for nothing
  sources: [{what: sidecars, where: kubernetes KEP-753}]
  inject:
    sidecars: [{name: helper, image: example.com/helper, restartPolicy: Always}]
"""
CLUSTER = """
apiVersion: muster.dev/v1alpha1
kind: ClusterProfile
metadata: {name: train-eu}
spec:
  fabrics: [{profile: helped, pods: accelerated, namespaces: [helped]}]
  namespaces:
    given: {runtimeClass: heavy}
    ranked: {priorityClass: first}
"""
OBJECTS: Final[tuple[tuple[str, JSON], ...]] = (
    ("/apis/node.k8s.io/v1/runtimeclasses", {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "heavy",
        "metadata": {"name": "heavy"}, "overhead": {"podFixed": MORE},
    }),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000,
        "metadata": {"name": "first"},
    }),
    *(
        (f"/api/v1/namespaces/{namespace}/limitranges", {
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults"},
            "spec": {"limits": [{"type": "Container", "defaultRequest": MORE}]},
        })
        for namespace in ("limited", "helped")
    ),
)  # fmt: skip
NAMESPACES: Final = ("plain", "limited", "given", "helped", "ranked")
NUMBERS: Final = count()

Change = Callable[[JSON], object]


def as_written(pod: JSON) -> None:
    """Leave a pod as it is."""


def of_class(pod: JSON) -> None:
    """Name a RuntimeClass."""
    pod["spec"]["runtimeClassName"] = "heavy"


def asking_no_cpu(pod: JSON) -> None:
    """Leave the amount of CPUs to the namespace."""
    for amounts in pod["spec"]["containers"][0]["resources"].values():
        amounts.pop("cpu", None)


#: namespace, and what its users write
BEFORE_THE_WEBHOOK = [("plain", of_class), ("limited", asking_no_cpu)]
AFTER_THE_WEBHOOK = [("given", as_written), ("helped", as_written)]


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def fleet(
    real_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Cluster]:
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "fabric.yaml").write_text(FABRIC)
    (folder / "cluster.yaml").write_text(CLUSTER)
    injection = {
        "clusterProfile": str(folder / "cluster.yaml"),
        "fabrics": [str(folder / "fabric.yaml")],
    }
    async with cluster(real_plane, reserves=True, webhook={"injection": injection}) as it:
        for name in NAMESPACES:
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            await it.api.create("/api/v1/namespaces", made)
        for path, made in OBJECTS:
            await it.api.create(path, made)
        await it.add_racks(range(1), hosts=2)
        try:
            yield it
        finally:
            for path, made in OBJECTS:
                await it.api.delete(f"{path}/{made['metadata']['name']}")
            for name in NAMESPACES:
                await it.api.delete(f"/apis/batch/v1/namespaces/{name}/jobs")


async def make(
    fleet: Cluster, namespace: str, size: int, change: Change
) -> tuple[pods.Gang, list[JSON]]:
    """Make the pods of a gang of 4 GPUs each as the Job controller, who answers for nothing.

    A user would lose reservations everywhere after one that came to nothing. Returns them as made.
    """
    gang = pods.Gang(f"g{next(NUMBERS)}", size, gpus=4, namespace=namespace)
    members = [*pods.members(gang, await pods.create_owner(fleet.api, gang))]
    for pod in members:
        change(pod)
    path = f"/api/v1/namespaces/{namespace}/pods"
    owner = fleet.plane.credentials
    token, user = owner.tokens["observer"], "system:serviceaccount:kube-system:job-controller"
    async with Api(fleet.plane.url, token=token, ca=owner.ca, user=user) as controller:
        return gang, await asyncio.gather(*(controller.create(path, pod) for pod in members))


@pytest_asyncio.fixture(loop_scope="session", autouse=True)
async def nothing_is_left(fleet: Cluster) -> AsyncIterator[None]:
    """Let each test find both hosts empty, as the extender sees them."""
    yield
    for namespace in NAMESPACES:
        await fleet.api.delete(f"/api/v1/namespaces/{namespace}/pods")

    async def is_empty() -> bool:
        return json.loads((await fleet.muster.get("/v1/gangs"))["text"]) == []

    await until(is_empty)


@pytest.mark.parametrize(("namespace", "change"), [*BEFORE_THE_WEBHOOK, *AFTER_THE_WEBHOOK])
async def test_a_gang_that_fits_only_without_what_the_api_server_adds_waits_whole(
    fleet: Cluster, namespace: str, change: Change
) -> None:
    gang, made = await make(fleet, namespace, 4, change)
    assert not any(map(is_released, made))
    await fleet.stays_unbound(gang)


@pytest.mark.parametrize(("namespace", "change"), [*BEFORE_THE_WEBHOOK, *AFTER_THE_WEBHOOK])
async def test_a_gang_that_fits_with_what_the_api_server_adds_is_bound(
    fleet: Cluster, namespace: str, change: Change
) -> None:
    gang, _ = await make(fleet, namespace, 2, change)
    await fleet.bound(gang)
    assert len(set((await fleet.placement(gang)).values())) == 2


@pytest.mark.parametrize(("namespace", "change"), BEFORE_THE_WEBHOOK)
async def test_what_is_added_before_the_webhook_is_in_the_reservation(
    fleet: Cluster, namespace: str, change: Change
) -> None:
    gang, made = await make(fleet, namespace, 2, change)
    assert all(map(is_released, made))
    await fleet.bound(gang)


async def test_a_gang_with_a_priority_class_of_its_namespace_is_planned_with_its_number(
    fleet: Cluster,
) -> None:
    """It has none yet when the webhook sees it, so its pods are planned once they are stored."""
    gang, made = await make(fleet, "ranked", 2, as_written)
    assert {pod["spec"]["priority"] for pod in made} == {1000}
    assert not any(map(is_released, made))
    await fleet.bound(gang)
    found = await fleet.muster.get("/v1/gangs")
    known = {row["gang"]: row["priority"] for row in json.loads(found["text"])}
    assert known[f"muster/ranked/{gang.name}"] == 1000
