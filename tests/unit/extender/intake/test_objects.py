"""From wire objects to events: who is ours, whose spec counts, what waits for a volume.

::

    rack r1 ── r1-0 r1-1
"""

from collections.abc import AsyncIterator

import msgspec
import pytest
from support.extenders.extenders import PODS, World, eventually, plan_of, until, world

from extender.intake import objects
from loadtest.testbed.client.api import JSON
from loadtest.testbed.client.pods import Gang, pod
from muster.cluster.ids import GangKey
from muster.kube import names, wire
from muster.kube.translation.translate import pod_uid
from muster.workloads.registry import PodMembership, place


@pytest.fixture
async def cluster() -> AsyncIterator[World]:
    async with world(spare_count=0) as running:
        await running.nodes({"r1": 2})
        yield running


def known(cluster: World, obj: JSON) -> bool:
    return cluster.extender.engine.state.pod_row(pod_uid(obj["metadata"]["uid"])) is not None


async def test_a_pod_that_slipped_past_the_webhook_is_told_and_left_alone(cluster: World) -> None:
    """spec.schedulerName is immutable: nothing can be done but to say so."""
    obj = pod("late", gpus=8)
    obj["spec"]["schedulerName"] = "volcano"
    made = await cluster.api.create(PODS, obj)
    await until(lambda: known(cluster, made))

    async def told() -> bool:
        return bool(await cluster.events("ForeignScheduler"))

    await eventually(told)
    (event,) = await cluster.events("ForeignScheduler")
    assert "volcano" in event["note"]
    assert event["regarding"]["name"] == "late"
    assert (await cluster.pod("late"))["metadata"] == made["metadata"]


async def test_members_that_disagree_are_refused_until_they_agree(cluster: World) -> None:
    one = pod("g-0", gpus=8, labels={names.GANG: "g"}, annotations={names.GANG_SIZE: "1"})
    two = pod("g-1", gpus=8, labels={names.GANG: "g"}, annotations={names.GANG_SIZE: "2"})
    for obj in (one, two):
        obj["spec"]["schedulingGates"] = [
            {"name": names.PLAN_GATE}, {"name": "example.com/hold"}
        ]  # fmt: skip
        await cluster.api.create(PODS, obj)
    drop = {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/hold"}]}}
    for name in ("g-0", "g-1"):
        await cluster.api.patch(
            f"{PODS}/{name}", drop, kind="application/strategic-merge-patch+json"
        )
    await cluster.settled()
    assert plan_of(await cluster.pod("g-0")) is None
    async with cluster.http.get("/v1/explain/default/g-0") as response:
        assert "disagree" in str(await response.json())
    await cluster.api.patch(f"{PODS}/g-0", {"metadata": {"annotations": {names.GANG_SIZE: "2"}}})
    await cluster.released(["g-0", "g-1"])


async def test_a_lone_managed_pod_is_a_gang_of_one(cluster: World) -> None:
    obj = pod("lone", gpus=8)
    obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    await cluster.api.create(PODS, obj)
    await cluster.released(["lone"])
    await cluster.api.delete(f"{PODS}/lone")
    await until(lambda: not list(cluster.extender.engine.state.gangs()))


async def test_a_pod_that_waits_for_its_volume_is_soft_and_read_again_when_it_binds(
    cluster: World,
) -> None:
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    await cluster.api.create(
        claims,
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"]},
        },
    )
    obj = pod("reader", gpus=8, labels={names.GANG: "r"}, annotations={names.GANG_SIZE: "2"})
    obj["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}]
    obj["spec"]["volumes"] = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    made = await cluster.api.create(PODS, obj)
    await until(lambda: known(cluster, made))
    await cluster.settled()
    state = cluster.extender.engine.state
    row = state.pod_row(pod_uid(made["metadata"]["uid"]))
    assert row is not None

    def unmodelled() -> tuple[str, ...]:
        snapshot = state.snapshot()
        return snapshot.classes[snapshot.pods.pod_class[row]].unmodelled

    assert unmodelled()
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }
    await cluster.api.create("/api/v1/persistentvolumes", volume)
    bound = {
        "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v"},
    }
    await cluster.api.patch(f"{claims}/data", bound)
    await until(lambda: not unmodelled())


