"""A vGPU's configuration space tells the driver of its host."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.gpunodes import gpu, node

from deviceplugin.backends.nvml.sysfs import surroundings
from deviceplugin.backends.nvml.vgpu import host_of
from deviceplugin.model.inventory import VgpuHost
from deviceplugin.publication.gfd import LabelFacts, labels

HOST = VgpuHost("550.90.05", "r550_00")
RECORD = b"\x00\x16" + b"550.90.05\0" + b"r550_00\0\0\0"
OTHER = b"\x05\x04ab"  # a record of another kind before it


def space(*capabilities: bytes, listed: bool = True) -> bytes:
    """Return 256 bytes with capabilities from 0x40 on, each written without its second byte."""
    data = bytearray(256)
    data[0x06], data[0x34] = (0x10 if listed else 0), 0x40
    place = 0x40
    for number, one in enumerate(capabilities):
        following = place + len(one) + 1
        last = number == len(capabilities) - 1
        data[place:following] = one[:1] + bytes([0 if last else following]) + one[1:]
        place = following
    return bytes(data)


def vendor(body: bytes) -> bytes:
    return b"\x09" + bytes([len(body) + 3]) + body


POWER = b"\x01\x02\x00"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (space(vendor(b"VF" + RECORD)), HOST),
        (space(POWER, vendor(b"VF" + OTHER + RECORD)), HOST),
        (space(vendor(b"VF" + RECORD[:-4])), VgpuHost()),
        (space(vendor(b"VF" + OTHER)), VgpuHost()),
        (space(vendor(b"VF\x07\x00\x07\x00")), VgpuHost()),
        (space(POWER, vendor(b"\x00\x14\x01")), None),
        (space(POWER), None),
        (space(vendor(b"VF" + RECORD), listed=False), None),
        (space(vendor(b"VF" + RECORD))[:64], None),
        (b"", None),
    ],
)
def test_the_record_of_the_host_is_found(config: bytes, expected: VgpuHost | None) -> None:
    assert host_of(config) == expected


@given(st.binary(min_size=0, max_size=300), st.booleans())
def test_any_configuration_space_is_read(data: bytes, signed: bool) -> None:  # noqa: FBT001
    body = data[:100]
    host_of(space(vendor(b"VF" + body)) if signed else data)


def test_it_is_read_from_sysfs_and_labelled_as_gfd_does(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:06:00.0"
    device.mkdir(parents=True)
    (device / "config").write_bytes(space(vendor(b"VF" + RECORD)))
    around = surroundings(tmp_path)
    assert around.vgpu("0000:06:00.0") == HOST
    assert around.vgpu("0000:07:00.0") is None
    found = labels(node(gpu(0, vgpu=HOST)), LabelFacts())
    assert {key: value for key, value in found.items() if "vgpu" in key} == {
        "nvidia.com/vgpu.present": "true",
        "nvidia.com/vgpu.host-driver-version": "550.90.05",
        "nvidia.com/vgpu.host-driver-branch": "r550_00",
    }
    assert not any("vgpu" in key for key in labels(node(gpu(0)), LabelFacts()))
