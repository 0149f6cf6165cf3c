"""AMD GPUs from the KFD topology and sysfs.

node 0: CPU ── PCI Express ── node 2: 0000:05:00.0
                                     ║ XGMI
node 1: CPU ── PCI Express ── node 3: 0000:2b:00.0
"""

from pathlib import Path

import pytest
from support.devices.sysfstree import PCIE, XGMI, SysfsTree

from deviceplugin.backends.amd import AmdReader, backend
from deviceplugin.model.inventory import Gpu, PciPlace, Vendor
from deviceplugin.model.signals import DeviceLost, GpuReading, InventoryChanged

ONE, OTHER = 0x69E57B44D2C5ABF9, 0x0C4A000000000012


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    made = SysfsTree(tmp_path)
    made.cpu(0)
    made.cpu(1)
    made.amd(2, "0000:05:00.0", unique_id=ONE, minor=128, links={0: PCIE, 3: XGMI})
    made.amd(
        3,
        "0000:2b:00.0",
        unique_id=OTHER,
        minor=136,
        above="pci0000:18/0000:18:01.1",
        numa=1,
        links={1: PCIE, 2: XGMI},
        product="AMD Instinct MI300X OAM",
    )
    made.write("module/amdgpu/version", "6.10.5")
    return made


def test_a_gpu_is_read_with_rocms_name_for_it_its_memory_place_and_files(tree: SysfsTree) -> None:
    found = AmdReader(tree.root).look().inventory
    assert found.gpus[0] == Gpu(
        uuid="GPU-69e57b44d2c5abf9",
        model="AMD Instinct MI300X",
        memory_mib=196592,
        place=PciPlace("0000:05:00.0", 0, ("pci0000:00", "0000:00:01.1")),
        index=0,
        minor=128,
        vendor=Vendor.AMD,
        pci_class="0x120000",
        device_id="0x74A11002",
        files=("/dev/dri/card1", "/dev/dri/renderD128"),
        partition="spx_nps1",
    )
    assert found.gpus[1].uuid == "GPU-0c4a000000000012"
    assert found.gpus[1].model == "AMD Instinct MI300X OAM"
    assert (found.gpu_files, found.driver.version) == (("/dev/kfd",), "6.10.5")


def test_xgmi_joins_gpus_and_pci_express_does_not(tree: SysfsTree) -> None:
    found = AmdReader(tree.root).look().inventory
    one, other = (gpu.uuid for gpu in found.gpus)
    assert found.links.joining(one, other) == 1
    assert len(found.links.between) == 1


def test_sensors_and_counters_are_read_in_the_models_units(tree: SysfsTree) -> None:
    assert AmdReader(tree.root).measure()[0] == GpuReading(
        uuid="GPU-69e57b44d2c5abf9",
        temperature=47,
        slowdown_at=100,
        utilisation=17,
        memory_used=1000,
        memory_free=195592,
        power=135.5,
        power_limit=750.0,
        sm_clock=132,
        ecc_corrected=3,
        ecc_uncorrected=0,
    )


def test_a_card_without_sensors_tells_nothing_and_stays(tree: SysfsTree) -> None:
    device = "devices/pci0000:00/0000:00:01.1/0000:05:00.0"
    for path in ("hwmon", "ras", "gpu_busy_percent", "mem_info_vram_used"):
        tree.remove(f"{device}/{path}")
    reading = AmdReader(tree.root).measure()[0]
    assert reading == GpuReading(uuid="GPU-69e57b44d2c5abf9")


def test_partitions_of_one_gpu_have_names_and_memory_of_their_own(tmp_path: Path) -> None:
    tree = SysfsTree(tmp_path)
    tree.amd(1, "0000:05:00.0", unique_id=ONE, minor=128, partition=("DPX", "NPS1"))
    half = 206141652992 // 2
    for node, address, minor in ((1, "0000:05:00.0", 128), (2, "0000:05:00.1", 129)):
        tree.kfd(node, address, unique_id=ONE, minor=minor, memory=half)
    found = AmdReader(tree.root).look().inventory.gpus
    assert [gpu.uuid for gpu in found] == ["GPU-69e57b44d2c5abf9-p0", "GPU-69e57b44d2c5abf9-p1"]
    assert {gpu.partition for gpu in found} == {"dpx_nps1"}
    assert {gpu.memory_mib for gpu in found} == {196592 // 2}
    assert {gpu.place.address for gpu in found} == {"0000:05:00.0"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("class/kfd/kfd/topology/nodes/2/properties", "rubbish\n\nunique_id\nx y z"),
        ("class/kfd/kfd/topology/nodes/2/properties", ""),
        ("class/kfd/kfd/topology/nodes/2/gpu_id", "0"),
        ("class/kfd/kfd/topology/nodes/2/gpu_id", "many"),
    ],
)
def test_a_malformed_node_hides_no_other(tree: SysfsTree, path: str, text: str) -> None:
    tree.write(path, text)
    look = AmdReader(tree.root).look()
    assert [gpu.uuid for gpu in look.inventory.gpus] == ["GPU-0c4a000000000012"]
    assert look.inventory.links.between == {}


def test_a_machine_without_amd_gpus_has_none(tmp_path: Path) -> None:
    look = AmdReader(tmp_path).look()
    assert look.inventory.gpus == look.inventory.gpu_files == ()


async def test_a_gpu_that_leaves_the_bus_is_lost_and_keeps_its_number(
    tree: SysfsTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    gpus = backend(tree.root, poll_seconds=0.005)
    before = await gpus.inventory()
    gone = tmp_path_factory.mktemp("gone") / "pci"
    (tree.root / "devices/pci0000:00").rename(gone)
    reported = await gpus.signal()
    assert isinstance(reported, DeviceLost)
    assert reported.device == "GPU-69e57b44d2c5abf9"
    assert (await gpus.inventory()).gpus == before.gpus


async def test_another_partitioning_is_reported(tree: SysfsTree) -> None:
    gpus = backend(tree.root, poll_seconds=0.005)
    await gpus.inventory()
    device = "devices/pci0000:00/0000:00:01.1/0000:05:00.0"
    tree.write(f"{device}/current_compute_partition", "CPX")
    tree.generation(3)
    assert isinstance(await gpus.signal(), InventoryChanged)
    assert (await gpus.inventory()).gpus[0].partition == "cpx_nps1"
