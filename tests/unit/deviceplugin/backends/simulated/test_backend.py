"""Faults of a simulated machine, switched while it runs."""

from pathlib import Path

import pytest

from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.backends.simulated.machine import load
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import FabricState
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    GpuReading,
    InventoryChanged,
    NicReading,
    Signal,
    Xid,
)
from deviceplugin.tools import faultswitch


class Bench:
    """A machine with its control file; a test waits for signals that must come."""

    def __init__(self, control: Path, machine: str = "dgx-h100") -> None:
        self.control = control
        self.machine = machine
        self.backend = self.started()

    def started(self) -> Simulated:
        machine = load(self.machine)
        return Simulated(machine, node="n", control=self.control, poll_seconds=0.005)

    def fault(self, *arguments: str) -> None:
        assert faultswitch.main([str(self.control), *arguments]) == 0

    async def reported(self) -> Signal:
        return await self.backend.signal()

    async def gpu(self, index: int) -> GpuReading:
        readings = await self.backend.readings()
        found = readings[index]
        assert isinstance(found, GpuReading)
        return found

    async def uuid(self, index: int) -> str:
        return (await self.backend.inventory()).gpus[index].uuid


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "faults.yaml")


async def test_an_xid_is_reported_once_each_time_it_is_reported(bench: Bench) -> None:
    uuid = await bench.uuid(2)
    for _ in range(2):
        bench.fault("xid", "48", "--gpu", "2")
        assert await bench.reported() == Xid(uuid, 48)
    bench.fault("xid", "94", "--gpu", "2", "--gpu-instance", "3")
    assert await bench.reported() == Xid(uuid, 94, 3, 0)


async def test_xids_of_before_the_start_are_history_as_with_nvml(bench: Bench) -> None:
    bench.fault("xid", "79", "--gpu", "0")
    bench.backend = bench.started()
    bench.fault("xid", "48", "--gpu", "1")
    assert await bench.reported() == Xid(await bench.uuid(1), 48)


async def test_what_is_lost_at_the_start_is_reported(bench: Bench) -> None:
    uuid = await bench.uuid(3)
    bench.fault("xid", "79", "--gpu", "3")
    bench.fault("set", "lost=gone", "--gpu", "3")
    bench.backend = bench.started()
    assert await bench.reported() == DeviceLost(uuid, "gone")


async def test_readings_are_what_the_file_says_and_well_again_without_it(bench: Bench) -> None:
    before = await bench.gpu(0)
    assert (before.temperature, before.slowdown_at, before.ecc_uncorrected) == (34, 89, 0)
    bench.fault("set", "temperature=93", "eccUncorrected=2", "remapPending=true", "--gpu", "0")
    sick = await bench.gpu(0)
    assert (sick.temperature, sick.ecc_uncorrected, sick.remap_pending) == (93, 2, True)
    assert (await bench.gpu(1)).temperature == 34
    bench.fault("well", "--gpu", "0")
    assert await bench.gpu(0) == before


async def test_a_fault_of_all_gpus_spares_those_with_lines_of_their_own(bench: Bench) -> None:
    bench.fault("set", "temperature=80", "--gpu", "all")
    bench.fault("set", "powerLimit=500", "--gpu", "1")
    assert (await bench.gpu(0)).temperature == 80
    assert (await bench.gpu(1)).temperature == 34


async def test_a_lost_gpu_is_reported_stays_in_the_inventory_and_measures_nothing(
    bench: Bench,
) -> None:
    uuid, before = await bench.uuid(3), await bench.backend.inventory()
    bench.fault("set", "lost=fallen off the bus", "--gpu", "3")
    assert await bench.reported() == DeviceLost(uuid, "fallen off the bus")
    assert await bench.backend.inventory() == before
    assert await bench.gpu(3) == GpuReading(uuid)
    bench.fault("well", "--gpu", "3")
    reported = await bench.reported()
    assert isinstance(reported, InventoryChanged)
    assert uuid in reported.reason
    assert (await bench.gpu(3)).temperature == 34


async def test_a_gpu_is_taken_out_and_put_in_again(bench: Bench) -> None:
    before = await bench.backend.inventory()
    bench.fault("set", "absent=true", "--gpu", "7")
    assert isinstance(await bench.reported(), InventoryChanged)
    without = await bench.backend.inventory()
    assert without.gpus == before.gpus[:7]
    assert len(without.links.to_switches) == 7
    bench.fault("well")
    assert isinstance(await bench.reported(), InventoryChanged)
    assert await bench.backend.inventory() == before


