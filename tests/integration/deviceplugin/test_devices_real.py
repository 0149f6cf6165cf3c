"""Parts of GPUs on a real etcd, kube-apiserver and kube-scheduler.

::

    zone z ─ block b ─ rack r ─┬─ share   2 x A100-80GB, labels of GPU feature discovery
                               └─ cut     2 x A100-40GB by MIG: 3g.20gb 2g.10gb 1g.5gb x2 each
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from support.extenders.realcluster import PODS, Cluster, cluster, until

from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.nodes import create_all, node
from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube import names

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="session")]

JSON = dict[str, Any]
PRODUCT = "nvidia.com/gpu.product"
HALF = {"gpu-fraction": "0.5"}
MIG_3G = "nvidia.com/mig-3g.20gb"


@pytest_asyncio.fixture(loop_scope="session")
async def fleet(real_plane: ControlPlane) -> AsyncIterator[Cluster]:
    """Give a cluster of the two nodes; judged at the end."""
    async with cluster(real_plane) as it:
        labels = {names.ZONE: "z", names.BLOCK: "b", names.RACK: "r"}
        share = node("share", labels | {
            PRODUCT: "NVIDIA-A100-SXM4-80GB",
            "nvidia.com/gpu.count": "2",
            "nvidia.com/gpu.memory": "81920",
        })  # fmt: skip
        cut = node(
            "cut", labels | {PRODUCT: "NVIDIA-A100-SXM4-40GB", "nvidia.com/mig.strategy": "mixed"}
        )
        _offer(share, {"nvidia.com/gpu": "2"})
        _offer(cut, {MIG_3G: "2", "nvidia.com/mig-2g.10gb": "2", "nvidia.com/mig-1g.5gb": "4"})
        await create_all(it.api, "/api/v1/nodes", [share, cut])
        yield it


def _offer(made: JSON, resources: Mapping[str, str]) -> None:
    for field in ("allocatable", "capacity"):
        made["status"][field].pop("nvidia.com/gpu", None)
        made["status"][field] |= resources


def asking(name: str, limits: Mapping[str, str], notes: Mapping[str, str] | None = None) -> JSON:
    """Return a pod of its own that asks for GPUs."""
    resources = {"limits": dict(limits), "requests": dict(limits)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": dict(notes or {})},
        "spec": {"containers": [{"name": "main", "image": "train", "resources": resources}]},
    }


async def bound(fleet: Cluster, *wanted: str) -> dict[str, tuple[str, list[str]]]:
    """Wait until pods are bound; return their nodes and the devices their plans name there."""

    async def all_there() -> bool:
        return set(wanted) <= {p["metadata"]["name"] for p in await _bound_pods(fleet)}

    await until(all_there)
    return {
        pod["metadata"]["name"]: (pod["spec"]["nodeName"], _devices(pod))
        for pod in await _bound_pods(fleet)
    }


async def _bound_pods(fleet: Cluster) -> list[JSON]:
    return [pod for pod in await fleet.list_pods() if pod["spec"].get("nodeName")]


def _devices(pod: JSON) -> list[str]:
    reported = json.loads(pod["metadata"]["annotations"][names.PLAN])
    found: list[str] = reported["devices"][pod["spec"]["nodeName"]]
    return found


async def test_parts_of_gpus_are_planned_named_and_kept_over_a_restart(fleet: Cluster) -> None:
    first = [asking("half-a", {}, HALF), asking("big", {MIG_3G: "1"})]
    await create_all(fleet.api, PODS, first)
    before = await bound(fleet, "half-a", "big")
    assert before["half-a"] == ("share", ["nvidia-0"])
    assert before["big"][0] == "cut"
    assert before["big"][1][0].startswith("nvidia-mig-0/3g.20gb@")
    fleet.muster.extender.kill()
    await fleet.muster.start(fleet.muster.extender)
    # The other half goes beside the first one, the whole GPU to the other device, the second
    # 3g to the other card; nothing of what is left could hold another half.
    later = [
        asking("half-b", {}, HALF),
        asking("whole", {"nvidia.com/gpu": "1"}),
        asking("big-b", {MIG_3G: "1"}),
    ]
    for pod in later:
        await fleet.api.create(PODS, pod)
        await bound(fleet, pod["metadata"]["name"])
    after = await bound(fleet, "half-b", "whole", "big-b")
    assert {name: after[name] for name in before} == before
    assert after["half-b"] == ("share", ["nvidia-0"])
    assert after["whole"] == ("share", ["nvidia-1"])
    assert after["big-b"][1][0].startswith("nvidia-mig-1/3g.20gb@")
    await fleet.api.create(PODS, asking("half-c", {}, HALF))
    await _stays_unbound(fleet, "half-c")
    await fleet.api.delete(f"{PODS}/half-a")
    after = await bound(fleet, "half-c")
    assert after["half-c"] == ("share", ["nvidia-0"])


async def _stays_unbound(fleet: Cluster, name: str) -> None:
    await asyncio.sleep(1.0)
    assert name not in {pod["metadata"]["name"] for pod in await _bound_pods(fleet)}


async def test_asks_that_contradict_themselves_are_refused_at_the_door(fleet: Cluster) -> None:
    two_vendors = asking("two", {"nvidia.com/gpu": "1", "amd.com/gpu": "1"})
    with pytest.raises(ApiFailed, match="several vendors"):
        await fleet.api.create(PODS, two_vendors)
    with pytest.raises(ApiFailed, match="no share of one device"):
        await fleet.api.create(PODS, asking("much", {}, {"gpu-fraction": "1.5"}))
