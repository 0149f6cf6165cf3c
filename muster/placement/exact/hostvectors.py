"""What hosts can take of several kinds of pods: the maximal vectors of each host.

A host of 8 GPUs takes 4 workers of 2, or 3 and a helper of 1, or … : of all vectors of pods
per kind that fit, those that no other exceeds. Hosts with equal room share them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.exact.treeprogram import NEVER, Units
from muster.placement.tree import Ints

_VECTORS_PER_STEP: Final = 32
"""Vectors that are listed between two yields: a few microseconds each."""

MOST_MIXES: Final = 256
"""Mixes of all kinds but the one of which a host takes most; listed in one go."""


def mixes(leaves: NDArray[np.int64], wanted: Units) -> int:
    """Return how many mixes there are on a host at most; see ``MOST_MIXES``."""
    most = np.minimum(leaves, np.array(wanted)[:, None]).max(axis=1, initial=0)
    return int(np.prod(np.sort(most)[:-1] + 1))


@dataclass(frozen=True, slots=True, eq=False)
class HostStock:
    """What hosts can take of several kinds of pods."""

    #: int64[hosts], ascending.
    positions: Ints
    #: The maximal vectors of each host, along ``positions``.
    options: Sequence[tuple[Units, ...]]
    #: int64[hosts], members of the kind that is hardest to place.
    room: Ints

    def of(self, positions: Ints) -> list[tuple[Units, ...]]:
        """Return the maximal vectors of some of the hosts."""
        return [self.options[i] for i in np.searchsorted(self.positions, positions).tolist()]


def equal_stock(leaf: Ints, need: int) -> HostStock:
    """Return the stock for equal pods: a host's one maximal vector is its capacity."""
    positions = np.flatnonzero(leaf)
    room = leaf[positions]
    most = np.minimum(room, need).tolist()
    shared = {size: ((size,),) for size in set(most)}
    return HostStock(positions, [shared[size] for size in most], room)


def mixed_stock(
    leaves: NDArray[np.int64], free: NDArray[np.int64], asked: NDArray[np.int64], wanted: Units
) -> Steps[HostStock]:
    """Return the stock for several kinds of pods.

    ``leaves``: int64[kinds, positions], what a host takes of each kind alone. ``free``:
    int64[resources, positions]; ``asked``: int64[kinds, resources].
    """
    most = np.minimum(leaves, np.array(wanted)[:, None])
    positions = np.flatnonzero(most.any(axis=0))
    signature = np.concatenate([most[:, positions], _relevant(free, asked, most)[:, positions]])
    rows, numbers = np.unique(signature, axis=1, return_inverse=True)
    yield
    vectors: list[tuple[Units, ...]] = []
    done, table = 0, asked.tolist()
    for row in rows.T.tolist():
        vectors.append(_maximal(row[: len(wanted)], row[len(wanted) :], table))
        done += len(vectors[-1])
        if done >= _VECTORS_PER_STEP:
            done = 0
            yield
    options = [vectors[number] for number in numbers.reshape(-1).tolist()]
    totals = np.maximum(leaves.sum(axis=1), 1)
    hardest = int(np.argmax(np.array(wanted) / totals))
    return HostStock(positions, options, leaves[hardest, positions])


def _relevant(
    free: NDArray[np.int64], asked: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Clip what is free to what all kinds together could use: more makes no difference."""
    clipped: NDArray[np.int64] = np.minimum(np.maximum(free, 0), asked.T @ most)
    return clipped


def _maximal(most: list[int], free: list[int], asked: list[list[int]]) -> tuple[Units, ...]:
    """Return the vectors of pods per kind that fit and that no other such vector exceeds.

    The kind of which most fit takes what the others leave. A vector is exceeded when one pod
    more of another kind leaves that one as many.
    """
    order = sorted(range(len(most)), key=most.__getitem__)
    listed = _listed([most[k] for k in order], free, [asked[k] for k in order])
    back = [order.index(kind) for kind in range(len(most))]
    return tuple(tuple(units[at] for at in back) for units in listed)


def _listed(most: list[int], free: list[int], asked: list[list[int]]) -> Iterator[Units]:
    firsts: list[Units] = [()]
    for kind in range(len(most) - 1):
        firsts = [
            (*units, count)
            for units in firsts
            for count in range(min(most[kind], _room(free, asked, units, kind)) + 1)
        ]
    last = len(most) - 1
    full = {units: min(most[last], _room(free, asked, units, last)) for units in firsts}
    for units, count in full.items():
        if (count or any(units)) and all(full.get(more, -1) < count for more in _one_more(units)):
            yield (*units, count)


def _one_more(units: Units) -> Iterator[Units]:
    for kind in range(len(units)):
        yield (*units[:kind], units[kind] + 1, *units[kind + 1 :])


def _room(free: list[int], asked: list[list[int]], units: Units, kind: int) -> int:
    """Return how many pods of ``kind`` fit beside ``units`` of the kinds before it."""
    rooms = [
        (have - sum(n * asked[k][r] for k, n in enumerate(units))) // asked[kind][r]
        for r, have in enumerate(free)
        if asked[kind][r]
    ]
    return min(rooms, default=NEVER)


def with_fewer_kinds(vectors: Sequence[Units]) -> list[Units]:
    """Return the vectors, and for every smaller set of kinds the maximal ones of that set.

    For searches in which it costs something to hold a kind at all.
    """
    found: dict[Units, None] = {}
    for keep in product((1, 0), repeat=len(vectors[0])):
        cut = {tuple(n * k for n, k in zip(units, keep, strict=True)) for units in vectors}
        found |= dict.fromkeys(sorted(u for u in cut if any(u) and not _exceeded(u, cut)))
    return list(found)


def _exceeded(units: Units, found: set[Units]) -> bool:
    return any(
        other != units and all(a >= b for a, b in zip(other, units, strict=True)) for other in found
    )
