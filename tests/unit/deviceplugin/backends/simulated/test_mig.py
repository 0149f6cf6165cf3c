"""What cutting a simulated GPU refuses, and with which words."""

from pathlib import Path

import pytest

from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import GpuMig
from deviceplugin.model.signals import InventoryChanged
from deviceplugin.tools import faultswitch


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "faults.yaml"


def started(control: Path, machine: str = "dgx-a100") -> Simulated:
    return Simulated(load(machine), node="n", control=control, poll_seconds=0.005)


async def first(backend: Simulated) -> tuple[str, GpuMig]:
    gpu = (await backend.inventory()).gpus[0]
    assert gpu.mig is not None
    return gpu.uuid, gpu.mig


async def test_mig_is_switched_on_cut_uncut_and_switched_off(control: Path) -> None:
    backend = started(control)
    uuid, mig = await first(backend)
    assert not mig.enabled
    await backend.set_mig_mode(uuid, enabled=True)
    await backend.cut(uuid, [], [("3g.40gb", 4), ("2g.20gb", 0)])
    _, mig = await first(backend)
    assert [(i.profile, i.start) for i in mig.instances] == [("2g.20gb", 0), ("3g.40gb", 4)]
    await backend.cut(uuid, [i.uuid for i in mig.instances], [])
    await backend.set_mig_mode(uuid, enabled=False)
    _, mig = await first(backend)
    assert not mig.enabled
    for _ in range(4):
        assert isinstance(await backend.signal(), InventoryChanged)


@pytest.mark.parametrize(
    ("make", "reported"),
    [
        ([("3g.40gb", 1)], "3g.40gb@1: cannot start there; allowed are 0, 4"),
        ([("4g.40gb", 0), ("4g.40gb", 0)], "memory slice 0 is taken by 4g.40gb@0"),
        ([("1g.5gb", 0)], "profile '1g.5gb' is not known; allowed are 1g.10gb"),
        ([("1g.10gb+me", 0), ("1g.10gb+me", 1)], "the media engines are taken"),
    ],
)
async def test_places_that_the_card_has_not_are_refused(
    control: Path, make: list[tuple[str, int]], reported: str
) -> None:
    backend = started(control)
    uuid, _ = await first(backend)
    await backend.set_mig_mode(uuid, enabled=True)
    with pytest.raises(BackendError, match=reported.replace("+", r"\+")):
        await backend.cut(uuid, [], make)


async def test_what_is_in_use_is_neither_cut_nor_switched(control: Path) -> None:
    backend = started(control, "dgx-a100/all-3g.40gb")
    uuid, mig = await first(backend)
    faultswitch.main([str(control), "set", "inUse=true", "--gpu", "0"])
    with pytest.raises(BackendError, match="in use"):
        await backend.cut(uuid, [mig.instances[0].uuid], [])
    faultswitch.main([str(control), "well"])
    with pytest.raises(BackendError, match="remove its instances"):
        await backend.set_mig_mode(uuid, enabled=False)
    assert (await first(backend))[1] == mig


async def test_a_mode_that_waits_for_a_reset_is_pending(control: Path) -> None:
    backend = started(control)
    uuid, _ = await first(backend)
    faultswitch.main([str(control), "set", "resetDue=true", "--gpu", "0"])
    with pytest.raises(BackendError, match="a reset of the GPU is due"):
        await backend.set_mig_mode(uuid, enabled=True)
    _, mig = await first(backend)
    assert (mig.enabled, mig.pending) == (False, True)
    faultswitch.main([str(control), "well"])
    await backend.set_mig_mode(uuid, enabled=True)
    assert (await first(backend))[1].enabled


@pytest.mark.parametrize(
    ("machine", "gpu", "reported"),
    [
        ("dgx-a100", "GPU-none", "GPU GPU-none: is not there"),
        ("pcie-t4", "", "Tesla T4 cannot be cut"),
        ("dgx-a100", "", "MIG is off"),
    ],
)
async def test_gpus_that_cannot_be_cut_are_reported_by_name(
    control: Path, machine: str, gpu: str, reported: str
) -> None:
    backend = started(control, machine)
    uuid = gpu or (await backend.inventory()).gpus[0].uuid
    with pytest.raises(BackendError, match=reported):
        await backend.cut(uuid, [], [("1g.10gb", 0)])


async def test_a_lost_gpu_and_an_unknown_instance_are_refused(control: Path) -> None:
    backend = started(control, "dgx-a100/all-3g.40gb")
    uuid, _ = await first(backend)
    with pytest.raises(BackendError, match="instance MIG-x: is not there"):
        await backend.cut(uuid, ["MIG-x"], [])
    faultswitch.main([str(control), "set", "lost=gone", "--gpu", "0"])
    with pytest.raises(BackendError, match="is lost: gone"):
        await backend.cut(uuid, [], [])
