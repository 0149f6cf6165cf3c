"""Against the documented examples of NVIDIA's allocator and against trying everything.

``besteffort_test.go`` of go-gpuallocator: which GPUs of which machine are chosen.
"""

from collections.abc import Iterator
from itertools import combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.devices.gpupairs import (
    best_partition,
    dgx1_pascal,
    dgx1_volta,
    dgx2,
    pairs,
    rtx8000,
    score,
)

from deviceplugin.allocation import beam
from deviceplugin.allocation.chooser import DeviceChooser
from deviceplugin.allocation.exact import ExactChooser
from deviceplugin.allocation.pairs import Pairs, PairScores, path_score
from deviceplugin.model.inventory import Gpu, Inventory, NvLinks, PciPlace

ALL = tuple(range(8))


def chosen(
    found: Pairs, available: tuple[int, ...], size: int, must: tuple[int, ...] = ()
) -> tuple[int, ...]:
    names = DeviceChooser(found).choose(
        [found.names[i] for i in available], [found.names[i] for i in must], size
    )
    return tuple(found.index[name] for name in names)


@pytest.mark.parametrize(
    ("available", "must", "size", "expected"),
    [
        ((0, 2, 4, 5), (), 2, (4, 5)),  # one link, the same switch
        ((0, 4, 5, 6), (), 2, (5, 6)),  # one link, the same socket
        ((0, 1, 3), (), 2, (0, 3)),  # two links, the same socket
        ((0, 1, 4), (), 2, (0, 4)),  # two links, over sockets
        (ALL, (4,), 1, (4,)),
        (ALL, (4,), 2, (4, 7)),
        (ALL, (4,), 4, (4, 5, 6, 7)),
        (ALL, (0, 2, 4, 6), 4, (0, 2, 4, 6)),
    ],
)
def test_one_choice_on_a_dgx1_with_volta_is_the_documented_one(
    available: tuple[int, ...], must: tuple[int, ...], size: int, expected: tuple[int, ...]
) -> None:
    assert chosen(dgx1_volta(), available, size, must) == expected


