"""What the CDI specs of a node say."""

import json
from dataclasses import replace

import pytest

from deviceplugin.cdi.specs import (
    AMD,
    NVIDIA,
    RDMA,
    device_name,
    encode,
    file_name,
    names,
    qualified,
    specs,
)
from deviceplugin.model.inventory import Gpu, GpuMig, Inventory, MigInstance, Nic, PciPlace, Vendor

PLACE = PciPlace("0000:1b:00.0")
INSTANCE = MigInstance("MIG-5", "3g.40gb", 4, 4, 2, files=("/dev/nvidia-caps/nvidia-cap21",))
CUT = Gpu(
    "GPU-b", "H100", 81920, PLACE, 1,
    mig=GpuMig(enabled=True, instances=(INSTANCE,)), files=("/dev/nvidia1",),
)  # fmt: skip
NODE = Inventory(
    gpus=(Gpu("GPU-a", "H100", 81920, PLACE, 0, files=("/dev/nvidia0",)), CUT),
    nics=(Nic("mlx5_0", PLACE, files=("/dev/infiniband/uverbs0",)),),
    gpu_files=("/dev/nvidiactl", "/dev/kfd"),
    rdma_files=("/dev/infiniband/rdma_cm",),
)


def test_each_gpu_has_a_name_and_one_stands_for_all() -> None:
    whole = replace(NODE, gpus=NODE.gpus[:1], nics=())
    (spec,) = specs(whole).values()
    assert json.loads(encode(spec)) == {
        "cdiVersion": "0.6.0",
        "kind": "nvidia.com/gpu",
        "devices": [
            {
                "name": name,
                "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0", "permissions": "rw"}]},
            }
            for name in ("GPU-a", "all")
        ],
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": "/dev/nvidiactl", "permissions": "rw"}],
        },
    }


def test_a_mig_instance_opens_its_gpu_and_itself() -> None:
    devices = {device.name: device for device in specs(NODE)[NVIDIA].devices}
    paths = [node.path for node in devices["MIG-5"].container_edits.device_nodes]
    assert paths == ["/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap21"]
    everything = [node.path for node in devices["all"].container_edits.device_nodes]
    assert everything == ["/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia-caps/nvidia-cap21"]


def test_nics_and_amds_gpus_have_kinds_of_their_own() -> None:
    amd = Gpu("amd-1", "MI300X", 196608, PLACE, 0, vendor=Vendor.AMD, files=("/dev/dri/card1",))
    found = specs(replace(NODE, gpus=(amd,)))
    assert found.keys() == {AMD, RDMA}
    assert [device.name for device in found[RDMA].devices] == ["mlx5_0", "all"]
    assert found[AMD].container_edits.device_nodes[0].path == "/dev/kfd"


def test_a_device_without_files_is_named_all_the_same() -> None:
    """A simulated one; CDI refuses devices that change nothing."""
    bare = Inventory(gpus=(Gpu("GPU-a", "H100", 81920, PLACE, 0),))
    assert all(device.container_edits.env for device in specs(bare)[NVIDIA].devices)


def test_what_others_specs_name_is_left_to_them() -> None:
    theirs = names(
        b"cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: [{name: GPU-a}, {name: all}]"
    )
    found = specs(NODE, without=theirs.__contains__)
    assert [device.name for device in found[NVIDIA].devices] == ["GPU-b", "MIG-5"]
    everything = theirs | {qualified(NVIDIA, name) for name in ("GPU-b", "MIG-5")}
    assert NVIDIA not in specs(NODE, without=everything.__contains__)


@pytest.mark.parametrize("data", [b"", b"\xff", b"[1]", b"kind: [", b"- - - -", b"kind: 7"])
def test_a_file_that_is_no_spec_names_nothing(data: bytes) -> None:
    assert names(data) == frozenset()


def test_the_same_devices_give_the_same_bytes() -> None:
    assert encode(specs(NODE)[NVIDIA]) == encode(specs(replace(NODE))[NVIDIA])


def test_names_are_such_as_cdi_allows() -> None:
    assert device_name("GPU-8a/3") == "GPU-8a_3"
    assert device_name("-x-") == "x"
    assert qualified(RDMA, "mlx5_0") == "muster.dev/rdma=mlx5_0"
    assert file_name(NVIDIA) == "muster-nvidia.com-gpu.json"
