"""What containers are told of their devices, by each strategy."""

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from deviceplugin.allocation.answers import ContainerAnswers
from deviceplugin.allocation.settings import (
    CDI_STRATEGIES,
    STRATEGIES,
    AllocationSettings,
    Strategy,
    problems,
    without_effect,
)
from deviceplugin.errors import AllocationRefused, RefusalCause
from deviceplugin.model.answers import ContainerAnswer, DeviceFile, Mount
from deviceplugin.model.inventory import Gpu, GpuMig, Inventory, MigInstance, Nic, PciPlace, Vendor
from deviceplugin.resources.advertisements import (
    Advertised,
    AdvertisedDevice,
    AdvertisedKind,
    Advertisement,
    SharingMode,
)

PLACE = PciPlace("0000:1b:00.0")
INSTANCE = MigInstance("MIG-5", "3g.40gb", 4, 4, 2, files=("/dev/nvidia-caps/nvidia-cap21",))
GPUS = (
    Gpu("GPU-a", "H100", 81920, PLACE, 0, files=("/dev/nvidia0",)),
    Gpu("GPU-b", "H100", 81920, PLACE, 1, files=("/dev/nvidia1",)),
    Gpu("GPU-c", "H100", 81920, PLACE, 2, files=("/dev/nvidia2",),
        mig=GpuMig(enabled=True, instances=(INSTANCE,))),
    Gpu("amd-1", "MI300X", 196608, PLACE, 0, vendor=Vendor.AMD, files=("/dev/dri/renderD128",)),
)  # fmt: skip
NICS = tuple(
    Nic(f"mlx5_{n}", PLACE, files=(f"/dev/infiniband/uverbs{n}", f"/dev/infiniband/umad{n}"))
    for n in range(2)
)
NODE = Inventory(
    gpus=GPUS, nics=NICS, gpu_files=("/dev/nvidiactl", "/dev/kfd"),
    rdma_files=("/dev/infiniband/rdma_cm",),
)  # fmt: skip


def whole(*names: str) -> tuple[AdvertisedDevice, ...]:
    return tuple(AdvertisedDevice(name, name, (name,)) for name in names)


def shares(name: str, number: int) -> tuple[AdvertisedDevice, ...]:
    return tuple(AdvertisedDevice(f"{name}::{n}", name, (name,), share=n) for n in range(number))


GPUS = AdvertisedKind.GPU
RESOURCES = (
    Advertised("nvidia.com/gpu", AdvertisedKind.GPU, whole("GPU-a", "GPU-b")),
    Advertised("nvidia.com/mig-3g.40gb", AdvertisedKind.MIG,
               (AdvertisedDevice("MIG-5", "MIG-5", ("GPU-c",)),)),
    Advertised("nvidia.com/gpu.shared", GPUS, shares("GPU-a", 2), SharingMode.MPS, most=1),
    Advertised("aliyun.com/gpu-mem", GPUS, shares("GPU-b", 80), SharingMode.MEMORY, unit_mib=1024),
    Advertised("amd.com/gpu", AdvertisedKind.GPU, whole("amd-1")),
    Advertised("rdma/hca", AdvertisedKind.NIC, whole("mlx5_0", "mlx5_1")),
    Advertised("rdma/pool", AdvertisedKind.NIC,
               (AdvertisedDevice("pool::0", "rdma/pool", ("mlx5_0", "mlx5_1"), share=0),),
               SharingMode.POOL),
)  # fmt: skip


def give(resource: str, *ids: str, **settings: object) -> ContainerAnswer:
    found = ContainerAnswers(AllocationSettings(**settings))  # type: ignore[arg-type]
    found.see(NODE, Advertisement(RESOURCES))
    return found.give(resource, ids)


NOT_CDI = [each for each in STRATEGIES if each not in CDI_STRATEGIES]


def by(strategy: Strategy, resource: str, *ids: str) -> ContainerAnswer:
    return give(resource, *ids, device_list_strategy=strategy)


def files(*paths: str) -> tuple[DeviceFile, ...]:
    return tuple(DeviceFile(path, path, "rw") for path in paths)


def test_by_default_a_container_gets_cdi_names_in_the_nodes_order() -> None:
    assert give("nvidia.com/gpu", "GPU-b", "GPU-a") == ContainerAnswer(
        envs={"MUSTER_GPUS": "GPU-a,GPU-b"}, cdi=("nvidia.com/gpu=GPU-a", "nvidia.com/gpu=GPU-b")
    )
    assert give("nvidia.com/mig-3g.40gb", "MIG-5").cdi == ("nvidia.com/gpu=MIG-5",)
    assert give("amd.com/gpu", "amd-1").cdi == ("amd.com/gpu=amd-1",)
    assert give("rdma/hca", "mlx5_1").cdi == ("muster.dev/rdma=mlx5_1",)


