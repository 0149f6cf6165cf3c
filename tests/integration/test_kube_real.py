"""What kube/ believes about the API server, asked of a real one.

::

    test ──► KubeClient, ListWatch, EventRecorder ──► kube-apiserver ──► etcd
             (users: observer, user)                  (started for this module)
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from cluster.events import PlanNote
from kube import auth
from kube.changes import Change, Gone, NotServed, Synced, Upserted
from kube.client import MERGE, KubeClient
from kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    NotFound,
    NotSent,
    TooManyRequests,
    TransportError,
)
from kube.errors import Gone as VersionGone
from kube.events import EVENTS, EventRecorder, Regarding
from kube.plan import plan_note
from kube.podwrites import (
    AlreadyReleased,
    Bound,
    BoundElsewhere,
    Conflicted,
    Pin,
    PodRef,
    PodVanished,
    Refused,
    Released,
)
from kube.resources import NAMESPACES, PODS, Resource
from kube.transport import Request, Transport
from kube.watch import ListWatch, Timing
from kube.wire import Namespace, Pod
from loadtest.assets import MINORS
from loadtest.controlplane import API_SERVER, ControlPlane, Options

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

GATE = "muster.dev/plan"
OTHER_UID = "11111111-1111-1111-1111-111111111111"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_numbers = itertools.count()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=MINORS)
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[ControlPlane]:
    # Compacting every second makes "too old" happen; the default is five minutes.
    flags = ("--etcd-compaction-interval=1s",)
    options = Options(minor=request.param, api_server_flags=flags)
    async with ControlPlane(options) as plane:
        yield plane


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with KubeClient(auth.load(plane.kubeconfig("observer"))) as client:
        yield client


async def make_pod(client: KubeClient, *, gates: Sequence[str] = (GATE,), **spec: object) -> Pod:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{next(_numbers)}", "labels": {"app": "test"}},
        "spec": {
            "schedulingGates": [{"name": gate} for gate in gates],
            "containers": [{"name": "main", "image": "none"}],
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }
    return await client.create(PODS, body, namespace="default")


def ref(pod: Pod, *, uid: str | None = None) -> PodRef:
    return PodRef(pod.metadata.namespace, pod.metadata.name, uid or pod.metadata.uid)


def note(node: str, *spares: str) -> PlanNote:
    return PlanNote("plan-1", node, spares, {node: ("gpu-0",)}, rank=3, generation=9)


async def raw(client: KubeClient, pod: Pod) -> dict[str, Any]:
    path = PODS.path(pod.metadata.name, namespace=pod.metadata.namespace)
    found: dict[str, Any] = json.loads(await client._transport.send(Request("GET", path)))
    return found


def field(*nodes: str) -> list[dict[str, Any]]:
    return [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]} for n in nodes
    ]


# -- releasing -----------------------------------------------------------------------------------


async def test_a_release_lifts_only_our_gate_and_pins_in_the_same_write(client: KubeClient) -> None:
    pod = await make_pod(client, gates=("kueue.x-k8s.io/admission", GATE))
    outcome = await client.release_pod(ref(pod), note("n1", "n2"), seen=pod)
    assert isinstance(outcome, Released)
    found = await raw(client, pod)
    assert found["spec"]["schedulingGates"] == [{"name": "kueue.x-k8s.io/admission"}]
    affinity = found["spec"]["affinity"]["nodeAffinity"]
    assert affinity[REQUIRED] == {"nodeSelectorTerms": field("n1", "n2")}
    assert affinity[PREFERRED] == [{"weight": 100, "preference": field("n1")[0]}]
    assert plan_note(found["metadata"]["annotations"][GATE]) == note("n1", "n2")
    assert found["metadata"]["resourceVersion"] == outcome.resource_version


async def test_releasing_again_to_the_same_nodes_changes_nothing(client: KubeClient) -> None:
    pod = await make_pod(client)
    first = await client.release_pod(ref(pod), note("n1"), seen=pod)
    assert await client.release_pod(ref(pod), note("n1"), seen=pod) == first
    seen = await client.get_pod("default", pod.metadata.name)
    assert await client.release_pod(ref(pod), note("n1"), seen=seen) == first


async def test_releasing_to_another_node_afterwards_reports_where_it_went(
    client: KubeClient,
) -> None:
    pod = await make_pod(client)
    await client.release_pod(ref(pod), note("n1"), seen=pod)
    outcome = await client.release_pod(ref(pod), note("n2"), seen=pod)
    assert outcome == AlreadyReleased(note("n1"), None)
    await client.bind_pod(ref(pod), "n1")
    outcome = await client.release_pod(ref(pod), note("n2"), seen=pod)
    assert outcome == AlreadyReleased(note("n1"), "n1")


async def test_a_pod_that_was_recreated_or_deleted_is_not_touched(client: KubeClient) -> None:
    pod = await make_pod(client)
    assert await client.release_pod(ref(pod, uid=OTHER_UID), note("n1")) == PodVanished()
    nominated = await client.release_pod(ref(pod, uid=OTHER_UID), note("n1"), pin=Pin.NOMINATE)
    assert nominated == PodVanished()
    assert GATE not in (await raw(client, pod))["metadata"].get("annotations", {})
    await client.delete(PODS, pod.metadata.name, namespace="default", uid=pod.metadata.uid)
    assert await client.release_pod(ref(pod), note("n1")) == PodVanished()


async def test_own_required_terms_are_each_tightened_and_own_preferences_kept(
    client: KubeClient,
) -> None:
    zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    fast = {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}
    wish = {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    required = {"nodeSelectorTerms": [zone, fast]}
    pod = await make_pod(client, affinity={"nodeAffinity": {REQUIRED: required, PREFERRED: [wish]}})
    assert isinstance(await client.release_pod(ref(pod), note("n1"), seen=pod), Released)
    affinity = (await raw(client, pod))["spec"]["affinity"]["nodeAffinity"]
    assert affinity[REQUIRED]["nodeSelectorTerms"] == [
        {**zone, **field("n1")[0]},
        {**fast, **field("n1")[0]},
    ]
    assert affinity[PREFERRED] == [wish]


async def test_own_preferences_survive_beside_the_preference_for_the_planned_node(
    client: KubeClient,
) -> None:
    wish = {"weight": 5, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
    pod = await make_pod(client, affinity={"nodeAffinity": {PREFERRED: [wish]}})
    assert isinstance(await client.release_pod(ref(pod), note("n1", "n2"), seen=pod), Released)
    affinity = (await raw(client, pod))["spec"]["affinity"]["nodeAffinity"]
    assert affinity[PREFERRED] == [{"weight": 100, "preference": field("n1")[0]}, wish]


async def test_a_pod_with_own_terms_is_released_only_as_it_was_read(client: KubeClient) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}
    pod = await make_pod(client, affinity={"nodeAffinity": {REQUIRED: terms}})
    await client.patch(
        PODS, pod.metadata.name, {"metadata": {"labels": {"a": "b"}}}, namespace="default"
    )
    assert await client.release_pod(ref(pod), note("n1"), seen=pod) == Conflicted()
    # Without having been read, its terms would be lost: the server does not allow it.
    outcome = await client.release_pod(ref(pod), note("n1"))
    assert isinstance(outcome, Refused)
    assert "nodeSelectorTerms" in outcome.message


async def test_a_soft_pin_nominates_before_it_lifts_the_gate(client: KubeClient) -> None:
    pod = await make_pod(client)
    outcome = await client.release_pod(ref(pod), note("n1"), pin=Pin.NOMINATE)
    assert isinstance(outcome, Released)
    found = await raw(client, pod)
    assert found["status"]["nominatedNodeName"] == "n1"
    assert "schedulingGates" not in found["spec"]
    assert "affinity" not in found["spec"]
    assert plan_note(found["metadata"]["annotations"][GATE]) == note("n1")


async def test_a_soft_pin_of_an_ungated_pod_annotates_it(client: KubeClient) -> None:
    pod = await make_pod(client, gates=())
    assert isinstance(await client.release_pod(ref(pod), note("n1"), pin=Pin.NOMINATE), Released)
    found = await client.get_pod("default", pod.metadata.name)
    assert found.status.nominated_node_name == "n1"
    assert plan_note(found.metadata.annotations[GATE]) == note("n1")


# -- binding and evicting ------------------------------------------------------------------------


async def test_binding_is_idempotent_and_adds_annotations(client: KubeClient) -> None:
    pod = await make_pod(client, gates=())
    assert await client.bind_pod(ref(pod), "n1", annotations={GATE: "{}"}) == Bound()
    assert await client.bind_pod(ref(pod), "n1") == Bound(before=True)
    assert await client.bind_pod(ref(pod), "n2") == BoundElsewhere("n1")
    found = await client.get_pod("default", pod.metadata.name)
    assert (found.spec.node_name, found.metadata.annotations) == ("n1", {GATE: "{}"})


async def test_a_binding_for_another_uid_or_a_gated_pod_is_refused(client: KubeClient) -> None:
    pod = await make_pod(client)
    assert await client.bind_pod(ref(pod, uid=OTHER_UID), "n1") == PodVanished()
    gated = await client.bind_pod(ref(pod), "n1")
    assert isinstance(gated, Refused)
    assert "schedulingGates" in gated.message
    missing = PodRef("default", "no-such-pod", OTHER_UID)
    assert await client.bind_pod(missing, "n1") == PodVanished()


async def test_eviction_takes_a_pending_pod_of_this_uid_only(client: KubeClient) -> None:
    pod = await make_pod(client)
    await client.evict_pod(ref(pod, uid=OTHER_UID))  # that one is gone, so it is done
    assert (await client.get_pod("default", pod.metadata.name)).metadata.uid == pod.metadata.uid
    await client.evict_pod(ref(pod))
    with pytest.raises(NotFound):
        await client.get_pod("default", pod.metadata.name)
    await client.evict_pod(ref(pod))  # gone already: done


async def test_a_disruption_budget_stops_an_eviction_and_it_is_not_repeated(
    client: KubeClient,
) -> None:
    pod = await make_pod(client, gates=())
    await client.patch(
        PODS, pod.metadata.name, {"metadata": {"labels": {"app": "kept"}}}, namespace="default"
    )
    await client.bind_pod(ref(pod), "n1")
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await client.patch(
        PODS, pod.metadata.name, {"status": status}, namespace="default", subresource="status"
    )
    budget = {
        "metadata": {"name": f"budget-{next(_numbers)}"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "kept"}}},
    }
    budgets = Resource("policy", "v1", "poddisruptionbudgets", Namespace)
    await client.create(budgets, budget, namespace="default")
    with pytest.raises(TooManyRequests):
        await client.evict_pod(ref(pod))


# -- reading -------------------------------------------------------------------------------------


async def etcd_lists(client: KubeClient, plural: str) -> float:
    text = (await client._transport.send(Request("GET", "/metrics"))).decode()
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
    request = Request("GET", PODS.path(), {"limit": "1", "resourceVersion": "0"})
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
    async with asyncio.timeout(60):  # compaction comes every second, see the fixture
        while await _served(client, Request("GET", PODS.path(), query)):
            await make_pod(client)
            await asyncio.sleep(0.2)
    second = await anext(pages)
    assert second.anew
    assert {pod.metadata.uid for pod in first.items} <= {p.metadata.uid for p in second.items}
    assert second.meta.next_page == ""
    with pytest.raises(StopAsyncIteration):
        await anext(pages)


async def _served(client: KubeClient, request: Request) -> bool:
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


# -- watching ------------------------------------------------------------------------------------


class Mirror:
    """Keeps what a watch tells, as a consumer would."""

    def __init__(self) -> None:
        self.uids: dict[str, str] = {}
        self.told: list[str] = []
        self._changed = asyncio.Event()

    def sink(self, changes: Sequence[Change[Any]]) -> None:
        for change in changes:
            self.told.append(type(change).__name__)
            match change:
                case Upserted(obj):
                    self.uids[obj.metadata.uid] = obj.metadata.name
                case Gone(meta):
                    self.uids.pop(meta.uid, None)
                case Synced(_, seen) if seen is not None:
                    self.uids = {uid: name for uid, name in self.uids.items() if uid in seen}
                case Synced() | NotServed():
                    pass
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def watching(watch: ListWatch[Any]) -> AsyncIterator[Mirror]:
    mirror = Mirror()
    task = asyncio.create_task(watch.run(mirror.sink))
    try:
        yield mirror
    finally:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception()  # type: ignore[misc]


async def test_a_watch_tells_what_is_there_and_then_every_change(client: KubeClient) -> None:
    old = await make_pod(client)
    async with watching(ListWatch(client, PODS, namespace="default")) as mirror:
        await mirror.until(lambda: "Synced" in mirror.told)
        assert old.metadata.uid in mirror.uids
        new = await make_pod(client)
        await mirror.until(lambda: new.metadata.uid in mirror.uids)
        await client.delete(PODS, old.metadata.name, namespace="default")
        await mirror.until(lambda: old.metadata.uid not in mirror.uids)


async def test_a_watch_gets_bookmarks_and_resumes_without_a_list(client: KubeClient) -> None:
    watch = ListWatch(client, PODS, timing=Timing(watch_s=(3.0, 3.0)))
    async with watching(watch) as mirror:
        await mirror.until(lambda: "Synced" in mirror.told)
        while watch.stats.watches < 3:  # two watches have run to their end
            pod = await make_pod(client)
            await mirror.until(lambda uid=pod.metadata.uid: uid in mirror.uids)  # type: ignore[misc]
            await asyncio.sleep(0.2)
        assert watch.stats.lists == 1
        assert watch.stats.bookmarks >= 1


@pytest.mark.parametrize("tracks", [True, False])
async def test_a_watch_survives_a_restart_of_the_api_server(
    plane: ControlPlane, client: KubeClient, *, tracks: bool
) -> None:
    pod = await make_pod(client)
    timing = Timing(back_off_s=(0.05, 0.5))
    watch = ListWatch(client, PODS, tracks=tracks, timing=timing)
    async with watching(watch) as mirror:
        await mirror.until(lambda: pod.metadata.uid in mirror.uids)
        plane.kill(API_SERVER)
        await plane.start(API_SERVER)
        await client.delete(PODS, pod.metadata.name, namespace="default")
        new = await make_pod(client)
        await mirror.until(lambda: new.metadata.uid in mirror.uids)
        await mirror.until(lambda: pod.metadata.uid not in mirror.uids)
        now = {one.metadata.uid for one in await client.list(PODS)}
        await mirror.until(lambda: set(mirror.uids) == now)


@pytest.mark.parametrize("tracks", [True, False])
async def test_a_version_that_is_too_old_leads_to_a_reconciled_list(
    client: KubeClient, plane: ControlPlane, *, tracks: bool
) -> None:
    pod = await make_pod(client)
    timing = Timing(back_off_s=(0.05, 0.5))
    watch = ListWatch(client, PODS, tracks=tracks, timing=timing)
    mirror = Mirror()
    await watch._list(mirror.sink)
    # The watch now sleeps through a deletion and a restart, after which the server's cache
    # begins later than where the watch has to go on.
    await client.delete(PODS, pod.metadata.name, namespace="default")
    for _ in range(3):
        await make_pod(client)
    plane.kill(API_SERVER)
    await plane.start(API_SERVER)
    assert pod.metadata.uid in mirror.uids
    task = asyncio.create_task(watch.run(mirror.sink))
    await mirror.until(lambda: pod.metadata.uid not in mirror.uids)
    task.cancel()
    await asyncio.wait([task])
    assert {one.metadata.uid for one in await client.list(PODS)} == set(mirror.uids)


async def test_a_watch_at_a_version_from_the_future_is_silent(client: KubeClient) -> None:
    opening = client.watch(PODS, resource_version="999999999", timeout_s=60, idle_s=2.0)
    with pytest.raises(TransportError, match="SocketTimeoutError"):
        async with opening as stream:
            await stream.read()


async def test_a_resource_that_is_not_served_yet_is_asked_for_again(client: KubeClient) -> None:
    widgets = Resource("test.muster.dev", "v1", "widgets", Namespace)
    watch = ListWatch(client, widgets, timing=Timing(absent_s=0.2))
    async with watching(watch) as mirror:
        await mirror.until(lambda: "NotServed" in mirror.told)
        definitions = Resource(
            "apiextensions.k8s.io", "v1", "customresourcedefinitions", Namespace, namespaced=False
        )
        await client.create(definitions, _definition())
        await mirror.until(lambda: "Synced" in mirror.told)
        assert mirror.told.count("NotServed") == 1
        made = {"apiVersion": "test.muster.dev/v1", "kind": "Widget", "metadata": {"name": "w"}}
        widget = await client.create(widgets, made, namespace="default")
        await mirror.until(lambda: widget.metadata.uid in mirror.uids)
        await client.patch(
            widgets,
            "w",
            {"metadata": {"labels": {"a": "b"}}},
            namespace="default",
            content_type=MERGE,
        )
        await client.delete(definitions, "widgets.test.muster.dev")
        await mirror.until(lambda: not mirror.uids)


def _definition() -> dict[str, object]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.test.muster.dev"},
        "spec": {
            "group": "test.muster.dev",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


# -- identity ------------------------------------------------------------------------------------


def _user(plane: ControlPlane, directory: Path, user: dict[str, object]) -> Path:
    config = yaml.safe_load(plane.kubeconfig("observer").read_text())
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
        client, controller="muster.dev/extender", instance="test", clock=lambda: now[0]
    )
    about = Regarding.pod("default", pod.metadata.name, pod.metadata.uid)
    for _ in range(3):
        recorder.record(about, "GangWaiting", "0/12 racks fit", action="Planning")
        await recorder.flush()
    now[0] += 31
    await recorder.flush()
    assert recorder.failed == 0
    request = Request("GET", EVENTS.path(namespace="default"))
    items = json.loads(await client._transport.send(request))["items"]
    mine = [item for item in items if item["regarding"].get("uid") == pod.metadata.uid]
    assert [(item["reason"], item["series"]["count"]) for item in mine] == [("GangWaiting", 3)]
