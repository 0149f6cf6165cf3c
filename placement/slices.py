"""Slices: ``slice_size`` members at a time share one domain of ``slice_level``.

The slices are placed by the same search on a *coarse* tree that ends at the slice level,
where every domain is worth its whole slices only::

    capacity    11   7   4   8      slice of 4
    worth        8   4   4   8      24 members at most, not 30

A gang that is no multiple of the slice has one partial slice of r members. It fits in a
whole slice's place or in what is left of one domain beside its whole slices (the 3 of 11
and of 7 above), so a domain's count is worth + r when one domain below it has r to spare.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cluster.steps import Steps
from placement.families import Family, count_up, trim
from placement.select import Placing, Scope, Wish, descend, find_scope, place
from placement.tree import ROOT, Ints, Tree


def place_slices(
    tree: Tree, leaf: Ints, families: Sequence[Family], wish: Wish, need: int
) -> Steps[Placing | None]:
    """Return ``need`` equal pods in slices, placed, or ``None``."""
    if wish.slice_level < tree.host:
        # One domain below the slice level that holds all is the best there can be.
        narrow = replace(wish, required=max(wish.required, wish.slice_level + 1))
        found = yield from place(tree, leaf, families, narrow, need)
        if found is not None or wish.required > wish.slice_level:
            return found
    counts = count_up(tree, leaf, families)
    coarse = _coarse(tree, wish.slice_level)
    room = counts[wish.slice_level]
    scope = yield from _scope(coarse, room, counts, wish, need)
    if scope is None:
        return None
    amounts = yield from _fill(tree, coarse, leaf, families, wish, need, scope)
    return None if amounts is None else Placing(amounts, proven=False)


def _coarse(tree: Tree, level: int) -> Tree:
    """Return the tree down to ``level``, whose domains become the positions."""
    return Tree(
        starts=(
            *(tree.offsets(wide, level) for wide in range(level)),
            np.arange(tree.domains(level)),
        ),
        labelled=tree.labelled[: level + 1],
        along=(
            *(tree.owner(wide, level) for wide in range(level)),
            np.arange(tree.domains(level)),
        ),
        size=tree.domains(level),
    )


def _worth(room: Ints, wish: Wish) -> Ints:
    return room // wish.slice_size * wish.slice_size


def _scope(
    coarse: Tree, room: Ints, counts: Sequence[Ints], wish: Wish, need: int
) -> Steps[Scope | None]:
    rest = need % wish.slice_size
    room = np.where(coarse.labelled[-1], room, 0)
    spare = (room % wish.slice_size >= rest).astype(np.int64) * rest
    worth = _worth(room, wish)
    sizes = []
    for level in range(coarse.host + 1):
        best = np.maximum.reduceat(spare, coarse.offsets(level, coarse.host))
        sums = coarse.sums(worth, level, coarse.host) + best
        sizes.append(np.minimum(sums, counts[level]))
    total = min(int(worth.sum()) + int(spare.max(initial=0)), int(counts[ROOT][0]))
    sizes.append(np.array([total]))
    flat = replace(wish, preferred=min(wish.preferred, wish.slice_level))
    return (yield from find_scope(coarse, sizes, flat, need))


def _fill(
    tree: Tree,
    coarse: Tree,
    leaf: Ints,
    families: Sequence[Family],
    wish: Wish,
    need: int,
    scope: Scope,
) -> Steps[Ints | None]:
    """Divide the gang over slice domains, then each domain's share over its hosts."""
    low, high = tree.span(scope.level, scope.domain)
    room = np.zeros_like(leaf)
    room[low:high] = trim(leaf[low:high], [family.part(low, high) for family in families])
    shares = yield from _shares(tree, coarse, room, wish, need, scope)
    if shares is None:
        return None
    amounts = np.zeros_like(leaf)
    for domain in np.flatnonzero(shares).tolist():
        low, high = tree.span(wish.slice_level, domain)
        part = tree.part(wish.slice_level, domain)
        amounts[low:high] = yield from descend(
            part, room[low:high], wish.slice_level + 1, int(shares[domain])
        )
        yield
    return amounts


def _shares(
    tree: Tree, coarse: Tree, room: Ints, wish: Wish, need: int, scope: Scope
) -> Steps[Ints | None]:
    """Return how many members each slice domain takes: whole slices, but one."""
    size, rest = wish.slice_size, need % wish.slice_size
    sums = tree.sums(room, wish.slice_level, tree.host)
    sums = np.where(coarse.labelled[-1], sums, 0)
    worth = _worth(sums, wish)
    whole = need if not rest else need - rest + size
    if int(worth.sum()) < whole:
        spare = np.flatnonzero((sums % size >= rest) & (sums > 0))
        if not rest or not len(spare) or int(worth.sum()) < need - rest:
            return None
        worth[spare[np.argmin(sums[spare] % size)]] += rest
        whole = need
    shares = yield from descend(coarse, worth, scope.first, whole)
    shares[np.flatnonzero(shares)[-1]] -= whole - need
    return shares


def partial_last(tree: Tree, wish: Wish, amounts: Ints) -> Ints:
    """Return one position per member in rank order, the partial slice's domain last.

    Consecutive ranks share hosts, racks and so on; with slices, rank i belongs to slice
    ``i // slice_size``, so the one domain with a partial slice must close the row.
    """
    slots = np.repeat(np.arange(len(amounts)), amounts)
    if not wish.slice_size:
        return slots
    shares = tree.sums(amounts, wish.slice_level, tree.host)
    partial = np.flatnonzero(shares % wish.slice_size)
    if len(partial) != 1:
        return slots
    last = tree.at(wish.slice_level, slots) == partial[0]
    return np.concatenate([slots[~last], slots[last]])
