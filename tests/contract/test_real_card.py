"""The plugin on NVIDIA GPUs that are really there: what it finds, hears, and gives to containers.

::

    GPU ── driver ─┬─ NVML ── child ── backend ── plugin ── fake kubelet
                   ├─ nvidia-smi, which says what is right
                   └─ libcuda ── a program that computes, takes memory, makes an error

All of it is skipped where NVML finds no GPU. No setting of a GPU is changed and none is reset. It
lies here, so that one worker runs it and the contract suite of backends: errors come to all.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
import pytest_asyncio
from support.devices import cdibox, realcard
from support.devices.served import eventually
from support.kubelets.fakekubelet import FakeKubelet, asking
from support.kubelets.pluginprocess import plugin
from support.machine.shortpath import short_folder

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.nvml.link import NvmlTimeouts
from deviceplugin.health.config import HealthConfig
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.states import HealthState
from deviceplugin.model.inventory import Gpu
from deviceplugin.model.signals import BackendDown, BackendUp, GpuReading, InventoryChanged, Xid
from deviceplugin.publication.gfd import LabelFacts, labels

GPU = "nvidia.com/gpu"
HELD_MIB = 10 * 1024
ROOM_MIB = 1024  # of a context, and of what else uses the GPU
PATIENCE_S = 60
# NVIDIA's plugin takes no GPU from pods for these: k8s-device-plugin internal/rm/health.go
APPLICATION = {13, 31, 43, 45, 68, 109}


@pytest.fixture(autouse=True)
def _gpu_here() -> None:
    realcard.skip_without_gpu()


@pytest_asyncio.fixture
async def nvml() -> AsyncIterator[NvmlBackend]:
    backend = NvmlBackend(patience=NvmlTimeouts(pause_s=0.05))
    yield backend
    await backend.close()


def said(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def number(element: Element, path: str) -> int | None:
    """Return the number at a path; None where nvidia-smi has none ("N/A")."""
    words = said(element, path).split()
    with suppress(ValueError, IndexError):
        return int(float(words[0]))
    return None


def slowdown(card: Element) -> int | None:
    """Return where a GPU slows itself down; newer drivers show how far below it is."""
    if (at := number(card, "temperature/gpu_temp_slow_threshold")) is not None:
        return at
    shown = ("gpu_temp", "gpu_temp_tlimit", "gpu_temp_slow_tlimit_threshold")
    now, room, over = (number(card, f"temperature/{name}") for name in shown)
    return None if now is None or room is None or over is None else now + room - over


def uncorrected(card: Element) -> int:
    names = ("sram_uncorrectable_parity", "sram_uncorrectable_secded", "dram_uncorrectable")
    return sum(number(card, f"ecc_errors/volatile/{name}") or 0 for name in names)


def cards(smi: Element) -> dict[str, Element]:
    return {said(card, "uuid"): card for card in smi.iter("gpu")}


async def reading(
    backend: NvmlBackend, uuid: str, holds: Callable[[GpuReading], object] = lambda _: True
) -> GpuReading:
    """Measure until a reading of the GPU is as wanted."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            found = next(each for each in await backend.readings() if each.uuid == uuid)
            if holds(found):
                return found
            await asyncio.sleep(0.1)


def told_of(gpu: Gpu) -> dict[str, object]:
    return {
        "product_name": gpu.model,
        "minor_number": str(gpu.minor),
        "pci/pci_bus_id": gpu.place.address.upper().rjust(len("00000000:00:00.0"), "0"),
        "pci/pci_device_id": gpu.device_id.removeprefix("0x"),
        "fb_memory_usage/total": f"{gpu.memory_mib} MiB",
        "mig_mode/current_mig": "N/A"
        if gpu.mig is None
        else ("Enabled" if gpu.mig.enabled else "Disabled"),
    }


async def test_every_gpu_is_what_nvidia_smi_says(nvml: NvmlBackend) -> None:
    found = await nvml.inventory()
    smi = await asyncio.to_thread(realcard.smi)
    shown = cards(smi)
    assert {gpu.uuid for gpu in found.gpus} == set(shown)
    for gpu in found.gpus:
        told = told_of(gpu)
        assert told == {path: said(shown[gpu.uuid], path) for path in told}
        assert Path(gpu.files[0]).is_char_device()  # noqa: ASYNC240 - a test
    assert found.driver.version == said(smi, "driver_version")
    assert found.driver.cuda == said(smi, "cuda_version")


async def test_what_is_measured_is_what_nvidia_smi_measures(nvml: NvmlBackend) -> None:
    """Of what stands still: limits, counters, and what has to be done."""
    await nvml.inventory()
    shown = cards(await asyncio.to_thread(realcard.smi))
    for each in await nvml.readings():
        card = shown[each.uuid]
        remapped = "remapped_rows/remapped_row_"
        assert each.slowdown_at == slowdown(card)
        assert each.power_limit == number(card, "gpu_power_readings/current_power_limit")
        assert each.ecc_uncorrected == uncorrected(card)
        assert each.rows_remapped_uncorrectable == number(card, f"{remapped}unc")
        assert each.remap_pending == (said(card, f"{remapped}pending") == "Yes")
        assert each.remap_failed == (said(card, f"{remapped}failure") == "Yes")


