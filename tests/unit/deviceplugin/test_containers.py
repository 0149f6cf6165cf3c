"""What containers get follows the specs on disk."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.containers import Containers, containers
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.inventory import Gpu, Inventory, PciPlace
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    Advertisement,
)

GPU = "nvidia.com/gpu"
NODE = Inventory(gpus=(Gpu("GPU-a", "H100", 81920, PciPlace("0000:1b:00.0"), 0),))
SHOWN = Advertisement(
    (Advertised(GPU, AdvertisedKind.GPU, (AdvertisedDevice("GPU-a", "GPU-a", ("GPU-a",)),)),)
)


def made(folder: Path) -> Containers:
    settings = AllocationSettings(cdi_folder=str(folder / "cdi"))
    found = containers(settings, folder)
    found.see(NODE, SHOWN)
    return found


def test_a_container_gets_a_name_that_is_on_disk(tmp_path: Path) -> None:
    found = made(tmp_path)
    assert found.give(GPU, ("GPU-a",)).cdi == ("nvidia.com/gpu=GPU-a",)
    assert (tmp_path / "cdi" / "muster-nvidia.com-gpu.json").exists()
    assert found.problem is None


def test_a_spec_that_somebody_removed_is_back_before_it_is_named(tmp_path: Path) -> None:
    found = made(tmp_path)
    (tmp_path / "cdi" / "muster-nvidia.com-gpu.json").unlink()
    found.give(GPU, ("GPU-a",))
    assert (tmp_path / "cdi" / "muster-nvidia.com-gpu.json").exists()


def test_a_spec_that_nvidias_toolkit_writes_later_takes_over(tmp_path: Path) -> None:
    """Two specs of one name would make the runtime refuse both."""
    found = made(tmp_path)
    theirs = "kind: nvidia.com/gpu\ndevices: [{name: GPU-a}, {name: all}]\n"
    (tmp_path / "etc" / "cdi").mkdir(parents=True)
    (tmp_path / "etc" / "cdi" / "nvidia.yaml").write_text(theirs)
    assert found.give(GPU, ("GPU-a",)).cdi == ("nvidia.com/gpu=GPU-a",)
    assert not (tmp_path / "cdi" / "muster-nvidia.com-gpu.json").exists()


def test_gpus_without_driver_libraries_are_reported_once_until_the_toolkit_has_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gpus = (replace(NODE.gpus[0], files=("/dev/nvidia0",)),)
    real = replace(NODE, gpus=gpus, gpu_files=("/dev/nvidia-uvm",))
    found = containers(AllocationSettings(cdi_folder=str(tmp_path / "cdi")), tmp_path)
    found.see(real, SHOWN)
    found.see(replace(real, machine="another look"), SHOWN)
    assert [record.message for record in caplog.records if "no driver libraries" in record.message]
    assert len(caplog.records) == 1
    (tmp_path / "etc" / "cdi").mkdir(parents=True)
    theirs = "kind: nvidia.com/gpu\ndevices: [{name: GPU-a}]\n"
    (tmp_path / "etc" / "cdi" / "nvidia.yaml").write_text(theirs)
    found.see(real, SHOWN)
    assert len(caplog.records) == 1


def test_simulated_gpus_need_no_driver(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made(tmp_path)
    assert not caplog.records


def test_without_a_spec_nothing_is_given_until_there_is_room_again(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("in the way")
    found = made(tmp_path)
    with pytest.raises(AllocationRefused) as error:
        found.give(GPU, ("GPU-a",))
    assert error.value.cause is RefusalCause.NOT_WRITABLE
    (tmp_path / "cdi").unlink()
    assert found.give(GPU, ("GPU-a",)).cdi
    assert found.problem is None


def test_where_devices_come_otherwise_no_spec_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "cdi"
    settings = AllocationSettings(device_list_strategy="envvar", cdi_folder=str(folder))
    found = containers(settings, tmp_path)
    found.see(NODE, SHOWN)
    assert found.give(GPU, ("GPU-a",)).envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-a"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("strategy", "times"), [("cdi-cri", 1), ("device-specs", 1), ("envvar", 0)]
)
def test_a_node_without_the_file_of_unified_memory_is_told_once_while_it_lacks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, strategy: Any, times: int
) -> None:
    """NVIDIA's runtime, which reads the variable, makes the file itself."""
    settings = AllocationSettings(cdi_folder=str(tmp_path / "cdi"), device_list_strategy=strategy)
    found = containers(settings, tmp_path)
    lacking = replace(NODE, gpus=(replace(NODE.gpus[0], files=("/dev/nvidia0",)),))
    there = replace(lacking, gpu_files=("/dev/nvidiactl", "/dev/nvidia-uvm"))

    def told() -> int:
        return sum("cuInit" in record.getMessage() for record in caplog.records)

    for inventory in (NODE, there, lacking, lacking):
        found.see(inventory, SHOWN)
    assert told() == times
    found.see(there, SHOWN)
    found.see(lacking, SHOWN)
    assert told() == 2 * times
