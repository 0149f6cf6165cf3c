"""Fewer ring crossings on the same hosts: pairs of hosts exchange pods while that helps.

The exact search knows the pairs (kind, domain) but not where one kind ends and the next
begins. So its answer is taken as a start: two hosts put their pods together and divide them
anew, by the kinds that each is to hold::

    h1  A A B      A and B are both on both hosts       h1  A A A
    h2  A B B  ─►  one exchange later they are not  ─►  h2  B B B

The first exchange that lowers the cost of the best ring (``ringorder``) is made, until none
does, the ring costs what every ring must, or the trials are used up.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.exact.treeprogram import Units
from muster.placement.ranks.ringorder import RingHosts
from muster.placement.tree import DomainTree, Ints

TRIALS: Final = 400
"""Rings computed for one gang; each is a fraction of a millisecond."""

_MOST_HOSTS: Final = 64
"""Hosts in use beyond which pairs are too many to be tried."""

_MOST_SPLITS: Final = 128
"""Divisions of two hosts' pods that are listed."""

Held = list[Units]


def polished(
    tree: DomainTree, amounts: NDArray[np.int64], options: Sequence[tuple[Units, ...]]
) -> Steps[NDArray[np.int64]]:
    """Return amounts, int64[kinds, positions], on the same hosts with fewer crossings.

    ``options``: the maximal vectors of each host in use, in tree order.
    """
    positions = np.flatnonzero(amounts.any(axis=0))
    if len(positions) > _MOST_HOSTS:
        return amounts
    fabric = RingHosts(tree, positions, len(amounts))
    held: Held = [tuple(row) for row in amounts[:, positions].T.tolist()]
    cost, least, trials = fabric.ring(_where(held)).cost, fabric.least(), TRIALS
    improved = True
    while improved and cost > least:
        improved = False
        for trial in _exchanges(held, options):
            yield
            if trial is None:
                continue
            trials -= 1
            if trials < 0:
                break
            lower = fabric.ring(_where(trial)).cost
            if lower < cost:
                held, cost, improved = trial, lower, trials > 0
                break
    result = np.zeros_like(amounts)
    result[:, positions] = np.array(held).T
    return result


def _where(held: Held) -> list[Ints]:
    kinds = np.array(held, dtype=np.int64).T
    return [np.flatnonzero(kind) for kind in kinds]


def _exchanges(held: Held, options: Sequence[tuple[Units, ...]]) -> Iterator[Held | None]:
    """Yield what two hosts' exchange leads to, one division for each pair of sets of kinds.

    ``None`` between the pairs of hosts: time to give way.
    """
    for a, b in combinations(range(len(held)), 2):
        yield None
        seen = {(_kinds(held[a]), _kinds(held[b]))}
        for one, other in _splits(held[a], held[b], options[a], options[b]):
            pattern = (_kinds(one), _kinds(other))
            if pattern not in seen:
                seen.add(pattern)
                trial = held.copy()
                trial[a], trial[b] = one, other
                yield trial


def _splits(
    one: Units, other: Units, first: Sequence[Units], second: Sequence[Units]
) -> Iterator[tuple[Units, Units]]:
    total = tuple(a + b for a, b in zip(one, other, strict=True))
    divisions = product(*(range(count + 1) for count in total))
    for number, part in enumerate(divisions):
        if number >= _MOST_SPLITS:
            return
        rest = tuple(t - p for t, p in zip(total, part, strict=True))
        if any(part) and any(rest) and _fits(part, first) and _fits(rest, second):
            yield part, rest


def _kinds(units: Units) -> tuple[bool, ...]:
    return tuple(map(bool, units))


def _fits(units: Units, options: Sequence[Units]) -> bool:
    return any(all(n <= m for n, m in zip(units, most, strict=True)) for most in options)