@pytest.mark.parametrize(
    ("machine", "size", "expected"),
    [
        (dgx1_volta, 2, [(0, 3), (1, 2), (4, 7), (5, 6)]),
        (dgx1_volta, 4, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (dgx1_volta, 8, [ALL]),
        (dgx1_pascal, 2, [(0, 2), (1, 3), (4, 6), (5, 7)]),
        (dgx1_pascal, 4, [(0, 1, 2, 3), (4, 5, 6, 7)]),
        (rtx8000, 2, [(0, 3), (1, 2)]),
        (dgx2, 2, [(i, i + 1) for i in range(0, 16, 2)]),
        (dgx2, 4, [tuple(range(i, i + 4)) for i in range(0, 16, 4)]),
        (dgx2, 8, [tuple(range(8)), tuple(range(8, 16))]),
    ],
)
def test_one_choice_after_the_other_uses_a_machine_up_as_documented(
    machine: object, size: int, expected: list[tuple[int, ...]]
) -> None:
    found: Pairs = machine()  # type: ignore[operator]
    left = tuple(range(len(found.names)))
    for one in expected:
        assert chosen(found, left, size) == one
        left = tuple(i for i in left if i not in one)


def test_a_single_gpu_is_the_one_that_the_others_miss_least() -> None:
    """NVIDIA's takes the first one, which tears a pair: here 3 has lost its mate already."""
    assert chosen(dgx1_volta(), (1, 2, 3, 4, 5, 6, 7), 1) == (3,)


def test_of_partitions_that_are_worth_the_same_the_first_is_taken_and_of_it_the_best_set() -> None:
    """GPUs 0, 1, 4, 5 and 7 of a DGX-1V: two ways to share them out are worth 660.

    ::

        {0,1} 150 and {4,5,7} 510: the first, as no GPU beside 0 comes before 1
        {0,4,7} 450 and {1,5} 210
    """
    links = [
        [0, 150, 210, 10, 10],
        [150, 0, 10, 210, 10],
        [210, 10, 0, 150, 230],
        [10, 210, 150, 0, 130],
        [10, 10, 230, 130, 0],
    ]
    assert chosen(pairs(links), tuple(range(5)), 3) == (2, 3, 4)


Partition = list[tuple[int, ...]]


def partitions(left: tuple[int, ...], size: int) -> Iterator[Partition]:
    """Yield all ways to cut ``left`` into sets of ``size`` and a smaller one, in upstream's order.

    Upstream fills the smaller one up with nothing, which comes after all devices: -1 here.
    """
    if len(left) <= size:
        yield [left]
        return
    padding = left.count(-1)
    for others in dict.fromkeys(combinations(left[1:], size - 1)):
        one = (left[0], *others)
        if one.count(-1) in (0, padding):
            rest = tuple(i for i in left if i not in one)  # one with a -1 has all of them
            yield from ([one, *more] for more in partitions(rest, size))


@given(st.data())
def test_the_chosen_set_is_as_good_as_upstream_s(data: st.DataObject) -> None:
    """Links of few values, so that many partitions are worth the same."""
    number = data.draw(st.integers(2, 7))
    values = data.draw(st.sampled_from([(10, 20), (0, 10, 30), (10, 110, 210)]))
    rows = [[0] * number for _ in range(number)]
    for i, j in combinations(range(number), 2):
        rows[i][j] = rows[j][i] = data.draw(st.sampled_from(values))
    found = pairs(rows)
    size = data.draw(st.integers(2, number))
    every = tuple(range(number)) + (-1,) * (-number % size)
    first = max(partitions(every, size), key=lambda sets: sum(real_score(found, s) for s in sets))
    best = max(real_score(found, one) for one in first if -1 not in one)
    assert score(found, chosen(found, tuple(range(number)), size)) == best


def real_score(found: Pairs, devices: tuple[int, ...]) -> int:
    return score(found, tuple(i for i in devices if i != -1))


def test_a_name_that_is_nowhere_near_anything_is_taken_last() -> None:
    chooser = DeviceChooser(dgx1_volta())
    assert chooser.choose(["gpu1", "gone", "gpu0"], [], 2) == ("gpu0", "gpu1")
    assert chooser.choose(["gpu1", "gone"], [], 3) == ("gpu1", "gone")


@pytest.mark.parametrize("seed", range(12))
def test_up_to_sixteen_devices_the_choice_leaves_the_best_partition(seed: int) -> None:
    rng = Random(seed)
    number = rng.randint(3, 8)
    values = rng.choice(((10, 20), (10, 20, 30, 50), tuple(range(10, 400, 10))))
    rows = [[0] * number for _ in range(number)]
    for i, j in combinations(range(number), 2):
        rows[i][j] = rows[j][i] = rng.choice(values)
    found = pairs(rows)
    exact = ExactChooser(found)
    for size in range(1, number):
        available = tuple(sorted(rng.sample(range(number), rng.randint(size + 1, number))))
        for must in ((), tuple(rng.sample(available, 1))) if size > 1 else ((),):
            taken = exact.choose(available, must, size)
            left = tuple(i for i in available if i not in taken)
            best = max(
                score(found, one)
                + best_partition(found, tuple(i for i in available if i not in one), size)
                for one in combinations(available, size)
                if set(must) <= set(one)
            )
            assert set(must) <= set(taken) <= set(available)
            assert score(found, taken) + best_partition(found, left, size) == best


@pytest.mark.parametrize("seed", range(6))
def test_above_sixteen_the_search_is_as_good_as_any_exchange_on_a_tree(seed: int) -> None:
    """Machines are trees: switches below bridges below CPUs, of which some GPUs are taken."""
    rng = Random(seed)
    rows = [
        [0 if i == j else 50 if i // 4 == j // 4 else 30 if i // 16 == j // 16 else 10
         for j in range(64)]
        for i in range(64)
    ]  # fmt: skip
    found = pairs(rows)
    available = tuple(sorted(rng.sample(range(64), rng.randint(20, 60))))
    for size in (2, 4, 7, 16):
        taken = beam.choose(found, available, (), size)
        assert len(set(taken)) == size
        assert set(taken) <= set(available)
        best = score(found, taken)
        for out in taken:
            for into in set(available) - set(taken):
                other = tuple(i for i in taken if i != out)
                assert score(found, (*other, into)) <= best


def test_the_search_above_sixteen_keeps_what_must_be_there() -> None:
    rows = [[0 if i == j else 50 if i // 4 == j // 4 else 10 for j in range(32)] for i in range(32)]
    assert beam.choose(pairs(rows), tuple(range(32)), (5, 9), 4)[:3] == (4, 5, 6)
    assert {5, 9} <= set(beam.choose(pairs(rows), tuple(range(32)), (5, 9), 4))


def place(*path: str, numa: int = 0) -> PciPlace:
    return PciPlace("0000:00:00.0", numa, path)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (place("pci0", "rp", "up", "d1"), place("pci0", "rp", "up", "d2"), 50),
        (place("pci0", "rp", "up", "d1"), place("pci0", "rp", "up", "d1"), 60),
        (place("pci0", "rp", "u", "d", "u1", "e"), place("pci0", "rp", "u", "d2", "u2", "e2"), 40),
        (place("pci0", "rp1"), place("pci0", "rp2"), 30),
        (place("pci0", "rp"), place("pci1", "rp"), 20),
        (place("pci0", "rp"), place("pci1", "rp", numa=1), 10),
        (PciPlace("a"), PciPlace("b"), 10),  # nothing is known
    ],
)
def test_the_score_of_a_pair_is_how_far_up_the_pcie_tree_they_meet(
    one: PciPlace, other: PciPlace, expected: int
) -> None:
    assert path_score(one, other) == path_score(other, one) == expected


def test_links_through_an_nvswitch_count_as_those_between_gpus() -> None:
    gpus = tuple(Gpu(f"g{i}", "H100", 81920, place(f"pci{i}"), i) for i in range(3))
    switched = Inventory(gpus=gpus, links=NvLinks(to_switches={"g0": 18, "g1": 12}))
    assert PairScores.of(switched).gpus.rows[0] == (0, 1220, 20)


def test_gpus_below_one_switch_are_equivalent() -> None:
    assert dgx2().classes == tuple((i, i + 1) for i in range(0, 16, 2))
