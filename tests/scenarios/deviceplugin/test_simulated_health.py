"""Simulated machines are well when nothing is switched, and ill the way the fault says.

::

    control file ──► simulated backend ──► inventory, readings, signals ──► Monitor
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from deviceplugin.backends.simulated import machine as simulatedmachine
from deviceplugin.backends.simulated.backend import Simulated
from deviceplugin.errors import BackendError
from deviceplugin.health.config import HealthConfig
from deviceplugin.health.monitor import Monitor
from deviceplugin.health.reports import condition
from deviceplugin.health.states import HealthState
from deviceplugin.model.signals import BackendUp, InventoryChanged, Signal

STEP_S = 10.0


@dataclass
class Watched:
    """A simulated machine and its monitor; time passes by hand."""

    backend: Simulated
    control: Path
    monitor: Monitor
    now: float = 0.0

    async def look(self) -> None:
        self.monitor.see(await self.backend.inventory(), self.now)

    async def measure(self, times: int = 1) -> None:
        for _ in range(times):
            self.now += STEP_S
            try:
                self.monitor.read(await self.backend.readings(), self.now)
            except BackendError:
                self.monitor.tick(self.now)

    async def switch(self, faults: dict[str, object], *, signals: int = 0) -> None:
        """Write the control file, hear so many signals, look again and measure."""
        self.control.write_text(yaml.safe_dump(faults))
        for _ in range(signals):
            self.hear(await asyncio.wait_for(self.backend.signal(), 20))
        await self.measure()

    def hear(self, signal: Signal) -> None:
        self.monitor.apply(signal, self.now)

    def gpus(self) -> list[str]:
        return [each.device for each in self.monitor.standings() if each.kind == "GPU"]

    def out(self) -> dict[str, list[str]]:
        """Return device → reasons, of those that pods are not given."""
        return {
            each.device: [str(cause.reason) for cause in each.causes]
            for each in self.monitor.standings()
            if not each.state.usable
        }


@asynccontextmanager
async def watched(machine: str, folder: Path) -> AsyncIterator[Watched]:
    control = folder / "faults.yaml"
    made = Simulated(simulatedmachine.load(machine), node="n1", control=control, poll_seconds=0.01)
    found = Watched(made, control, Monitor(HealthConfig()))
    try:
        await found.look()
        await found.measure()
        yield found
    finally:
        await made.close()


@pytest.mark.parametrize("machine", simulatedmachine.names())
async def test_every_machine_is_well_from_the_first_measurement_on(
    machine: str, tmp_path: Path
) -> None:
    async with watched(machine, tmp_path) as found:
        await found.measure(30)
        standings = found.monitor.standings()
        assert standings
        assert condition(standings).reason == "AllDevicesHealthy"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"recoveryAction": 1}, "RecoveryActionDue"),
        ({"linksDown": 3}, "NvLinkDown"),
        ({"remapFailed": True}, "RowRemapFailed"),
        ({"eccUncorrected": 1}, "UncorrectableEcc"),
        ({"temperature": 120}, "Overheated"),
    ],
)
async def test_a_fault_is_seen_at_the_next_measurement_and_gone_when_it_is_switched_off(
    fault: dict[str, object], reason: str, tmp_path: Path
) -> None:
    async with watched("dgx-h100", tmp_path) as found:
        third = found.gpus()[3]
        await found.switch({"gpus": {3: fault}})
        assert found.out() == {third: [reason]}
        await found.switch({})
        assert found.monitor.state(third) is HealthState.RECOVERING
        await found.measure(4)
        assert not found.out()


async def test_an_xid_takes_its_gpu_and_every_instance_on_it(tmp_path: Path) -> None:
    async with watched("dgx-h100/all-balanced", tmp_path) as found:
        first = found.gpus()[0]
        await found.switch({"gpus": {0: {"xids": [79]}}}, signals=1)
        parts = [each.device for each in found.monitor.standings() if each.parent == first]
        assert parts
        assert found.out() == {each: ["Xid"] for each in (first, *parts)}
        await found.measure(8)  # the driver asks for nothing, then the hold
        assert not found.out()


async def test_a_backend_that_is_down_takes_everything_until_it_is_back(tmp_path: Path) -> None:
    async with watched("dgx-a100", tmp_path) as found:
        everything = [each.device for each in found.monitor.standings()]
        await found.switch({"backend": {"down": "no driver"}}, signals=1)
        assert found.out() == {each: ["BackendDown"] for each in everything}
        found.control.write_text("")
        while True:
            heard = await asyncio.wait_for(found.backend.signal(), 20)
            found.hear(heard)
            if isinstance(heard, BackendUp):
                break
        await found.measure(4)
        assert not found.out()


async def test_a_nic_without_a_link_and_a_gpu_without_its_fabric_are_out(tmp_path: Path) -> None:
    async with watched("dgx-h100", tmp_path) as found:
        nic = next(each.device for each in found.monitor.standings() if each.kind == "NIC")
        second = found.gpus()[1]
        faults = {"gpus": {1: {"fabric": "in-progress"}}, "nics": {nic: {"down": [1]}}}
        found.control.write_text(yaml.safe_dump(faults))
        heard = await asyncio.wait_for(found.backend.signal(), 20)
        assert isinstance(heard, InventoryChanged)
        await found.look()
        await found.measure()
        assert found.out() == {second: ["FabricNotReady"], nic: ["PortsDown"]}
