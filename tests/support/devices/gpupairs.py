"""Machines of NVIDIA's go-gpuallocator (gpuallocator/common_test.go), as matrices of scores."""

from itertools import combinations

from deviceplugin.allocation.pairs import Pairs

VOLTA = (
    (0, 1, 1), (0, 2, 1), (0, 3, 2), (0, 4, 2), (1, 2, 2), (1, 3, 1), (1, 5, 2), (2, 3, 2),
    (2, 6, 1), (3, 7, 1), (4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2),
)  # fmt: skip
PASCAL = tuple(
    (one, other, 1)
    for one, other in combinations(range(8), 2)
    if one // 4 == other // 4 or other - one == 4
)
RTX = ((0, 3, 2), (1, 2, 2))


def pairs(rows: list[list[int]]) -> Pairs:
    return Pairs(tuple(f"gpu{i}" for i in range(len(rows))), tuple(map(tuple, rows)))


def linked(pcie: list[list[int]], links: tuple[tuple[int, int, int], ...]) -> Pairs:
    rows = [list(row) for row in pcie]
    for one, other, number in links:
        rows[one][other] += 100 * number
        rows[other][one] += 100 * number
    return pairs(rows)


def dgx1(links: tuple[tuple[int, int, int], ...], mates: tuple[tuple[int, int], ...]) -> Pairs:
    """Two CPUs of four GPUs; ``mates`` share a PCIe switch."""
    pcie = [
        [
            0
            if i == j
            else 10
            if i // 4 != j // 4
            else 50
            if tuple(sorted((i, j))) in mates
            else 30
            for j in range(8)
        ]
        for i in range(8)
    ]
    return linked(pcie, links)


def dgx1_volta() -> Pairs:
    return dgx1(VOLTA, ((0, 1), (2, 3), (4, 5), (6, 7)))


def dgx1_pascal() -> Pairs:
    return dgx1(PASCAL, ((0, 2), (1, 3), (4, 6), (5, 7)))


def rtx8000() -> Pairs:
    pcie = [[0, 20, 10, 0], [20, 0, 0, 10], [10, 0, 0, 20], [0, 10, 20, 0]]
    return linked(pcie, RTX)


def dgx2() -> Pairs:
    """Sixteen GPUs on an NVSwitch; two to a PCIe switch, eight to a CPU."""
    pcie = [
        [0 if i == j else 10 if i // 8 != j // 8 else 50 if i // 2 == j // 2 else 30
         for j in range(16)]
        for i in range(16)
    ]  # fmt: skip
    return linked(pcie, tuple((i, j, 6) for i, j in combinations(range(16), 2)))


def score(found: Pairs, devices: tuple[int, ...]) -> int:
    return sum(found.rows[i][j] for i, j in combinations(devices, 2))


def best_partition(found: Pairs, left: tuple[int, ...], size: int) -> int:
    """Try every way to cut ``left`` into sets of ``size`` and one smaller one."""
    if not left:
        return 0
    first, rest = left[0], left[1:]
    sizes = {size, len(left) % size} - {0}
    if len(left) <= size:
        return score(found, left)
    return max(
        score(found, (first, *others))
        + best_partition(found, tuple(i for i in rest if i not in others), size)
        for each in sizes
        for others in combinations(rest, each - 1)
    )