async def test_memory_and_work_of_a_program_are_measured(nvml: NvmlBackend) -> None:
    gpu = (await nvml.inventory()).gpus[0]
    before = await reading(nvml, gpu.uuid)
    program = await asyncio.create_subprocess_exec(
        *realcard.command("hold", str(HELD_MIB)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdin is not None
    assert program.stdout is not None
    try:
        assert await program.stdout.readline() == b"held\n"
        now = await reading(nvml, gpu.uuid, lambda found: found.utilisation)
    finally:
        program.stdin.close()
        await program.wait()
    at_first = before.memory_used
    assert at_first is not None
    assert now.memory_used is not None
    assert HELD_MIB <= now.memory_used - at_first <= HELD_MIB + ROOM_MIB
    await reading(nvml, gpu.uuid, lambda found: (found.memory_used or 0) <= at_first + ROOM_MIB)


async def test_an_error_of_a_program_is_told_and_leaves_the_gpu_healthy(nvml: NvmlBackend) -> None:
    monitor = Monitor(HealthConfig())
    found = await nvml.inventory()
    monitor.see(found, 0.0)
    monitor.read(await nvml.readings(), 0.0)
    await asyncio.to_thread(realcard.fault)
    async with asyncio.timeout(PATIENCE_S):
        signals = [await nvml.signal()]
    async with asyncio.timeout(PATIENCE_S):
        monitor.read(await nvml.readings(), 1.0)
    while not nvml._signals.empty():
        signals.append(await nvml.signal())
    for each in signals:
        assert isinstance(each, Xid)
        assert each.code in APPLICATION
        assert each.uuid == found.gpus[0].uuid
        monitor.apply(each, 2.0)
    assert monitor.state(found.gpus[0].uuid) is HealthState.HEALTHY, signals


async def test_a_killed_child_is_replaced_and_no_gpu_is_lost(nvml: NvmlBackend) -> None:
    before = await nvml.inventory()
    assert nvml._link is not None
    os.kill(nvml._link.pid, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_S):
        told = [type(await nvml.signal()) for _ in range(3)]
    assert told == [BackendDown, BackendUp, InventoryChanged]
    assert await nvml.inventory() == before


async def test_labels_are_those_that_gpu_feature_discovery_writes(nvml: NvmlBackend) -> None:
    """internal/lm/{nvml,resource,machine-type}.go of NVIDIA/k8s-device-plugin."""
    found = await nvml.inventory()
    smi = await asyncio.to_thread(realcard.smi)
    card = cards(smi)[found.gpus[0].uuid]
    written = labels(found, LabelFacts())
    assert {
        "gpu.product": said(card, "product_name").replace(" ", "-"),
        "gpu.memory": said(card, "fb_memory_usage/total").removesuffix(" MiB"),
        "gpu.family": said(card, "product_architecture").lower().replace(" ", "-"),
        "gpu.count": said(smi, "attached_gpus"),
        "gpu.replicas": "1",
        "cuda.driver-version.full": said(smi, "driver_version"),
        "cuda.runtime-version.full": said(smi, "cuda_version"),
        "mig.capable": "false" if said(card, "mig_mode/current_mig") == "N/A" else "true",
    }.items() <= {key.removeprefix("nvidia.com/"): value for key, value in written.items()}.items()


async def test_a_container_of_the_plugin_s_cdi_spec_computes_and_one_without_it_does_not() -> None:
    cdibox.runc()
    realcard.use()
    with short_folder() as root:
        async with (
            FakeKubelet(root) as kubelet,
            plugin(root, machine="") as it,
        ):
            await eventually(lambda: bool(kubelet.allocatable().get(GPU)))
            pod = asking("a", {GPU: 1})
            given = await kubelet.run(pod)
            (uuid,) = kubelet.ids(pod, GPU)
            assert given.cdi == (f"{GPU}={uuid}",)
            assert given.envs["MUSTER_GPUS"] == uuid
            spec = root / "cdi" / "muster-nvidia.com-gpu.json"
            edits = cdibox.edits(spec, given.cdi)
            assert [path for path in cdibox.device_files(edits) if not is_device(path)] == []
            ended = await asyncio.to_thread(in_container, root / "with", edits)
            assert ended.returncode == 0, ended
            assert json.loads(ended.stdout)["uuid"] == uuid
            assert json.loads(ended.stdout)["right"]
            without = await asyncio.to_thread(in_container, root / "without", [])
            assert without.returncode == 1, without
            assert "cuInit" in without.stderr
            assert await it.end() == 0


def is_device(path: str) -> bool:
    return Path(path).is_char_device()


def in_container(folder: Path, edits: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
    folder.mkdir()
    shown = [realcard.PROGRAM.parent]
    shown += [Path(p) for p in {sys.prefix, sys.base_prefix} if not p.startswith(("/usr", "/opt"))]
    return cdibox.run(folder, edits, realcard.command("compute"), shown)
