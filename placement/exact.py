"""Exact placement of one or several kinds of pods on a part of the tree, within a budget.

The objective, most important first (docs/design/topology.md states it in full)::

    1  domains used       of the preferred level, then of every level, widest first
    2  ring crossings     of the widest level with several domains, then of hosts
    3  left over          in the narrowest domain that holds all, then in those around it,
                          then in the chosen domains below it down to the hosts
    4  names              the first in the tree

Two sweeps (``sweep``): the first finds the domains used, and with them the narrowest level
whose one domain holds all; the second, with those known, everything.

Ranks go kind by kind. A kind on d domains crosses d - 1 times, and each change of kind (the
last back to the first too) crosses once, unless a domain is the end of one kind and the
beginning of the next. So crossings are pairs (kind, domain) minus *junctions*. For hosts
junctions are counted as marks that a host leaves when it takes both kinds; it may leave
those into and out of the same kind only if it takes all of that kind.

What a host takes is told by its maximal vectors (5 workers, or 4 and the launcher, …), and
hosts with equal room share them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.steps import Steps
from placement.polish import polished
from placement.sweep import NEVER, Budget, Field, Item, Option, Solved, Units, prices, sweep
from placement.tree import Ints, Tree

MOST_KINDS: Final = 4
MOST_STATES: Final = 20_000
"""Vectors of pods per kind: the size of a table."""

_HOSTS_PER_STEP: Final = 16
"""Kinds of hosts whose vectors are listed between two yields."""

_MOST_CELLS: Final = 1 << 22
"""Entries of all tables of a sweep, 8 bytes each: they are kept for the way back."""


_Cost = tuple[int, str]
"""An objective: level, and "used", "kinds" (pairs, minus junctions) or "left"."""


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """What hosts can take. ``positions``: int64[hosts], ascending; ``options`` along them.

    ``room``: int64[hosts], members of the kind that is hardest to place.
    """

    positions: Ints
    options: Sequence[tuple[Units, ...]]
    room: Ints

    def part(self, inside: NDArray[np.bool_]) -> "Stock":
        """Return the stock of the hosts at some positions, bool[positions]."""
        chosen = np.flatnonzero(inside[self.positions])
        options = [self.options[i] for i in chosen.tolist()]
        return Stock(self.positions[chosen], options, self.room[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """``amounts``: int64[kinds, positions]; ``None``: proven that nothing fits."""

    amounts: NDArray[np.int64] | None


def equal_stock(leaf: Ints, need: int) -> Stock:
    """Return the stock for equal pods: a host's one maximal vector is its capacity."""
    positions = np.flatnonzero(leaf)
    room = leaf[positions]
    shared = {size: ((size,),) for size in np.unique(np.minimum(room, need)).tolist()}
    options = [shared[size] for size in np.minimum(room, need).tolist()]
    return Stock(positions, options, room)


def cheapest(
    tree: Tree, stock: Stock, wanted: Units, order: Sequence[int], budget: Budget
) -> Steps[Exact | None]:
    """Return the best placement of ``wanted`` pods per kind; ``None``: the budget is used up.

    ``order``: all levels, in the order in which their domains count.
    """
    plot = _Plot(tree, stock, wanted, order)
    task = plot.first()
    if not _kept(task):
        return None
    solved = yield from sweep(task, budget)
    if solved is None:
        return None
    if solved.price(wanted) >= NEVER:
        return Exact(None)
    found = plot.amounts(solved, wanted)
    for task, gain in plot.finer(plot.used(found)):
        better = (yield from sweep(task, budget)) if _kept(task) else None
        if better is not None:
            found = plot.amounts(better, _cheapest_end(better, wanted, gain))
            break
    if len(wanted) > 1:
        found = yield from polished(tree, found, plot.options(found))
    return Exact(found)


def _kept(task: Field) -> bool:
    """Tell whether the tables are of a size that can be kept."""
    most = task.kinds <= MOST_KINDS and task.states <= MOST_STATES
    return most and task.cells() <= _MOST_CELLS


def _cheapest_end(solved: Solved, wanted: Units, gain: int) -> Units:
    """Return all wanted pods with the marks that are worth most; each mark gains ``gain``."""
    marks = len(solved.field.wanted) - len(wanted)
    ends = [(*wanted, *chosen) for chosen in product((1, 0), repeat=marks)]
    return min(ends, key=lambda end: solved.price(end) - gain * sum(end[len(wanted) :]))


