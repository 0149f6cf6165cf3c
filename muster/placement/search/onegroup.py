"""A gang of one group: the mandatory members at their best, the others where they fit.

Members above the minimum must never make the minimum's place worse. So the minimum is
placed first, for reference; then larger numbers are tried and taken when the first
``mandatory`` members, in rank order, stand no worse than the reference. Last, members that
are left go as near as there is room.
"""

from dataclasses import dataclass, replace

import numpy as np

from muster.cluster.resumable import Steps
from muster.placement.request import Rows, TopologyWish
from muster.placement.search.arena import Arena, search, standing
from muster.placement.search.lonepod import place_lone
from muster.placement.search.nearplaced import near, region_of
from muster.placement.search.slices import partial_last
from muster.placement.tree import ROOT, Ints, domains_used


@dataclass(frozen=True, slots=True, eq=False)
class FoundPlaces:
    """Where the members of one group go."""

    #: int64[positions], all members.
    amounts: Ints
    #: int64[positions], those that were placed first.
    core: Ints
    #: All members are placed, and no placement of them uses fewer domains.
    proven: bool = False


def place_single(arena: Arena, mandatory: int, total: int) -> Steps[FoundPlaces | None]:
    """Place at least ``mandatory`` members, at most ``total``; ``None``: no fit.

    Room that other plans keep as spares is used only where that saves domains.
    """
    if total == 1:
        lone = yield from place_lone(arena)
        if lone is not None:
            return FoundPlaces(lone, lone, proven=True)  # on one host whichever
    found = yield from _place(arena, mandatory, total)
    if arena.quiet is None or found is None:
        return found
    quiet = yield from _place(replace(arena, leaf=arena.quiet, quiet=None), mandatory, total)
    if quiet is None or _worth(arena, quiet.amounts) > _worth(arena, found.amounts):
        return found
    return replace(quiet, proven=found.proven)  # it uses no more domains than the best can


def _worth(arena: Arena, amounts: Ints) -> tuple[int, tuple[int, ...]]:
    return -int(amounts.sum()), standing(arena, amounts)


def _place(arena: Arena, mandatory: int, total: int) -> Steps[FoundPlaces | None]:
    least = yield from search(arena, mandatory)
    if least is None:
        return None
    found = least.amounts
    if mandatory == total:
        return FoundPlaces(found, found, proven=least.proven)
    if arena.wish.slice_size:
        return (yield from _with_slices(arena, found, mandatory, total))
    bar = standing(arena, found)
    for larger in _larger(arena, found, mandatory, total):
        more = yield from search(arena, larger)
        if more is None:
            continue
        if not mandatory or standing(arena, _first(arena, more.amounts, mandatory)) <= bar:
            found = more.amounts
            break
        core = yield from _where_more_fit(arena, more.amounts, mandatory)
        if core is not None and standing(arena, core) <= bar:
            found = core
            break
    missing = total - int(found.sum())
    if not missing or not found.any():
        return FoundPlaces(found, found)
    others = yield from near(arena.after(found), found, missing)
    return FoundPlaces(found + others, found)


def _where_more_fit(arena: Arena, more: Ints, number: int) -> Steps[Ints | None]:
    """Place members alone in the required domain that has room for more; ``None``: any has."""
    if arena.wish.required == ROOT:
        return None
    inside = region_of(arena.board.tree, arena.wish.required, more)
    found = yield from search(arena.within(inside), number)
    return None if found is None else found.amounts


def _larger(arena: Arena, found: Ints, mandatory: int, total: int) -> list[int]:
    """Return the numbers of members worth trying, largest first."""
    counts = arena.counts()
    used = domains_used(arena.board.tree, found)
    levels = [level for level, number in enumerate(used) if number == 1]
    narrowest = max([ROOT, arena.wish.required, *levels])
    room = {total, min(total, int(counts[arena.wish.required].max(initial=0)))}
    room.add(min(total, int(counts[narrowest].max(initial=0))))
    return sorted((number for number in room if number > mandatory), reverse=True)


# --- slices -----------------------------------------------------------------------------


def _with_slices(arena: Arena, least: Ints, mandatory: int, total: int) -> Steps[FoundPlaces]:
    """Add whole slices to the mandatory members, as many as fit: at their best, else nearby."""
    bar = standing(arena, least)
    more = yield from _most(arena, mandatory, total)
    if more is None:
        return FoundPlaces(least, least)
    if not mandatory or standing(arena, _first(arena, more, mandatory)) <= bar:
        return FoundPlaces(more, more)
    size = arena.wish.slices[0][1]
    first = min(-(-mandatory // size) * size, total)
    core = yield from _where_more_fit(arena, more, first)  # with the rest of the slice they began
    if core is None:
        rounded = yield from search(arena, first)
        core = more if rounded is None else rounded.amounts
    if standing(arena, _first(arena, core, mandatory)) > bar or not (core - more).any():
        return FoundPlaces(more, more)
    if first == total:
        return FoundPlaces(core, core)
    inside = region_of(arena.board.tree, arena.wish.required, core)
    others = yield from _most(arena.after(core).within(inside), 0, total - first)
    return FoundPlaces(core if others is None else core + others, core)


def _most(arena: Arena, least: int, total: int) -> Steps[Ints | None]:
    """Return amounts for all, else for as many whole slices as fit; ``None``: for fewer than least.

    A smaller slice at the end is as good as a whole one.
    """
    everyone = yield from search(arena, total)
    if everyone is not None:
        return everyone.amounts
    size = arena.wish.slices[0][1]
    rest, low, high = total % size, 0, (total - 1) // size
    best = np.zeros_like(arena.leaf)
    while low < high:
        trial = (low + high + 1) // 2
        found = yield from search(arena, trial * size)
        if found is None:
            high = trial - 1
        else:
            low, best = trial, found.amounts
    if rest:
        longer = yield from search(arena, low * size + rest)
        best = best if longer is None else longer.amounts
    return best if int(best.sum()) >= max(least, 1) else None


def chosen(rows: Rows, wish: TopologyWish, count: int) -> Rows:
    """Return the members that ``count`` places are for: the first, and a smaller slice at the end.

    ``rows``: int32, all members of the group in rank order.
    """
    if not wish.slice_size or count == len(rows):
        return rows[:count]
    size = wish.slices[0][1]
    rest, over = len(rows) % size, count % size
    cut = over if over and over == rest else 0
    return np.concatenate([rows[: count - cut], rows[len(rows) - cut :]])


def _first(arena: Arena, amounts: Ints, number: int) -> Ints:
    """Return the amounts of the first ``number`` members in rank order."""
    slots = partial_last(arena.board.tree, arena.wish, amounts)[:number]
    return np.bincount(slots, minlength=len(amounts))


def slots(amounts: Ints, core: Ints) -> Ints:
    """Return one position per member in rank order: the hosts of ``core``, then the others.

    The first ranks are those that were placed first and at their best; members that came
    to other hosts afterwards must not push them apart.
    """
    used = np.flatnonzero(amounts)  # of all hosts a gang has few
    positions = np.repeat(used, amounts[used])
    outside = core[positions] == 0
    return np.concatenate([positions[~outside], positions[outside]])
