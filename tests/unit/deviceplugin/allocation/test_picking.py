"""Which ids are taken where no plan says it.

The node of ``support.handshakes``: gpu0 gpu1 nic0 below one switch, and so on.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.handshakes import INVENTORY, MIG, NICS, SHARED, picker, stocks, whole

from deviceplugin.allocation.settings import SharePolicy
from deviceplugin.allocation.values import IdKind, IdStock, OfferedId
from deviceplugin.model.inventory import GpuMig, GpuMigProfile

STOCKS = {stock.resource: stock for stock in stocks()}
HCA = whole("rdma/hca", NICS, ill=frozenset(), nics=True)


def ids(offers: list[OfferedId]) -> list[str]:
    return [offer.id for offer in offers]


def shares(*parents: tuple[str, int]) -> tuple[OfferedId, ...]:
    return tuple(OfferedId(f"{p}::{n}", p, p) for p, count in parents for n in range(count))


def test_every_gpu_gets_the_nic_of_its_own_switch() -> None:
    found = picker().pick(HCA, HCA.offers, [], 2, near=["gpu0", "gpu6"])
    assert sorted(ids(found)) == ["nic0", "nic3"]


def test_gpus_of_one_switch_get_its_nic_and_the_next_one_on_their_cpu() -> None:
    found = picker().pick(HCA, HCA.offers, [], 2, near=["gpu4", "gpu5"])
    assert sorted(ids(found)) == ["nic2", "nic3"]


def test_nics_that_are_taken_serve_their_gpus_already() -> None:
    left = [offer for offer in HCA.offers if offer.id != "nic0"]
    found = picker().pick(HCA, left, [HCA.by_id["nic0"]], 2, near=["gpu0", "gpu2"])
    assert ids(found) == ["nic0", "nic1"]


def test_more_nics_than_gpus_are_the_nearest_ones() -> None:
    found = picker().pick(HCA, HCA.offers, [], 3, near=["gpu6"])
    assert ids(found)[:2] == ["nic3", "nic2"]


def test_shares_of_nics_are_spread_over_the_nics_of_the_gpus() -> None:
    offers = shares(("nic0", 4), ("nic1", 4), ("nic2", 4))
    stock = IdStock("rdma/shared", IdKind.REPLICA, offers, nics=True)
    found = picker().pick(stock, offers, [], 2, near=["gpu0", "gpu2"])
    assert sorted(offer.parent for offer in found) == ["nic0", "nic1"]


def test_replicas_go_to_different_gpus_the_emptiest_first() -> None:
    offers = shares(("gpu0", 1), ("gpu1", 3), ("gpu2", 2))
    stock = IdStock(SHARED, IdKind.REPLICA, offers)
    assert ids(picker().pick(stock, offers, [], 4)) == ["gpu1::0", "gpu2::0", "gpu0::0", "gpu1::1"]


def test_a_container_that_has_a_replica_gets_the_next_of_another_gpu() -> None:
    offers = shares(("gpu0", 3), ("gpu1", 1))
    stock = IdStock(SHARED, IdKind.REPLICA, offers)
    assert ids(picker().pick(stock, offers[1:], [offers[0]], 2)) == ["gpu0::0", "gpu1::0"]


def test_packed_replicas_fill_the_fullest_gpu_first() -> None:
    offers = shares(("gpu0", 3), ("gpu1", 1), ("gpu2", 2))
    stock = IdStock(SHARED, IdKind.REPLICA, offers, shares="packed")
    assert ids(picker().pick(stock, offers, [], 3)) == ["gpu1::0", "gpu2::0", "gpu2::1"]


@pytest.mark.parametrize(
    ("policy", "number", "expected"),
    [
        ("packed", 1, ["y"]),
        ("packed", 6, ["y"] * 5 + ["x"]),
        ("distributed", 1, ["x"]),
        ("distributed", 4, ["x", "x", "x", "y"]),
        ("spread", 1, ["x"]),
        ("spread", 4, ["x", "y", "x", "y"]),
    ],
)
def test_shares_go_by_what_is_given_and_not_by_what_is_free(
    policy: SharePolicy, number: int, expected: list[str]
) -> None:
    """x: all 4 shares are free. y: 5 of 8 are."""
    offers = shares(("x", 4), ("y", 8))
    stock = IdStock(SHARED, IdKind.REPLICA, offers, shares=policy)
    found = picker().pick(stock, [*offers[:4], *offers[7:]], [], number)
    assert [offer.parent for offer in found] == expected


def greedy(
    policy: SharePolicy, total: Mapping[str, int], free: Mapping[str, int], must: list[str]
) -> set[str]:
    """Return the devices that NVIDIA's plugin may take next, by its three comparators."""
    out = {name: total[name] - free[name] for name in total}
    order: dict[str, Callable[[str], tuple[int, int]]] = {
        "distributed": lambda name: (out[name], must.count(name)),
        "packed": lambda name: (-out[name], must.count(name)),
        "spread": lambda name: (must.count(name), out[name]),
    }
    there = [name for name in free if free[name] > 0]
    best = min(map(order[policy], there))
    return {name for name in there if order[policy](name) == best}


