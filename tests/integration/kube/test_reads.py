"""What `kube` reads of a real API server, as whom, and the Events that it writes."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml
from support.machine import quickyaml
from support.machine.patience import PATIENCE_S
from support.pods.kubepods import OTHER_UID, make_pod

from loadtest.testbed.controlplane.controlplane import ControlPlane
from muster.kube.client import KubeClient
from muster.kube.errors import AlreadyExists, Conflict, Forbidden, NotSent
from muster.kube.errors import VersionExpired as VersionGone
from muster.kube.http import auth
from muster.kube.http.transport import HttpRequest, Transport
from muster.kube.resources import NAMESPACES, PODS
from muster.kube.writing.events import EVENTS, EventRecorder, Regarding

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

# -- reading -------------------------------------------------------------------------------------


async def etcd_lists(client: KubeClient, plural: str) -> float:
    text = (await client._transport.send(HttpRequest("GET", "/metrics"))).decode()
    prefix = "etcd_request_duration_seconds_count{"
    lines = [line for line in text.splitlines() if line.startswith(prefix)]
    wanted = [x for x in lines if 'operation="list"' in x and f'resource="{plural}"' in x]
    return sum(float(line.rpartition(" ")[2]) for line in wanted)


async def test_a_paged_list_is_consistent_and_never_read_from_etcd(client: KubeClient) -> None:
    made = {(await make_pod(client)).metadata.name for _ in range(12)}
    await client.list(PODS)
    before = await etcd_lists(client, "pods")
    pages = [page async for page in client.pages(PODS, limit=5)]
    assert len(pages) > 2
    assert len({page.meta.resource_version for page in pages}) == 1
    assert made <= {pod.metadata.name for page in pages for pod in page.items}
    assert await etcd_lists(client, "pods") == before


async def test_limit_is_ignored_with_resource_version_zero(client: KubeClient) -> None:
    for _ in range(3):
        await make_pod(client)
    request = HttpRequest("GET", PODS.path(), {"limit": "1", "resourceVersion": "0"})
    page = client.codec(PODS).page(await client._transport.send(request))
    assert len(page.items) > 1
    assert page.meta.next_page == ""


async def test_a_list_that_outlives_its_version_is_read_again_in_one_piece(
    client: KubeClient,
) -> None:
    for _ in range(4):
        await make_pod(client)
    pages = client.pages(PODS, limit=2)
    first = await anext(pages)
    query = {"limit": "2", "continue": first.meta.next_page}
    async with asyncio.timeout(PATIENCE_S):  # compaction comes every second, see the fixture
        while await _served(client, HttpRequest("GET", PODS.path(), query)):
            await make_pod(client)
            await asyncio.sleep(0.2)
    second = await anext(pages)
    assert second.anew
    assert {pod.metadata.uid for pod in first.items} <= {p.metadata.uid for p in second.items}
    assert second.meta.next_page == ""
    with pytest.raises(StopAsyncIteration):
        await anext(pages)


async def _served(client: KubeClient, request: HttpRequest) -> bool:
    try:
        await client._transport.send(request)
    except VersionGone as error:
        return error.status.reason != "Expired"
    return True


async def test_a_label_selector_narrows_a_list(client: KubeClient) -> None:
    pod = await make_pod(client)
    await client.patch(
        PODS, pod.metadata.name, {"metadata": {"labels": {"only": "me"}}}, namespace="default"
    )
    found = await client.list(PODS, namespace="default", labelSelector="only=me")
    assert [one.metadata.uid for one in found] == [pod.metadata.uid]


async def test_errors_have_their_classes(client: KubeClient, plane: ControlPlane) -> None:
    pod = await make_pod(client)
    spec = {"containers": [{"name": "main", "image": "none"}]}
    body = {"metadata": {"name": pod.metadata.name}, "spec": spec}
    with pytest.raises(AlreadyExists):
        await client.create(PODS, body, namespace="default")
    with pytest.raises(Conflict):
        await client.delete(PODS, pod.metadata.name, namespace="default", uid=OTHER_UID)
    async with KubeClient(auth.load(plane.kubeconfig("user"))) as weak:
        with pytest.raises(Forbidden, match="cannot list resource"):
            await weak.list(NAMESPACES)


# -- identity ------------------------------------------------------------------------------------


def _user(plane: ControlPlane, directory: Path, user: dict[str, object]) -> Path:
    config = quickyaml.load(plane.kubeconfig("observer").read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": user}]
    path = directory / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


async def test_a_token_file_is_read_again_after_a_401(plane: ControlPlane, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(plane.credentials.tokens["observer"])
    path = _user(plane, tmp_path, {"tokenFile": str(token)})
    identity = auth.load(path)
    async with KubeClient(identity) as client:
        first = await identity.current()
        stale = auth.FixedSource(auth.Credentials(first.server, first.tls, "Bearer stale"))
        source, identity._source = identity._source, stale
        await identity.renew(first)
        identity._source = source  # the present token is stale, the file has a good one
        assert await client.list(NAMESPACES)


async def test_an_exec_plugin_gives_the_token(plane: ControlPlane, tmp_path: Path) -> None:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"token": plane.credentials.tokens["observer"]},
    }
    (tmp_path / "answer.json").write_text(json.dumps(answer))
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(tmp_path / "answer.json")],
        "interactiveMode": "Never",
    }
    async with KubeClient(auth.load(_user(plane, tmp_path, {"exec": plugin}))) as client:
        assert await client.list(NAMESPACES)


async def test_no_connection_is_told_apart_from_no_answer() -> None:
    nowhere = auth.fixed("http://127.0.0.1:1")
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    transport = Transport(nowhere, sleep=sleep)
    async with KubeClient(nowhere, transport=transport) as client:
        with pytest.raises(NotSent, match="ConnectionRefusedError"):
            await client.create(PODS, b"{}", namespace="default")
        with pytest.raises(NotSent, match="ClientConnectorError"):
            await client.get(PODS, "p", namespace="default")
    assert len(waits) == 8


# -- Events --------------------------------------------------------------------------------------


async def test_repeated_events_become_a_series(client: KubeClient) -> None:
    pod = await make_pod(client)
    now = [1_800_000_000.0]
    recorder = EventRecorder(
        client,
        controller="muster.dev/extender",
        instance="test",
        clock=lambda: now[0],
        steady=lambda: now[0],
    )
    about = Regarding.pod("default", pod.metadata.name, pod.metadata.uid)
    for _ in range(3):
        recorder.record(about, "GangWaiting", "0/12 racks fit", action="Planning")
        await recorder.flush()
    now[0] += 31
    await recorder.flush()
    assert recorder.failed == 0
    request = HttpRequest("GET", EVENTS.path(namespace="default"))
    items = json.loads(await client._transport.send(request))["items"]
    mine = [item for item in items if item["regarding"].get("uid") == pod.metadata.uid]
    assert [(item["reason"], item["series"]["count"]) for item in mine] == [("GangWaiting", 3)]
