"""Pools of PCI functions, by the selectors of the SR-IOV network device plugin.

::

    p0 0000:3b:00.0 mlx5_0 ─┬─ 0 0000:3b:00.2 mlx5_2        p1 0000:5e:00.0 mlx5_1
                            ├─ 1 0000:3b:00.3 mlx5_3        (no virtual function)
                            └─ 2 0000:3b:00.4 mlx5_4
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.allocation.answers import ContainerAnswers
from deviceplugin.allocation.settings import AllocationSettings
from deviceplugin.deviceinfo import DeviceInfoFiles, files
from deviceplugin.model.answers import ContainerAnswer
from deviceplugin.model.inventory import Inventory, Nic, PciPlace, Port, Vdpa
from deviceplugin.resources.advertisements import Advertisement
from deviceplugin.resources.advertising import advertise
from deviceplugin.resources.settings import NicPool, ResourceSettings, SriovSelectors, problems
from deviceplugin.resources.settings import without_effect as ineffective
from deviceplugin.resources.sriov import matches
from muster.observability.configfile import ConfigError, parse

ROOT = "0000:3b:00.0"


def nic(number: int, address: str, *, virtual: int = -1, interface: str = "") -> Nic:
    return Nic(
        f"mlx5_{number}",
        PciPlace(address, number % 2),
        ports=(Port(1, active=True, link_layer="Ethernet"),),
        interfaces=(interface or f"v{virtual}",),
        files=(f"/dev/infiniband/uverbs{number}",),
        virtual_of=ROOT if virtual >= 0 else "",
        virtual_number=virtual,
        root_interface="p0" if virtual >= 0 else "",
        vendor_id="15b3",
        device_id="101e" if virtual >= 0 else "101d",
        driver="mlx5_core",
    )


NODE = Inventory(
    nics=(
        nic(0, ROOT, interface="p0"),
        nic(1, "0000:5e:00.0", interface="p1"),
        *(nic(2 + n, f"0000:3b:00.{2 + n}", virtual=n) for n in range(3)),
    ),
    rdma_files=("/dev/infiniband/rdma_cm",),
)
# Functions 0 and 1 are served by virtio hardware; port keys and the firmware's names are set.
RICH = replace(
    NODE,
    nics=tuple(
        replace(
            each,
            acpi_index=str(101 + number) if number < 2 else "",
            vdpa={2: Vdpa("vdpa0", "vhost", "/dev/vhost-vdpa-0"), 3: Vdpa("vdpa1", "virtio")}.get(
                number
            ),
            ports=(replace(each.ports[0], partition_key=f"0x800{number}" if number else ""),),
        )
        for number, each in enumerate(NODE.nics)
    ),
    vhost_files=("/dev/vhost-net", "/dev/net/tun"),
)
# The form of docs/example configurations of that plugin, with this machine's names.
FILE = """
sriov:
  resourceList:
    - resourceName: few
      resourcePrefix: nvidia.com
      excludeTopology: true
      additionalInfo: {"*": {rack: r1}, "0000:3b:00.2": {port: a}}
      selectors: [{pfNames: ["p0#0"], isRdma: true}, {rootDevices: ["0000:3b:00.0#2-7"]}]
    - {resourceName: rest, selectors: {vendors: ["15b3"], drivers: [mlx5_core]}}
