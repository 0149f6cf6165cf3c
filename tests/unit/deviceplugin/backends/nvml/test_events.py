"""Events of the driver, as signals."""

import asyncio

import pytest
from support.devices.nvmlmachine import Machine, uuid

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.model.signals import DeviceLost, Signal, Xid

WELL_WITHIN_S = 30.0
WHOLE = 0xFFFFFFFF


async def next_of(backend: NvmlBackend) -> Signal:
    async with asyncio.timeout(WELL_WITHIN_S):
        return await backend.signal()


async def test_an_xid_is_told_of_its_gpu(machine: Machine, nvml: NvmlBackend) -> None:
    await nvml.inventory()
    machine.say(f"xid 1 1 79 {WHOLE} {WHOLE}")
    assert await next_of(nvml) == Xid(uuid(1), 79)


async def test_an_xid_of_a_mig_instance_names_the_instance(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    machine.say("xid 1 0 94 3 0")
    assert await next_of(nvml) == Xid(uuid(0), 94, gpu_instance=3, compute_instance=0)


async def test_every_xid_of_a_burst_is_told_once_and_in_order(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    machine.say(*[f"xid {n} {n % 2} {40 + n} {WHOLE} {WHOLE}" for n in range(1, 21)])
    told = [await next_of(nvml) for _ in range(20)]
    assert told == [Xid(uuid(n % 2), 40 + n) for n in range(1, 21)]


async def test_an_xid_from_before_the_start_is_not_told(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """The driver keeps none; what it did to the GPU is in the readings."""
    machine.say(f"xid 1 0 48 {WHOLE} {WHOLE}")
    await nvml.inventory()
    machine.say(f"xid 2 0 79 {WHOLE} {WHOLE}")
    assert await next_of(nvml) == Xid(uuid(0), 79)


async def test_an_xid_is_told_though_nobody_asked_for_anything_yet(
    machine: Machine, nvml: NvmlBackend
) -> None:
    waiting = asyncio.create_task(nvml.signal())
    await nvml.readings()
    machine.say(f"xid 1 0 79 {WHOLE} {WHOLE}")
    async with asyncio.timeout(WELL_WITHIN_S):
        assert await waiting == Xid(uuid(0), 79)


async def test_a_cancelled_wait_loses_no_signal(machine: Machine, nvml: NvmlBackend) -> None:
    await nvml.inventory()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(nvml.signal(), 0.01)
    machine.say(f"xid 1 0 79 {WHOLE} {WHOLE}")
    assert await next_of(nvml) == Xid(uuid(0), 79)


async def test_a_changed_recovery_action_is_told_as_the_xid_that_means_it(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    machine.say(f"event 1 0 {0x8000} 0")
    assert await next_of(nvml) == Xid(uuid(0), 154)


async def test_a_gpu_that_the_driver_calls_unavailable_is_lost(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    machine.say(f"event 1 1 {0x4000} 0")
    told = await next_of(nvml)
    assert isinstance(told, DeviceLost)
    assert told.device == uuid(1)


async def test_a_lost_gpu_does_not_hide_the_xids_of_the_others(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """A wait on a set with a lost GPU in it returns at once and tells nothing."""
    await nvml.inventory()
    machine.say("set 0 lost 15", f"xid 1 1 79 {WHOLE} {WHOLE}")
    told = [await next_of(nvml), await next_of(nvml)]
    assert isinstance(told[0], DeviceLost)
    assert told[1] == Xid(uuid(1), 79)
