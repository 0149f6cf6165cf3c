"""The cheapest way to give units to items under a tree of domains: exact, by dynamic programming.

An *item* (a host; or a domain of a slice level) takes one of its *options*: a vector of
units (pods per kind, or slices per make-up) at a price. A domain with a taken item costs its
opening price once. The items are swept in tree order; ``E[v]`` is the least price at which
the items so far take at least the units ``v``::

    open rack r1          host h1                 host h2            close rack r1
    E = D + price(r1) ─►  E = min(E, E[v-x]+p) ─► the same … ─────►  D = min(D, E)

That is exact for any number of levels, because prices add up: a lexicographic objective
becomes one number whose digits are the objectives (``prices``). A host needs only its
maximal options, since it may take less than an option: ``v - x`` stops at zero.

The work is counted in *ticks*, about 3 ns each, so a budget needs no clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.tree import Ints

NEVER: Final = 1 << 60
"""Price of what cannot be; above every sum of prices."""

TICKS_PER_STEP: Final = 100_000
"""Work between two yields: about a third of a millisecond."""

MOST_STATES: Final = 20_000
"""Vectors of units: the size of a table."""

_MOST_CELLS: Final = 1 << 22
"""Entries of all tables of a sweep, 8 bytes each: they are kept for the way back."""

_CALL: Final = 2_500
"""Ticks of an array operation beside those of its elements."""

Units = tuple[int, ...]


@dataclass(slots=True)
class SearchBudget:
    """Ticks that a search may still use."""

    left: int

    def spend(self, ticks: int) -> bool:
        """Take ticks; return whether there were enough."""
        self.left -= ticks
        return self.left >= 0


@dataclass(frozen=True, slots=True)
class HostOption:
    """What an item may take."""

    units: Units
    #: Price of taking these units.
    price: int


@dataclass(frozen=True, slots=True)
class Item:
    """One host, or one domain of the layer inside."""

    #: Its domain at every swept level, widest first.
    path: tuple[int, ...]
    options: tuple[HostOption, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TreeTask:
    """Units to give to items under a tree of domains."""

    #: Units per kind.
    wanted: Units
    #: int64[domains] per swept level, the price of using a domain.
    opening: tuple[Ints, ...]
    #: In tree order.
    items: Sequence[Item]

    @property
    def states(self) -> int:
        """Size of a table."""
        return states(self.wanted)

    @property
    def is_kept(self) -> bool:
        """Return whether the tables are of a size that can be kept."""
        return self.states <= MOST_STATES and self.states * len(self.items) <= _MOST_CELLS

    def ticks(self) -> int:
        """Return what a sweep costs."""
        calls = sum(2 + len(item.path) + len(item.options) for item in self.items)
        return (_CALL + self.states) * calls


def states(wanted: Units) -> int:
    """Return how many vectors of units there are up to ``wanted``."""
    return prod(count + 1 for count in wanted)


_Table = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    """One step of the sweep: an item taken or not, a domain opened or closed."""

    #: Index of the item; -1: a domain.
    item: int
    #: The table before the step; for a closing, the table inside.
    before: _Table
    #: For a closing, the index of the opening.
    partner: int = -1


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """The outcome of a sweep: prices of every vector of units, and how each is reached."""

    field: TreeTask
    _final: _Table
    _events: list[_Event]
    _shifts: "Shifts"

    def price(self, units: Units) -> int:
        """Return the least price of giving away at least ``units``; ``NEVER`` or more: none."""
        return int(self._final[self._shifts.state(units)])

    def back(self, units: Units) -> list[tuple[int, Units]]:
        """Return (item, units it takes) for a way of that least price, in tree order."""
        return list(self._walk(self._shifts.state(units)))[::-1]

    def _walk(self, state: int) -> Iterator[tuple[int, Units]]:
        table, at = self._final, len(self._events) - 1
        while at >= 0:
            event = self._events[at]
            if event.item >= 0:
                if table[state] != event.before[state]:
                    lower = self._before(event, state, int(table[state]))
                    yield event.item, self._shifts.given(state, lower)
                    state = lower
                table = event.before
            elif event.partner < 0 or table[state] != self._events[event.partner].before[state]:
                table = event.before
            else:  # the domain that was closed here is not used: on from its opening
                table, at = self._events[event.partner].before, event.partner
            at -= 1

    def _before(self, event: _Event, state: int, price: int) -> int:
        """Return the state before an item took the option that gave this price."""
        for option in self.field.items[event.item].options:
            lower = int(self._shifts.index(option.units)[state])
            if event.before[lower] + option.price == price:
                return lower
        raise AssertionError("a table's entry has no origin")


class Shifts:
    """Where ``v - x``, stopped at zero, lies in a flattened table, for every state v.

    Fields with the same ``wanted`` may share one.
    """

    __slots__ = ("_cache", "_coordinates", "_shape", "_strides")

    def __init__(self, wanted: Units) -> None:
        """Prepare for vectors of units up to ``wanted``."""
        self._shape = tuple(count + 1 for count in wanted)
        self._strides = [prod(self._shape[i + 1 :]) for i in range(len(wanted))]
        self._coordinates = np.indices(self._shape).reshape(len(wanted), -1)
        self._cache: dict[Units, NDArray[np.intp]] = {}

    def index(self, units: Units) -> NDArray[np.intp]:
        """Return intp[states]: the state before ``units`` were given."""
        found = self._cache.get(units)
        if found is None:
            lower = np.maximum(self._coordinates - np.array(units)[:, None], 0)
            found = np.ravel_multi_index(tuple(lower), self._shape)
            self._cache[units] = found
        return found

    def state(self, units: Units) -> int:
        """Return the index of a vector of units."""
        return sum(n * stride for n, stride in zip(units, self._strides, strict=True))

    def given(self, upper: int, lower: int) -> Units:
        """Return the units between two states."""
        difference = self._coordinates[:, upper] - self._coordinates[:, lower]
        return tuple(difference.tolist())


def sweep(
    task: TreeTask, budget: SearchBudget, shifts: Shifts | None = None
) -> Steps[Solved | None]:
    """Return the solved field, ``None`` when the budget does not last."""
    if not task.is_kept or not budget.spend(task.ticks()):
        return None
    work = _Sweep(task, shifts or Shifts(task.wanted))
    each = task.ticks() // max(len(task.items), 1)
    done = 0
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

    task: TreeTask
    shifts: Shifts
    tables: list[_Table] = field(init=False)
    path: tuple[int, ...] = ()
    opened: list[int] = field(default_factory=list)
    events: list[_Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        start = np.full(self.task.states, NEVER, dtype=np.int64)
        start[0] = 0
        self.tables = [start]

    def take(self, number: int, item: Item) -> None:
        """Open and close domains on the way to an item, then let it take its options."""
        same = 0
        while same < len(self.path) and self.path[same] == item.path[same]:
            same += 1
        self.close_down_to(same)
        for depth in range(same, len(item.path)):
            self.opened.append(len(self.events))
            self.events.append(_Event(-1, self.tables[-1]))
            self.tables.append(self.tables[-1] + self.task.opening[depth][item.path[depth]])
        self.path = item.path
        before = self.tables[-1]
        after = before.copy()
        for option in item.options:
            found = before[self.shifts.index(option.units)]
            found += option.price
            np.minimum(after, found, out=after)
        self.events.append(_Event(number, before))
        self.tables[-1] = after

    def close_down_to(self, depth: int) -> None:
        """Close the innermost domains until ``depth`` are open."""
        while len(self.tables) - 1 > depth:
            inner = self.tables.pop()
            self.events.append(_Event(-1, inner, self.opened.pop()))
            self.tables[-1] = np.minimum(self.tables[-1], inner)
        self.path = self.path[:depth]


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
