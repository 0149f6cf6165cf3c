"""CDI specs on a real disk: whole or not at all, and nobody else's files touched."""

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from deviceplugin.cdi.writer import Writer
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.inventory import Gpu, Inventory, PciPlace

PLACE = PciPlace("0000:1b:00.0")
ONE = Inventory(gpus=(Gpu("GPU-a", "H100", 81920, PLACE, 0),))
TWO = replace(ONE, gpus=(*ONE.gpus, Gpu("GPU-b", "H100", 81920, PLACE, 1)))
SPEC = "muster-nvidia.com-gpu.json"


def writer(folder: Path) -> Writer:
    return Writer(folder / "cdi", others=(folder / "etc",))


def named(folder: Path) -> list[str]:
    return [each["name"] for each in json.loads((folder / "cdi" / SPEC).read_text())["devices"]]


def test_a_spec_is_written_and_written_again_only_when_devices_change(tmp_path: Path) -> None:
    found = writer(tmp_path)
    found.write(ONE)
    first = (tmp_path / "cdi" / SPEC).stat()
    found.write(ONE)
    assert (tmp_path / "cdi" / SPEC).stat().st_ino == first.st_ino
    found.write(TWO)
    assert named(tmp_path) == ["GPU-a", "GPU-b", "all"]
    assert (tmp_path / "cdi" / SPEC).stat().st_ino != first.st_ino
    assert found.problem is None
    found.check(["nvidia.com/gpu=GPU-b"])


def test_a_spec_goes_with_the_last_of_its_devices(tmp_path: Path) -> None:
    found = writer(tmp_path)
    found.write(ONE)
    found.write(Inventory())
    assert list((tmp_path / "cdi").iterdir()) == []
    with pytest.raises(AllocationRefused):
        found.check(["nvidia.com/gpu=GPU-a"])


def test_on_a_full_disk_the_old_spec_stays_and_new_devices_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = writer(tmp_path)
    found.write(ONE)

    def full(_fd: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        found.write(TWO)
    assert named(tmp_path) == ["GPU-a", "all"]
    assert [path.name for path in (tmp_path / "cdi").iterdir()] == [SPEC]
    found.check(["nvidia.com/gpu=GPU-a"])
    with pytest.raises(AllocationRefused, match="No space left") as error:
        found.check(["nvidia.com/gpu=GPU-b"])
    assert error.value.cause is RefusalCause.NOT_WRITABLE
    found.write(TWO)
    found.check(["nvidia.com/gpu=GPU-b"])


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("in the way")
    found = writer(tmp_path)
    found.write(ONE)
    assert found.problem
    with pytest.raises(AllocationRefused):
        found.check(["nvidia.com/gpu=GPU-a"])


@pytest.mark.parametrize("folder", ["cdi", "etc"])
def test_devices_of_another_tools_spec_are_left_to_it(tmp_path: Path, folder: str) -> None:
    found = writer(tmp_path)
    found.write(TWO)
    (tmp_path / "etc").mkdir(exist_ok=True)
    theirs = tmp_path / folder / "nvidia.yaml"
    theirs.write_text("kind: nvidia.com/gpu\ndevices: [{name: GPU-a}, {name: all}]\n")
    assert found.disturbed()
    found.write(TWO)
    assert not found.disturbed()
    assert named(tmp_path) == ["GPU-b"]
    found.check(["nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b"])
    assert theirs.exists()