class _Plot:
    """Levels and prices of one search."""

    def __init__(self, tree: Tree, stock: Stock, wanted: Units, order: Sequence[int]) -> None:
        self._tree, self._stock, self._wanted = tree, stock, wanted
        self._at = [tree.at(level, stock.positions) for level in range(tree.host + 1)]
        counts = [len(np.unique(domains)) for domains in self._at]
        self._levels = [level for level in order if counts[level] > 1 or level == tree.host]
        self._most = {level: min(counts[level], sum(wanted)) for level in self._levels}
        self._swept = sorted(level for level in self._levels if level < tree.host)

    def options(self, amounts: NDArray[np.int64]) -> list[tuple[Units, ...]]:
        """Return the maximal vectors of the hosts in use."""
        held = np.flatnonzero(amounts.any(axis=0)[self._stock.positions])
        return [self._stock.options[i] for i in held.tolist()]

    def used(self, amounts: NDArray[np.int64]) -> dict[int, int]:
        """Return the domains used per level that has several."""
        held = amounts.sum(axis=0)[self._stock.positions] > 0
        return {level: len(np.unique(self._at[level][held])) for level in self._levels}

    def amounts(self, solved: Solved, end: Units) -> NDArray[np.int64]:
        """Return int64[kinds, positions]."""
        found = np.zeros((len(self._wanted), self._tree.size), dtype=np.int64)
        for item, units in solved.back(end):
            found[:, self._stock.positions[item]] = units[: len(self._wanted)]
        return found

    def first(self) -> Field:
        """Return the field whose price is the domains used and nothing else."""
        return self._field(self._used_most(), None, marks=0)

    def finer(self, used: dict[int, int]) -> Iterator[tuple[Field, int]]:
        """Yield fields with all objectives and what a mark gains, the finest first.

        A wanted pod more of anything is no better, so with one kind there is one such field.
        """
        flagged = self._flagged(used)
        cost = self._used_most() | dict(self._finer(used, flagged))
        kinds = len(self._wanted)
        gain = _paid(cost).get((self._tree.host, "kinds"), 0)
        if gain and flagged is None and used[self._tree.host] > 1:
            yield self._field(cost, flagged, marks=kinds), gain
        yield self._field(cost, flagged, marks=0), 0

    def _used_most(self) -> dict[_Cost, int]:
        return {(level, "used"): self._most[level] for level in self._levels}

    def _field(self, cost: dict[_Cost, int], flagged: int | None, *, marks: int) -> Field:
        host, paid = self._tree.host, _paid(cost)
        each = self._opening(paid, host)[self._at[host]]
        kinds = paid.get((host, "kinds"), 0)
        return Field(
            wanted=(*self._wanted, *[1] * marks),
            opening=tuple(self._opening(paid, level) for level in self._swept),
            items=tuple(self._items(each.tolist(), kinds, marks)),
            kinds=len(self._wanted),
            flagged=None if flagged is None else self._swept.index(flagged),
            incidence=0 if flagged is None else paid.get((flagged, "kinds"), 0),
        )

    def _flagged(self, used: dict[int, int]) -> int | None:
        """Return the widest level above the hosts with several domains in use."""
        if len(self._wanted) == 1:
            return None
        return next((level for level in self._swept if used[level] > 1), None)

    def _finer(self, used: dict[int, int], flagged: int | None) -> Iterator[tuple[_Cost, int]]:
        """Yield the objectives after the domains used, with what they can be at most."""
        host, kinds = self._tree.host, len(self._wanted)
        if kinds > 1:
            if flagged is not None:
                yield (flagged, "kinds"), kinds * used[flagged]
            yield (host, "kinds"), kinds * used[host]
        total = int(self._stock.room.sum())
        ordered = sorted(self._levels)
        inner = [level for level in ordered if used[level] == 1]
        for level in [*reversed(inner), *(level for level in ordered if used[level] > 1)]:
            yield (level, "left"), total

    def _opening(self, paid: dict[_Cost, int], level: int) -> Ints:
        """Return int64[domains]: the price of using each domain of a level."""
        sizes = np.bincount(self._at[level], self._stock.room, minlength=self._tree.domains(level))
        left = paid.get((level, "left"), 0) * sizes.astype(np.int64)
        opening: Ints = left + paid[level, "used"]
        return opening

    def _items(self, each: list[int], kinds: int, marks: int) -> Iterator[Item]:
        paths = [self._at[level].tolist() for level in self._swept]
        shared: dict[tuple[tuple[Units, ...], int], tuple[Option, ...]] = {}
        for number, vectors in enumerate(self._stock.options):
            key = (vectors, each[number])
            if key not in shared:
                shared[key] = tuple(self._options(vectors, each[number], kinds, marks))
            yield Item(tuple(path[number] for path in paths), shared[key])


    def _options(
        self, vectors: tuple[Units, ...], price: int, kinds: int, marks: int
    ) -> Iterator[Option]:
        if not kinds:
            yield from (Option(units, price) for units in vectors)
            return
        for units in _with_fewer_kinds(vectors):
            paid = price + kinds * sum(map(bool, units))
            for left in _junctions(units, self._wanted) if marks else [()]:
                yield Option((*units, *left), paid, _least(units, left, self._wanted))


