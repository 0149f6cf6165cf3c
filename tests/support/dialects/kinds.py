"""Kinds that CustomResourceDefinitions add, as small as an API server takes them.

::

    zone z ── block b ─┬─ rack r1 ── r1-0 r1-1 r1-2     (8 GPUs each)
                       └─ rack r2 ── r2-0 r2-1
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from support.apiservers.apifaults import api_server
from support.extenders.extenders import World, plan_of, running_extender

from extender.config.settings import ExtenderConfig
from loadtest.testbed.client.api import Api
from loadtest.testbed.client.pods import pod
from muster.kube import names
from muster.workloads.managedpods import REWRITTEN, ManagedConfig

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
VOLCANO = "scheduling.volcano.sh/v1beta1"
COSCHEDULING = "scheduling.x-k8s.io/v1alpha1"
KOORDINATOR = "scheduling.sigs.k8s.io/v1alpha1"
KAI = "scheduling.run.ai/v2alpha2"
KINDS = (
    (VOLCANO, "PodGroup"),
    ("batch.volcano.sh/v1alpha1", "Job"),
    (COSCHEDULING, "PodGroup"),
    (KOORDINATOR, "PodGroup"),
    (KAI, "PodGroup"),
    ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    ("scheduling.k8s.io/v1alpha1", "Workload"),
)
RACKS = {"r1": 3, "r2": 2}
PLURALS = {
    "PodGroup": "podgroups",
    "Job": "jobs",
    "Workload": "workloads",
    "LocalQueue": "localqueues",
    "ClusterQueue": "clusterqueues",
    "ResourceFlavor": "resourceflavors",
    "JobSet": "jobsets",
    "MPIJob": "mpijobs",
    "RayCluster": "rayclusters",
    "Queue": "queues",
    "Command": "commands",
    "JobFlow": "jobflows",
    "JobTemplate": "jobtemplates",
    "Numatopology": "numatopologies",
}
CLUSTER_SCOPED = frozenset({"Queue", "Numatopology", "ClusterQueue", "ResourceFlavor"})


async def serve(api: Api, api_version: str, kind: str, *, status: bool = True) -> None:
    """Define a kind without a schema for its objects."""
    await api.create(CRDS, definition(api_version, kind, status=status))


def definition(api_version: str, kind: str, *, status: bool = True) -> JSON:
    """Return the CustomResourceDefinition of a kind without a schema."""
    group, _, version = api_version.partition("/")
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served: JSON = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
    }
    if status:
        served["subresources"] = {"status": {}}
    scope = "Cluster" if kind in CLUSTER_SCOPED else "Namespaced"
    names = {"plural": PLURALS[kind], "kind": kind, "listKind": f"{kind}List"}
    return {
        "metadata": {"name": f"{PLURALS[kind]}.{group}"},
        "spec": {"group": group, "scope": scope, "names": names, "versions": [served]},
    }


def path_of(obj: JSON) -> str:
    """Return the path of an object's collection."""
    return f"/apis/{obj['apiVersion']}/namespaces/default/{PLURALS[obj['kind']]}"


async def create(api: Api, obj: JSON) -> JSON:
    """Create an object in the default namespace."""
    return await api.create(path_of(obj), obj)


def described(api_version: str, kind: str, name: str, spec: JSON, **annotations: str) -> JSON:
    """Return an object; keyword arguments are annotations, ``_`` in them is not translated."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": spec,
    }


@asynccontextmanager
async def cluster_with(
    kinds: Sequence[tuple[str, str]] = KINDS,
    *,
    status: bool = True,
    rewrite: tuple[str, ...] = tuple(REWRITTEN),
) -> AsyncIterator[World]:
    """Run an extender on the nodes drawn above, with these kinds served from the start."""
    managed = ManagedConfig(rewrite=rewrite)
    config = ExtenderConfig(
        debounce_seconds=0.0,
        assembly_window_seconds=0.0,  # so that "settled" means decided
        drain_seconds=2.0,
        spare_count=0,
        managed=managed,
    )
    async with api_server() as (server, url):
        async with Api(url) as api:
            for api_version, kind in kinds:
                await serve(api, api_version, kind, status=status)
        async with running_extender(server, url, config) as running:
            await running.nodes(RACKS)
            yield running


def member(name: str, *, gpus: int = 8, spec: JSON | None = None, **meta: dict[str, str]) -> JSON:
    """Return a pod as the webhook leaves it: gated."""
    made = pod(name, gpus=gpus, **meta)
    gates = [{"name": names.PLAN_GATE}, *(spec or {}).pop("schedulingGates", ())]
    made["spec"] |= {"schedulingGates": gates} | (spec or {})
    return made


async def waits(cluster: World, *pods: str) -> None:
    """Assert that everything was looked at and none of these is released."""
    await cluster.settled()
    for name in pods:
        assert plan_of(await cluster.pod(name)) is None
