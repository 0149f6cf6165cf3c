"""An outage of the webhook on a real API server: what came meanwhile is found and told of.

::

    block b ── r0 ─┬─ r0-h00   8 GPUs, rdma/roce_v2        user ──► kube-apiserver ──✗ webhook
                   └─ r0-h01   8 GPUs, rdma/roce_v2                      │
                                                                         └── watch ──► extender
"""

import asyncio
from pathlib import Path

import pytest
import yaml
from support.extenders.realcluster import Cluster, cluster, reported, until
from support.pods.webhookpods import dry_run, gates, pod

from loadtest.testbed.client.nodes import HOST_RESOURCES, create_all, node
from loadtest.testbed.client.pods import Gang
from loadtest.testbed.controlplane.controlplane import ControlPlane

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

PROFILE = {
    "apiVersion": "muster.dev/v1alpha1",
    "kind": "ClusterProfile",
    "metadata": {"name": "default"},
    "spec": {"fabrics": [{"profile": "generic-roce-hostnet"}]},
}


async def test_a_gang_that_came_while_the_webhook_was_down_is_placed_and_reported(
    real_plane: ControlPlane, tmp_path: Path
) -> None:
    file = tmp_path / "cluster.yaml"
    await asyncio.to_thread(file.write_text, yaml.safe_dump(PROFILE))
    given = {"clusterProfile": str(file)}
    async with cluster(real_plane, webhook={"injection": given}, admission=given) as fleet:
        await add_hosts(fleet)
        seen, late = Gang("seen", size=2, gpus=4), Gang("late", size=2, gpus=4)
        await fleet.submit(seen)
        await fleet.bound(seen)
        fleet.muster.webhook.kill()
        await fleet.submit(late)
        await fleet.muster.start(fleet.muster.webhook)

        await fleet.bound(late)
        await until(lambda: reported(fleet, "SlippedPastWebhook"))
        await until(lambda: is_counted(fleet, 2))
        for one in await fleet.list_pods(late):  # nothing was done to them
            assert "env" not in one["spec"]["containers"][0]
            assert "muster.dev/injected" not in one["metadata"].get("annotations", {})
        for one in await fleet.list_pods(seen):
            assert "muster.dev/injected" in one["metadata"]["annotations"]
        assert gates(await dry_run(fleet.api, pod(gpus=1)))


async def is_counted(fleet: Cluster, pods: int) -> bool:
    """Whether `muster status` names that many pods."""
    problems = (await fleet.muster.get("/v1/status"))["problems"]
    return any(line.startswith(f"{pods} pods run without what") for line in problems)


async def add_hosts(fleet: Cluster) -> None:
    labels = {"muster.dev/block": "b", "muster.dev/rack": "r0"}
    room = HOST_RESOURCES | {"rdma/roce_v2": "1k"}
    hosts = [node(f"r0-h0{index}", labels, room) for index in range(2)]
    await create_all(fleet.api, "/api/v1/nodes", hosts)
