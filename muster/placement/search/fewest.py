"""Which domains out of a pool: as few as can be, and among those the tightest.

Numbers only. The pool is seen as a multiset of sizes, largest first::

    sizes    16 16 12 8 8 8 3        need 26
    fewest   16 12                   two domains: no single one has 26
    tightest 16+12 = 28 over 16+16   the least left over with two

*Fewest* is exact: the k largest hold the most that k domains can hold. *Tightest* is a
subset sum with k terms: exact where that is cheap (sets of reachable sums as the bits of
integers), best fit for the last domain otherwise.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.placement.tree import Ints

EXACT_WORDS: Final = 60_000
"""Budget of the exact subset sum: 64-bit words written; about half a millisecond."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """A multiset."""

    #: Descending and distinct.
    values: tuple[int, ...]
    #: How many there are of each.
    copies: tuple[int, ...]


def sizes_of(pool: Ints) -> Sizes:
    """Return the distinct positive sizes of a pool, largest first."""
    ordered = np.sort(pool)[::-1]
    ordered = ordered[: np.count_nonzero(ordered > 0)]
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    copies = np.diff(firsts, append=len(ordered))
    return Sizes(tuple(ordered[firsts].tolist()), tuple(copies.tolist()))


def fewest(sizes: Sizes, need: int) -> list[int] | None:
    """Return how many of each size, largest first, reach ``need``; ``None``: all do not."""
    taken = []
    for value, copies in zip(sizes.values, sizes.copies, strict=True):
        count = min(copies, -(-max(need, 0) // value))
        taken.append(count)
        need -= count * value
    return taken if need <= 0 else None


def tightest(sizes: Sizes, taken: list[int], need: int) -> list[int]:
    """Return a choice of as many domains as ``taken`` with the least left over."""
    count = sum(taken)
    total = sum(v * t for v, t in zip(sizes.values, taken, strict=True))
    if total == need or not count:
        return taken
    items = sum(min(c, count) for c in sizes.copies)
    if items * (count + 1) * (total // 64 + 1) <= EXACT_WORDS:
        return _exact(sizes, count, need, total)
    return _best_fit_last(sizes, taken, need)


def _best_fit_last(sizes: Sizes, taken: list[int], need: int) -> list[int]:
    """Exchange the smallest chosen domain for the smallest that holds what it must hold."""
    last = max(i for i, t in enumerate(taken) if t)
    taken = taken.copy()
    taken[last] -= 1
    rest = need - sum(v * t for v, t in zip(sizes.values, taken, strict=True))
    fit = max(
        i for i, value in enumerate(sizes.values) if value >= rest and taken[i] < sizes.copies[i]
    )
    taken[fit] += 1
    return taken


def _exact(sizes: Sizes, count: int, need: int, limit: int) -> list[int]:
    """Subset sum with exactly ``count`` terms.

    ``reach[j]`` has bit s set when j of the items seen so far can sum to s. Every item's
    table is kept, so that walking back finds the items that made the best sum.
    """
    window = (1 << (limit + 1)) - 1
    items = [i for i, c in enumerate(sizes.copies) for _ in range(min(c, count))]
    reach = [1] + [0] * count
    tables = [reach]
    for item in items:
        value = sizes.values[item]
        reach = [reach[0]] + [
            reach[j] | (reach[j - 1] << value & window) for j in range(1, count + 1)
        ]
        tables.append(reach)
    above = reach[count] >> need
    total = need + (above & -above).bit_length() - 1
    return _walk_back(sizes, items, tables, count, total)


def _walk_back(
    sizes: Sizes, items: list[int], tables: list[list[int]], count: int, total: int
) -> list[int]:
    taken = [0] * len(sizes.values)
    for number in range(len(items) - 1, -1, -1):
        if tables[number][count] >> total & 1:
            continue
        taken[items[number]] += 1
        total -= sizes.values[items[number]]
        count -= 1
    return taken


def pick(pool: Ints, sizes: Sizes, taken: list[int], rank: Ints | None) -> NDArray[np.int64]:
    """Return indices into ``pool``, ascending: ``taken`` many of each size.

    Among equals those of lowest ``rank`` go first (for instance: fewest hosts inside),
    then those that come first in the tree.
    """
    chosen = []
    for value, count in zip(sizes.values, taken, strict=True):
        if not count:
            continue
        equal = np.flatnonzero(pool == value)
        if rank is not None and count < len(equal):
            equal = equal[np.argsort(rank[equal], kind="stable")]
        chosen.append(equal[:count])
    return np.sort(np.concatenate(chosen)) if chosen else np.zeros(0, dtype=np.int64)


def choose(
    pool: Ints,
    need: int,
    *,
    rank: Ints | None = None,
    cost: Callable[[NDArray[np.int64]], int] | None = None,
) -> NDArray[np.int64]:
    """Return indices into ``pool`` of the fewest domains that hold ``need`` together.

    ``cost`` judges a choice by what it means further down (hosts needed); the tightest
    choice is taken unless the largest-first one costs less. ``pool`` must suffice.
    """
    sizes = sizes_of(pool)
    greedy = fewest(sizes, need)
    if greedy is None:
        raise ValueError(f"pool holds {int(pool.sum())}, less than the {need} that are needed")
    tight = tightest(sizes, greedy, need)
    best = pick(pool, sizes, tight, rank)
    if tight == greedy or cost is None:
        return best
    other = pick(pool, sizes, greedy, rank)
    return other if cost(other) < cost(best) else best
