"""The cheapest way to give units to items under a tree of domains: exact, by dynamic programming.

An *item* (a host; or a domain of the slice level) takes one of its *options*: a vector of
units (pods per kind, or slices per make-up) at a price. A domain with a taken item costs its
opening price once. The items are swept in tree order; ``cost[v]`` is the least price at which
the items so far take at least the units ``v``::

    open rack r1          host h1                 host h2            close rack r1
    E = D + price(r1) ─►  E = min(E, E[v-x]+p) ─► the same … ─────►  D = min(D, E)

That is exact for any number of levels, because prices add up: a lexicographic objective
becomes one number whose digits are the objectives (``prices``). A host needs only its
maximal options, since it may take less than an option says: ``v - x`` stops at zero.

One level may be *flagged*: then a domain of it costs ``incidence`` for every kind of unit
that it holds, and the tables of an open domain have a row per set of kinds. The first
``kinds`` units are told apart so; others are marks that items may leave (``exact`` has some).

The work is counted in *ticks*, about 3 ns each, so a budget needs no clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.steps import Steps
from placement.tree import Ints

NEVER: Final = 1 << 60
"""Price of what cannot be; above every sum of prices."""

TICKS_PER_STEP: Final = 200_000
"""Work between two yields: under a millisecond."""

_CALL: Final = 2_500
"""Ticks of an array operation beside those of its elements."""

Units = tuple[int, ...]


@dataclass(slots=True)
class Budget:
    """Ticks that a search may still use."""

    left: int

    def spend(self, ticks: int) -> bool:
        """Take ticks; tell whether there were enough."""
        self.left -= ticks
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class Option:
    """``units`` that an item may take, and the price of that.

    ``least``: per unit, how many must have been given away with this item: 1 for kinds that
    it may not leave out, all for those that nobody else may have; ``()``: no condition.
    """

    units: Units
    price: int
    least: Units = ()


@dataclass(frozen=True, slots=True)
class Item:
    """``path``: the item's domain at every swept level, widest first."""

    path: tuple[int, ...]
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """``wanted`` units; ``opening``: int64[domains] prices per swept level.

    ``items`` in tree order. ``kinds``: how many of the units are kinds. ``flagged``: index of the swept level whose domains cost
    ``incidence`` per kind of unit that they hold; ``None``: none.
    """

    wanted: Units
    opening: tuple[Ints, ...]
    items: Sequence[Item]
    kinds: int = 1
    flagged: int | None = None
    incidence: int = 0

    @property
    def states(self) -> int:
        """Size of a table."""
        return prod(count + 1 for count in self.wanted)

    @property
    def sets(self) -> int:
        """Rows of a table below the flagged level."""
        return 1 if self.flagged is None else 1 << self.kinds

    def cells(self) -> int:
        """Return how many entries all tables have together: they are kept for the way back."""
        return self.states * self.sets * len(self.items)

    def ticks(self) -> int:
        """Return what a sweep costs."""
        each = (_CALL + self.states) * self.sets
        return each * sum(1 + len(item.options) for item in self.items)


