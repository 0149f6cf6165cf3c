"""What the handshake asks of others before it answers, and for how long."""

import asyncio
import time
from typing import Any

import msgspec
import pytest

from deviceplugin.allocation.values import ListedDevices
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.handshake.handshake import Handshake
from deviceplugin.handshake.podresources import PodResourcesError
from deviceplugin.model.answers import ContainerAnswer
from deviceplugin.model.inventory import Gpu, Inventory, PciPlace
from deviceplugin.resources.advertisements import Advertisement
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import ResourceSettings
from muster.cluster.events import PlanNote
from muster.kube import wire
from muster.kube.changes import Change, ObjectGone, Synced, Upserted
from muster.kube.names import PLAN
from muster.kube.translation.planannotation import encode_plan

GPU = "nvidia.com/gpu"
GPUS = tuple(
    Gpu(f"GPU-{n}", "NVIDIA H100 80GB HBM3", 81559, PciPlace(f"0000:{n:02x}:00.0"), n)
    for n in range(4)
)


class Kubelet:
    """Counts questions; ``silent`` has no answer."""

    def __init__(self) -> None:
        self.asked = 0
        self.silent = False
        self.kubelet = 1
        self.rows: tuple[ListedDevices, ...] = ()

    async def known(self) -> tuple[ListedDevices, ...]:
        self.asked += 1
        if self.silent:
            raise PodResourcesError("no socket")
        return self.rows


class Answers:
    """Gives nothing but names, unless it is ``full``."""

    full = False

    def see(self, inventory: Inventory, advertisement: Advertisement) -> None:
        pass

    def give(self, resource: str, ids: tuple[str, ...]) -> ContainerAnswer:
        if self.full:
            raise AllocationRefused(RefusalCause.NOT_WRITABLE, f"{resource}: the disk is full")
        return ContainerAnswer(envs={"IDS": ",".join(ids)})


def pod(name: str, gpus: int, *, plan: tuple[str, ...] = ()) -> wire.Pod:
    limits = {"limits": {GPU: str(gpus)}}
    note = PlanNote(plan_id="p", node="n1", devices={"n1": plan})
    body: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {PLAN: encode_plan(note)} if plan else {},
        },
        "spec": {"containers": [{"name": "main", "resources": limits}]},
    }
    return msgspec.convert(body, wire.Pod)


@pytest.fixture
def kubelet() -> Kubelet:
    return Kubelet()


@pytest.fixture
async def handshake(kubelet: Kubelet) -> Handshake:
    found = Handshake("n1", Answers(), kubelet)
    inventory = Inventory(GPUS)
    found.see(inventory, advertise(inventory, ResourceSettings()), lambda _r, _d: True)
    return found


async def test_before_the_first_list_a_question_waits_for_it(handshake: Handshake) -> None:
    waiting = asyncio.create_task(handshake.consult(GPU, (), 2))
    await asyncio.sleep(0)
    handshake.pods_changed([Upserted(pod("a", 2))])
    assert not waiting.done()
    handshake.pods_changed([Synced("1")])
    async with asyncio.timeout(20):
        await waiting


async def test_where_no_list_ever_comes_questions_wait_once_and_not_each(
    handshake: Handshake,
) -> None:
    handshake._patient_until = time.monotonic()  # as after START_S
    handshake.pods_changed([Upserted(pod("a", 2))])
    await handshake.consult(GPU, (), 2)


async def test_a_request_that_no_known_pod_makes_waits_for_the_watch(
    handshake: Handshake,
) -> None:
    handshake.pods_changed([Synced("1")])
    waiting = asyncio.create_task(handshake.consult(GPU, (), 2))
    await asyncio.sleep(0)
    assert not waiting.done()
    handshake.pods_changed([Upserted(pod("late", 2))])
    async with asyncio.timeout(20):
        await waiting


async def test_a_pod_that_has_its_devices_is_not_taken_for_the_next_of_its_gang(
    handshake: Handshake, kubelet: Kubelet
) -> None:
    """``first`` waits for its container; the kubelet knows ``second``, our watch not yet."""
    ids = tuple(gpu.uuid for gpu in GPUS)
    handshake.pods_changed([Upserted(pod("first", 1, plan=("GPU-0",))), Synced("1")])
    handshake.give(GPU, handshake.preferred(GPU, ids, (), 1))
    kubelet.rows = (
        ListedDevices("default", "first", "main", GPU, frozenset({"GPU-0"})),
        ListedDevices("default", "second"),
    )
    waiting = asyncio.create_task(handshake.consult(GPU, (), 1))
    await asyncio.sleep(0)
    assert not waiting.done()
    handshake.pods_changed([Upserted(pod("second", 1, plan=("GPU-3",)))])
    async with asyncio.timeout(20):
        await waiting
    assert handshake.preferred(GPU, ids[1:], (), 1) == ("GPU-3",)


async def test_the_kubelet_is_asked_before_devices_are_preferred_and_not_before_they_are_given(
    handshake: Handshake, kubelet: Kubelet
) -> None:
    handshake.pods_changed([Upserted(pod("a", 2)), Upserted(pod("b", 1)), Synced("1")])
    await handshake.consult(GPU, (), 2)
    assert kubelet.asked == 1
    await handshake.consult(GPU, ("GPU-0", "GPU-1"), 2)
    assert kubelet.asked == 1