def test_the_variable_of_nvidias_runtime_names_uuids() -> None:
    envs = by("envvar", "nvidia.com/gpu", "GPU-a", "GPU-b").envs
    assert envs == {"MUSTER_GPUS": "GPU-a,GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}


def test_volume_mounts_name_uuids_by_mounts() -> None:
    found = by("volume-mounts", "nvidia.com/gpu", "GPU-b")
    assert found.envs["NVIDIA_VISIBLE_DEVICES"] == "/var/run/nvidia-container-devices"
    assert found.mounts == (Mount("/var/run/nvidia-container-devices/GPU-b", "/dev/null"),)


def test_device_specs_are_the_files_of_the_devices_and_those_all_share() -> None:
    found = by("device-specs", "nvidia.com/mig-3g.40gb", "MIG-5")
    assert found.files == files("/dev/nvidiactl", "/dev/nvidia2", "/dev/nvidia-caps/nvidia-cap21")
    assert found.envs["NVIDIA_VISIBLE_DEVICES"] == "void"


@pytest.mark.parametrize("strategy", ["envvar", "volume-mounts"])
def test_device_files_are_passed_beside_what_nvidia_s_runtime_reads(strategy: Strategy) -> None:
    alone = by(strategy, "nvidia.com/gpu", "GPU-a")
    passed = give("nvidia.com/gpu", "GPU-a", device_list_strategy=strategy, pass_device_specs=True)
    assert passed == replace(alone, files=files("/dev/nvidiactl", "/dev/nvidia0"))


def test_several_strategies_give_what_each_of_them_gives() -> None:
    found = give("nvidia.com/gpu", "GPU-a", device_list_strategy=("envvar", "cdi-cri"))
    assert found.cdi == ("nvidia.com/gpu=GPU-a",)
    assert found.envs["NVIDIA_VISIBLE_DEVICES"] == "GPU-a"
    both = give("nvidia.com/gpu", "GPU-a", device_list_strategy=("envvar", "volume-mounts"))
    assert both == by("volume-mounts", "nvidia.com/gpu", "GPU-a")


def test_cdi_names_may_stand_in_an_annotation_of_their_own_for_each_resource() -> None:
    """UpdateAnnotations of container-device-interface: prefix, plugin, "_", id; names by commas."""
    found = by("cdi-annotations", "nvidia.com/gpu", "GPU-a", "GPU-b")
    assert found.cdi == ()
    [(key, text)] = found.annotations.items()
    assert text == "nvidia.com/gpu=GPU-a,nvidia.com/gpu=GPU-b"
    assert re.fullmatch(r"cdi\.k8s\.io/muster-device-plugin_[0-9a-f]{16}", key)
    [nic] = by("cdi-annotations", "rdma/hca", "mlx5_1").annotations.items()
    assert nic[1] == "muster.dev/rdma=mlx5_1"
    assert nic[0] != key
    other = give(
        "amd.com/gpu", "amd-1", device_list_strategy="cdi-annotations", cdi_annotation_prefix="x.y/"
    )
    [(key, text)] = other.annotations.items()
    assert (key.startswith("x.y/"), text) == (True, "amd.com/gpu=amd-1")


def test_nvidia_s_runtime_is_asked_for_more_than_gpus_where_it_is_used() -> None:
    asked = {"gdrcopy_enabled": True, "gds_enabled": True, "mofed_enabled": True}
    envs = give("nvidia.com/gpu", "GPU-a", device_list_strategy="envvar", **asked).envs
    wanted = {"NVIDIA_GDRCOPY", "NVIDIA_GDS", "NVIDIA_MOFED"}
    assert {key for key in envs if envs[key] == "enabled"} == wanted
    assert wanted.isdisjoint(give("nvidia.com/gpu", "GPU-a", **asked).envs)
    assert wanted.isdisjoint(
        give("rdma/hca", "mlx5_0", device_list_strategy="envvar", **asked).envs
    )


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        (AllocationSettings(), []),
        (AllocationSettings(pass_device_specs=True), ["passDeviceSpecs"]),
        (AllocationSettings(device_list_strategy="envvar", pass_device_specs=True), []),
        (AllocationSettings(device_list_strategy="device-specs", pass_device_specs=True),
         ["passDeviceSpecs"]),
        (AllocationSettings(gdrcopy_enabled=True, gds_enabled=True, mofed_enabled=True),
         ["gdrcopyEnabled", "gdsEnabled", "mofedEnabled"]),
        (AllocationSettings(cdi_annotation_prefix="a.b/"), ["cdiAnnotationPrefix"]),
        (AllocationSettings(device_list_strategy=("envvar", "volume-mounts")),
         ["deviceListStrategy"]),
    ],
)  # fmt: skip
def test_what_changes_nothing_is_named(settings: AllocationSettings, fields: list[str]) -> None:
    assert [field for field, _ in without_effect(settings)] == fields


