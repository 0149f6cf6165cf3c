"""What the NVML backend finds, through nvidia-ml-py, the child and the stub library."""

from pathlib import Path

import pytest
from support.devices.nvmlmachine import Machine, between, h100, uuid

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.model.inventory import FabricState, NvlinkFabric, PciPlace


async def test_a_gpu_is_told_with_all_that_the_driver_knows(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.file("dev/nvidiactl")
    machine.file("dev/nvidia-uvm")
    machine.file("sys/class/dmi/id/product_name", "DGXH100\n")
    found = await nvml.inventory()
    gpu = found.gpus[0]
    assert (gpu.uuid, gpu.model) == (uuid(0), "NVIDIA H100 80GB HBM3")
    assert (gpu.memory_mib, gpu.compute, gpu.minor) == (81559, (9, 0), 0)
    assert (gpu.device_id, gpu.files) == ("0x233010DE", ("/dev/nvidia0",))
    assert found.machine == "DGXH100"
    assert found.gpu_files == ("/dev/nvidiactl", "/dev/nvidia-uvm")
    assert (found.driver.version, found.driver.cuda) == ("570.86.15", "12.8")


async def test_a_gpu_sits_where_sysfs_shows_it(machine: Machine, nvml: NvmlBackend) -> None:
    """pci0000:15 ── 0000:15:01.0 (bridge) ── 0000:1b:00.0 (GPU 0)."""
    real = "sys/devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
    machine.file(f"{real}/numa_node", "1\n")
    machine.file(f"{real}/class", "0x030200\n")
    shown = machine.root / "sys/bus/pci/devices/0000:1b:00.0"
    shown.parent.mkdir(parents=True)
    shown.symlink_to(machine.root / real)
    first, second = (await nvml.inventory()).gpus
    assert first.place == PciPlace("0000:1b:00.0", 1, ("pci0000:15", "0000:15:01.0"))
    assert first.pci_class == "0x030200"
    assert second.place == PciPlace("0000:2b:00.0")


async def test_gpus_on_nvswitches_reach_each_other_by_as_many_links_as_both_have(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("link 1 17 0 2 -")
    links = (await nvml.inventory()).links
    assert links.to_switches == {uuid(0): 18, uuid(1): 17}
    assert links.joining(uuid(0), uuid(1)) == 17


async def test_links_that_only_one_end_tells_do_not_count(tmp_path: Path, library: Path) -> None:
    """GPU 0 ══4 told by 0, 3 told by 1══ GPU 1; GPU 0 ──1 told by 0 only── GPU 2."""
    machine = Machine(tmp_path, library)
    machine.say(h100(0), h100(1), h100(2))
    machine.say(*between(0, 1, range(4)), *between(1, 0, range(3)), *between(0, 2, [4]))
    backend = machine.backend()
    links = (await backend.inventory()).links
    await backend.close()
    assert links.between == {(uuid(0), uuid(1)): 3}


@pytest.mark.parametrize("summary", [0, 1])  # 0: the driver speaks only version 2
async def test_a_gpu_of_an_nvlink_fabric_tells_its_clique(
    machine: Machine, nvml: NvmlBackend, summary: int
) -> None:
    machine.say("set 0 fabric 3", "set 0 clique 7", f"set 0 summary {summary}")
    machine.say("cluster 0 00112233445566778899aabbccddeeff")
    gpu = (await nvml.inventory()).gpus[0]
    cluster = "00112233-4455-6677-8899-aabbccddeeff"
    assert gpu.fabric == NvlinkFabric(FabricState.COMPLETED, True, cluster, 7)


@pytest.mark.parametrize(
    ("told", "healthy"),
    [
        ("set 0 mask 1", True),  # bandwidth degraded: slower, and still usable
        ("set 0 mask 4", True),  # a route is being repaired
        ("set 0 mask 16", False),  # a route is unhealthy
        ("set 0 mask 32", True),  # a route is "not unhealthy"
        ("set 0 mask 64", False),  # memory of another GPU timed out
        ("set 0 mask 256", True),  # configuration: nothing wrong
        ("set 0 mask 1024", False),  # configuration: no partition
        ("set 0 summary 2", False),
        ("set 0 summary 3", True),  # limited capacity
        ("set 0 fabric_status 999", False),
    ],
)
async def test_what_stops_jobs_makes_a_fabric_unhealthy(
    machine: Machine, nvml: NvmlBackend, told: str, *, healthy: bool
) -> None:
    machine.say("set 0 fabric 3", told)
    assert (await nvml.inventory()).gpus[0].fabric.healthy is healthy


async def test_mig_profiles_are_named_from_the_memory_and_placed_as_the_driver_says(
    nvml: NvmlBackend,
) -> None:
    mig = (await nvml.inventory()).gpus[0].mig
    assert mig is not None
    assert {p.name: p.starts for p in mig.profiles} == {
        "1g.10gb": (0, 1, 2, 3, 4, 5, 6),
        "1g.10gb+me": (0, 1, 2, 3, 4, 5, 6),
        "1g.20gb": (0, 2, 4, 6),
        "2g.20gb": (0, 2, 4),
        "3g.40gb": (0, 4),
        "4g.40gb": (0,),
        "7g.80gb": (0,),
    }
    assert not mig.enabled


async def test_mig_instances_are_told_with_their_device_files(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 mig 1")
    within = "proc/driver/nvidia/capabilities/gpu0/mig/gi1"
    machine.file(f"{within}/access", "DeviceFileMinor: 12\nDeviceFileMode: 292\n")
    machine.file(f"{within}/ci0/access", "DeviceFileMinor: 13\nDeviceFileMode: 292\n")
    await nvml.cut(uuid(0), (), [("3g.40gb", 4)])
    mig = (await nvml.inventory()).gpus[0].mig
    assert mig is not None
    (instance,) = mig.instances
    assert instance.uuid.startswith("MIG-")
    assert (instance.profile, instance.start, instance.size) == ("3g.40gb", 4, 4)
    assert (instance.compute_slices, instance.multiprocessors) == (3, 48)
    assert instance.files == ("/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13")


async def test_a_gpu_that_cannot_be_cut_says_so(machine: Machine, nvml: NvmlBackend) -> None:
    machine.say("set 1 mig_capable 0")
    first, second = (await nvml.inventory()).gpus
    assert first.mig is not None
    assert second.mig is None


async def test_two_looks_at_an_unchanged_machine_are_equal(nvml: NvmlBackend) -> None:
    assert await nvml.inventory() == await nvml.inventory()


async def test_an_old_driver_tells_what_it_knows(machine: Machine, old_library: Path) -> None:
    """No fabric, no kinds of remote ends, no reserved memory: the rest is there."""
    machine.say("set 0 mig 1", "set 0 slowdown 0")
    backend = machine.backend(library=old_library)
    await backend.cut(uuid(0), (), [("1g.10gb", 6)])
    found = await backend.inventory()
    reading = (await backend.readings())[0]
    await backend.close()
    gpu = found.gpus[0]
    assert gpu.mig is not None
    assert [i.profile for i in gpu.mig.instances] == ["1g.10gb"]
    assert gpu.fabric.state is FabricState.NOT_SUPPORTED
    assert found.links.to_switches == {uuid(0): 18, uuid(1): 18}
    assert (reading.temperature, reading.slowdown_at) == (40, None)
    assert (reading.memory_reserved, reading.recovery_action) == (None, None)