async def test_a_fabric_that_is_not_ready_is_seen(bench: Bench) -> None:
    bench.fault("set", "fabric=in-progress", "--gpu", "all")
    assert isinstance(await bench.reported(), InventoryChanged)
    states = {gpu.fabric.state for gpu in (await bench.backend.inventory()).gpus}
    assert states == {FabricState.IN_PROGRESS}


async def test_a_port_goes_down_and_a_nic_is_lost(bench: Bench) -> None:
    bench.fault("set", "down=[1]", "--nic", "mlx5_4")
    assert isinstance(await bench.reported(), InventoryChanged)
    assert NicReading("mlx5_4", ((1, False),)) in await bench.backend.readings()
    bench.fault("set", "lost=gone", "--nic", "mlx5_5")
    assert await bench.reported() == DeviceLost("mlx5_5", "gone")


@pytest.mark.parametrize("how", ["down", "hangs"])
async def test_while_the_backend_is_down_all_that_happens_waits(
    bench: Bench, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deviceplugin.backends.simulated.backend.HANG_SECONDS", 0.01)
    uuid = await bench.uuid(0)
    bench.fault("set", f"{how}=driver is stuck", "--backend")
    assert await bench.reported() == BackendDown("simulated", "driver is stuck")
    bench.fault("xid", "79", "--gpu", "0")
    for asked in (bench.backend.inventory, bench.backend.readings):
        with pytest.raises(BackendError, match="driver is stuck"):
            await asked()
    bench.fault("well", "--backend")
    assert await bench.reported() == BackendUp("simulated")
    assert await bench.reported() == Xid(uuid, 79)


# --- mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("gpus: {8: {lost: x}}", ["gpus: 8", "0 to 7"]),
        ("gpus: {GPU-1: {lost: x}}", ["GPU-1"]),
        ("nics: {mlx4_0: {lost: x}}", ["mlx4_0", "mlx5_11"]),
        ("gpus: {0: {temprature: 3}}", ["temprature"]),
        ("gpus: {0: {temperature: hot}}", ["temperature"]),
        ("gpus: {0: {fabric: torn}}", ["fabric", "torn"]),
        ("version: 2", ["version", "2"]),
        ("gpus: [", ["YAML"]),
        ("\0", ["YAML"]),
    ],
)
async def test_a_file_that_cannot_be_read_takes_the_backend_down_until_it_can(
    bench: Bench, text: str, reported: list[str]
) -> None:
    bench.control.write_text(text)
    down = await bench.reported()
    assert isinstance(down, BackendDown)
    for part in (bench.control.name, *reported):
        assert part in down.reason
    with pytest.raises(BackendError):
        await bench.backend.inventory()
    bench.control.unlink()
    assert await bench.reported() == BackendUp("simulated")


async def test_a_gpu_has_its_faults_under_one_name(bench: Bench) -> None:
    uuid = await bench.uuid(2)
    bench.fault("xid", "79", "--gpu", uuid)
    assert await bench.reported() == Xid(uuid, 79)
    bench.fault("xid", "79", "--gpu", "2")
    down = await bench.reported()
    assert isinstance(down, BackendDown)
    assert "GPU 2 is there by its index and by its UUID" in down.reason


async def test_a_backend_started_on_a_broken_file_says_so(tmp_path: Path) -> None:
    control = tmp_path / "faults.yaml"
    control.write_text("gpus: 3")
    assert isinstance(await Bench(control).reported(), BackendDown)


@pytest.mark.parametrize(
    "arguments",
    [
        ["set", "temprature=3", "--gpu", "0"],
        ["set", "temperature=hot", "--gpu", "0"],
        ["set", "temperature", "--gpu", "0"],
        ["set", "lost=[", "--gpu", "0"],
    ],
)
def test_the_command_refuses_nonsense_and_leaves_the_file(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    control = tmp_path / "faults.yaml"
    assert faultswitch.main([str(control), "xid", "79", "--gpu", "0"]) == 0
    before = control.read_bytes()
    assert faultswitch.main([str(control), *arguments]) == 2
    assert control.read_bytes() == before
    assert arguments[1].partition("=")[0] in capsys.readouterr().err
    assert [entry.name for entry in tmp_path.iterdir()] == [control.name]