async def test_the_one_known_pod_is_not_taken_for_a_sibling_that_only_the_kubelet_knows(
    handshake: Handshake, kubelet: Kubelet
) -> None:
    handshake.pods_changed([Upserted(pod("later", 2, plan=("GPU-0", "GPU-1"))), Synced("1")])
    kubelet.rows = (ListedDevices("default", "first"),)
    waiting = asyncio.create_task(handshake.consult(GPU, (), 2))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    handshake.pods_changed([Upserted(pod("first", 2, plan=("GPU-2", "GPU-3")))])
    async with asyncio.timeout(20):
        await waiting
    ids = tuple(gpu.uuid for gpu in GPUS)
    assert set(handshake.preferred(GPU, ids, (), 2)) == {"GPU-2", "GPU-3"}


async def test_a_pod_that_the_watch_never_brings_is_waited_for_once(
    handshake: Handshake, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deviceplugin.handshake.handshake.NEWS_S", 0.01)
    handshake.pods_changed([Upserted(pod("a", 2)), Synced("1")])
    kubelet.rows = (ListedDevices("default", "static"),)
    await handshake.consult(GPU, (), 2)
    monkeypatch.setattr("deviceplugin.handshake.handshake.NEWS_S", 3600.0)
    async with asyncio.timeout(20):
        await handshake.consult(GPU, (), 2)
    assert kubelet.asked == 2


async def test_the_end_of_a_pod_that_a_new_kubelet_has_not_listed_is_waited_for(
    handshake: Handshake, kubelet: Kubelet
) -> None:
    await _starts(handshake, kubelet)
    kubelet.kubelet, kubelet.rows = 2, (ListedDevices("default", "next"),)
    waiting = asyncio.create_task(handshake.consult(GPU, ("GPU-0",), 1))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    handshake.pods_changed([Upserted(pod("next", 1))])
    await asyncio.sleep(0.01)
    assert not waiting.done()
    ended = pod("first", 1)
    handshake.pods_changed(
        [Upserted(msgspec.structs.replace(ended, status=wire.PodStatus(phase="Succeeded")))]
    )
    async with asyncio.timeout(20):
        await waiting
    handshake.give(GPU, ("GPU-0",))
    assert handshake.table.given() == {"next": {GPU: ("GPU-0",)}}


@pytest.mark.parametrize(
    "news",
    [ObjectGone(wire.ObjectMeta(uid="first")), Synced("2", frozenset())],
    ids=["watched", "listed"],
)
async def test_a_pod_that_is_deleted_while_the_kubelet_is_away_has_nothing_any_more(
    handshake: Handshake, kubelet: Kubelet, news: Change[wire.Pod]
) -> None:
    await _starts(handshake, kubelet)
    kubelet.silent = True
    handshake.pods_changed([news])
    assert handshake.given() == []
    kubelet.silent, kubelet.kubelet, kubelet.rows = False, 2, (ListedDevices("default", "next"),)
    handshake.pods_changed([Upserted(pod("next", 1))])
    await handshake.ask_kubelet()
    handshake.give(GPU, ("GPU-0",))
    assert handshake.given() == [("next", {GPU: ("GPU-0",)})]


async def test_nothing_is_waited_for_where_the_kubelet_lists_the_pod_that_uses_the_devices(
    handshake: Handshake, kubelet: Kubelet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deviceplugin.handshake.handshake.NEWS_S", 3600.0)
    await _starts(handshake, kubelet)
    kubelet.kubelet, kubelet.rows = 2, (ListedDevices("default", "first"),)
    async with asyncio.timeout(20):
        await handshake.consult(GPU, ("GPU-0",), 1)
    with pytest.raises(AllocationRefused, match="in use by pod default/first"):
        handshake.give(GPU, ("GPU-0",))


async def _starts(handshake: Handshake, kubelet: Kubelet) -> None:
    """Pod first runs, with GPU-0 by the list of kubelet 1."""
    handshake.pods_changed([Upserted(pod("first", 1)), Synced("1")])
    handshake.give(GPU, ("GPU-0",))
    handshake.starting(GPU, ("GPU-0",))
    kubelet.rows = (ListedDevices("default", "first", "main", GPU, frozenset({"GPU-0"})),)
    await handshake.ask_kubelet()


async def test_a_kubelet_that_does_not_answer_stops_nothing(
    handshake: Handshake, kubelet: Kubelet
) -> None:
    kubelet.silent = True
    handshake.pods_changed([Upserted(pod("a", 2)), Upserted(pod("c", 2)), Synced("1")])
    await handshake.consult(GPU, (), 2)
    chosen = handshake.preferred(GPU, tuple(gpu.uuid for gpu in GPUS), (), 2)
    assert len(chosen) == 2


async def test_a_refused_answer_leaves_nobody_with_the_devices(handshake: Handshake) -> None:
    handshake.pods_changed([Upserted(pod("a", 2)), Synced("1")])
    Answers.full = True
    try:
        with pytest.raises(AllocationRefused, match="the disk is full"):
            handshake.give(GPU, ("GPU-0", "GPU-1"))
    finally:
        Answers.full = False
    assert handshake.given() == []
    handshake.give(GPU, ("GPU-0", "GPU-1"))
    assert handshake.given() == [("a", {GPU: ("GPU-0", "GPU-1")})]


async def test_what_the_node_said_is_recalled_once_its_pods_and_devices_are_known(
    kubelet: Kubelet,
) -> None:
    handshake = Handshake("n1", Answers(), kubelet)
    handshake.recall({"a": {GPU: ("GPU-3",)}, "gone": {GPU: ("GPU-2",)}})
    handshake.pods_changed([Upserted(pod("a", 1)), Synced("1")])
    assert not handshake.ready
    inventory = Inventory(GPUS)
    handshake.see(inventory, advertise(inventory, ResourceSettings()), lambda _r, _d: True)
    assert handshake.ready
    assert handshake.given() == [("a", {GPU: ("GPU-3",)})]
