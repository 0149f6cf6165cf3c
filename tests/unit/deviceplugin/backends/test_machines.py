"""The machines that come with Muster: what is published of them, and mistakes in files."""

import re

import msgspec
import pytest
from support.devices.machines import inventory

from deviceplugin.backends.simulated import inventory as simulatedinventory
from deviceplugin.backends.simulated.faults import Faults
from deviceplugin.backends.simulated.inventory import Cut, site
from deviceplugin.backends.simulated.machine import Machine, load, names, problems
from deviceplugin.model.inventory import FabricState, Gpu, Nic, PciPlace, Vendor
from muster.observability.configfile import ConfigError, parse

MACHINES = (
    "dgx-a100",
    "dgx-h100",
    "dgx-h200",
    "gb200-nvl72",
    "mi300x",
    "pcie-l40s",
    "pcie-t4",
)
UUID = re.compile(r"GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def shared_steps(one: PciPlace, other: PciPlace) -> int:
    return sum(a == b for a, b in zip(one.path, other.path, strict=False))


def nearest(gpu: Gpu, nics: tuple[Nic, ...]) -> str:
    return max(nics, key=lambda nic: shared_steps(gpu.place, nic.place)).name


def test_these_machines_are_there() -> None:
    assert names() == MACHINES
    assert [load(name).name for name in MACHINES] == list(MACHINES)


@pytest.mark.parametrize(
    ("machine", "gpus", "memory", "compute", "links"),
    [
        ("dgx-a100", 8, 81920, (8, 0), 12),
        ("dgx-h100", 8, 81559, (9, 0), 18),
        ("dgx-h200", 8, 143771, (9, 0), 18),
        ("gb200-nvl72", 4, 189471, (10, 0), 18),
        ("mi300x", 8, 196592, (0, 0), 1),
        ("pcie-l40s", 4, 46068, (8, 9), 0),
        ("pcie-t4", 2, 15360, (7, 5), 0),
    ],
)
def test_gpus_are_as_published(
    machine: str, gpus: int, memory: int, compute: tuple[int, int], links: int
) -> None:
    found = inventory(machine)
    assert len(found.gpus) == gpus
    assert {(gpu.memory_mib, gpu.compute) for gpu in found.gpus} == {(memory, compute)}
    pairs = {
        found.links.joining(one.uuid, other.uuid)
        for one in found.gpus
        for other in found.gpus
        if one is not other
    }
    assert pairs == {links}


def test_each_gpu_of_a_dgx_h100_is_behind_one_switch_with_the_nic_that_the_guide_names() -> None:
    # DGX H100 User Guide, table "Network Modules": GPU → Default RDMA.
    found = inventory("dgx-h100")
    pairs = {gpu.index: nearest(gpu, found.nics) for gpu in found.gpus}
    assert pairs == {
        0: "mlx5_0",
        1: "mlx5_3",
        2: "mlx5_4",
        3: "mlx5_5",
        4: "mlx5_6",
        5: "mlx5_9",
        6: "mlx5_10",
        7: "mlx5_11",
    }


def test_each_mi300x_is_behind_one_switch_with_the_nic_of_amds_adjacency_table() -> None:
    found = inventory("mi300x")
    pairs = [
        (gpu.place.address, next(n.interfaces for n in found.nics if n.name == name))
        for gpu in found.gpus
        for name in (nearest(gpu, found.nics),)
    ]
    assert pairs == [
        ("0000:05:00.0", ("enp9s0np0",)),
        ("0000:2b:00.0", ("enp35s0np0",)),
        ("0000:5b:00.0", ("enp83s0np0",)),
        ("0000:65:00.0", ("enp105s0np0",)),
        ("0000:7d:00.0", ("enp143s0np0",)),
        ("0000:a5:00.0", ("enp156s0np0",)),
        ("0000:d5:00.0", ("enp205s0np0",)),
        ("0000:e7:00.0", ("enp241s0np0",)),
    ]
    assert {gpu.vendor for gpu in found.gpus} == {Vendor.AMD}


def test_nics_of_infiniband_are_named_by_their_bus() -> None:
    for machine in ("dgx-a100", "dgx-h100", "dgx-h200"):
        for nic in inventory(machine).nics:
            bus = int(nic.place.address.split(":")[1], 16)
            assert re.match(rf"(ibp|enp){bus}s0", nic.interfaces[0]), (machine, nic)


def test_devices_of_a_node_are_its_own_and_the_same_after_a_restart() -> None:
    one, again, other = (inventory("dgx-h100", node=node) for node in ("a", "a", "b"))
    assert one == again
    assert not {gpu.uuid for gpu in one.gpus} & {gpu.uuid for gpu in other.gpus}
    assert all(UUID.fullmatch(gpu.uuid) for gpu in one.gpus)
    assert one.nics[0].guid != other.nics[0].guid


def test_trays_of_a_rack_are_one_nvlink_cluster_and_racks_are_not() -> None:
    machine = load("gb200-nvl72")

    def cluster(node: str, rack: str) -> str:
        here = site(machine, node, rack)
        found = simulatedinventory.inventory(here, [Cut()] * 4, Faults())
        [reported] = {gpu.fabric.cluster for gpu in found.gpus}
        assert {gpu.fabric.state for gpu in found.gpus} == {FabricState.COMPLETED}
        return reported

    assert cluster("n1", "r1") == cluster("n2", "r1") != cluster("n3", "r2")


def test_a_dgx_is_a_fabric_of_its_own_and_an_a100_tells_of_none() -> None:
    h100, a100 = inventory("dgx-h100").gpus[0].fabric, inventory("dgx-a100").gpus[0].fabric
    assert h100.state is FabricState.COMPLETED
    assert set(h100.cluster) == {"0", "-"}
    assert a100.state is FabricState.NOT_SUPPORTED


@pytest.mark.parametrize(
    ("machine", "instances", "memory"),
    [
        ("dgx-a100/all-1g.10gb", 7, 10240),
        ("dgx-h100/all-3g.40gb", 2, 40448),
        ("dgx-h200/all-balanced", 4, None),
        ("gb200-nvl72/all-3g.93gb", 2, None),
    ],
)
def test_layouts_cut_every_gpu_alike(machine: str, instances: int, memory: int | None) -> None:
    found = inventory(machine)
    for gpu in found.gpus:
        assert gpu.mig is not None
        assert gpu.mig.enabled
        assert len(gpu.mig.instances) == instances
        assert len({i.gpu_instance for i in gpu.mig.instances}) == instances
        assert memory is None or {i.memory_mib for i in gpu.mig.instances} == {memory}


def test_a_gpu_that_cannot_be_cut_has_no_mig_at_all() -> None:
    assert {
        gpu.mig for name in ("pcie-t4", "pcie-l40s", "mi300x") for gpu in inventory(name).gpus
    } == {None}


# --- mistakes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("dgx-b100", ["'dgx-b100'", "dgx-a100", "pcie-t4", ".yaml"]),
        ("dgx-h100/all-5g", ["layout 'all-5g'", "all-balanced"]),
        ("pcie-t4/all", ["layout 'all'", "cannot be cut"]),
        ("none/there.yaml", ["none/there.yaml", "cannot be read"]),
    ],
)
def test_a_machine_that_is_not_there_is_reported_with_those_that_are(
    name: str, reported: list[str]
) -> None:
    with pytest.raises(ConfigError) as error:
        load(name)
    for part in reported:
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("change", "reported"),
    [
        ({"vendor": "intel"}, ["vendor", "intel"]),
        ({"gpu": {"colour": "green"}}, ["gpu", "colour"]),
        ({"gpus": [{"address": "1b:00.0", "numa": 0, "above": "pci0000:15"}]}, ["gpus[0].address"]),
        ({"gpus": [{"address": "0000:1b:00.0", "numa": 0, "above": "15"}]}, ["gpus[0].above"]),
        (
            {"gpus": [{"address": "0000:1b:00.0", "numa": 0, "above": "pci0000:15"}] * 2},
            ["0000:1b:00.0 is there twice"],
        ),
        ({"layouts": {"x": ["3g.40gb@1"]}}, ["layouts.x", "3g.40gb@1", "allowed are 0, 4"]),
        ({"layouts": {"x": ["9g.40gb@1"]}}, ["layouts.x", "9g.40gb", "1g.10gb"]),
        ({"layouts": {"x": ["3g.40gb"]}}, ["layouts.x", "PROFILE@START"]),
        ({"layouts": {"x": ["3g.40gb@0", "2g.20gb@2"]}}, ["memory slice 2", "3g.40gb@0"]),
        ({"layouts": {"x": ["1g.10gb+me@0", "1g.10gb+me@1"]}}, ["media engines"]),
        ({"layout": "x"}, ["layout: 'x'", "all-balanced"]),
        ({"nicKinds": {}}, ["nics[0].kind", "compute"]),
        ({"fabric": {"state": "broken"}}, ["fabric.state", "broken"]),
    ],
)
def test_mistakes_in_a_machine_of_ones_own_are_named(
    change: dict[str, object], reported: list[str]
) -> None:
    plain: dict[str, object] = msgspec.to_builtins(load("dgx-h100"))
    for field, value in change.items():
        old = plain.get(field)
        both = isinstance(old, dict) and isinstance(value, dict) and field == "gpu"
        plain[field] = {**old, **value} if both else value  # type: ignore[dict-item]
    with pytest.raises(ConfigError) as error:
        parse(msgspec.yaml.encode(plain), Machine, problems, source="mine.yaml")
    assert str(error.value).startswith("mine.yaml: ")
    for part in reported:
        assert part in str(error.value)
