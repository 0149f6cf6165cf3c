"""Machines whose libnvidia-ml.so.1 is the stub, for the real binding in a real child process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.devices.nvmlmachine import Machine, build, h100, on_switches

from deviceplugin.backends.nvml.backend import NvmlBackend


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("old-nvml"), old_driver=True)


@pytest.fixture
def machine(tmp_path: Path, library: Path) -> Machine:
    """Two H100 on NVSwitches.

    GPU 0 ══18══ NVSwitches ══18══ GPU 1
    """
    made = Machine(tmp_path, library)
    made.say(h100(0), h100(1), *on_switches(0), *on_switches(1))
    made.say("set 0 mig_capable 1", "set 1 mig_capable 1")
    return made


@pytest.fixture
async def nvml(machine: Machine) -> AsyncIterator[NvmlBackend]:
    backend = machine.backend()
    yield backend
    await backend.close()
