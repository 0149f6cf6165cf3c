"""What the NVML backend measures."""

import pytest
from support.devices.nvmlmachine import Machine, uuid

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.model.signals import GpuReading


async def test_a_reading_has_every_figure(machine: Machine, nvml: NvmlBackend) -> None:
    machine.say("set 0 temperature 61", "set 0 utilisation 97", "set 0 used 70000")
    machine.say("set 0 reserved 500", "set 0 power 643210", "set 0 sbe 12", "set 0 dbe 1")
    machine.say("set 0 remapped 2", "set 0 remap_pending 1", "set 0 recovery 4")
    reading = (await nvml.readings())[0]
    assert reading == GpuReading(
        uuid=uuid(0),
        temperature=61,
        slowdown_at=89,
        utilisation=97,
        memory_used=70000,
        memory_free=81559 - 70500,
        memory_reserved=500,
        power=643.21,
        power_limit=700.0,
        sm_clock=1980,
        ecc_corrected=12,
        ecc_uncorrected=1,
        rows_remapped_uncorrectable=2,
        remap_pending=True,
        remap_failed=False,
        links_down=0,
        recovery_action=4,
    )


async def test_a_driver_that_tells_the_margin_to_slowing_down_tells_its_temperature(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 slowdown 0", "set 0 temperature 50", "set 0 margin 37")
    assert (await nvml.readings())[0].slowdown_at == 87
    machine.say("set 0 slow_tlimit -2")  # relative to the highest operating temperature
    assert (await nvml.readings())[0].slowdown_at == 89


async def test_utilisation_is_not_told_of_a_gpu_that_is_cut(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 mig 1")
    assert (await nvml.readings())[0].utilisation is None


async def test_a_link_that_was_up_and_is_not_any_more_is_down(
    machine: Machine, nvml: NvmlBackend
) -> None:
    await nvml.inventory()
    await nvml.readings()
    machine.say("link 1 3 0 2 -", "link 1 4 0 2 -")
    assert [r.links_down for r in await nvml.readings()] == [0, 2]


async def test_a_link_that_never_was_up_is_down_where_its_sister_on_the_switches_has_it(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("link 0 17 0 2 -")
    await nvml.inventory()
    assert [r.links_down for r in await nvml.readings()] == [1, 0]


@pytest.mark.parametrize("links", [0, 4])
async def test_links_that_were_never_plugged_are_not_down(
    machine: Machine, nvml: NvmlBackend, links: int
) -> None:
    """Cards without switches: some of their links are bridged, or none."""
    machine.say(*[f"link {gpu} {n} 0 0 -" for gpu in (0, 1) for n in range(links, 18)])
    machine.say(*[f"link 0 {n} 1 0 00000000:2B:00.0" for n in range(links)])
    machine.say(*[f"link 1 {n} 1 0 00000000:1B:00.0" for n in range(links)])
    await nvml.inventory()
    assert [r.links_down for r in await nvml.readings()] == [0, 0]
