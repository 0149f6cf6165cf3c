"""What a device plugin writes to Nodes, with the shipped rights, on real API servers.

::

    NodeObject (token of muster-device-plugin, made for n1) ──► kube-apiserver ──► Node n1
                                                                    │  policy   └─► not n2
                                                                    └─ and nothing but devices
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from support.apiservers.boundtokens import bound_token
from support.devices.gpunodes import gpu, node
from support.extenders.realcluster import JSON, until
from support.machine import quickyaml

from deviceplugin.cluster.nodeobject import PAUSE_S, NodeObject
from deviceplugin.health.reports import CONDITION, Condition
from deviceplugin.model.inventory import Inventory
from deviceplugin.publication import gfd, nodetopology
from deviceplugin.publication.nodepatch import PUBLISHED, NodeMetadata
from loadtest.testbed.client.api import Api, ApiFailed
from loadtest.testbed.controlplane.controlplane import ControlPlane, collection
from muster.kube import names
from muster.kube.changes import Upserted
from muster.kube.client import KubeClient
from muster.kube.http import auth

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

COMPONENT = Path(__file__).parents[3] / "manifests/components/device-plugin"
NODES = "/api/v1/nodes"
EIGHT = node(*map(gpu, range(8)))
WELL = Condition(True, "AllHealthy", "8 of 8 devices are healthy")


def said(inventory: Inventory) -> NodeMetadata:
    text = nodetopology.annotation(inventory, nodetopology.Offered())
    return NodeMetadata(gfd.labels(inventory, gfd.LabelFacts()), {names.NODE_TOPOLOGY: text})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(real_plane: ControlPlane) -> AsyncIterator[Api]:
    """Install the rights and the policy as they are shipped, and make two nodes."""
    files = ("rbac.yaml", "admission.yaml")
    shipped = [obj for file in files for obj in quickyaml.load_all((COMPONENT / file).read_text())]
    async with real_plane.api() as client:
        for obj in shipped:
            await client.create(f"{collection(obj)}?fieldValidation=Strict", obj)
        for name in ("n1", "n2"):
            await client.create(NODES, {"metadata": {"name": name, "labels": {"theirs": "1"}}})
        async with token_of(client, real_plane, "n1") as (own, _):
            await until(lambda: refuses(own, f"{NODES}/n2"))
        yield client
        for name in ("n1", "n2"):
            await client.delete(f"{NODES}/{name}", grace_s=None)
        for obj in reversed(shipped):
            await client.delete(f"{collection(obj)}/{obj['metadata']['name']}", grace_s=None)


async def refuses(own: Api, path: str) -> bool:
    """Return whether the policy is in force: a harmless write is refused by it."""
    try:
        await own.patch(path, {"metadata": {"annotations": {"muster.dev/x": None}}})
    except ApiFailed as error:
        return "its token was made for" in str(error)
    return False


@asynccontextmanager
async def token_of(api: Api, plane: ControlPlane, name: str) -> AsyncIterator[tuple[Api, str]]:
    """Give a client with a token as a pod on node ``name`` has it ("" for none), and the token."""
    token = await bound_token(api, "muster-nodes", "muster-device-plugin", name)
    async with Api(plane.url, token=token, ca=plane.credentials.ca) as own:
        yield own, token


@asynccontextmanager
async def publishing(
    api: Api, plane: ControlPlane, folder: Path, name: str = "n1", pod_on: str = "n1"
) -> AsyncIterator[NodeObject]:
    """Run a NodeObject with the token of the plugin's pod on ``pod_on``, for the node ``name``."""
    async with token_of(api, plane, pod_on) as (_, token):
        config = quickyaml.load(plane.kubeconfig("observer").read_text())
        config["users"][0]["user"] = {"token": token}
        path = folder / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        async with KubeClient(auth.load(path)) as client:
            object_ = NodeObject(client, name)
            running = asyncio.create_task(object_.run())
            try:
                yield object_
            finally:
                running.cancel()
                await asyncio.wait([running])


@asynccontextmanager
async def fresh_node(api: Api, name: str) -> AsyncIterator[str]:
    await api.create(NODES, {"metadata": {"name": name}})
    try:
        yield name
    finally:
        await api.delete(f"{NODES}/{name}", grace_s=None)


async def labels(api: Api) -> dict[str, str]:
    found = (await api.get(f"{NODES}/n1"))["metadata"]["labels"]
    return {key: value for key, value in found.items() if not key.startswith("kubernetes.io/")}


async def condition(api: Api, of: str = "n1") -> JSON:
    found = (await api.get(f"{NODES}/{of}")).get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == CONDITION), {})


