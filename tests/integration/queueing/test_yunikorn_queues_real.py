"""YuniKorn's ConfigMap on a real API server: with the shipped right, and no more than it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import Api
from loadtest.testbed.controlplane.assets import Minor
from loadtest.testbed.controlplane.controlplane import ControlPlane, Options
from loadtest.testbed.deployment.muster import RBAC

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

JSON = dict[str, Any]
RIGHTS = Path(__file__).parents[3] / "manifests" / "components" / "yunikorn-queues" / "rights.yaml"
CONFIG_MAPS = "/api/v1/namespaces/yunikorn/configmaps"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
EXTENDER = "system:serviceaccount:muster-system:muster-extender"
NAME = "yunikorn-configs"


def _config_map(gpus: int, name: str = NAME) -> JSON:
    text = (
        "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"
        f"    - name: vision\n      resources: {{max: {{nvidia.com/gpu: {gpus}}}}}\n"
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "yunikorn"},
        "data": {"queues.yaml": text},
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def plane(minor: Minor) -> AsyncIterator[ControlPlane]:
    """A control plane with YuniKorn's namespace and the right of the component."""
    async with ControlPlane(Options(minor=minor, rbac=RBAC)) as it:
        async with it.api() as api:
            named = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}}
            await api.create("/api/v1/namespaces", named)
        await it.apply(RIGHTS)
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Four hosts of eight GPUs, and queue vision, which may have one of them."""
    async with plane.api() as api:
        await api.create(CONFIG_MAPS, _config_map(8))
        await api.create(CONFIG_MAPS, _config_map(32, "another"))
    async with cluster(plane, yunikornQueues={"namespace": "yunikorn"}) as it:
        await it.add_racks([0], hosts=4)
        yield it


async def test_a_changed_configmap_changes_the_queues(fleet: Cluster) -> None:
    gang = pods.Gang("wide", 2, labels={"yunikorn.apache.org/queue": "root.vision"})
    await fleet.submit(gang)
    await fleet.stays_unbound(gang)

    await fleet.api.patch(f"{CONFIG_MAPS}/{NAME}", {"data": _config_map(16)["data"]})

    await fleet.bound(gang)

    await fleet.api.delete(f"{CONFIG_MAPS}/{NAME}")

    async def is_gone() -> bool:
        return "root.vision" not in (await fleet.muster.get("/v1/queues"))["text"]

    await until(is_gone)


async def _is_allowed(api: Api, verb: str, name: str, namespace: str = "yunikorn") -> bool:
    asked = {"verb": verb, "resource": "configmaps", "namespace": namespace, "name": name}
    spec = {"user": EXTENDER, "resourceAttributes": asked}
    review = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec
    }  # fmt: skip
    return bool((await api.create(REVIEWS, review))["status"]["allowed"])


async def test_the_right_is_to_list_and_watch_this_one_configmap(plane: ControlPlane) -> None:
    verbs = ("get", "list", "watch", "create", "update", "patch", "delete")
    async with plane.api() as api:
        assert [verb for verb in verbs if await _is_allowed(api, verb, NAME)] == ["list", "watch"]
        for verb in verbs:
            assert not await _is_allowed(api, verb, "another")
            assert not await _is_allowed(api, verb, "")
            assert not await _is_allowed(api, verb, NAME, "default")
