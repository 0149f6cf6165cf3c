"""Slices: ``slice_size`` members at a time share one domain of ``slice_level``.

The slices are placed by the same search on a *coarse* tree that ends at the slice level,
where every domain is worth its whole slices only::

    capacity    11   7   4   8      slice of 4
    worth        8   4   4   8      24 members at most, not 30

Slices of slices are the same once more: a domain of the wider slice level is worth the whole
wider slices that the worth of the domains inside it makes::

    racks of a block, worth   8 4 | 4 8      wider slice of 8
    blocks, worth              8  |  8       16 members at most, not 24

A gang that is no multiple of the slice has one partial slice of r members. It fits in a
whole slice's place or in what is left of one domain beside its whole slices (the 3 of 11
and of 7 above), so a domain's count is worth + r when one domain below it has r to spare.

Where that does not show to be the best, ``exact`` looks for better.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.exact.cheapest import MOST_HOSTS
from muster.placement.exact.slicekinds import in_turn, pack
from muster.placement.request import TopologyWish
from muster.placement.rules.caps import CapRule, count_up, trim
from muster.placement.search.scopes import (
    Placing,
    Scope,
    at_bound,
    descend,
    exact_amounts,
    find_scope,
    holding,
    place,
)
from muster.placement.tree import ROOT, DomainTree, Ints, domains_used


def place_slices(
    tree: DomainTree, leaf: Ints, cap_rules: Sequence[CapRule], wish: TopologyWish, need: int
) -> Steps[Placing | None]:
    """Return ``need`` equal pods in slices, placed, or ``None``."""
    found = yield from _layered(tree, leaf, cap_rules, wish, need)
    if cap_rules:
        return None if found is None else Placing(found, proven=False)
    if found is not None and (yield from _is_minimal(tree, leaf, wish, found)):
        return Placing(found, proven=True)
    if np.count_nonzero(leaf) > MOST_HOSTS:
        return None if found is None else Placing(found, proven=False)
    numbers = in_turn(wish.slices, np.arange(need))
    packing = pack(wish.slices, numbers, np.zeros(need, dtype=np.int64), 1)
    layers = None if packing is None else packing.layers
    better = yield from exact_amounts(tree, leaf, wish, need, layers)
    if better is not None:
        return better if better.amounts.any() else None
    return None if found is None else Placing(found, proven=False)


def _is_minimal(tree: DomainTree, leaf: Ints, wish: TopologyWish, amounts: Ints) -> Steps[bool]:
    """Return whether the members could not do with fewer domains even without their slices."""
    counts = count_up(tree, leaf, [])
    yield
    used = domains_used(tree, amounts)
    yield
    need = int(amounts.sum())
    wide = holding(tree, counts, wish.required, need)
    return (yield from at_bound(tree, counts, wish.required, wide, used=used, need=need))


def _layered(
    tree: DomainTree, leaf: Ints, cap_rules: Sequence[CapRule], wish: TopologyWish, need: int
) -> Steps[Ints | None]:
    """Place the widest layer of slices, and what is in its domains by the layers inside."""
    if wish.slice_level < tree.host:
        # One domain below the slice level that holds all is the best there can be.
        narrow = replace(wish, required=max(wish.required, wish.slice_level + 1))
        found = yield from place(tree, leaf, cap_rules, narrow, need)
        if found is not None:
            return found.amounts
        if wish.required > wish.slice_level:
            return None
    counts = count_up(tree, leaf, cap_rules)
    level, size = wish.slices[0]
    coarse = _coarse(tree, level)
    room = _room(tree, counts, wish)
    scope = yield from _scope(coarse, room, counts, replace(wish, slice_level=level), need, size)
    if scope is None:
        return None
    return (yield from _fill(tree, coarse, leaf, cap_rules, wish, need, scope))


def _coarse(tree: DomainTree, level: int) -> DomainTree:
    """Return the tree down to ``level``, whose domains become the positions."""
    return DomainTree(
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


def _room(tree: DomainTree, counts: Sequence[Ints], wish: TopologyWish) -> Ints:
    """Return what each domain of the widest layer holds, in whole slices of those inside."""
    layers = wish.slices
    room = counts[layers[-1][0]]
    for (wide, _), (level, size) in zip(layers[-2::-1], layers[:0:-1], strict=True):
        whole = np.where(tree.labelled[level], room // size * size, 0)
        room = np.minimum(tree.sums(whole, wide, level), counts[wide])
    return room


def _scope(
    coarse: DomainTree, room: Ints, counts: Sequence[Ints], wish: TopologyWish, need: int, size: int
) -> Steps[Scope | None]:
    rest = need % size
    room = np.where(coarse.labelled[-1], room, 0)
    spare = (room % size >= rest).astype(np.int64) * rest
    worth = room // size * size
    sizes = []
    for level in range(coarse.host + 1):
        best = np.maximum.reduceat(spare, coarse.offsets(level, coarse.host))
        sums = coarse.sums(worth, level, coarse.host) + best
        sizes.append(np.minimum(sums, counts[level]))
    total = min(int(worth.sum()) + int(spare.max(initial=0)), int(counts[ROOT][0]))
    sizes.append(np.array([total]))
    flat = replace(wish, preferred=min(wish.preferred, wish.slice_level))
    return (yield from find_scope(coarse, sizes, flat, need, room=counts))


def _fill(
    tree: DomainTree,
    coarse: DomainTree,
    leaf: Ints,
    cap_rules: Sequence[CapRule],
    wish: TopologyWish,
    need: int,
    scope: Scope,
) -> Steps[Ints | None]:
    """Divide the gang over slice domains, then each domain's share over its hosts."""
    level, size = wish.slices[0]
    low, high = tree.span(scope.level, scope.domain)
    room = np.zeros_like(leaf)
    room[low:high] = trim(leaf[low:high], [cap_rule.part(low, high) for cap_rule in cap_rules])
    counts = count_up(tree, room, [])
    sums = _room(tree, counts, wish)
    shares = yield from _shares(coarse, sums, counts[level], need, size, scope)
    if shares is None:
        return None
    amounts = np.zeros_like(leaf)
    for domain in np.flatnonzero(shares).tolist():
        low, high = tree.span(level, domain)
        part = tree.part(level, domain)
        found = yield from _inside(part, room[low:high], wish, int(shares[domain]))
        if found is None:
            return None
        amounts[low:high] = found
        yield
    return amounts


