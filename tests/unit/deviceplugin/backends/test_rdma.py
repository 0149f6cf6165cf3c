"""RDMA devices from sysfs, well and broken."""

from pathlib import Path

import pytest
from support.devices.sysfstree import SysfsTree

from deviceplugin.backends.rdma import RdmaReader, backend
from deviceplugin.errors import BackendError
from deviceplugin.model.inventory import Nic, PciPlace, Port, Vdpa
from deviceplugin.model.signals import (
    BackendDown,
    BackendUp,
    DeviceLost,
    InventoryChanged,
    NicReading,
)


@pytest.fixture
def tree(tmp_path: Path) -> SysfsTree:
    """Two NICs below one root port each, and a virtual function of the second.

    pci0000:15 ── 15:01.0 ── 18:00.0 mlx5_0     pci0000:97 ── 97:01.0 ─┬─ 9a:00.0 mlx5_10
                                                                       └─ 9a:00.2 mlx5_11 (VF)
    """
    made = SysfsTree(tmp_path)
    made.nic("mlx5_0", "0000:18:00.0", interfaces=("ibp24s0",))
    behind = "pci0000:97/0000:97:01.0"
    made.nic("mlx5_10", "0000:9a:00.0", above=behind, numa=1, layer="Ethernet", interfaces=("e0",))
    made.nic("mlx5_11", "0000:9a:00.2", above=behind, numa=1, physical="0000:9a:00.0")
    return made


def names(tree: SysfsTree) -> list[str]:
    return [nic.name for nic in RdmaReader(tree.root).look().inventory.nics]


def test_a_nic_is_read_with_its_place_ports_interfaces_and_files(tree: SysfsTree) -> None:
    look = RdmaReader(tree.root).look()
    assert look.inventory.nics[0] == Nic(
        name="mlx5_0",
        place=PciPlace("0000:18:00.0", 0, ("pci0000:15", "0000:15:01.0")),
        guid="a088:c203:00ab:0001",
        model="MT4129",
        firmware="28.39.2048",
        ports=(Port(1, active=True, link_layer="InfiniBand", rate_gbps=400),),
        interfaces=("ibp24s0",),
        files=("/dev/infiniband/uverbs0", "/dev/infiniband/umad0"),
        vendor_id="15b3",
        device_id="1021",
        driver="mlx5_core",
    )
    assert look.inventory.rdma_files == ("/dev/infiniband/rdma_cm",)
    assert not look.broken


def test_what_selectors_of_functions_ask_for_is_read(tree: SysfsTree) -> None:
    tree.write("bus/pci/devices/0000:9a:00.2/acpi_index", "7")
    tree.write("class/infiniband/mlx5_11/ports/1/pkeys/0", "0x8001")
    tree.write("class/infiniband/mlx5_11/ports/1/pkeys/1", "0xffff")
    tree.vdpa("vdpa0", "0000:9a:00.2", "vhost_vdpa", "vhost-vdpa-3")
    tree.vdpa("vdpa1", "0000:18:00.0", "virtio_vdpa", "virtio2")
    tree.vdpa("vdpa2", "0000:9a:00.0", "other", "vhost-vdpa-4")
    reader = RdmaReader(tree.root)
    first, second, virtual = reader.look().inventory.nics
    assert (virtual.acpi_index, virtual.ports[0].partition_key) == ("7", "0x8001")
    assert virtual.vdpa == Vdpa("vdpa0", "vhost", "/dev/vhost-vdpa-3")
    assert first.vdpa == Vdpa("vdpa1", "virtio")
    assert second.vdpa == Vdpa("vdpa2")
    before = reader.pulse()
    tree.remove("bus/vdpa/devices/vdpa0")
    assert reader.pulse() != before


@pytest.mark.parametrize("missing", ["", "vhost-net", "tun"])
def test_the_files_of_virtio_are_there_where_the_kernel_has_both(
    tree: SysfsTree, missing: str
) -> None:
    for name in {"vhost-net", "tun"} - {missing}:
        tree.write(f"class/misc/{name}/dev", "10:238")
    found = RdmaReader(tree.root).look().inventory.vhost_files
    assert found == (() if missing else ("/dev/vhost-net", "/dev/net/tun"))


def test_nics_are_in_the_order_of_their_numbers_and_virtual_ones_tell_whose_they_are(
    tree: SysfsTree,
) -> None:
    nics = RdmaReader(tree.root).look().inventory.nics
    assert [(nic.name, nic.virtual_of) for nic in nics] == [
        ("mlx5_0", ""),
        ("mlx5_10", ""),
        ("mlx5_11", "0000:9a:00.0"),
    ]


def test_a_virtual_function_is_read_with_its_number_and_its_root_s_interface(
    tree: SysfsTree,
) -> None:
    root, own = (next(tree.root.glob(f"devices/*/*/{a}")) for a in ("0000:9a:00.0", "0000:9a:00.2"))
    for number, target in ((0, root), (3, own)):
        tree.link(f"{root.relative_to(tree.root)}/virtfn{number}", target)
    nics = RdmaReader(tree.root).look().inventory.nics
    assert [(nic.virtual_number, nic.root_interface) for nic in nics] == [
        (-1, ""), (-1, ""), (3, "e0"),
    ]  # fmt: skip


