"""Shares on devices: what fits beside what, and which device is taken.

A device offers 1000 milli and its memory in MiB; a node here has two to four of them.
"""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.devices.choice import choose, seated
from muster.cluster.devices.needs import is_model
from muster.cluster.devices.onenode import WIDTH, DeviceSlot, Layout, fits, needs_of, put
from muster.cluster.devices.rooms import by_state
from muster.cluster.devices.sharenames import named_shares, share_name
from muster.cluster.specs.deviceasks import (
    DeviceAsk,
    DeviceAsks,
    Memory,
    MigAsk,
    Milli,
    SharedAsk,
    Whole,
)
from muster.cluster.specs.deviceshape import DeviceShape
from muster.cluster.specs.podconstraints import PodClass
from muster.workloads.devices import mig

GPU = "nvidia.com/gpu"
GIB = 1024


def gpus(count: int, *, memory: int = 80 * GIB, replicas: int = 1, **fields: object) -> Layout:
    counters = (("memory", memory), ("replicas", replicas))
    shape = DeviceShape(GPU, family="nvidia", counters=counters, **fields)  # type: ignore[arg-type]
    return (DeviceSlot(shape, healthy=True),) * count


def a100s(count: int) -> Layout:
    card = mig.card_of(mig.load(), "NVIDIA-A100-SXM4-40GB", ())
    assert card is not None
    return (
        DeviceSlot(DeviceShape("", family="nvidia", placements=card.profiles), healthy=True),
    ) * count


def kind(*asks: DeviceAsk, **fields: object) -> PodClass:
    whole = [a for a in asks if isinstance(a, Whole)]
    return PodClass(
        requests=tuple((a.resource, a.count) for a in whole),
        devices=DeviceAsks(tuple(a for a in asks if a not in whole), **fields),  # type: ignore[arg-type]
    )


