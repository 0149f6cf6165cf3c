"""Cutting GPUs by NVML: all of a change or none of it."""

import pytest
from support.devices.nvmlmachine import Machine, uuid

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import GpuMig, MigInstance
from deviceplugin.model.signals import InventoryChanged, Xid


async def mig(nvml: NvmlBackend) -> GpuMig:
    told = (await nvml.inventory()).gpus[0].mig
    assert told is not None
    return told


async def places(nvml: NvmlBackend) -> list[str]:
    return sorted(f"{i.profile}@{i.start}" for i in (await mig(nvml)).instances)


async def standing(nvml: NvmlBackend, *wanted: tuple[str, int]) -> tuple[MigInstance, ...]:
    await nvml.set_mig_mode(uuid(0), enabled=True)
    await nvml.cut(uuid(0), (), wanted)
    return (await mig(nvml)).instances


async def test_mig_is_switched_on_and_off(nvml: NvmlBackend) -> None:
    await nvml.set_mig_mode(uuid(0), enabled=True)
    assert (await mig(nvml)).enabled
    await nvml.set_mig_mode(uuid(0), enabled=True)
    await nvml.set_mig_mode(uuid(0), enabled=False)
    assert not (await mig(nvml)).enabled


async def test_events_are_registered_anew_after_mig_was_switched(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """The switch resets the GPU, and nothing is heard of it by whom was registered before."""
    await nvml.set_mig_mode(uuid(0), enabled=True)
    assert await nvml.signal() == InventoryChanged(f"MIG mode of {uuid(0)} was switched")
    await nvml.inventory()
    machine.say(f"xid 1 0 79 {0xFFFFFFFF} {0xFFFFFFFF}")
    assert await nvml.signal() == Xid(uuid(0), 79)


async def test_a_mode_that_waits_for_a_reset_is_refused_with_what_to_do(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """As on an A100; a Hopper switches at once."""
    machine.say("set 0 mig_needs_reset 1")
    with pytest.raises(BackendError, match=rf"nvidia-smi --gpu-reset -i {uuid(0)}"):
        await nvml.set_mig_mode(uuid(0), enabled=True)
    told = await mig(nvml)
    assert (told.enabled, told.pending) == (False, True)


async def test_a_plugin_that_may_not_cut_is_told_what_it_needs(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("fail nvmlDeviceSetMigMode 0 4")
    with pytest.raises(BackendError, match="needs CAP_SYS_ADMIN or the capability mig/config"):
        await nvml.set_mig_mode(uuid(0), enabled=True)


async def test_a_gpu_without_mig_is_refused(machine: Machine, nvml: NvmlBackend) -> None:
    machine.say("set 1 mig_capable 0")
    with pytest.raises(BackendError, match="cannot be cut"):
        await nvml.set_mig_mode(uuid(1), enabled=True)


async def test_instances_are_made_where_they_are_asked_for(nvml: NvmlBackend) -> None:
    await standing(nvml, ("3g.40gb", 4), ("1g.10gb", 0), ("2g.20gb", 2))
    assert await places(nvml) == ["1g.10gb@0", "2g.20gb@2", "3g.40gb@4"]


async def test_others_stay_while_one_is_removed_and_another_made(nvml: NvmlBackend) -> None:
    instances = await standing(nvml, ("3g.40gb", 4), ("1g.10gb", 0))
    small = next(i for i in instances if i.start == 0)
    await nvml.cut(uuid(0), [small.uuid], [("2g.20gb", 0)])
    assert await places(nvml) == ["2g.20gb@0", "3g.40gb@4"]
    assert {i.uuid for i in instances} & {i.uuid for i in (await mig(nvml)).instances}


async def test_what_does_not_fit_leaves_everything_as_it_was(nvml: NvmlBackend) -> None:
    instances = await standing(nvml, ("3g.40gb", 4), ("1g.10gb", 0))
    small = next(i for i in instances if i.start == 0)
    with pytest.raises(BackendError, match="what stood before stands again"):
        await nvml.cut(uuid(0), [small.uuid], [("2g.20gb", 0), ("7g.80gb", 0)])
    assert await places(nvml) == ["1g.10gb@0", "3g.40gb@4"]


async def test_an_instance_in_use_is_not_removed(machine: Machine, nvml: NvmlBackend) -> None:
    instances = await standing(nvml, ("3g.40gb", 4), ("1g.10gb", 0))
    busy = next(i for i in instances if i.start == 4)
    machine.say(f"set 0 in_use {busy.gpu_instance}")
    with pytest.raises(BackendError, match="In use by another client"):
        await nvml.cut(uuid(0), [i.uuid for i in instances], [])
    assert await places(nvml) == ["1g.10gb@0", "3g.40gb@4"]


async def test_an_instance_that_is_not_there_stops_the_change_before_it_begins(
    nvml: NvmlBackend,
) -> None:
    instances = await standing(nvml, ("1g.10gb", 0))
    with pytest.raises(BackendError, match="MIG-nobody is to go and is not there"):
        await nvml.cut(uuid(0), [instances[0].uuid, "MIG-nobody"], [])
    assert await places(nvml) == ["1g.10gb@0"]


async def test_an_unknown_profile_is_refused_with_those_that_there_are(nvml: NvmlBackend) -> None:
    await nvml.set_mig_mode(uuid(0), enabled=True)
    with pytest.raises(BackendError, match=r"no MIG profile 9g.99gb; it has 1g.10gb, 2g.20gb"):
        await nvml.cut(uuid(0), [], [("9g.99gb", 0)])
    with pytest.raises(BackendError, match="no GPU of that UUID answers"):
        await nvml.cut("GPU-nobody", [], [])


async def test_what_a_broken_off_change_left_half_made_is_swept_by_the_next(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """A GPU instance without compute instance shows as no device and takes room all the same."""
    await nvml.set_mig_mode(uuid(0), enabled=True)
    machine.say(f"fail nvmlGpuInstanceCreateComputeInstance 0 {999}")
    machine.say(f"fail nvmlGpuInstanceDestroy 0 {999}")
    with pytest.raises(BackendError, match="could not be made again"):
        await nvml.cut(uuid(0), [], [("7g.80gb", 0)])
    assert len(machine.instances()) == 1
    assert await places(nvml) == []
    machine.unsay("fail nvmlGpuInstanceCreateComputeInstance 0 999")
    machine.unsay("fail nvmlGpuInstanceDestroy 0 999")
    await nvml.cut(uuid(0), [], [("3g.40gb", 0)])
    assert await places(nvml) == ["3g.40gb@0"]
    assert len(machine.instances()) == 1