@pytest.mark.parametrize("strategy", NOT_CDI)
def test_nics_and_amds_gpus_come_as_files_where_not_by_cdi(strategy: Strategy) -> None:
    found = by(strategy, "rdma/hca", "mlx5_1")
    assert found.files == files(
        "/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs1", "/dev/infiniband/umad1"
    )
    assert by(strategy, "amd.com/gpu", "amd-1").files == files("/dev/kfd", "/dev/dri/renderD128")


def test_a_pools_id_opens_all_of_its_nics() -> None:
    found = by("cdi-cri", "rdma/pool", "pool::0")
    assert found.cdi == ("muster.dev/rdma=mlx5_0", "muster.dev/rdma=mlx5_1")
    assert found.envs == {"MUSTER_NICS": "mlx5_0,mlx5_1"}


def test_with_mps_a_container_finds_the_control_daemon() -> None:
    found = give("nvidia.com/gpu.shared", "GPU-a::1", mps_root="/mps-root")
    assert found.envs["CUDA_MPS_PIPE_DIRECTORY"] == "/mps/nvidia.com/gpu.shared/pipe"
    assert found.mounts == (
        Mount("/mps/nvidia.com/gpu.shared/pipe", "/mps-root/nvidia.com/gpu.shared/pipe", False),
        Mount("/dev/shm", "/mps-root/shm", False),
    )
    assert found.cdi == ("nvidia.com/gpu=GPU-a",)


def test_units_of_memory_are_reported_as_limits() -> None:
    envs = give("aliyun.com/gpu-mem", *(f"GPU-b::{n}" for n in range(12))).envs
    assert envs == {
        "MUSTER_GPUS": "GPU-b",
        "CUDA_DEVICE_MEMORY_LIMIT_0": "12288m",
        "ALIYUN_COM_GPU_MEM_CONTAINER": "12",
        "ALIYUN_COM_GPU_MEM_DEV": "80",
        "ALIYUN_COM_GPU_MEM_IDX": "1",
    }


def test_hints_for_nccl_are_given_only_where_asked_for() -> None:
    assert "NCCL_IB_HCA" not in give("rdma/hca", "mlx5_0").envs
    found = give("rdma/hca", "mlx5_0", "mlx5_1", nccl_hcas=True)
    assert found.envs["NCCL_IB_HCA"] == "=mlx5_0,mlx5_1"
    reported = give("nvidia.com/gpu", "GPU-a", nccl_topology_file="/etc/nccl/topo.xml")
    assert reported.envs["NCCL_TOPO_FILE"] == "/etc/nccl/topo.xml"
    assert reported.mounts == (Mount("/etc/nccl/topo.xml", "/etc/nccl/topo.xml"),)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_two_resources_of_a_container_set_a_variable_differently(strategy: Strategy) -> None:
    """The kubelet would take either: it goes through them in random order."""
    answers: list[Mapping[str, str]] = [
        by(strategy, "nvidia.com/gpu", "GPU-a").envs,
        by(strategy, "rdma/hca", "mlx5_0").envs,
    ]
    common = answers[0].keys() & answers[1].keys()
    assert all(answers[0][key] == answers[1][key] for key in common)


@pytest.mark.parametrize(
    ("resource", "ids", "cause"),
    [
        ("nvidia.com/gpu", (), RefusalCause.BAD_REQUEST),
        ("nvidia.com/gpu", ("GPU-a", "GPU-a"), RefusalCause.BAD_REQUEST),
        ("nvidia.com/gpu", ("GPU-x",), RefusalCause.UNKNOWN_DEVICE),
        ("nvidia.com/gpu.shared", ("GPU-a::0", "GPU-a::1"), RefusalCause.BAD_REQUEST),
    ],
)
def test_what_a_container_may_not_have_is_refused(
    resource: str, ids: tuple[str, ...], cause: RefusalCause
) -> None:
    with pytest.raises(AllocationRefused) as error:
        give(resource, *ids)
    assert error.value.cause is cause


def test_a_resource_that_is_no_more_gives_nothing() -> None:
    assert give("example.com/none", "x") == ContainerAnswer()


def test_paths_are_absolute() -> None:
    assert list(problems(AllocationSettings())) == []
    wrong = AllocationSettings(cdi_folder="", mps_root="run/mps", nccl_topology_file="topo.xml")
    assert [line.split(":")[0] for line in problems(wrong)] == [
        "mpsRoot", "ncclTopologyFile", "cdiFolder",
    ]  # fmt: skip