async def test_an_object_that_cannot_be_is_counted_and_the_rest_goes_on(cluster: World) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "odd", "labels": {}},
        "status": {"allocatable": {"cpu": "-5", "nvidia.com/gpu": "12abc", "pods": "10"}},
    }
    await cluster.api.create("/api/v1/nodes", node)
    await cluster.gang(Gang("g", 2))
    placed = await cluster.released(["g-0", "g-1"])
    assert "odd" not in placed.values()
    async with cluster.http.get("/metrics") as response:
        assert "muster_unreadable_objects_total" in await response.text()


async def test_a_pod_that_cannot_be_read_takes_its_room_and_the_rest_goes_on(
    cluster: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def odd(pod: wire.Pod) -> PodMembership | None:
        if "odd" in pod.metadata.labels:
            raise TypeError("odd")
        return place(pod)

    monkeypatch.setattr(objects, "place", odd)
    bound = pod("odd", gpus=8, labels={"odd": ""})
    bound["spec"]["nodeName"] = "r1-0"
    await cluster.api.create(PODS, bound)
    await cluster.gang(Gang("g", 1))
    placed = await cluster.released(["g-0"])
    assert placed["g-0"] != "r1-0"
    async with cluster.http.get("/metrics") as response:
        assert 'muster_unreadable_objects_total{resource="pods"} 1.0' in await response.text()


async def test_a_watch_that_is_cut_misses_nothing(cluster: World) -> None:
    cluster.server.drop_watches()
    await cluster.gang(Gang("g", 1))
    await cluster.released(["g-0"])
    cluster.server.compact()
    cluster.server.drop_watches()
    await cluster.api.delete(f"{PODS}/g-0")
    await cluster.gang(Gang("h", 2))
    await cluster.released(["h-0", "h-1"])


async def test_a_version_that_our_own_release_made_is_not_applied_twice(cluster: World) -> None:
    """The watch repeats every release; its reply has told all of it already."""
    feed, state = cluster.extender.feed, cluster.extender.engine.state
    (made,) = await cluster.gang(Gang("g", 1))
    uid = pod_uid(made["metadata"]["uid"])

    def replied() -> bool:
        record = cluster.extender.pods.get(uid)
        return record is not None and record.released_as != ""

    await until(replied)
    now = msgspec.convert(await cluster.pod(made["metadata"]["name"]), wire.Pod)
    assert feed.is_echo(now)
    before = state.hold(uid)
    feed.pod(now)  # from a list it would be applied, and change nothing
    assert state.hold(uid) == before
    state.validate()
    meta = msgspec.structs.replace(now.metadata, resource_version="999999")
    assert not feed.is_echo(msgspec.structs.replace(now, metadata=meta))


async def test_a_list_that_tells_of_a_successor_before_the_end_of_the_first_keeps_its_gang(
    cluster: World,
) -> None:
    """A pod on its own goes by its name; a relist forgets what is missing last."""
    feed, state = cluster.extender.feed, cluster.extender.engine.state
    first = pod("alone", gpus=8)
    first["spec"]["schedulingGates"] = [{"name": names.PLAN_GATE}, {"name": "example.com/hold"}]
    made = msgspec.convert(await cluster.api.create(PODS, first), wire.Pod)
    await until(lambda: state.pod_row(pod_uid(made.metadata.uid)) is not None)
    uid = "00000000-0000-4000-8000-00000000002a"
    second = msgspec.structs.replace(made.metadata, uid=uid)
    feed.pod(msgspec.structs.replace(made, metadata=second))
    feed.forget(pod_uid(made.metadata.uid))
    gang = state.gang(GangKey("pod/default/alone"))
    assert gang is not None
    assert gang.spec is not None
    state.validate()
    feed.forget(pod_uid(uid))
    assert state.gang(GangKey("pod/default/alone")) is None