class Node:
    """Devices that pods are put on one after the other."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.uses = [0] * (len(layout) * WIDTH)
        self.names = [f"g{i}" for i in range(len(layout))]

    def take(self, *asks: DeviceAsk, **fields: object) -> list[str] | None:
        needs = needs_of(self.layout, kind(*asks, **fields))
        placed = None if needs is None else choose(self.layout, self.uses, needs)
        for share in placed or ():
            put(self.uses, share)
        return None if placed is None else [share_name(self.layout, self.names, s) for s in placed]

    def room(self, *asks: DeviceAsk) -> int:
        return seated(self.layout, list(self.uses), needs_of(self.layout, kind(*asks)) or (), 100)


def test_half_a_gpu_goes_beside_the_other_half_and_not_onto_an_empty_one() -> None:
    node = Node(gpus(3))
    assert node.take(Milli("nvidia", 1, 500)) == ["g0"]
    assert node.take(Milli("nvidia", 1, 600)) == ["g1"]
    assert node.take(Milli("nvidia", 1, 400)) == ["g1"]
    assert node.take(Milli("nvidia", 1, 500)) == ["g0"]
    assert node.take(Whole(GPU, 1)) == ["g2"]
    assert node.take(Milli("nvidia", 1, 1)) is None


def test_a_half_of_a_node_stays_whole_for_the_pod_that_needs_all_of_it() -> None:
    node = Node(halves(8, 8))
    assert node.take(Whole(GPU, 1)) == ["g0"]
    assert node.take(Whole(GPU, 1)) == ["g1"]
    assert node.take(Whole(GPU, 8)) == [f"g{i}" for i in range(8, 16)]
    assert node.take(Whole(GPU, 6)) == [f"g{i}" for i in range(2, 8)]


def test_devices_cross_halves_only_where_no_half_has_enough() -> None:
    node = Node(halves(4, 4))
    assert node.take(Whole(GPU, 3)) == ["g0", "g1", "g2"]
    assert node.take(Whole(GPU, 2)) == ["g4", "g5"]
    assert node.take(Whole(GPU, 3)) == ["g3", "g6", "g7"]


def test_a_share_opens_a_device_of_the_half_that_is_in_use() -> None:
    node = Node(halves(4, 4))
    assert node.take(Whole(GPU, 1)) == ["g0"]
    assert node.take(Milli("nvidia", 1, 500)) == ["g1"]
    assert node.take(Whole(GPU, 4)) == ["g4", "g5", "g6", "g7"]
    node = Node(halves(4, 4))
    assert node.take(Whole(GPU, 3)) == ["g0", "g1", "g2"]
    assert node.take(Milli("nvidia", 2, 500)) == ["g4", "g5"]


def test_shares_on_several_devices_are_in_one_half() -> None:
    node = Node(halves(4, 4))
    assert node.take(Whole(GPU, 3)) == ["g0", "g1", "g2"]
    assert node.take(Milli("nvidia", 1, 500)) == ["g3"]
    assert node.take(Milli("nvidia", 3, 500)) == ["g4", "g5", "g6"]


def test_a_share_takes_its_share_of_the_memory_too() -> None:
    node = Node(gpus(1))
    assert node.take(Memory("nvidia", 1, 41 * GIB))
    assert node.take(Milli("nvidia", 1, 500)) is None
    assert node.take(Milli("nvidia", 1, 480))


def test_a_whole_gpu_is_one_without_any_pod() -> None:
    node = Node(gpus(2))
    node.take(Memory("nvidia", 1, 1))
    assert node.take(Whole(GPU, 2)) is None
    assert node.take(Whole(GPU, 1)) == ["g1"]


def test_shares_of_several_gpus_are_on_different_ones() -> None:
    node = Node(gpus(2))
    assert node.take(Milli("nvidia", 2, 300)) == ["g0", "g1"]
    assert node.take(Milli("nvidia", 3, 100)) is None


def test_all_the_cores_of_a_vgpu_keep_everybody_else_off_it() -> None:
    node = Node(gpus(2, replicas=10, by_memory=True))
    assert node.take(Memory("nvidia", 1, 1000, cores=100)) == ["g0"]
    assert node.take(Memory("nvidia", 1, 1000)) == ["g1"]
    assert node.take(Memory("nvidia", 1, 1000, cores=100)) is None


def test_a_vgpu_of_which_no_memory_is_named_has_all_of_it() -> None:
    node = Node(gpus(1, replicas=10, by_memory=True))
    assert node.take(Whole(GPU, 1)) == ["g0"]
    assert node.take(Memory("nvidia", 1, 1)) is None


def test_replicas_of_one_pod_are_on_different_gpus_while_there_are_any() -> None:
    node = Node(gpus(2, replicas=3))
    assert node.take(SharedAsk(GPU, 2)) == ["g0", "g1"]
    assert node.take(SharedAsk(GPU, 3)) == ["g0", "g0", "g1"]
    assert node.take(SharedAsk(GPU, 2)) is None


def test_a_device_of_another_model_is_passed_over() -> None:
    (h100,) = gpus(1, model="NVIDIA-H100-80GB-HBM3")
    (a10,) = gpus(1, model="NVIDIA-A10")
    node = Node((a10, h100))
    assert node.take(Milli("nvidia", 1, 500), models=("A100", "H100")) == ["g1"]
    assert node.take(Milli("nvidia", 1, 500), models=("A100",)) is None
    assert node.take(Milli("nvidia", 1, 500), avoided=("A10",)) == ["g1"]


def test_a_device_that_is_not_healthy_takes_nothing() -> None:
    (one,) = gpus(1)
    node = Node((DeviceSlot(one.shape, healthy=False), one))
    assert [node.take(Whole(GPU, 1)), node.take(Whole(GPU, 1))] == [["g1"], None]


@pytest.mark.parametrize(
    ("product", "asked", "same"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB", True),
        ("NVIDIA-H100-80GB-HBM3", "h100", True),
        ("NVIDIA H100 80GB HBM3", "H100 80GB", True),
        ("Tesla-V100-SXM2-32GB", "V100", True),
        ("NVIDIA-A100-SXM4-40GB", "A10", False),
        ("NVIDIA-A10", "A100", False),
        ("NVIDIA-A10G", "A10", True),
        ("NVIDIA-H100-80GB-HBM3", "H100-NVL", False),
        ("", "H100", False),
        ("H100", "", False),
    ],
)
def test_products_match_by_the_beginning_of_their_names(
    product: str, asked: str, *, same: bool
) -> None:
    assert is_model(product, asked) is same


def test_two_containers_compete_for_the_devices_of_one_node() -> None:
    node = Node(gpus(2))
    assert node.room(Milli("nvidia", 1, 700), Milli("nvidia", 1, 300)) == 2
    assert node.take(Milli("nvidia", 1, 300), Milli("nvidia", 1, 700)) == ["g0", "g0"]
    assert node.take(Milli("nvidia", 1, 700), Milli("nvidia", 1, 700)) is None


def test_a_mig_instance_goes_where_it_spoils_least() -> None:
    node = Node(a100s(1))
    assert node.take(MigAsk("1g.5gb", 1, "nvidia.com/mig-1g.5gb")) == ["g0/1g.5gb@6"]
    assert node.take(MigAsk("3g.20gb", 1, "r")) == ["g0/3g.20gb@0"]
    assert node.take(MigAsk("2g.10gb", 1, "r")) == ["g0/2g.10gb@4"]
    assert node.take(MigAsk("1g.5gb", 1, "r")) is None


def test_names_say_which_place_and_nothing_else_is_believed() -> None:
    layout = a100s(2)
    needs = needs_of(layout, kind(MigAsk("3g.20gb", 2, "r")))
    assert needs is not None
    found = named_shares(layout, ["a", "b"], needs, ["a/3g.20gb@4", "b/3g.20gb@0"])
    assert found is not None
    assert [(share.device, share.start, share.mask) for share in found] == [
        (0, 4, 0xF0),
        (1, 0, 0x0F),
    ]
    for wrong in (["a/3g.20gb@2", "b/3g.20gb@0"], ["a", "b"], ["a/4g.20gb@0", "b/3g.20gb@0"],
                  ["c/3g.20gb@0", "b/3g.20gb@0"], ["a/3g.20gb@0"]):  # fmt: skip
        assert named_shares(layout, ["a", "b"], needs, wrong) is None


@pytest.mark.parametrize("order", list(permutations(["4g.20gb", "2g.10gb", "1g.5gb"])))
def test_what_can_stand_on_one_card_is_found_in_any_order(order: tuple[str, ...]) -> None:
    node = Node(a100s(1))
    assert all(node.take(MigAsk(profile, 1, "r")) for profile in order), node.uses


# --- NUMA nodes -----------------------------------------------------------------------


def halves(*sizes: int, **fields: object) -> Layout:
    """Return GPUs on NUMA nodes 0, 1, …, so many on each."""
    return tuple(
        slot for numa, size in enumerate(sizes) for slot in gpus(size, numa=numa, **fields)
    )


def numbers(names: list[str] | None) -> set[int]:
    return {int(name.removeprefix("g")) for name in names or ()}


def test_a_pod_of_half_a_host_gets_one_whole_numa_node() -> None:
    """numa 0: g0 … g7; numa 1: g8 … g15; pods of 1, 1 and 8."""
    node = Node(halves(8, 8))
    assert node.take(Whole(GPU, 1)) == ["g0"]
    assert node.take(Whole(GPU, 1)) == ["g1"]
    assert numbers(node.take(Whole(GPU, 8))) == set(range(8, 16))


def test_small_pods_fill_the_numa_node_that_is_broken_already() -> None:
    """numa 0: g0 … g3; numa 1: g4 … g7, of which g4 is used."""
    node = Node(halves(4, 4))
    node.uses[4 * WIDTH] = 1000
    assert node.take(Whole(GPU, 2)) == ["g5", "g6"]
    assert node.take(Milli("nvidia", 1, 500)) == ["g7"]
    assert numbers(node.take(Whole(GPU, 4))) == {0, 1, 2, 3}


def test_a_pod_larger_than_a_numa_node_is_on_as_few_as_there_can_be() -> None:
    """numa 0: 2 GPUs, numa 1: 4, numa 2: 3; a pod of 6 takes all of 1, and 2 of numa 0."""
    node = Node(halves(2, 4, 3))
    assert numbers(node.take(Whole(GPU, 6))) == {0, 1, 2, 3, 4, 5}


def test_a_nic_is_taken_from_the_numa_node_of_the_gpus() -> None:
    """numa 0: g0 … g3 and a NIC; numa 1: g4 … g7 and a NIC; g0 is used, the pod has 4 GPUs."""
    nics = tuple(DeviceSlot(DeviceShape("rdma/ib", numa=n), healthy=True) for n in (0, 1))
    node = Node((*halves(4, 4), *nics))
    node.uses[0] = 1000
    assert node.take(Whole(GPU, 4), Whole("rdma/ib", 1)) == ["g4", "g5", "g6", "g7", "g9"]


def test_shares_of_several_gpus_stay_on_one_numa_node_where_room_is_equal() -> None:
    """numa 0: g0 … g3, of which g0 and g1 are nearly full; numa 1: g4 … g7."""
    node = Node(halves(4, 4))
    node.uses[0] = node.uses[WIDTH] = 700
    assert numbers(node.take(Milli("nvidia", 3, 400))) == {4, 5, 6}


def test_shares_of_several_gpus_take_the_emptiest_before_they_look_at_numa_nodes() -> None:
    """numa 0: g0 … g3 have room for one share each; numa 1: g4 is empty, the others are full."""
    node = Node(halves(4, 4))
    for number, used in enumerate((500, 500, 500, 500, 0, 900, 900, 900)):
        node.uses[number * WIDTH] = used
    assert numbers(node.take(Milli("nvidia", 2, 400))) == {0, 4}


# -- GPUs that may be had whole or cut -------------------------------------------------------------


def whole_or_cut(count: int) -> Layout:
    """GPUs that a node lists twice: as GPUs, and as the instances that they can be cut into."""
    (cut,) = a100s(1)
    shape = replace(cut.shape, resource=GPU, counters=(("memory", 40 * GIB),))
    return (DeviceSlot(shape, healthy=True),) * count


WHOLE = Whole(GPU, 1)
SMALL, HALF = (MigAsk(name, 1, f"nvidia.com/mig-{name}") for name in ("1g.5gb", "3g.20gb"))


@given(st.integers(1, 3), st.lists(st.sampled_from([WHOLE, SMALL, HALF]), max_size=12))
def test_a_gpu_is_had_whole_or_in_instances_and_never_both(
    gpus: int, asked: list[Whole | MigAsk]
) -> None:
    node = Node(whole_or_cut(gpus))
    had: dict[str, set[bool]] = {}
    for ask in asked:
        for left in (WHOLE, SMALL, HALF):
            uses = np.array(node.uses, dtype=np.int32).reshape(1, -1, WIDTH)
            counted = by_state(node.layout, uses, kind(left))
            assert counted[0] == node.room(left)  # by formula as by trying
        names = node.take(ask)
        for name in names or ():
            had.setdefault(name.split("/")[0], set()).add("/" in name)
    assert all(len(ways) == 1 for ways in had.values())


@pytest.mark.parametrize("asked", list(permutations([WHOLE, SMALL])))
def test_what_a_kubelet_or_a_plan_names_does_not_fit_on_a_gpu_that_is_had_the_other_way(
    asked: tuple[Whole | MigAsk, ...],
) -> None:
    layout = whole_or_cut(1)
    first, second = (
        share
        for ask in asked
        for share in choose(layout, [0] * WIDTH, needs_of(layout, kind(ask)) or ()) or ()
    )
    assert fits(layout, [0] * WIDTH, [first])
    assert fits(layout, [0] * WIDTH, [second])
    assert not fits(layout, [0] * WIDTH, [first, second])
