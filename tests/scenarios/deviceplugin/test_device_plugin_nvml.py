"""The whole program over NVML: real binding, real child, a stub of the library, a fake kubelet.

::

    two H100 on NVSwitches ── libnvidia-ml.so.1 (stub) ── child ── muster device-plugin ── kubelet
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from support.devices.nvmlmachine import Machine, build, h100, on_switches, uuid
from support.kubelets.fakekubelet import FakeKubelet, asking
from support.kubelets.pluginprocess import PluginProcess, plugin
from support.machine.shortpath import short_folder

GPU = "nvidia.com/gpu"
WHOLE = 0xFFFFFFFF
WELL_WITHIN_S = 20.0
MOST_KIB = 80 * 1024  # plugin and child together


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def machine(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path, library)
    made.say(h100(0), h100(1), *on_switches(0), *on_switches(1), "set 0 recovery 0")
    monkeypatch.setenv("NVMLSTUB", str(made.state))
    return made


@asynccontextmanager
async def node(machine: Machine) -> AsyncIterator[tuple[FakeKubelet, PluginProcess]]:
    with short_folder() as root:
        config = {
            "sources": {
                "nvml": "always",
                "nvmlLibrary": str(machine.library),
                "rdma": False,
                "amd": False,
                "root": str(machine.root),
            },
            "readingSeconds": 0.5,
            "health": {"recovery": {"holdSeconds": 1.0, "settleSeconds": 0.5}},
        }
        file = root / "plugin.yaml"
        await asyncio.to_thread(file.write_text, yaml.safe_dump(config))
        async with (
            FakeKubelet(root) as kubelet,
            plugin(root, "--config", str(file), machine="") as it,
        ):
            await kubelet.until_allocatable(GPU, 2)
            yield kubelet, it


def children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


def wait_gone(pid: int) -> None:
    until = time.monotonic() + WELL_WITHIN_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "it is still there"
        time.sleep(0.05)


def pss_kib(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))


async def test_a_pod_gets_a_gpu_that_nvml_found(machine: Machine) -> None:
    async with node(machine) as (kubelet, _):
        pod = asking("a", {GPU: 1})
        await kubelet.run(pod)
        assert kubelet.ids(pod, GPU) <= {uuid(0), uuid(1)}


async def test_a_gpu_with_a_fatal_xid_is_taken_from_the_node(machine: Machine) -> None:
    async with node(machine) as (kubelet, _):
        machine.say(f"xid 1 1 79 {WHOLE} {WHOLE}")
        await kubelet.until_allocatable(GPU, 1)
        assert kubelet.tables.unhealthy[GPU] == {uuid(1)}


async def test_a_driver_that_hangs_costs_the_node_its_devices_and_the_plugin_nothing(
    machine: Machine,
) -> None:
    """And no container: what was given stays given. The devices come back with the driver."""
    async with node(machine) as (kubelet, it):
        pod = asking("a", {GPU: 1})
        await kubelet.run(pod)
        before = await asyncio.to_thread(children, it.process.pid)
        machine.say("hang nvmlEventSetWait_v2")
        await kubelet.until_allocatable(GPU, 0)
        assert await it.page("livez")
        machine.unsay("hang nvmlEventSetWait_v2")
        await kubelet.until_allocatable(GPU, 2)
        assert await asyncio.to_thread(children, it.process.pid) != before
        assert len(kubelet.ids(pod, GPU)) == 1
        assert await it.end() == 0


async def test_a_killed_child_is_replaced(machine: Machine) -> None:
    async with node(machine) as (kubelet, it):
        (first,) = await asyncio.to_thread(children, it.process.pid)
        os.kill(first, signal.SIGKILL)
        await kubelet.until_allocatable(GPU, 0)
        await kubelet.until_allocatable(GPU, 2)


async def test_a_hanging_child_ends_with_a_plugin_that_is_killed(machine: Machine) -> None:
    """Neither can tell the other anything: the kernel does it (PR_SET_PDEATHSIG)."""
    async with node(machine) as (_, it):
        (child,) = await asyncio.to_thread(children, it.process.pid)
        machine.say("hang nvmlEventSetWait_v2")
        await asyncio.sleep(1.0)  # it waits for events four times a second, and hangs from now on
        await it.kill()
        await asyncio.to_thread(wait_gone, child)


async def test_plugin_and_child_stay_within_the_memory_they_may_take(machine: Machine) -> None:
    async with node(machine) as (kubelet, it):
        await kubelet.run(asking("a", {GPU: 1}))
        await it.page("metrics")
        (child,) = await asyncio.to_thread(children, it.process.pid)
        taken = [await asyncio.to_thread(pss_kib, pid) for pid in (it.process.pid, child)]
        assert sum(taken) <= MOST_KIB, taken