"""


def read(text: str) -> ResourceSettings:
    return parse(text.encode(), ResourceSettings, problems, source="config.yaml")


def shown(text: str = FILE) -> Advertisement:
    return advertise(NODE, read(text))


def give(resource: str, *ids: str) -> ContainerAnswer:
    answers = ContainerAnswers(AllocationSettings())
    answers.see(NODE, shown())
    return answers.give(resource, ids)


def test_the_whole_file_is_taken_with_several_selectors_to_a_pool() -> None:
    """A function is in the first pool only, and p0 is in none: it has virtual functions."""
    few, rest = sorted(shown().resources, key=lambda each: each.resource, reverse=True)
    assert [each.resource for each in (few, rest)] == ["nvidia.com/few", "intel.com/rest"]
    assert [(d.id, d.device, d.numa) for d in few.devices] == [
        ("0000:3b:00.2", "mlx5_2", ()),
        ("0000:3b:00.4", "mlx5_4", ()),
    ]
    assert [(d.id, d.numa) for d in rest.devices] == [
        ("0000:5e:00.0", (1,)),
        ("0000:3b:00.3", (1,)),
    ]


def test_a_function_of_an_sriov_pool_is_in_no_rdma_pool() -> None:
    both = {"rdma": [{"resourceName": "all"}], "sriov": [{"resourceName": "vfs", "selectors": {
        "pfNames": ["p0"]}}]}  # fmt: skip
    found = shown(json.dumps(both))
    assert {each.resource: len(each.devices) for each in found.resources} == {
        "rdma/all": 2, "intel.com/vfs": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("selectors", "numbers"),
    [
        (SriovSelectors(), [0, 1, 2, 3, 4]),
        (SriovSelectors(devices=("101e",)), [2, 3, 4]),
        (SriovSelectors(pci_addresses=("0000:3b:00.3", ROOT)), [0, 3]),
        (SriovSelectors(pf_names=("P0",)), [0, 2, 3, 4]),
        (SriovSelectors(pf_names=("^p[0-9]$",)), [0, 1, 2, 3, 4]),
        (SriovSelectors(pf_names=("p0#1-2",)), [3, 4]),
        (SriovSelectors(pf_names=("p0#0,2",)), [2, 4]),
        (SriovSelectors(pf_names=("p0#0", "p0#1")), [2, 3]),
        (SriovSelectors(pf_names=("p0#x-2",)), []),
        (SriovSelectors(pf_names=("(",)), []),
        (SriovSelectors(root_devices=(ROOT,)), [0, 2, 3, 4]),
        (SriovSelectors(root_devices=(f"{ROOT}#2",), link_types=("ether",)), [4]),
        (SriovSelectors(root_devices=(ROOT,), link_types=("infiniband",)), []),
    ],
)
def test_a_function_matches_every_selector_that_is_set(
    selectors: SriovSelectors, numbers: list[int]
) -> None:
    assert [n for n, each in enumerate(NODE.nics) if matches(each, selectors)] == numbers


@pytest.mark.parametrize(
    ("selectors", "numbers"),
    [
        (SriovSelectors(acpi_indexes=("101", "103")), [0]),
        (SriovSelectors(p_keys=("0x8001", "0x08003")), [1, 3]),
        (SriovSelectors(p_keys=("0X8002",)), [2]),
        (SriovSelectors(vdpa_type="vhost"), [2]),
        (SriovSelectors(vdpa_type="virtio", p_keys=("0x8002",)), []),
    ],
)
def test_a_function_is_selected_by_its_firmware_name_its_partition_and_its_vdpa_device(
    selectors: SriovSelectors, numbers: list[int]
) -> None:
    assert [n for n, each in enumerate(RICH.nics) if matches(each, selectors)] == numbers


@given(st.text())
def test_whatever_sysfs_has_for_a_partition_key_is_read(key: str) -> None:
    port = replace(NODE.nics[0].ports[0], partition_key=key)
    matches(replace(NODE.nics[0], ports=(port,)), SriovSelectors(p_keys=("0x1",)))


VIRTIO = """
sriov:
  - {resourceName: fast, selectors: {vdpaType: vhost}}
  - {resourceName: slow, selectors: {vdpaType: virtio}}
  - {resourceName: user, selectors: {needVhostNet: true, isRdma: true}}
