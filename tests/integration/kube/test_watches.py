"""Watches of a real API server: resumed, restarted, too old, not served yet."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.machine.patience import PATIENCE_S
from support.pods.kubepods import make_pod

from loadtest.testbed.controlplane.controlplane import API_SERVER, ControlPlane
from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import TransportError
from muster.kube.resources import PODS, Resource
from muster.kube.watching.listwatch import ListWatch, Timing, WatchScope
from muster.kube.wire import Namespace

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

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
                case ObjectGone(meta):
                    self.uids.pop(meta.uid, None)
                case Synced(_, seen) if seen is not None:
                    self.uids = {uid: name for uid, name in self.uids.items() if uid in seen}
                case Synced() | NotServed():
                    pass
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
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
    async with watching(ListWatch(client, PODS, scope=WatchScope(namespace="default"))) as mirror:
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
    watch = ListWatch(client, PODS, scope=WatchScope(tracks=tracks), timing=timing)
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
    watch = ListWatch(client, PODS, scope=WatchScope(tracks=tracks), timing=timing)
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