async def test_a_node_says_what_its_devices_are_once_and_again_when_it_was_meddled_with(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with publishing(api, real_plane, tmp_path) as object_:
        object_.want(said(EIGHT), WELL)
        await until(lambda: _says(api, "nvidia.com/gpu.count", "8"))
        await until(lambda: _has_condition(api, "True"))
        meta = (await api.get(f"{NODES}/n1"))["metadata"]
        assert len(json.loads(meta["annotations"][names.NODE_TOPOLOGY])["devices"]) == 8
        writes = object_.writes
        object_.want(said(EIGHT), WELL)
        await api.patch(f"{NODES}/n1", {"metadata": {"labels": {"theirs": "2"}}})
        await until(lambda: _says(api, "theirs", "2"))
        assert object_.writes == writes == 2
        await api.patch(f"{NODES}/n1", {"metadata": {"labels": {"nvidia.com/gpu.count": "5"}}})
        await until(lambda: _says(api, "nvidia.com/gpu.count", "8"))
        assert object_.problem is None


async def test_a_successor_takes_away_what_is_no_longer_true(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with publishing(api, real_plane, tmp_path) as first:
        first.want(said(EIGHT), WELL)
        await until(lambda: _says(api, "nvidia.com/gpu.count", "8"))
    async with publishing(api, real_plane, tmp_path) as second:
        second.want(NodeMetadata({}, {names.NODE_TOPOLOGY: ""}), Condition(None, "NoDevices", ""))
        await until(lambda: _says(api, "nvidia.com/gpu.count", None))
        await until(lambda: _has_condition(api, "Unknown"))
    assert (await labels(api)).keys() == {"theirs"}
    annotations = (await api.get(f"{NODES}/n1"))["metadata"].get("annotations", {})
    assert not {PUBLISHED, names.NODE_TOPOLOGY} & annotations.keys()


async def test_a_transition_has_its_time_and_a_new_message_has_not(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with (
        fresh_node(api, "n4") as name,
        publishing(api, real_plane, tmp_path, name, pod_on=name) as object_,
    ):
        object_.now = lambda: 1_700_000_000.0
        object_.want(NodeMetadata(), WELL)
        await until(lambda: _has_condition(api, "True", name))
        object_.now = lambda: 1_700_000_100.0
        object_.want(NodeMetadata(), Condition(True, "AllHealthy", "7 of 7"))
        await until(lambda: _has_message(api, "7 of 7", name))
        assert (await condition(api, name))["lastTransitionTime"] == "2023-11-14T22:13:20Z"
        object_.want(NodeMetadata(), Condition(False, "DeviceUnhealthy", "GPU-1: XID 79"))
        await until(lambda: _has_condition(api, "False", name))
        assert (await condition(api, name))["lastTransitionTime"] == "2023-11-14T22:15:00Z"


async def test_a_late_watch_has_nothing_said_twice(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with (
        fresh_node(api, "n5") as name,
        publishing(api, real_plane, tmp_path, name, pod_on=name) as object_,
    ):
        await until(lambda: _is(str(object_.node is not None), "True"))
        before = object_.node
        assert before is not None
        object_.want(NodeMetadata(), WELL)
        await until(lambda: _has_condition(api, "True", name))
        await until(lambda: _is(str(object_.node is not before), "True"))
        object_._node_changed([Upserted(before)])
        await asyncio.sleep(2 * PAUSE_S)
        assert object_.writes == 1
        object_.want(NodeMetadata(), Condition(False, "DeviceUnhealthy", "GPU-1: XID 79"))
        await api.patch(f"{NODES}/{name}", {"metadata": {"labels": {"theirs": "3"}}})
        await until(lambda: _has_condition(api, "False", name))
        assert object_.writes == 2


async def test_another_node_is_refused_and_the_plugin_says_why(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with publishing(api, real_plane, tmp_path, name="n2") as object_:
        object_.want(said(EIGHT), WELL)
        await until(lambda: _is(object_.problem or "", "its token was made for, n1; not to n2"))
    assert (await api.get(f"{NODES}/n2"))["metadata"].get("annotations", {}) == {}


async def test_a_node_that_is_not_there_is_named(
    api: Api, real_plane: ControlPlane, tmp_path: Path
) -> None:
    async with publishing(api, real_plane, tmp_path, name="n3") as object_:
        object_.want(said(EIGHT), WELL)
        await until(lambda: _is(object_.problem or "", "there is no Node n3"))


FORBIDDEN: list[tuple[str, JSON, str]] = [
    ("", {"spec": {"unschedulable": True}}, "no node's spec"),
    ("", {"metadata": {"labels": {"node-role.kubernetes.io/x": ""}}}, "metadata.labels"),
    ("", {"metadata": {"labels": {"theirs": None}}}, "metadata.labels"),
    ("", {"metadata": {"annotations": {"volumes.kubernetes.io/x": "1"}}}, "metadata.annotations"),
    ("", {"metadata": {"finalizers": ["example.com/stuck"]}}, "finalizers"),
    ("/status", {"status": {"capacity": {"nvidia.com/gpu": "99"}}}, "the rest is the kubelet's"),
    ("/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
     "MusterDevicesHealthy and nothing else"),
]  # fmt: skip


# A value for every field of a Node's status but its conditions.
STATUS: dict[str, object] = {
    "capacity": {"nvidia.com/gpu": "99"},
    "allocatable": {"nvidia.com/gpu": "99"},
    "phase": "Running",
    "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 4443}},
    "nodeInfo": {"machineID": "m"},
    "images": [{"names": ["example.com/pause"], "sizeBytes": 1}],
    "volumesInUse": ["kubernetes.io/csi/x"],
    "volumesAttached": [{"name": "kubernetes.io/csi/x", "devicePath": ""}],
    "config": {"error": "broken"},
    "runtimeHandlers": [{"name": "kata"}],
    "features": {"supplementalGroupsPolicy": True},
    "declaredFeatures": ["Whatever"],
}


async def test_of_its_status_a_plugin_writes_its_condition_and_no_field_besides(
    api: Api, real_plane: ControlPlane
) -> None:
    document = await api.get("/openapi/v3/api/v1")
    known = document["components"]["schemas"]["io.k8s.api.core.v1.NodeStatus"]["properties"]
    fields = known.keys() - {"conditions"}
    assert fields <= STATUS.keys()  # a new one needs a value here
    before, refused = (await api.get(f"{NODES}/n1"))["status"], set[str]()
    async with token_of(api, real_plane, "n1") as (own, _):
        for field in sorted(fields):
            said = ""
            try:
                await own.patch(f"{NODES}/n1/status", {"status": {field: STATUS[field]}})
            except ApiFailed as error:
                said = str(error)
            if "MusterDevicesHealthy and nothing else" in said:
                refused.add(field)
    after = (await api.get(f"{NODES}/n1"))["status"]
    assert {f: after.get(f) for f in fields} == {f: before.get(f) for f in fields}
    # The server itself takes no notice of these while their features are off.
    assert refused >= fields - {"config", "features", "declaredFeatures"}


def event(**fields: object) -> JSON:
    """Return an Event as the plugin writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": "device-", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Look",
        "reason": "DeviceUnhealthy",
        "note": "looked at",
        "type": "Warning",
        "reportingController": "muster.dev/device-plugin",
        "reportingInstance": "n1",
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        **fields,
    }


EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
IN_POD = {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "p"}


async def test_a_plugin_writes_events_in_its_own_name_alone(
    api: Api, real_plane: ControlPlane
) -> None:
    async with token_of(api, real_plane, "n1") as (own, _):
        await own.create(EVENTS, event())
        await own.create(EVENTS, event(regarding=IN_POD))
        for name, fields in {
            "reportingController": {"reportingController": "muster.dev/extender"},
            "with the node that its token": {"reportingInstance": "n2"},
            "on the node that its token": {"regarding": {"kind": "Node", "name": "n2"}},
            "on pods": {"regarding": {"kind": "Deployment", "namespace": "default", "name": "d"}},
        }.items():
            with pytest.raises(ApiFailed, match=name):
                await own.create(EVENTS, event(**fields))


@pytest.mark.parametrize(("subresource", "body", "said_why"), FORBIDDEN)
async def test_a_plugin_writes_nothing_but_what_it_publishes(
    api: Api, real_plane: ControlPlane, subresource: str, body: JSON, said_why: str
) -> None:
    async with token_of(api, real_plane, "n1") as (own, _):
        with pytest.raises(ApiFailed, match=said_why):
            await own.patch(f"{NODES}/n1{subresource}", body)


async def test_a_token_that_names_no_node_may_write_to_none(
    api: Api, real_plane: ControlPlane
) -> None:
    async with token_of(api, real_plane, "") as (own, _):
        with pytest.raises(ApiFailed, match="this token names none"):
            await own.patch(f"{NODES}/n1", {"metadata": {"annotations": {"muster.dev/x": "1"}}})


@pytest.mark.parametrize("path", ["/api/v1/secrets", "/api/v1/configmaps", f"{NODES}/n1"])
async def test_a_plugin_reads_nothing_else(api: Api, real_plane: ControlPlane, path: str) -> None:
    async with token_of(api, real_plane, "n1") as (own, _):
        with pytest.raises(ApiFailed, match="403"):
            await own.get(path)


async def _says(api: Api, key: str, value: str | None) -> bool:
    return (await labels(api)).get(key) == value


async def _has_condition(api: Api, status: str, of: str = "n1") -> bool:
    return (await condition(api, of)).get("status") == status


async def _has_message(api: Api, message: str, of: str = "n1") -> bool:
    return (await condition(api, of)).get("message") == message


async def _is(text: str, part: str) -> bool:
    return part in text
