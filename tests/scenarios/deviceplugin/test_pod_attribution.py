"""Health and series of devices beside a kubelet that has given them to pods.

::

    plugin ──Allocate──► fake kubelet ──pod-resources──► Holders ──► Board ──HTTP──► scrape
       ▲                                                                ▲
       └── healthy or not ◄── Monitor ◄── readings, Xids ───────────────┘
"""

import asyncio

import aiohttp
from prometheus_client.parser import text_string_to_metric_families
from support.devices.illness import OTHER, SLICES, SOUND, Ward, reading, small_node
from support.devices.served import Instance, Node, eventually, node
from support.kubelets.fakekubelet import Pod, asking
from support.webhooks.plainview import PlainView, view

from deviceplugin.exporter.board import MetricsBoard
from deviceplugin.exporter.config import ExporterConfig
from deviceplugin.exporter.server import serving
from deviceplugin.handshake.holders import Holders
from deviceplugin.handshake.podresources import PodResources
from deviceplugin.metrics import DevicePluginMetrics
from deviceplugin.model.answers import ShownDevice
from deviceplugin.model.signals import Xid
from muster.observability.health import Health
from muster.observability.metrics import new_registry

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
Pods = dict[str, set[str | None]]


def nobody(_namespace: str, _name: str) -> bool:
    return False


async def scrape(url: str) -> Pods:
    """Return device → the pods that its temperature or power is shown with."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as answer:
        text = await answer.text()
    found: Pods = {}
    for family in text_string_to_metric_families(text):
        if family.name == "DCGM_FI_DEV_POWER_USAGE":
            for sample in family.samples:
                device = sample.labels["UUID"] + sample.labels.get("GPU_I_ID", "")
                found.setdefault(device, set()).add(sample.labels.get("pod"))
    return found


async def test_a_scrape_names_the_pods_and_forgets_them_when_they_end() -> None:
    board = MetricsBoard("n1")
    board.see(small_node())
    board.read([reading(uuid) for uuid in (SOUND, "GPU-00000001", OTHER)], 0.0)
    config = ExporterConfig(host="127.0.0.1", port=0)
    metrics = DevicePluginMetrics(new_registry())
    whole, parts = view(GPU, [f"{SOUND}::0", f"{SOUND}::1"]), view(MIG, SLICES)
    async with (
        node() as beside,
        serving(config, board, metrics, live=Health(), ready=Health(), clock=lambda: 0.0) as (
            host,
            port,
        ),
    ):
        beside.serve(whole, parts)
        await beside.shown(whole, parts)
        one, two, cut = asking("a", {GPU: 1}), asking("b", {GPU: 1}), asking("c", {MIG: 1})
        await beside.kubelet.admit(one, two, cut)
        assert not beside.kubelet.failed
        kubelet, failures = PodResources(beside.kubelet.pod_resources), []
        holders = Holders(kubelet, lambda: failures.append(kubelet), nobody)
        holders.listen(board.hold)
        await holders.look()
        (instance,) = beside.kubelet.ids(cut, MIG)
        number = str(SLICES.index(instance) + 1)
        shown = await scrape(f"http://{host}:{port}")
        assert shown[SOUND] == {"a", "b"}
        assert shown[OTHER] == {None}
        assert shown[f"GPU-00000001{number}"] == {"c"}
        beside.kubelet.remove(one)
        await holders.look()
        assert (await scrape(f"http://{host}:{port}"))[SOUND] == {"b"}
        await kubelet.close()
        assert failures == []


async def test_a_nudge_is_enough_to_see_a_pod_that_came_just_now() -> None:
    whole = view(GPU, [SOUND, OTHER])
    async with node() as beside:
        beside.serve(whole)
        await beside.shown(whole)
        kubelet, failures = PodResources(beside.kubelet.pod_resources), []
        holders = Holders(kubelet, lambda: failures.append(kubelet), nobody, period_s=3600)
        asking_task = asyncio.create_task(holders.run())
        await eventually(lambda: holders.last == ())
        await beside.kubelet.admit(asking("a", {GPU: 2}))
        holders.nudge()
        await eventually(lambda: bool(holders.last))
        assert holders.last is not None
        assert holders.last[0].devices == {GPU: (SOUND, OTHER)}
        assert failures == []
        asking_task.cancel()
        await asyncio.wait([asking_task])


def show(ward: Ward, whole: PlainView, instance: Instance) -> None:
    """Have the kubelet told what the monitor says now."""
    whole.put(*(ShownDevice(each, ward.state(each).usable) for each in whole.devices))
    instance.servers.changed()


async def has(beside: Node, count: int) -> None:
    await beside.kubelet.until_allocatable(GPU, count)


async def test_a_gpu_falls_ill_and_recovers_while_its_pod_runs_on() -> None:
    """None of the others does: NVIDIA/k8s-device-plugin 1014, Project-HAMi/HAMi 2200."""
    ward, whole = Ward(), view(GPU, [SOUND, OTHER])
    async with node() as beside:
        instance = beside.serve(whole)
        await has(beside, 2)
        pod: Pod = asking("train", {GPU: 2})
        await beside.kubelet.run(pod)
        ward.hear(Xid(SOUND, 119))
        show(ward, whole, instance)
        await has(beside, 1)
        assert beside.kubelet.ids(pod, GPU) == {SOUND, OTHER}  # it keeps what it has
        ward.pass_time(30 + 30)  # the driver asks for nothing, then the hold
        show(ward, whole, instance)
        await has(beside, 2)
        assert beside.kubelet.ids(pod, GPU) == {SOUND, OTHER}
        assert not beside.kubelet.failed
