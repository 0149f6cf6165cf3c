"""Lists in protobuf say what lists in JSON say, field by field, of objects that have every field.

::

    API server ──JSON──────► wire structs ─┐
               ──protobuf──► wire structs ─┴─► equal
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest
import pytest_asyncio

from loadtest.testbed.client.api import MERGE_PATCH, Api, ApiFailed
from loadtest.testbed.standins.simulated import Plane, SimulatedPlane
from muster.kube import wire
from muster.kube.client import KubeClient
from muster.kube.firstlist.decoders import COLUMNS, LISTED_PODS
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.http import auth
from muster.kube.resources import NODES, PODS, Resource

pytestmark = pytest.mark.asyncio(loop_scope="session")

JSON = dict[str, Any]
SELECTOR = {
    "matchLabels": {"app": "web"},
    "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
}
TERM = {
    "labelSelector": SELECTOR,
    "topologyKey": "kubernetes.io/hostname",
    "namespaces": ["default"],
    "namespaceSelector": {"matchLabels": {"team": "x"}},
    "matchLabelKeys": ["pod-template-hash"],
    "mismatchLabelKeys": ["other"],
}
NODE_TERM = {
    "matchExpressions": [{"key": "gpu", "operator": "Exists"}],
    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
CONTAINER = {
    "name": "main",
    "image": "example.com/image:1",
    "ports": [
        {"name": "web", "containerPort": 8080, "hostPort": 8080, "hostIP": "10.0.0.1"},
        {"containerPort": 53, "protocol": "UDP"},
    ],
    "resources": {
        "requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"},
        "limits": {"cpu": "2", "memory": "2Gi", "example.com/gpu": "2"},
        "claims": [{"name": "device"}],
    },
}
SPEC = {
    "schedulerName": "mine",
    "containers": [CONTAINER],
    "initContainers": [{"name": "side", "image": "example.com/side:1", "restartPolicy": "Always"}],
    "nodeSelector": {"zone": "z"},
    "affinity": {
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [NODE_TERM]},
            PREFERRED: [{"weight": 7, "preference": NODE_TERM}],
        },
        "podAffinity": {REQUIRED: [TERM]},
        "podAntiAffinity": {REQUIRED: [TERM]},
    },
    "tolerations": [
        {"key": "a", "value": "b", "effect": "NoExecute", "tolerationSeconds": 0},
        {"key": "c", "operator": "Exists"},
    ],
    "topologySpreadConstraints": [
        {
            "maxSkew": 2,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": SELECTOR,
            "minDomains": 3,
            "nodeAffinityPolicy": "Ignore",
            "nodeTaintsPolicy": "Honor",
            "matchLabelKeys": ["pod-template-hash"],
        }
    ],
    "volumes": [
        {"name": "claim", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        {"name": "disk", "gcePersistentDisk": {"pdName": "d"}},
        {"name": "store", "awsElasticBlockStore": {"volumeID": "v"}},
        {
            "name": "scsi",
            "iscsi": {"targetPortal": "10.0.0.2:3260", "iqn": "iqn.2001-04.com.example:a"},
        },
        {"name": "rbd", "rbd": {"monitors": ["10.0.0.3"], "image": "i"}},
        {
            "name": "own",
            "ephemeral": {
                "volumeClaimTemplate": {
                    "spec": {
                        "accessModes": ["ReadWriteOnce"],
                        "resources": {"requests": {"storage": "1Gi"}},
                    }
                }
            },
        },
        {"name": "empty", "emptyDir": {}},
    ],
    "resourceClaims": [{"name": "device", "resourceClaimName": "a-device"}],
    "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}},
    "hostNetwork": True,
    "restartPolicy": "Never",
    "activeDeadlineSeconds": 86400,
    "terminationGracePeriodSeconds": 90,
    "priorityClassName": "t-low",
    "runtimeClassName": "t-heavy",
}
STATUS = {
    "phase": "Running",
    "startTime": "2026-01-02T03:04:05Z",
    "conditions": [
        {"type": "Ready", "status": "True", "reason": "Because", "message": "it is so"},
        {"type": "Other", "status": "False", "lastTransitionTime": None},
    ],
    "containerStatuses": [
        {
            "name": "main",
            "image": "example.com/image:1",
            "imageID": "x",
            "ready": True,
            "restartCount": 3,
            "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}},
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}},
            "allocatedResources": {"cpu": "1"},
        }
    ],
    "initContainerStatuses": [
        {
            "name": "side",
            "image": "example.com/side:1",
            "imageID": "x",
            "ready": False,
            "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-02T03:04:06Z"}},
        }
    ],
}
META = {
    "labels": {"app": "web", "empty": ""},
    "annotations": {"note": "é日本 \n\t\"'"},
    "finalizers": ["example.com/stay"],
    "ownerReferences": [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    ],
}


@pytest_asyncio.fixture(loop_scope="session")
async def clients(plane: Plane) -> AsyncIterator[tuple[KubeClient, KubeClient]]:
    """One that asks for JSON, one that asks for protobuf."""
    identity = auth.load(plane.kubeconfig())
    async with KubeClient(identity) as plain, KubeClient(identity, packed=COLUMNS) as packed:
        yield plain, packed


@pytest_asyncio.fixture(loop_scope="session")
async def rich(plane: Plane, api: Api, pods: str) -> AsyncIterator[str]:
    """The path of pods with all there is; simulated, with what the simulation knows."""
    real = not isinstance(plane, SimulatedPlane)
    if real:
        await classes(api)
    spec = SPEC if real else {"schedulerName": "mine", "containers": [CONTAINER]}
    bound = {**spec, "nodeName": "somewhere"}
    gated = {**spec, "schedulingGates": [{"name": "example.com/gate"}]}
    await api.create(pods, {"metadata": {**META, "name": "bound"}, "spec": bound})
    await api.create(pods, {"metadata": {**META, "generateName": "gated-"}, "spec": gated})
    for n in range(5):
        await api.create(pods, {"metadata": {**META, "name": f"alike-{n}"}, "spec": bound})
    await api.create(pods, {"metadata": {**META, "name": "waiting"}, "spec": spec})
    nominated = {"status": {"nominatedNodeName": "n"}}
    await api.patch(f"{pods}/waiting/status", nominated, kind=MERGE_PATCH)
    await api.patch(f"{pods}/bound/status", {"status": STATUS}, kind=MERGE_PATCH)
    await api.delete(f"{pods}/bound")  # its finalizer keeps it, with the time of its deletion
    yield pods
    for pod in (await api.get(pods))["items"]:
        path = f"{pods}/{pod['metadata']['name']}"
        await api.patch(path, {"metadata": {"finalizers": None}}, kind=MERGE_PATCH)
        with suppress(ApiFailed):  # the deleted one goes with its finalizer
            await api.delete(path)


async def classes(api: Api) -> None:
    """Create what pods get their priority and overhead from; once for all tests."""
    low = {"metadata": {"name": "t-low"}, "value": -7, "preemptionPolicy": "Never"}
    overhead = {"podFixed": {"cpu": "250m", "memory": "64Mi"}}
    heavy = {"metadata": {"name": "t-heavy"}, "handler": "heavy", "overhead": overhead}
    with suppress(ApiFailed):
        await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", low)
        await api.create("/apis/node.k8s.io/v1/runtimeclasses", heavy)


async def pages(
    client: KubeClient, resource: Resource[Any], namespace: str | None = None
) -> list[Sequence[Any]]:
    listed = client.pages(resource, namespace=namespace, limit=3)
    return [page.items async for page in listed if not page.problems]


def fields_of(struct: type[msgspec.Struct]) -> Iterator[str]:
    """Yield the fields of a struct, and of those in it, each with its struct."""
    for field in msgspec.structs.fields(struct):
        yield f"{struct.__name__}.{field.name}"
        for one in (field.type, *get_args(field.type)):
            if isinstance(one, type) and issubclass(one, msgspec.Struct):
                yield from fields_of(one)


def told(value: object) -> Iterator[str]:
    """Yield the fields that are not as if they were absent."""
    if not isinstance(value, msgspec.Struct):
        return
    for field in msgspec.structs.fields(value):
        found = getattr(value, field.name)
        if found not in ({}, field.default):
            yield f"{type(value).__name__}.{field.name}"
        for inner in found if isinstance(found, tuple) else (found,):
            yield from told(inner)


def host(name: str, number: int) -> JSON:
    """Return a host of a make: behind what is read of it, it is as no other."""
    heartbeat = f"2026-01-02T03:04:{number:02d}Z"
    labels = {"zone": f"z{number % 2}", "host": name, "gpu": "a100"}
    return {
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"ttl": "0", "example.com/address": f"10.0.0.{number:03d}"},
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"example:///{name}"},
        "status": {
            "capacity": {"cpu": "192", "memory": "2Ti"},
            "allocatable": {"cpu": "192", "memory": f"{2000 + number}Gi", "example.com/gpu": "8"},
            "conditions": [
                {"type": kind, "status": said, "reason": "R", "lastHeartbeatTime": heartbeat}
                for kind, said in (("DiskPressure", "False"), ("Ready", "True"))
            ],
            "addresses": [{"type": "InternalIP", "address": f"10.0.0.{number}"}],
            "images": [
                {"names": [f"example.com/{'x' * n}"], "sizeBytes": n} for n in range(number % 7)
            ],
        },
    }


async def test_hosts_of_one_make_are_read_together_and_are_what_json_says_of_them(
    clients: tuple[KubeClient, KubeClient], api: Api, namespace: str
) -> None:
    hosts = [host(f"{namespace}-{n:02d}", n) for n in range(40)]
    for one in hosts:
        await api.create("/api/v1/nodes", one)
    try:
        plain, packed = clients
        expected = [n async for page in plain.pages(NODES) for n in page.items]
        found = [n async for page in packed.pages(NODES) for n in page.items]
    finally:
        for one in hosts:
            await api.delete(f"/api/v1/nodes/{one['metadata']['name']}")
    assert found == expected
    ours = [node for node in found if node.metadata.name.startswith(f"{namespace}-")]
    assert len(ours) == len(hosts)
    by_digits: dict[int, list[wire.Node]] = {}  # a version that is longer is another make
    for node in ours:
        by_digits.setdefault(len(node.metadata.resource_version), []).append(node)
    alike = max(by_digits.values(), key=len)
    assert len(alike) >= len(ours) // 2
    assert len({id(node.spec) for node in alike}) == 1


@pytest.mark.usefixtures("rich")
async def test_pods_in_protobuf_are_the_pods(
    clients: tuple[KubeClient, KubeClient], namespace: str
) -> None:
    plain, packed = clients
    expected = [pod for page in await pages(plain, PODS, namespace) for pod in page]
    found = await pages(packed, LISTED_PODS, namespace)
    assert all(isinstance(page, PackedPage) for page in found)
    assert [page.pod(place) for page in found for place in range(len(page))] == expected
    assert len(expected) == 8


@pytest.mark.usefixtures("rich")
async def test_every_field_that_muster_reads_is_in_the_comparison(
    plane: Plane, clients: tuple[KubeClient, KubeClient], namespace: str
) -> None:
    """``workloadRef`` and ``schedulingGroup`` are behind gates that are off by default."""
    if isinstance(plane, SimulatedPlane):
        pytest.skip("the simulated server does not keep every field")
    found = await pages(clients[1], LISTED_PODS, namespace)
    assert all(isinstance(page, PackedPage) for page in found)
    seen = {one for page in found for n in range(len(page)) for one in told(page.pod(n))}
    gated = ("PodSpec.scheduling_group", "PodSpec.workload_ref", "SchedulingGroup.", "WorkloadRef")
    missing = sorted(set(fields_of(wire.Pod)) - seen)
    assert [one for one in missing if not one.startswith(gated)] == []


async def test_alike_pods_are_of_one_kind_and_their_own_is_told(
    clients: tuple[KubeClient, KubeClient], rich: str, namespace: str, api: Api
) -> None:
    items = (await api.get(rich))["items"]
    whole = [page async for page in clients[1].pages(LISTED_PODS, namespace=namespace)]
    (page,) = (one.items for one in whole)
    assert isinstance(page, PackedPage)
    assert page.leaders.tolist() == [0, 5, 6, 7]  # alike-0 to alike-4, bound, gated-…, waiting
    assert list(page.nodes()) == [item["spec"].get("nodeName", "") for item in items]
    uids = [item["metadata"]["uid"].replace("-", "") for item in items]
    assert [uid.hex() for uid in page.uids()] == uids
    expected = [page.pod(place).metadata.creation_timestamp for place in range(len(page))]
    assert page.created().tolist() == [time.timestamp() for time in expected if time]
    started = page.pod(5).status.start_time
    assert started is not None
    assert page.started().tolist() == [0.0] * 5 + [started.timestamp(), 0.0, 0.0]


async def test_nodes_in_protobuf_are_the_nodes(
    clients: tuple[KubeClient, KubeClient], api: Api, namespace: str
) -> None:
    names = [f"{namespace}-{n}" for n in range(5)]
    taints = [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]
    for name in names:
        labels = {"zone": "z", "host": name}
        await api.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": labels, "annotations": {"a": "b"}},
                "spec": {"unschedulable": True, "taints": taints},
                "status": {
                    "allocatable": {"cpu": "192", "memory": "2Ti", "example.com/gpu": "8"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            },
        )
    try:
        plain, packed = clients
        expected: list[wire.Node] = [n for page in await pages(plain, NODES) for n in page]
        assert [node for page in await pages(packed, NODES) for node in page] == expected
        mine = [node for node in expected if node.metadata.name in names]
        assert len(mine) == 5
        assert all(node.spec.unschedulable and node.spec.taints for node in mine)
    finally:
        for name in names:
            await api.delete(f"/api/v1/nodes/{name}")
