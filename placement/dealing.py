"""From shares to seats: which slice goes to which domain, and who sits where in it.

The exact search says how many slices of each make-up a domain takes. Slices of one make-up
are interchangeable, and are dealt out in rank order along a ring through the domains, as
kinds of pods are (``ranking``); inside a domain in tree order, layer by layer::

    make-up (1, 3)   slice 0            ─► r2
    make-up (0, 4)   slices 1 2 3 4     ─► r2 r2 r1 r1
"""

from collections.abc import Iterator, Sequence

import numpy as np

from placement.exact import Layer, Share
from placement.makeup import types
from placement.ranking import in_ring
from placement.tree import Ints, Tree


def deal(tree: Tree, layers: Sequence[Layer], kinds: Ints, shares: Sequence[Share]) -> Ints:
    """Return int64[members], the position of each member in rank order.

    ``layers``: widest first. ``kinds``: int64[members], the kind of each in rank order.
    """
    units = [kinds]  # what every depth deals out, members first
    ratios = []
    for layer in reversed(layers):
        ratio = max(sum(vector) for vector, _ in layer.makeups)
        units.append(types(units[-1], layer, ratio))
        ratios.append(ratio)
    seats = np.full(len(kinds), -1, dtype=np.int64)
    everyone = np.arange(len(units[-1]))
    ordered = _along_the_ring(tree, layers[0].level, shares, len(layers[0].makeups))
    _deal(units[::-1], ratios[::-1], ordered, everyone, seats)
    return seats


def _along_the_ring(
    tree: Tree, level: int, shares: Sequence[Share], makeups: int
) -> list[list[Share]]:
    """Return, per make-up, the shares that have some of it, in the order of dealing."""
    amounts = np.zeros((makeups, tree.size), dtype=np.int64)
    by_start = {int(tree.starts[level][share.place]): share for share in shares}
    for start, share in by_start.items():
        amounts[:, start] = share.units
    orders = in_ring(tree, list(amounts))
    return [[by_start[start] for start in dict.fromkeys(order.tolist())] for order in orders]


def _deal(
    units: Sequence[Ints],
    ratios: Sequence[int],
    shares: Sequence[Sequence[Share]],
    dealt: Ints,
    seats: Ints,
) -> None:
    """Deal the units ``dealt`` (of the first depth) to ``shares``, listed per make-up."""
    given: dict[int, tuple[Share, list[Ints]]] = {}
    for makeup, takers in enumerate(shares):
        left = dealt[units[0][dealt] == makeup]
        for share in takers:
            count = share.units[makeup]
            given.setdefault(share.place, (share, []))[1].append(left[:count])
            left = left[count:]
    for share, parts in given.values():
        mine = np.sort(np.concatenate(parts))
        if not ratios:
            seats[mine] = share.place
            continue
        inner = np.fromiter(_inside(mine, ratios[0], len(units[1])), dtype=np.int64)
        listed = [
            [each for each in share.inside if each.units[kind]]
            for kind in range(len(share.inside[0].units))
        ]
        _deal(units[1:], ratios[1:], listed, inner, seats)


def _inside(slices: Ints, ratio: int, total: int) -> Iterator[int]:
    for number in slices.tolist():
        yield from range(number * ratio, min((number + 1) * ratio, total))
