"""Several backends as one: joined, and one that fails does not hide the others."""

import asyncio
from pathlib import Path

import pytest
from support.devices.sysfstree import SysfsTree

from deviceplugin.backends import rdma
from deviceplugin.backends.jointbackend import JointBackend
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.errors import BackendError
from deviceplugin.model.signals import BackendDown, BackendUp, DeviceLost, InventoryChanged
from deviceplugin.tools import faultswitch


def simulated(machine: str, control: Path) -> Simulated:
    return Simulated(load(machine), node="n", control=control, poll_seconds=0.005)


def switch(control: Path, **fields: str) -> None:
    before = faultswitch.read(control)
    after = faultswitch.with_fields(before, dict(fields)) if fields else faultswitch.without(before)
    faultswitch.write(control, after)


async def test_gpus_of_one_and_nics_of_another_are_one_inventory(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path)
    tree.nic("mlx5_40", "0000:18:00.0")
    one = JointBackend([simulated("pcie-t4", tmp_path / "f"), rdma.backend(tree.root)])
    found = await one.inventory()
    assert (len(found.gpus), [nic.name for nic in found.nics]) == (2, ["mlx5_40"])
    assert found.driver.version == "550.163.01"
    assert len(await one.readings()) == 3
    assert one.name == "simulated+rdma"


async def test_gpus_of_two_backends_are_numbered_through(tmp_path: Path) -> None:
    parts = [simulated("pcie-t4", tmp_path / "a"), simulated("mi300x", tmp_path / "b")]
    found = await JointBackend(parts).inventory()
    assert [gpu.index for gpu in found.gpus] == list(range(10))
    assert [gpu.minor for gpu in found.gpus] == [0, 1, *range(8)]


async def test_a_backend_that_fails_hides_no_other_and_its_devices_are_not_forgotten(
    tmp_path: Path,
) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    one = JointBackend([simulated("pcie-t4", first), simulated("mi300x", second)])
    before = await one.inventory()
    switch(first, down="driver reload")
    assert await one.inventory() == before
    assert len(await one.readings()) == 16
    assert await one.signal() == BackendDown("simulated", "simulated: driver reload")
    switch(first)
    assert await one.inventory() == before
    assert await one.signal() == BackendUp("simulated")
    await one.close()


async def test_what_one_says_by_itself_is_not_reported_twice(tmp_path: Path) -> None:
    control = tmp_path / "a"
    one = JointBackend([simulated("pcie-t4", control), simulated("mi300x", tmp_path / "b")])
    await one.inventory()
    switch(control, down="driver reload")
    assert isinstance(await one.signal(), BackendDown)
    await one.inventory()
    switch(control)
    assert isinstance(await one.signal(), BackendUp)
    faultswitch.write(
        control, faultswitch.with_fields(faultswitch.read(control), {"lost": "gone"}, gpu="0")
    )
    assert isinstance(await one.signal(), DeviceLost)
    await one.close()


async def test_only_when_nothing_was_ever_seen_is_there_an_error(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    switch(first, down="no driver")
    switch(second, down="no driver either")
    one = JointBackend([simulated("pcie-t4", first), simulated("mi300x", second)])
    with pytest.raises(BackendError, match=r"no driver; .*no driver either"):
        await one.inventory()
    with pytest.raises(BackendError):
        await one.readings()
    switch(second)
    assert len((await one.inventory()).gpus) == 8
    await one.close()


async def test_a_cancelled_wait_loses_no_ones_signal(tmp_path: Path) -> None:
    controls = [tmp_path / "a", tmp_path / "b"]
    machines = ("pcie-t4", "mi300x")
    one = JointBackend([simulated(m, c) for m, c in zip(machines, controls, strict=True)])
    await one.inventory()
    wait = asyncio.ensure_future(one.signal())
    await asyncio.sleep(0)
    for control in controls:
        faultswitch.write(
            control, faultswitch.with_fields(faultswitch.read(control), {"absent": True}, gpu="0")
        )
    wait.cancel()
    await asyncio.gather(wait, return_exceptions=True)
    reported = [await one.signal(), await one.signal()]
    assert all(isinstance(each, InventoryChanged) for each in reported)
    await one.close()


async def test_the_backend_that_knows_a_gpu_cuts_it(tmp_path: Path) -> None:
    parts = [simulated("mi300x", tmp_path / "a"), simulated("dgx-a100", tmp_path / "b")]
    one = JointBackend([*parts, rdma.backend(tmp_path)])
    found = await one.inventory()
    uuid = found.gpus[8].uuid
    await one.set_mig_mode(uuid, enabled=True)
    await one.cut(uuid, [], [("7g.80gb", 0)])
    mig = (await one.inventory()).gpus[8].mig
    assert mig is not None
    assert [instance.profile for instance in mig.instances] == ["7g.80gb"]
    with pytest.raises(BackendError, match="MI300X cannot be cut"):
        await one.cut(found.gpus[0].uuid, [], [])
    with pytest.raises(BackendError, match="GPU GPU-x: is not there"):
        await one.cut("GPU-x", [], [])
    await one.close()
