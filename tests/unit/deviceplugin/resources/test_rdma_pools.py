"""Pools of NICs; selectors as in Mellanox/k8s-rdma-shared-dev-plugin's README.

The NICs of a DGX H100: eight for compute (InfiniBand), two ports for storage (InfiniBand) and two
more (Ethernet), mlx5_0 to mlx5_11.
"""

from dataclasses import replace

import pytest
from support.devices.machines import inventory

from deviceplugin.model.inventory import Nic
from deviceplugin.resources.advertisements import AdvertisedKind, Advertisement, SharingMode
from deviceplugin.resources.advertising import advertise, resource_of
from deviceplugin.resources.rdma import matches
from deviceplugin.resources.settings import NicPool, ResourceSettings, Selectors, problems
from muster.observability.configfile import ConfigError, parse

DGX = inventory("dgx-h100")
ETHERNET = Selectors(link_types=("ether",))
# The configList of the README's example, with interfaces of this machine.
EXAMPLE = """
{"rdma": [
  {"resourceName": "hca_shared_devices_a", "rdmaHcaMax": 1000, "devices": ["ibp24s0", "ibp64s0"]},
  {"resourceName": "hca_shared_devices_b", "rdmaHcaMax": 500,
   "selectors": {"vendors": ["15b3"], "deviceIDs": ["1021"], "ifNames": ["ibp79s0", "ibp94s0"]}}
]}
"""


def read(text: str) -> ResourceSettings:
    return parse(text.encode(), ResourceSettings, problems, source="config.yaml")


def pooled(*pools: NicPool) -> Advertisement:
    return advertise(replace(DGX, gpus=()), ResourceSettings(rdma=pools))


def test_the_pools_of_the_readmes_example_are_taken_as_they_stand() -> None:
    found = pooled(*read(EXAMPLE).rdma)
    shown = {each.resource: len(each.devices) for each in found.resources}
    assert shown == {"rdma/hca_shared_devices_a": 1000, "rdma/hca_shared_devices_b": 500}
    first = found.resources[0].devices[0]
    assert first.parents == ("mlx5_0", "mlx5_3")
    assert (first.numa, first.id) == ((), "hca_shared_devices_a::0")
    assert resource_of(found)["mlx5_4"] == "rdma/hca_shared_devices_b"


def test_nics_without_a_limit_are_handed_out_one_by_one_by_name_and_numa_node() -> None:
    [pool] = pooled(NicPool("eth", selectors=ETHERNET)).resources
    assert (pool.kind, pool.sharing) == (AdvertisedKind.NIC, SharingMode.NONE)
    assert [(device.id, device.numa) for device in pool.devices] == [
        ("mlx5_2", (0,)),
        ("mlx5_8", (1,)),
    ]


def test_ids_of_single_nics_are_divided_among_them() -> None:
    [pool] = pooled(NicPool("eth", rdma_hca_max=5, grants="nic", selectors=ETHERNET)).resources
    assert [device.id for device in pool.devices] == [
        "mlx5_2::0",
        "mlx5_8::0",
        "mlx5_2::1",
        "mlx5_8::1",
        "mlx5_2::2",
    ]
    assert pool.shares == 3


@pytest.mark.parametrize(
    ("selectors", "count"),
    [
        (Selectors(), 12),
        (Selectors(vendors=("15b3",)), 12),
        (Selectors(vendors=("8086",)), 0),
        (Selectors(vendors=("8086", "15b3"), link_types=("ether",)), 2),
        (Selectors(link_types=("infiniband",)), 10),
        (Selectors(drivers=("mlx5_core",), if_names=("ibp24s0",)), 1),
        (Selectors(names=("mlx5_0", "mlx5_1")), 2),
        (Selectors(pci_addresses=("0000:dc:00.0",)), 1),
        (Selectors(virtual=True), 0),
        (Selectors(virtual=False), 12),
    ],
)
def test_a_nic_has_one_value_of_every_selector(selectors: Selectors, count: int) -> None:
    assert sum(matches(selectors, nic) for nic in DGX.nics) == count


def test_virtual_functions_are_distinguished() -> None:
    function: Nic = replace(DGX.nics[0], name="mlx5_12", virtual_of="0000:18:00.0")
    assert matches(Selectors(virtual=True), function)


@pytest.mark.parametrize("limits", [(0, 0), (0, 8), (8, 0)])
def test_a_nic_that_is_handed_out_exclusively_is_in_no_other_pool(limits: tuple[int, int]) -> None:
    one, other = limits
    found = pooled(
        NicPool("a", rdma_hca_max=one, selectors=ETHERNET),
        NicPool("b", rdma_hca_max=other, selectors=Selectors(names=("mlx5_2",))),
    )
    assert [each.resource for each in found.resources] == ["rdma/a"]
    assert "mlx5_2 is in rdma/a" in found.problems[0].text


def test_shared_pools_may_overlap() -> None:
    found = pooled(NicPool("a", rdma_hca_max=4, selectors=ETHERNET), NicPool("b", rdma_hca_max=4))
    assert [len(each.devices) for each in found.resources] == [4, 4]
    assert not found.problems


def test_more_ids_than_the_kubelet_takes_are_refused_with_the_limit() -> None:
    found = pooled(NicPool("a", rdma_hca_max=20_000))
    assert found.resources == ()
    assert "write up to 16384" in found.problems[0].text


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("rdma: [{resourceName: a}, {resourceName: a}]", ["rdma: resourceName: rdma/a", "twice"]),
        ("rdma: [{resourceName: 'a b', devices: [ib0]}]", ["rdma/a b", "after the slash"]),
        ("rdma: [{resourceName: a, rdmaHcaMax: -1, devices: [ib0]}]", ["rdmaHcaMax", ">= 0"]),
        ("rdma: [{resourceName: a, selectors: {vendors: [Mellanox]}}]", ["vendors"]),
        ("rdma: [{resourceName: a, selectors: {linkTypes: [roce]}}]", ["linkTypes", "roce"]),
        ("rmda: []", ["rmda", "rdma"]),
    ],
)
def test_mistakes_in_the_file_are_named(text: str, reported: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        read(text)
    assert "config.yaml" in str(error.value)
    for part in reported:
        assert part in str(error.value)