def _inside(part: DomainTree, room: Ints, wish: TopologyWish, share: int) -> Steps[Ints | None]:
    """Divide one domain's share over its hosts, in the slices of the layers inside."""
    if not wish.wider:
        return (yield from descend(part, room, wish.slice_level + 1, share))
    inner = replace(wish, wider=wish.wider[1:], required=ROOT)
    return (yield from _layered(part, room, [], inner, share))


def _shares(
    coarse: DomainTree, sums: Ints, room: Ints, need: int, size: int, scope: Scope
) -> Steps[Ints | None]:
    """Return how many members each slice domain takes: whole slices, but one.

    ``room``: int64[domains], all that a domain holds, in whole slices or not.
    """
    rest = need % size
    sums = np.where(coarse.labelled[-1], sums, 0)
    worth = sums // size * size
    whole = need if not rest else need - rest + size
    if int(worth.sum()) < whole:
        spare = np.flatnonzero((sums % size >= rest) & (sums > 0))
        if not rest or not len(spare) or int(worth.sum()) < need - rest:
            return None
        worth[spare[np.argmin(sums[spare] % size)]] += rest
        whole = need
    shares = yield from descend(coarse, worth, scope.first, whole, room=room)
    shares[np.flatnonzero(shares)[-1]] -= whole - need
    return shares


def partial_last(tree: DomainTree, wish: TopologyWish, amounts: Ints) -> Ints:
    """Return one position per member in rank order, the domains of the partial slice last.

    Consecutive ranks share hosts, racks and so on; with slices, rank i belongs to slice
    ``i // slice_size``, so the one domain with a partial slice must close the row, and so
    must, on every wider level, the domain that it is in.
    """
    slots = np.repeat(np.arange(len(amounts)), amounts)
    for level, size in reversed(wish.slices):
        partial = np.flatnonzero(tree.sums(amounts, level, tree.host) % size)
        if len(partial) == 1:
            start = tree.starts[level][partial]
            keys = [tree.at(wide, slots) == tree.at(wide, start) for wide in range(level, -1, -1)]
            return slots[np.lexsort(_nested(tree, slots, keys, level))]
    return slots


def _nested(tree: DomainTree, slots: Ints, keys: Sequence[Ints], level: int) -> list[Ints]:
    """Return sort keys, the last the weightiest: last domains, and tree order among others."""
    found = [slots]
    for wide, is_last in zip(range(level, -1, -1), keys, strict=True):
        found += [tree.at(wide, slots), is_last]
    return found
