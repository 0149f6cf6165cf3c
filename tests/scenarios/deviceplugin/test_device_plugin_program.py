"""The whole program on a fake kubelet: simulated devices, real processes, real sockets.

::

    DGX H100: 8 GPUs behind NVSwitches, four on each NUMA node
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from support.devices.served import eventually
from support.kubelets.fakekubelet import AdmissionError, Container, FakeKubelet, Pod, asking
from support.kubelets.pluginprocess import plugin
from support.machine.shortpath import short_folder

from deviceplugin.tools import faultswitch

GPU = "nvidia.com/gpu"


@asynccontextmanager
async def node(**how: object) -> AsyncIterator[FakeKubelet]:
    with short_folder() as root:
        async with FakeKubelet(root, **how) as kubelet:  # type: ignore[arg-type]
            yield kubelet


async def test_a_simulated_dgx_shows_eight_gpus_and_gives_two_of_one_numa_node() -> None:
    async with node(policy="single-numa-node") as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        pod = asking("a", {GPU: 2})
        await kubelet.run(pod)
        assert len(kubelet.ids(pod, GPU)) == 2
        assert "[+]kubelet ok" in await it.page("readyz")
        assert 'calls_total{outcome="ok",verb="Allocate"} 1.0' in await it.page("metrics")
        assert 'backend_up{backend="simulated"} 1.0' in await it.page("metrics")
        assert await it.end() == 0


async def test_a_gpu_that_falls_off_the_bus_is_taken_from_the_node_and_refused_by_name() -> None:
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        it.fault("set", "lost=fallen off the bus", "--gpu", "3")
        await kubelet.until_allocatable(GPU, 7)
        assert kubelet.capacity() == {GPU: 8}
        await kubelet.run(asking("a", {GPU: 7}))
        (ill,) = kubelet.tables.unhealthy[GPU]
        # A kubelet that has not heard of it asks for it all the same.
        kubelet.tables.healthy[GPU].add(ill)
        with pytest.raises(AdmissionError, match=rf"UNAVAILABLE(?s:.*){ill}: DeviceLost"):
            await kubelet.run(asking("b", {GPU: 1}))


async def test_a_gpu_that_is_ill_before_the_start_is_never_shown_as_well() -> None:
    async with node() as kubelet:
        faults = str(kubelet.root / "faults.yaml")
        assert faultswitch.main([faults, "set", "recoveryAction=2", "--gpu", "3"]) == 0
        async with plugin(kubelet.root):
            await eventually(lambda: kubelet.capacity() == {GPU: 8})
            assert kubelet.allocatable() == {GPU: 7}


async def test_the_variables_of_nvidia_s_plugin_say_which_xids_make_no_gpu_ill() -> None:
    async with node() as kubelet:
        ignored = {"DP_DISABLE_HEALTHCHECKS": "79"}
        async with plugin(kubelet.root, variables=ignored) as it:
            await kubelet.until_allocatable(GPU, 8)
            it.fault("set", "recoveryAction=2", "--gpu", "3")
            await kubelet.until_allocatable(GPU, 7)  # what is not an Xid counts all the same
            it.fault("xid", "79", "--gpu", "5")
            it.fault("xid", "48", "--gpu", "6")
            await kubelet.until_allocatable(GPU, 6)


async def test_killed_it_leaves_the_node_without_devices_and_started_again_with_all() -> None:
    async with node() as kubelet:
        async with plugin(kubelet.root, name="first") as it:
            await kubelet.until_allocatable(GPU, 8)
            pod = asking("a", {GPU: 2})
            before = await kubelet.run(pod)
            await it.kill()
            await kubelet.until_allocatable(GPU, 0)
            left = sorted(path.name for path in kubelet.folder.glob("muster-*"))
            assert left
        async with plugin(kubelet.root, name="second") as it:
            await kubelet.until_allocatable(GPU, 8)
            there = sorted(path.name for path in kubelet.folder.glob("muster-*"))
            assert not set(left) & set(there)  # what the dead one left is gone
            assert await kubelet.start_container(pod) == before
            await kubelet.run(asking("b", {GPU: 6}))
            assert await it.end() == 0


async def test_killed_while_a_pod_waits_for_its_choice_it_fails_that_pod_alone() -> None:
    async with node() as kubelet, plugin(kubelet.root, name="first") as it:
        await kubelet.until_allocatable(GPU, 8)
        it.process.send_signal(19)  # SIGSTOP: it hangs, and so does the kubelet's call
        waiting = asyncio.create_task(kubelet.admit(asking("a", {GPU: 1})))
        await eventually(lambda: bool(kubelet.offered))
        await it.kill()
        await waiting
        assert "GetPreferredAllocation failed" in kubelet.failed["a"]
        async with plugin(kubelet.root, name="second"):
            await kubelet.until_allocatable(GPU, 8)
            await kubelet.run(asking("b", {GPU: 8}))


async def test_sigterm_ends_streams_and_removes_sockets() -> None:
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        assert await it.end() == 0
        await kubelet.until_allocatable(GPU, 0)
        assert list(kubelet.folder.glob("muster-*")) == []
        assert "Traceback" not in it.log.read_text()


async def test_a_rolling_update_leaves_the_node_as_it_was() -> None:
    async with node() as kubelet, plugin(kubelet.root, name="old") as old:
        await kubelet.until_allocatable(GPU, 8)
        async with plugin(kubelet.root, name="new") as new:
            await eventually(lambda: len(kubelet.registered()) == 2)
            assert await old.end() == 0
            await eventually(lambda: len(kubelet.registered()) >= 3)
            await kubelet.until_allocatable(GPU, 8)
            await kubelet.run(asking("a", {GPU: 8}))
            assert await new.end() == 0


async def test_a_kubelet_s_restart_costs_no_pod_its_devices() -> None:
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        pods = [asking(f"p{number}", {GPU: 2}, created=number) for number in range(3)]
        for pod in pods:
            await kubelet.run(pod)
        before = [kubelet.ids(pod, GPU) for pod in pods]
        await kubelet.restart()
        await kubelet.until_allocatable(GPU, 8)
        assert [kubelet.ids(pod, GPU) for pod in pods] == before
        await kubelet.run(asking("last", {GPU: 2}))
        assert await it.end() == 0


async def test_a_restarted_container_has_the_same_devices_also_over_a_kubelet_s_restart() -> None:
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        pod = asking("a", {GPU: 2})
        before = await kubelet.run(pod)
        assert await kubelet.start_container(pod) == before
        await kubelet.restart()
        await kubelet.until_allocatable(GPU, 8)
        assert await kubelet.start_container(pod) == before
        assert await it.end() == 0


async def test_a_pod_that_ends_or_goes_while_the_kubelet_is_down_leaves_its_devices_to_others() -> (
    None
):
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        done, gone = asking("done", {GPU: 3}), asking("gone", {GPU: 3})
        for pod in (done, gone):
            await kubelet.run(pod)
        kubelet.end(done)
        await kubelet.stop()
        kubelet.remove(gone)
        await kubelet.start()
        await kubelet.until_allocatable(GPU, 8)
        await kubelet.run(asking("next", {GPU: 8}))
        assert kubelet.failed == {}  # the one that has ended stays as it was
        assert await it.end() == 0


async def test_a_side_car_keeps_its_devices_and_a_plain_init_container_passes_them_on() -> None:
    async with node() as kubelet, plugin(kubelet.root) as it:
        await kubelet.until_allocatable(GPU, 8)
        pod = Pod(
            "a",
            (Container("main", {GPU: 4}),),
            init=(Container("first", {GPU: 2}), Container("side", {GPU: 2}, restartable=True)),
        )
        await kubelet.admit(pod)
        assert kubelet.failed == {}
        main, first, side = (kubelet.ids(pod, GPU, name) for name in ("main", "first", "side"))
        assert (len(main), len(first), len(side)) == (4, 2, 2)
        assert not main & side
        assert first <= main | side
        await kubelet.run(asking("rest", {GPU: 2}))
        assert await it.end() == 0


async def test_a_simulated_machine_that_is_not_known_is_reported_with_those_that_are() -> None:
    with short_folder() as root:
        (root / "device-plugins").mkdir()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "deviceplugin", "--simulate", "dgx-x", "--node-name", "n1"),
            *("--kubelet-dir", str(root), "--no-cluster"),
            stderr=asyncio.subprocess.PIPE,
        )
        _, reported = await process.communicate()
        assert process.returncode == 2
        assert b"dgx-x" in reported
        assert b"dgx-h100" in reported
