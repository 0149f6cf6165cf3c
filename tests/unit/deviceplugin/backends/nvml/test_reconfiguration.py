"""Cutting GPUs as a label says, by NVML, with a driver that fails in the middle."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from support.devices.nvmlmachine import BRIEF, Machine

from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.errors import BackendError
from deviceplugin.mig import builtin
from deviceplugin.mig.reconfiguration import LayoutProgress, LayoutState, Reconfigurer

# The stub's ids of what all-balanced makes: 3g is 9, 2g is 14, 1g is 19.
BALANCED = [(9, 4), (14, 0), (19, 2), (19, 3)]


async def apply(backend: NvmlBackend, layout: str, in_use: Sequence[str] = ()) -> LayoutProgress:
    async def ignored(_: object) -> None:
        pass

    return await Reconfigurer(
        backend,
        layouts=lambda inventory: builtin.layouts(inventory.gpus),
        in_use=lambda: in_use,
        hold=ignored,
        report=ignored,
    ).apply(layout)


def cut_of(machine: Machine, gpu: int) -> list[tuple[int, int]]:
    """Return (profile id, start) of whole instances."""
    found = [i for i in machine.instances() if i[0] == gpu]
    assert all(compute == 0 for *_, compute in found), "a GPU instance without compute instance"
    return sorted((profile, start) for _, _, profile, start, _, _ in found)


async def test_gpus_are_cut_and_made_whole_again(machine: Machine, nvml: NvmlBackend) -> None:
    assert await apply(nvml, "all-balanced") == LayoutProgress("all-balanced", LayoutState.SUCCESS)
    assert [cut_of(machine, gpu) for gpu in (0, 1)] == [BALANCED] * 2
    assert await apply(nvml, "all-disabled") == LayoutProgress("all-disabled", LayoutState.SUCCESS)
    assert machine.instances() == []
    assert not any(gpu.mig and gpu.mig.enabled for gpu in (await nvml.inventory()).gpus)


async def test_a_driver_that_tells_places_only_once_mig_is_on_is_asked_again(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 places_told 0", "set 1 places_told 0")
    assert (await apply(nvml, "all-balanced")).state is LayoutState.SUCCESS
    assert cut_of(machine, 0) == BALANCED


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceCreateGpuInstanceWithPlacement",
        "nvmlGpuInstanceCreateComputeInstance",
        "nvmlDeviceSetMigMode",
    ],
)
async def test_a_child_killed_in_the_middle_of_a_change_leaves_what_the_next_attempt_mends(
    machine: Machine, call: str
) -> None:
    """The call hangs, the child is killed in it, and half an instance may be left behind."""
    backend = machine.backend(replace(BRIEF, slow_s=1.5))
    await backend.inventory()
    machine.say(f"hang {call}")
    ended = await apply(backend, "all-balanced")
    assert ended.state is LayoutState.FAILED
    assert "hangs" in ended.reason
    machine.unsay(f"hang {call}")
    while True:
        try:
            await backend.inventory()
            break
        except BackendError:
            await backend.signal()
    assert (await apply(backend, "all-balanced")).state is LayoutState.SUCCESS
    assert [cut_of(machine, gpu) for gpu in (0, 1)] == [BALANCED] * 2
    await backend.close()


async def test_an_instance_that_the_driver_holds_fails_its_gpu_and_no_other(
    machine: Machine, nvml: NvmlBackend
) -> None:
    """A process outside Kubernetes: the plugin does not know of it, the driver does."""
    await apply(nvml, "all-7g.80gb")
    machine.say("set 1 in_use 1")
    ended = await apply(nvml, "all-balanced")
    assert ended.state is LayoutState.FAILED
    assert "In use by another client" in ended.reason
    assert [cut_of(machine, gpu) for gpu in (0, 1)] == [BALANCED, [(0, 0)]]
