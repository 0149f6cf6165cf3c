"""From shares to places: which slice goes to which domain, and each member's place in it.

The exact search finds how many slices of each make-up a domain takes. Slices of one make-up
are interchangeable, and are dealt out in rank order along a ring through the domains, as
kinds of pods are (``ringorder``); inside a domain in tree order, layer by layer::

    make-up (1, 3)   slice 0            ─► r2
    make-up (0, 4)   slices 1 2 3 4     ─► r2 r2 r1 r1
"""

from collections.abc import Sequence

import numpy as np

from muster.placement.exact.cheapest import DomainShare
from muster.placement.exact.slicekinds import Packing
from muster.placement.ranks.ringorder import in_ring
from muster.placement.tree import DomainTree, Ints


def deal(tree: DomainTree, packing: Packing, shares: Sequence[DomainShare]) -> Ints:
    """Return int64[members], the position of each member in rank order."""
    places = np.full(len(packing.kinds), -1, dtype=np.int64)
    widest = packing.layers[0]
    ordered = _along_the_ring(tree, widest.level, shares, len(widest.makeups))
    _deal(packing, 0, ordered, np.arange(len(packing.types[0])), places)
    return places


def _along_the_ring(
    tree: DomainTree, level: int, shares: Sequence[DomainShare], makeups: int
) -> list[list[DomainShare]]:
    """Return, per make-up, the shares that have some of it, in the order of dealing."""
    amounts = np.zeros((makeups, tree.size), dtype=np.int64)
    by_start = {int(tree.starts[level][share.place]): share for share in shares}
    for start, share in by_start.items():
        amounts[:, start] = share.units
    orders = in_ring(tree, list(amounts))
    return [[by_start[start] for start in dict.fromkeys(order.tolist())] for order in orders]


def _deal(
    packing: Packing, depth: int, shares: Sequence[Sequence[DomainShare]], dealt: Ints, places: Ints
) -> None:
    """Deal units of one depth (slices of a layer, members at last) to shares per type."""
    innermost = depth == len(packing.layers)
    types = packing.kinds if innermost else packing.types[depth]
    given: dict[int, tuple[DomainShare, list[Ints]]] = {}
    for number, takers in enumerate(shares):
        left = dealt[types[dealt] == number]
        for share in takers:
            count = share.units[number]
            given.setdefault(share.place, (share, []))[1].append(left[:count])
            left = left[count:]
    for share, parts in given.values():
        mine = np.sort(np.concatenate(parts))
        if innermost:
            places[mine] = share.place
            continue
        inner = np.sort(np.concatenate([packing.inside[depth][i] for i in mine.tolist()]))
        _deal(packing, depth + 1, _per_type(share.inside), inner, places)


def _per_type(shares: Sequence[DomainShare]) -> list[list[DomainShare]]:
    """Return, per type of unit, the shares that have some of it, in tree order."""
    return [
        [share for share in shares if share.units[number]] for number in range(len(shares[0].units))
    ]
