"""GPUs as units of memory: how many, under which ids, and when there are too many."""

from dataclasses import replace

from support.devices.machines import inventory

from deviceplugin.model.inventory import Inventory
from deviceplugin.resources.advertisements import MOST_IDS, Advertisement, SharingMode
from deviceplugin.resources.advertising import advertise, shares_of
from deviceplugin.resources.settings import (
    MemorySlices,
    ResourceSettings,
    SharingRule,
    SharingSettings,
    SharingWays,
)

T4 = inventory("pcie-t4")
GPU_MEM = "aliyun.com/gpu-mem"


def sliced(node: Inventory, *slices: MemorySlices) -> Advertisement:
    return advertise(node, ResourceSettings(memory=slices))


def test_a_gpu_of_15_gib_is_fifteen_units_with_its_own_health() -> None:
    found = sliced(T4, MemorySlices(GPU_MEM))
    [units] = found.resources
    first, second = T4.gpus
    assert [device.id for device in units.devices if device.device == first.uuid] == [
        f"{first.uuid}::mem{number}" for number in range(15)
    ]
    assert {device.parents for device in units.devices} == {(first.uuid,), (second.uuid,)}
    assert (units.sharing, units.unit_mib, units.shares) == (SharingMode.MEMORY, 1024, 15)
    assert shares_of(found) == {first.uuid: 15, second.uuid: 15}


def test_what_is_left_of_a_unit_is_not_shown() -> None:
    [units] = sliced(T4, MemorySlices(GPU_MEM, unit_gib=4)).resources
    assert len(units.devices) == 2 * 3


def test_some_gpus_are_units_and_the_others_whole() -> None:
    found = sliced(T4, MemorySlices(GPU_MEM, devices=(1,)))
    shown = {each.resource: {d.device for d in each.devices} for each in found.resources}
    assert shown == {GPU_MEM: {T4.gpus[1].uuid}, "nvidia.com/gpu": {T4.gpus[0].uuid}}


def test_gpus_that_are_units_are_not_replicas_too() -> None:
    rule = SharingSettings((SharingRule("gpu", 2),))
    settings = ResourceSettings(
        memory=(MemorySlices(GPU_MEM, devices=(1,)),), sharing=SharingWays(rule)
    )
    found = advertise(T4, settings)
    gpus = found.of("nvidia.com/gpu")
    assert gpus is not None
    assert {device.device for device in gpus.devices} == {T4.gpus[0].uuid}


def test_instances_of_a_cut_gpu_are_no_units_of_memory() -> None:
    node = inventory("dgx-a100", cuts={0: "3g.40gb@0"})
    settings = ResourceSettings("mixed", memory=(MemorySlices(GPU_MEM),))
    [units, instances] = advertise(node, settings).resources
    assert (units.resource, instances.resource) == (GPU_MEM, "nvidia.com/mig-3g.40gb")
    assert node.gpus[0].uuid not in {device.device for device in units.devices}


def test_too_many_units_are_refused_with_the_unit_to_take_and_the_gpus_stay_whole() -> None:
    [gpu, _] = T4.gpus
    many = [replace(gpu, uuid=f"GPU-{n}", index=n, memory_mib=288 * 1024) for n in range(64)]
    node = replace(T4, gpus=tuple(many))
    found = sliced(node, MemorySlices(GPU_MEM))
    assert [each.resource for each in found.resources] == ["nvidia.com/gpu"]
    assert "makes 18432 ids" in found.problems[0].text
    assert "write unitGiB: 2" in found.problems[0].text
    [units] = sliced(node, MemorySlices(GPU_MEM, unit_gib=2)).resources
    assert len(units.devices) == 64 * 144 <= MOST_IDS


def test_a_gpu_smaller_than_a_unit_stays_whole() -> None:
    found = sliced(T4, MemorySlices(GPU_MEM, unit_gib=16))
    assert [each.resource for each in found.resources] == ["nvidia.com/gpu"]
    assert "unitGiB: 16 is more than" in found.problems[0].text