def _least(units: Units, left: Units, wanted: Units) -> Units:
    """Return the condition of an option: the kinds it has, and those it must have all of."""
    least = [min(count, 1) for count in units]
    for i in range(len(left)):
        if left[i - 1] and left[i]:
            least[i] = wanted[i]
    return (*least, *[0] * len(left))


def _paid(cost: dict[_Cost, int]) -> dict[_Cost, int]:
    """Return the price of each objective; ``cost`` says what each can be at most."""
    found = prices(list(cost.values()))
    return dict(zip(cost, found, strict=True))


def _with_fewer_kinds(vectors: Sequence[Units]) -> list[Units]:
    """Return the vectors and what is left of them without some of the kinds."""
    kept = product((0, 1), repeat=len(vectors[0]))
    found = {
        tuple(n * k for n, k in zip(units, keep, strict=True))
        for keep in kept
        for units in vectors
    }
    return [u for u in sorted(found, reverse=True) if any(u) and not _exceeded(u, found)]


def _exceeded(units: Units, found: set[Units]) -> bool:
    """Tell whether another vector has more of the same kinds."""
    return any(
        other != units
        and all(a >= b and bool(a) == bool(b) for a, b in zip(other, units, strict=True))
        for other in found
    )


def _junctions(units: Units, wanted: Units) -> list[Units]:
    """Return the largest sets of changes of kind for which a host can be the one place.

    Junction i leads from kind i to the next, the last to the first.
    """
    kinds = len(units)
    fitting = [
        marks
        for marks in product((1, 0), repeat=kinds)
        if all(
            not mark or (units[i] and units[(i + 1) % kinds]) for i, mark in enumerate(marks)
        )
        and all(
            not (marks[i - 1] and marks[i]) or units[i] >= wanted[i] for i in range(kinds)
        )
    ]
    return [
        one
        for one in fitting
        if not any(
            other != one and all(a >= b for a, b in zip(other, one, strict=True))
            for other in fitting
        )
    ]


# --- what a host can take -----------------------------------------------------------------


def mixed_stock(
    leaves: NDArray[np.int64], free: NDArray[np.int64], asked: NDArray[np.int64], wanted: Units
) -> Steps[Stock]:
    """Return the stock for several kinds of pods.

    ``leaves``: int64[kinds, positions], what a host takes of each kind alone. ``free``:
    int64[resources, positions]; ``asked``: int64[kinds, resources].
    """
    most = np.minimum(leaves, np.array(wanted)[:, None])
    positions = np.flatnonzero(most.any(axis=0))
    signature = np.concatenate([most[:, positions], _relevant(free, asked, most)[:, positions]])
    rows, numbers = np.unique(signature, axis=1, return_inverse=True)
    yield
    vectors = []
    for number, row in enumerate(rows.T.tolist()):
        vectors.append(_maximal(row[: len(wanted)], row[len(wanted) :], asked.tolist()))
        if number % _HOSTS_PER_STEP == _HOSTS_PER_STEP - 1:
            yield
    options = [vectors[number] for number in numbers.reshape(-1).tolist()]
    totals = np.maximum(leaves.sum(axis=1), 1)
    hardest = int(np.argmax(np.array(wanted) / totals))
    return Stock(positions, options, leaves[hardest, positions])


def _relevant(
    free: NDArray[np.int64], asked: NDArray[np.int64], most: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Clip what is free to what all kinds together could use: more makes no difference."""
    return np.minimum(np.maximum(free, 0), asked.T @ most)


def _maximal(most: list[int], free: list[int], asked: list[list[int]]) -> tuple[Units, ...]:
    """Return the vectors of pods per kind that fit and that no other such vector exceeds.

    The last kind takes what the others leave. A vector is exceeded when one pod more of
    another kind leaves the last as many.
    """
    firsts: list[Units] = [()]
    for kind in range(len(most) - 1):
        firsts = [
            (*units, count)
            for units in firsts
            for count in range(min(most[kind], _room(free, asked, units, kind)) + 1)
        ]
    last = len(most) - 1
    full = {units: min(most[last], _room(free, asked, units, last)) for units in firsts}
    return tuple(
        (*units, count)
        for units, count in full.items()
        if (count or any(units))
        and all(full.get(more, -1) < count for more in _one_more(units))
    )


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