@given(st.data(), st.sampled_from(["distributed", "packed", "spread"]))
def test_each_share_is_one_that_nvidia_s_greedy_rule_allows(
    data: st.DataObject, policy: SharePolicy
) -> None:
    names = [f"gpu{n}" for n in range(data.draw(st.integers(1, 4)))]
    total = {name: data.draw(st.integers(1, 5), name) for name in names}
    offers = shares(*total.items())
    open_ = data.draw(st.lists(st.sampled_from(offers), unique=True, min_size=1))
    must = data.draw(st.lists(st.sampled_from(open_), unique=True, max_size=2))
    have = [offer for offer in open_ if offer not in must]
    stock = IdStock(SHARED, IdKind.REPLICA, offers, shares=policy)
    found = picker().pick(stock, have, must, data.draw(st.integers(1, len(open_))))
    free, mine = Counter(dict.fromkeys(names, 0)), [offer.parent for offer in must]
    free.update(offer.parent for offer in have)
    if len(found) == len(open_):
        return  # nothing to choose
    for offer in found[len(must) :]:
        assert offer.parent in greedy(policy, total, free, mine)
        free[offer.parent] -= 1
        mine.append(offer.parent)


def test_units_of_memory_come_from_one_gpu_the_fullest_that_has_enough() -> None:
    offers = shares(("gpu0", 8), ("gpu1", 4), ("gpu2", 2))
    stock = IdStock("aliyun.com/gpu-mem", IdKind.UNIT, offers)
    assert {o.parent for o in picker().pick(stock, offers, [], 3)} == {"gpu1"}
    assert {o.parent for o in picker().pick(stock, offers[1:], [offers[0]], 6)} == {"gpu0"}
    assert len(picker().pick(stock, offers, [], 10)) == 10


def test_a_mig_instance_is_taken_where_it_spoils_least() -> None:
    """gpu6 is whole but for slices 0-1; gpu7 is free: 1g at gpu6's start 2 spoils no 3g there.

    ::

        slices   0 1 2 3 4 5 6 7
        gpu6     ████ a . . . .       a: 1g at 2     3g (4 slices) could stand at 4 only
        gpu7     b . . . c . . .      b: 1g at 0     3g could stand at 0 and 4
    """
    profiles = (GpuMigProfile("3g", (0, 4), 4), GpuMigProfile("1g", tuple(range(7)), 1))
    gpus = tuple(replace(g, mig=GpuMig(enabled=True, profiles=profiles)) for g in INVENTORY.gpus)
    names = {"a": ("gpu6", 1 << 2), "b": ("gpu7", 1), "c": ("gpu7", 1 << 4), "used": ("gpu6", 3)}
    offers = tuple(OfferedId(name, parent, name) for name, (parent, _) in names.items())
    stock = IdStock(MIG, IdKind.MIG, offers, slices={n: bits for n, (_, bits) in names.items()})
    found = picker(replace(INVENTORY, gpus=gpus)).pick(stock, offers[:3], [], 1)
    assert ids(found) == ["a"]


def test_what_must_be_there_is_there_and_no_more_than_there_is_comes_back() -> None:
    stock = STOCKS[SHARED]
    must = [stock.by_id["gpu6::3"]]
    assert ids(picker().pick(stock, stock.offers[:1], must, 3)) == ["gpu6::3", "gpu6::0"]
    assert ids(picker().pick(stock, stock.offers[:1], must, 1)) == ["gpu6::3"]