def test_a_sub_function_sits_where_its_pci_device_does(tree: SysfsTree) -> None:
    device = tree.root / "devices/pci0000:15/0000:15:01.0/0000:18:00.0/mlx5_core.sf.4"
    device.mkdir()
    tree.link("class/infiniband/mlx5_20/device", device)
    [found] = [n for n in RdmaReader(tree.root).look().inventory.nics if n.name == "mlx5_20"]
    assert found.place == PciPlace("0000:18:00.0", 0, ("pci0000:15", "0000:15:01.0"))


def test_a_machine_without_rdma_has_no_nics(tmp_path: Path) -> None:
    look = RdmaReader(tmp_path).look()
    assert look.inventory.nics == look.inventory.rdma_files == ()


def test_software_devices_are_nobodys_nic(tree: SysfsTree) -> None:
    tree.write("class/infiniband/rxe0/node_guid", "0000:0000:0000:0001")
    assert "rxe0" not in names(tree)
    assert not RdmaReader(tree.root).look().broken


@pytest.mark.parametrize(
    ("path", "text", "port"),
    [
        ("ports/1/state", "", Port(1, False, "InfiniBand", 400)),
        ("ports/1/state", "1: DOWN", Port(1, False, "InfiniBand", 400)),
        ("ports/1/rate", "fast", Port(1, True, "InfiniBand", 0)),
        ("ports/1/rate", "1.2.3 Gb/sec", Port(1, True, "InfiniBand", 0)),
        ("ports/1/link_layer", "", Port(1, True, "", 400)),
        ("ports/one/state", "4: ACTIVE", Port(1, True, "InfiniBand", 400)),
    ],
)
def test_malformed_files_cost_what_they_would_tell_and_no_more(
    tree: SysfsTree, path: str, text: str, port: Port
) -> None:
    tree.write(f"class/infiniband/mlx5_0/{path}", text)
    assert RdmaReader(tree.root).look().inventory.nics[0].ports == (port,)
    assert names(tree) == ["mlx5_0", "mlx5_10", "mlx5_11"]


def test_binary_rubbish_and_a_missing_numa_node_are_no_reason_to_fail(tree: SysfsTree) -> None:
    (tree.root / "class/infiniband/mlx5_0/fw_ver").write_bytes(b"\xff\xfe\x00")
    tree.remove("devices/pci0000:15/0000:15:01.0/0000:18:00.0/numa_node")
    tree.remove("devices/pci0000:15/0000:15:01.0/0000:18:00.0/driver")
    nic = RdmaReader(tree.root).look().inventory.nics[0]
    assert (nic.firmware, nic.place.numa, nic.driver) == ("", -1, "")


def test_a_nic_whose_pci_device_is_gone_hides_no_other(tree: SysfsTree) -> None:
    tree.remove("devices/pci0000:15")
    look = RdmaReader(tree.root).look()
    assert [nic.name for nic in look.inventory.nics] == ["mlx5_10", "mlx5_11"]
    assert list(look.broken) == ["mlx5_0"]


def test_links_in_a_circle_are_broken_devices(tree: SysfsTree) -> None:
    tree.remove("class/infiniband/mlx5_0/device")
    (tree.root / "class/infiniband/mlx5_0/device").symlink_to("device")
    look = RdmaReader(tree.root).look()
    assert list(look.broken) == ["mlx5_0"]
    assert len(look.inventory.nics) == 2


# --- as a backend -------------------------------------------------------------------------


async def test_a_port_that_goes_down_is_reported_and_read(tree: SysfsTree) -> None:
    nics = backend(tree.root, poll_seconds=0.005)
    await nics.inventory()
    tree.port("mlx5_0", 1, "1: DOWN")
    assert isinstance(await nics.signal(), InventoryChanged)
    assert NicReading("mlx5_0", ((1, False),)) in await nics.readings()
    assert not (await nics.inventory()).nics[0].ports[0].active


async def test_a_nic_that_falls_silent_is_lost_but_still_there_and_may_come_back(
    tree: SysfsTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    nics = backend(tree.root, poll_seconds=0.005)
    before = await nics.inventory()
    gone = tmp_path_factory.mktemp("gone") / "pci"
    (tree.root / "devices/pci0000:15").rename(gone)
    assert await nics.signal() == DeviceLost("mlx5_0", "its PCI device cannot be found in sysfs")
    silent = (await nics.inventory()).nics[0]
    assert (silent.name, silent.ports[0].active) == ("mlx5_0", False)
    gone.rename(tree.root / "devices/pci0000:15")
    reported = await nics.signal()
    while await nics.inventory() != before:
        reported = await nics.signal()
    assert isinstance(reported, InventoryChanged)


async def test_a_sysfs_that_is_no_folder_takes_the_backend_down_until_it_is_one(
    tree: SysfsTree,
) -> None:
    nics = backend(tree.root, poll_seconds=0.005)
    await nics.inventory()
    class_folder = tree.root / "class/infiniband"
    class_folder.rename(tree.root / "away")
    class_folder.write_text("not a folder")
    with pytest.raises(BackendError, match="class/infiniband"):
        await nics.inventory()
    assert isinstance(await nics.signal(), BackendDown)
    class_folder.unlink()
    (tree.root / "away").rename(class_folder)
    assert isinstance(await nics.signal(), BackendUp)


async def test_a_nic_that_is_broken_from_the_start_is_reported(tree: SysfsTree) -> None:
    tree.remove("devices/pci0000:15")
    nics = backend(tree.root, poll_seconds=0.005)
    assert len((await nics.inventory()).nics) == 2
    assert isinstance(await nics.signal(), DeviceLost)