_Table = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """One step of the sweep: ``item`` taken or not, or (-1) a domain opened or closed.

    ``before``: the table it began with. For a closing, ``partner`` is the index of the
    opening.
    """

    item: int
    before: _Table
    partner: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The outcome of a sweep: prices of every vector of units, and how each is reached."""

    field: Field
    _final: _Table
    _events: list[_Event]
    _shifts: "_Shifts"

    def price(self, units: Units) -> int:
        """Return the least price of giving away at least ``units``; ``NEVER`` or more: none."""
        return int(self._final[0, self._shifts.state(units)])

    def back(self, units: Units) -> list[tuple[int, Units]]:
        """Return (item, units it takes) for a way of that least price."""
        return list(self._walk(self._shifts.state(units)))

    def _walk(self, state: int) -> Iterator[tuple[int, Units]]:
        row, table, at = 0, self._final, len(self._events) - 1
        while at >= 0:
            event = self._events[at]
            if event.item >= 0:
                if table[row, state] != event.before[row, state]:
                    row, lower = self._taken(event, row, state, int(table[row, state]))
                    yield event.item, self._shifts.given(state, lower)
                    state = lower
                table = event.before
            elif event.partner >= 0:
                opening = self._events[event.partner]
                if table[row, state] == opening.before[row, state]:
                    table, at = opening.before, event.partner
                else:
                    row = self._row_inside(event.before, row, state, int(table[row, state]))
                    table = event.before
            else:
                row, table = min(row, len(event.before) - 1), event.before
            at -= 1

    def _mask(self, units: Units) -> int:
        return _mask(units[: self.field.kinds])

    def _row_inside(self, inner: _Table, row: int, state: int, price: int) -> int:
        """Return the set of kinds of the domain that is entered backwards."""
        if len(inner) == 1 or inner[row, state] == price:
            return row
        prices = inner[:, state] + self.field.incidence * _popcounts(len(inner))
        return int(np.argmin(prices))

    def _taken(self, event: _Event, row: int, state: int, price: int) -> tuple[int, int]:
        """Return the row and the state before an item took its option."""
        before = event.before
        for option in self.field.items[event.item].options:
            if self._shifts.forbids(option.least, state):
                continue
            lower = int(self._shifts.index(option.units)[state])
            for source in range(len(before)):
                if len(before) > 1 and source | self._mask(option.units) != row:
                    continue
                if before[source, lower] + option.price == price:
                    return source, lower
        raise AssertionError("a table's entry has no origin")


class _Shifts:
    """Where ``v - x``, stopped at zero, lies in a flattened table, for every state v."""

    __slots__ = ("_cache", "_coordinates", "_forbidden", "_shape", "states")

    def __init__(self, wanted: Units) -> None:
        self._shape = tuple(count + 1 for count in wanted)
        self.states = prod(self._shape)
        self._coordinates = np.indices(self._shape).reshape(len(wanted), -1)
        self._cache: dict[Units, NDArray[np.intp]] = {}
        self._forbidden: dict[Units, NDArray[np.intp]] = {}

    def index(self, units: Units) -> NDArray[np.intp]:
        found = self._cache.get(units)
        if found is None:
            lower = np.maximum(self._coordinates - np.array(units)[:, None], 0)
            found = np.ravel_multi_index(tuple(lower), self._shape)
            self._cache[units] = found
        return found

    def forbidden(self, least: Units) -> NDArray[np.intp]:
        """Return the states after which an item with this condition cannot have been taken."""
        found = self._forbidden.get(least)
        if found is None:
            found = np.flatnonzero((self._coordinates < np.array(least)[:, None]).any(axis=0))
            self._forbidden[least] = found
        return found

    def forbids(self, least: Units, state: int) -> bool:
        return bool(least) and bool((self._coordinates[:, state] < np.array(least)).any())

    def state(self, units: Units) -> int:
        return int(np.ravel_multi_index(units, self._shape))

    def given(self, upper: int, lower: int) -> Units:
        difference = self._coordinates[:, upper] - self._coordinates[:, lower]
        return tuple(difference.tolist())


def sweep(task: Field, budget: Budget) -> Steps[Solved | None]:
    """Return the solved field, ``None`` when the budget does not last."""
    if not budget.spend(task.ticks()):
        return None
    work = _Sweep(task)
    done = 0
    each = task.ticks() // max(len(task.items), 1)
    for number, item in enumerate(task.items):
        work.take(number, item)
        done += each
        if done >= TICKS_PER_STEP:
            done = 0
            yield
    work.close_down_to(0)
    return Solved(task, work.tables[0], work.events, work.shifts)


@dataclass(slots=True)
class _Sweep:
    """The tables of the domains that are open, the whole field's first."""

    task: Field
    shifts: _Shifts = field(init=False)
    tables: list[_Table] = field(init=False)
    path: tuple[int, ...] = ()
    opened: list[int] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shifts = _Shifts(self.task.wanted)
        start = np.full((1, self.shifts.states), NEVER, dtype=np.int64)
        start[0, 0] = 0
        self.tables = [start]

    def take(self, number: int, item: Item) -> None:
        """Open and close domains on the way to an item, then let it take its options."""
        same = 0
        while same < len(self.path) and self.path[same] == item.path[same]:
            same += 1
        self.close_down_to(same)
        for depth in range(same, len(item.path)):
            self._open(depth, item.path[depth])
        self.path = item.path
        before = self.tables[-1]
        after = before.copy()
        for option in item.options:
            self._improve(before, after, option)
        self.events.append(_Event(number, before))
        self.tables[-1] = after

    def _improve(self, before: _Table, after: _Table, option: Option) -> None:
        found = before[:, self.shifts.index(option.units)]
        found += option.price
        if option.least:
            found[:, self.shifts.forbidden(option.least)] = NEVER
        if len(before) == 1:
            np.minimum(after, found, out=after)
            return
        mask = _mask(option.units[: self.task.kinds])
        for row in range(len(before)):
            np.minimum(after[row | mask], found[row], out=after[row | mask])

    def _open(self, depth: int, domain: int) -> None:
        outer = self.tables[-1]
        inner = outer + self.task.opening[depth][domain]
        if depth == self.task.flagged:
            rows = np.full((self.task.sets, self.shifts.states), NEVER, dtype=np.int64)
            rows[0] = inner[0]
            inner = rows
        self.opened.append(len(self.events))
        self.events.append(_Event(-1, outer))
        self.tables.append(inner)

    def close_down_to(self, depth: int) -> None:
        """Close the innermost domains until ``depth`` are open."""
        while len(self.tables) - 1 > depth:
            inner = self.tables.pop()
            outer = self.tables[-1]
            self.events.append(_Event(-1, inner, self.opened.pop()))
            if len(inner) > len(outer):
                paid = self.task.incidence * _popcounts(len(inner))
                inner = (inner + paid[:, None]).min(axis=0, keepdims=True)
            self.tables[-1] = np.minimum(outer, inner)
        self.path = self.path[:depth]


def _mask(units: Units) -> int:
    return sum(1 << kind for kind, count in enumerate(units) if count)


def _popcounts(rows: int) -> Ints:
    return np.array([row.bit_count() for row in range(rows)], dtype=np.int64)


def prices(bounds: Sequence[int]) -> list[int]:
    """Return the price of one unit of each objective, the weightiest first.

    ``bounds``: what each objective can be at most. Objectives whose digits do not fit into
    the number any more get the price 0, from the last.
    """
    fitting = list(bounds)
    while prod(bound + 1 for bound in fitting) >= NEVER:
        fitting.pop()
    found, price = [], 1
    for bound in reversed(fitting):
        found.append(price)
        price *= bound + 1
    return [*reversed(found), *[0] * (len(bounds) - len(fitting))]
