"""Wishes that contradict themselves, on a real etcd, kube-apiserver and kube-scheduler.

::

    zone z ── block b ── r0 ─┬─ r0-h00   8 GPUs
                             └─ r0-h01   8 GPUs
"""

from typing import Any

import pytest
from support.dialects.contradicted import ROWS, Row
from support.extenders.realcluster import EVENTS, PODS, Cluster, cluster, until

from loadtest.testbed.client import pods
from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.nodes import HOST_RESOURCES, create_all, node
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JSON = dict[str, Any]
JOBS = "/apis/batch/v1/namespaces/default/jobs"
IN_JOBS = [row for row in ROWS if row.plural == "jobs" and row.group == "batch"]


def job(row: Row) -> JSON:
    """Return a row's Job as a user would send it."""
    spec = row.body["spec"]
    template = spec["template"] | {"spec": spec["template"]["spec"] | {"restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": spec | {"template": template},
    }


async def test_contradictory_jobs_are_refused_when_they_are_created(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        for row in IN_JOBS:
            with pytest.raises(ApiFailed) as refusal:
                await fleet.api.create(JOBS, job(row))
            for word in row.words:
                assert word in str(refusal.value), row.name
        assert (await fleet.api.get(JOBS))["items"] == []


async def test_what_slipped_past_the_webhook_is_rejected_by_the_planner_in_the_same_words(
    real_plane: ControlPlane,
) -> None:
    row = next(row for row in ROWS if row.name == "kueue group: slice over size")
    keys = row.body["metadata"]["annotations"]
    async with cluster(real_plane, gated=False) as fleet:
        await fleet.add_racks([0], hosts=4)
        made = [pods.pod(f"p-{i}", namespace="default", gpus=8, annotations=keys) for i in range(4)]
        await create_all(fleet.api, PODS, made)

        async def is_told() -> bool:
            return any(all(word in text for word in row.words) for text in await said(fleet))

        await until(is_told)
        assert not any(pod["spec"].get("nodeName") for pod in await fleet.list_pods())


async def said(fleet: Cluster) -> list[str]:
    """Return what Events say of rejected gangs."""
    events = (await fleet.api.get(EVENTS))["items"]
    return [event["note"] for event in events if event["reason"] == "GangRejected"]


async def test_more_than_any_node_has_waits_for_a_node_that_has_it(
    real_plane: ControlPlane,
) -> None:
    async with cluster(real_plane) as fleet:
        await fleet.add_racks([0], hosts=2)
        await fleet.api.create(PODS, pods.pod("big", namespace="default", gpus=16))

        async def is_told() -> bool:
            events = (await fleet.api.get(EVENTS))["items"]
            return any(
                "the largest node has 8: ask for less, or" in e.get("note", "") for e in events
            )

        async def is_bound() -> bool:
            return bool((await fleet.api.get(f"{PODS}/big"))["spec"].get("nodeName"))

        await until(is_told)
        assert not await is_bound()
        resources = HOST_RESOURCES | {"nvidia.com/gpu": "16"}
        labels = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r0"}
        await create_all(fleet.api, "/api/v1/nodes", [node("large", labels, resources)])
        await until(is_bound)
