"""`muster device-plugin look`, and that what it keeps of a machine is enough to test with."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from support.devices.nvmlmachine import Machine, uuid

from deviceplugin.backends.nvml import sysfs
from deviceplugin.backends.nvml.backend import NvmlBackend
from deviceplugin.backends.nvml.inventory import inventory_of
from deviceplugin.backends.nvml.wire import Looked
from deviceplugin.tools import nvmlreport


@pytest.fixture
def here(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setenv("NVMLSTUB", str(machine.state))
    return machine


def test_it_prints_a_line_for_each_gpu(here: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert nvmlreport.main(["--library", str(here.library)]) == 0
    driver, first, second = capsys.readouterr().out.splitlines()
    assert driver == "driver 570.86.15, CUDA 12.8"
    assert first.startswith(f"0 {uuid(0)} NVIDIA H100 80GB HBM3 81559 MiB 0000:1b:00.0 NUMA")
    assert second.endswith("40 °C")


def test_it_prints_inventory_and_readings_as_json(
    here: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nvmlreport.main(["--json", "--library", str(here.library)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [gpu["uuid"] for gpu in told["inventory"]["gpus"]] == [uuid(0), uuid(1)]
    assert told["toSwitches"] == {uuid(0): 18, uuid(1): 18}
    assert told["readings"][0]["temperature"] == 40


async def test_facts_that_were_kept_make_the_same_inventory(
    machine: Machine, nvml: NvmlBackend
) -> None:
    machine.say("set 0 mig 1")
    await nvml.cut(uuid(0), (), [("3g.40gb", 4)])
    kept = nvmlreport._json(await nvml.facts())
    facts = msgspec.json.decode(kept, type=Looked)
    around = sysfs.surroundings(machine.root)
    assert inventory_of(facts, facts.gpus, around) == await nvml.inventory()


def test_a_machine_without_the_library_is_told_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "LD_LIBRARY_PATH" in os.environ or Path("/dev/nvidiactl").exists():
        pytest.skip("this machine may have the library")
    assert nvmlreport.main(["--library", str(tmp_path)]) == 1
    assert "libnvidia-ml.so.1 is not found: install" in capsys.readouterr().err