"""


def test_a_vdpa_device_reaches_the_container_by_its_file_and_multus_by_its_own_type() -> None:
    found = advertise(RICH, read(VIRTIO))
    answers = ContainerAnswers(AllocationSettings())
    answers.see(RICH, found)
    fast = answers.give("intel.com/fast", ("0000:3b:00.2",))
    assert [(f.host_path, f.permissions) for f in fast.files] == [("/dev/vhost-vdpa-0", "rwm")]
    about = json.loads(fast.envs["PCIDEVICE_INTEL_COM_FAST_INFO"])["0000:3b:00.2"]
    assert about["vdpa"] == {"mount": "/dev/vhost-vdpa-0"}
    assert answers.give("intel.com/slow", ("0000:3b:00.3",)).files == ()
    told = files(RICH, found)
    assert json.loads(told["intel.com-fast-0000:3b:00.2-device.json"]) == {
        "type": "vdpa",
        "version": "1.1.0",
        "vdpa": {
            "pci-address": "0000:3b:00.2",
            "pf-pci-address": ROOT,
            "parent-device": "vdpa0",
            "driver": "vhost",
            "path": "/dev/vhost-vdpa-0",
        },
    }
    slow = json.loads(told["intel.com-slow-0000:3b:00.3-device.json"])["vdpa"]
    assert (slow["driver"], "path" in slow) == ("virtio", False)
    assert json.loads(told["intel.com-user-0000:3b:00.4-device.json"])["type"] == "pci"


def test_the_files_for_virtio_through_the_kernel_come_with_the_function_or_are_said_to_lack() -> (
    None
):
    found = advertise(RICH, read(VIRTIO))
    answers = ContainerAnswers(AllocationSettings())
    answers.see(RICH, found)
    given_ = answers.give("intel.com/user", ("0000:3b:00.4",))
    assert [(f.host_path, f.permissions) for f in given_.files] == [
        ("/dev/vhost-net", "rw"),
        ("/dev/net/tun", "rw"),
    ]
    about = json.loads(given_.envs["PCIDEVICE_INTEL_COM_USER_INFO"])["0000:3b:00.4"]
    assert about["vhost"] == {"net-mount": "/dev/vhost-net", "tun-mount": "/dev/net/tun"}
    assert found.problems == ()
    bare = replace(RICH, vhost_files=())
    lacking = advertise(bare, read(VIRTIO))
    assert [each.resource for each in lacking.problems] == ["intel.com/user"]
    assert "modules vhost_net and tun" in lacking.problems[0].text
    answers.see(bare, lacking)
    assert answers.give("intel.com/user", ("0000:3b:00.4",)).files == ()


@given(st.text(), st.text())
def test_any_text_of_a_selector_is_read(name: str, numbers: str) -> None:
    for each in NODE.nics:
        matches(each, SriovSelectors(pf_names=(f"{name}#{numbers}",), root_devices=(name,)))


def test_a_container_is_told_the_addresses_and_what_is_known_of_them() -> None:
    found = give("nvidia.com/few", "0000:3b:00.2", "0000:3b:00.4")
    assert found.envs["PCIDEVICE_NVIDIA_COM_FEW"] == "0000:3b:00.2,0000:3b:00.4"
    assert json.loads(found.envs["PCIDEVICE_NVIDIA_COM_FEW_INFO"])["0000:3b:00.2"] == {
        "generic": {"deviceID": "0000:3b:00.2"},
        "extra": {"rack": "r1", "port": "a"},
        "rdma": {"rdma_cm": "/dev/infiniband/rdma_cm", "uverbs": "/dev/infiniband/uverbs2"},
    }
    assert found.cdi == ("muster.dev/rdma=mlx5_2", "muster.dev/rdma=mlx5_4")
    plain = give("intel.com/rest", "0000:3b:00.3")
    assert plain.envs["PCIDEVICE_INTEL_COM_REST"] == "0000:3b:00.3"
    assert (plain.cdi, plain.files) == ((), ())


def test_multus_finds_a_file_for_each_function_and_none_that_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "devinfo" / "dp"
    kept = DeviceInfoFiles(folder)
    kept.write(files(NODE, Advertisement()))
    assert not folder.exists()
    kept.write(files(NODE, shown()))
    (folder / "theirs-device.json").write_text("{}")
    names = {path.name for path in folder.iterdir()}
    assert "nvidia.com-few-0000:3b:00.2-device.json" in names
    assert len(names) == 5
    assert json.loads((folder / "nvidia.com-few-0000:3b:00.2-device.json").read_text()) == {
        "type": "pci",
        "version": "1.1.0",
        "pci": {"pci-address": "0000:3b:00.2", "rdma-device": "mlx5_2", "pf-pci-address": ROOT},
    }
    kept.write(files(NODE, Advertisement()))
    assert [path.name for path in folder.iterdir()] == ["theirs-device.json"]


def test_a_folder_that_cannot_be_written_is_told_once_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "dp").write_text("a file")
    kept = DeviceInfoFiles(tmp_path / "dp")
    for _ in range(2):
        kept.write(files(NODE, shown()))
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    (tmp_path / "dp").unlink()
    kept.write(files(NODE, shown()))
    assert len(list((tmp_path / "dp").iterdir())) == 4


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("sriov: [{resourceName: a}, {resourceName: a}]", ["intel.com/a", "twice"]),
        ("sriov: [{resourceName: a, deviceType: accelerator}]", ["deviceType", "netDevice"]),
        ("sriov: [{resourceName: a, selectors: {colours: [red]}}]", ["colours", "rootDevices"]),
        (
            "sriov: [{resourceName: a, selectors: {ddpProfiles: [GTPv1-C/U IPv4/IPv6 payload]}}]",
            ["sriov[0].selectors.ddpProfiles", "GTPv1", "devlink", "pfNames or rootDevices"],
        ),
        (
            "sriov: [{resourceName: a, selectors: [{isRdma: true, vdpaType: vhost}]}]",
            ["isRdma", "vdpaType", "leave one out"],
        ),
        ("sriov: [{resourceName: a, selectors: {pKeys: ['8001']}}]", ["pKeys", "0[xX]"]),
        ("sriov: [{resourceName: a, selectors: {vdpaType: user}}]", ["vdpaType", "virtio"]),
        ("sriov: [{resourceName: 'a b'}]", ["after the slash"]),
    ],
)
def test_what_cannot_be_selected_here_is_refused(text: str, reported: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        read(text)
    for part in reported:
        assert part in str(error.value)


def test_the_rdma_plugins_whole_file_is_taken_and_its_interval_is_said_to_have_no_effect() -> None:
    pool = {"resourceName": "hca", "rdmaHcaMax": 4, "selectors": {"linkTypes": ["ether"]}}
    found = read(json.dumps({"rdma": {"periodicUpdateInterval": 300, "configList": [pool]}}))
    assert [each.resource for each in found.nic_pools] == ["rdma/hca"]
    assert len(advertise(NODE, found).resources[0].devices) == 4
    [(field, _)] = ineffective(found)
    assert field == "rdma.periodicUpdateInterval"
    assert list(ineffective(ResourceSettings(rdma=(NicPool("hca"),)))) == []
