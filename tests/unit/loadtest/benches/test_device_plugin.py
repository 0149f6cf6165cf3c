"""The machines that the bench makes up are such as the plugin takes."""

from pathlib import Path

import pytest

from deviceplugin.backends.simulated import machine as simulatedmachine
from loadtest.benches.device_plugin import _machine


@pytest.mark.parametrize("devices", [8, 64, 512])
def test_a_machine_of_any_size_loads_and_has_so_many_gpus(devices: int, tmp_path: Path) -> None:
    machine = simulatedmachine.load(_machine(tmp_path, devices))
    assert len(machine.gpus) == devices
