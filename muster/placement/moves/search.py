"""The cheapest set of moves: best first over what each node could gain.

::

    heap: (bound, …)                 pop the smallest
      │   part of a set ───────────► the next node: each of its options, or none of them
      │   a whole set, its price ──► try it: do the moved and the gang find places?
      │                                yes: nothing cheaper does; the proposal
      └── a set that finds none ◄─ no: the same set and one pod more, each in turn

A *bound* never exceeds the price of any set that can grow from a part, so sets leave the heap in
the order of their prices. It counts what the chosen pods interrupt and, for the members that
still lack room, the cheapest devices per member that the nodes to come offer; a gang that stops
whole is shared out among all of its pods that could be chosen.

The last arrow finds moves that only make room for other moves. With it the search is complete:
the cheapest set of all holds, node by node, a set that makes room, and the rest of it.
"""

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from muster.cluster.resumable import Steps
from muster.placement.moves.movablepods import NOTHING, MovePrices, Price, Rows
from muster.placement.moves.options import AllOptions, DomainOptions, MoveOption, NodeOptions
from muster.placement.moves.trial import Settled, Trial

POPS: Final = 20_000
"""Parts of sets looked at before the search gives up; some 20 µs each."""

SETTLED: Final = 40
"""Whole sets that are tried; each costs several plans."""

SETTLED_LARGE: Final = 8

MOST_SUPPORT: Final = 48
"""Pods of which one more is added to a set that does not settle."""

_POPS_PER_STEP: Final = 64


@dataclass(frozen=True, slots=True, eq=False)
class FoundMoves:
    """What the search came to."""

    #: The set; ``None``: none.
    rows: tuple[int, ...] | None
    settled: Settled | None
    #: It is the best, or there is none.
    certain: bool


@dataclass(frozen=True, slots=True, order=True)
class _Part:
    """Part of a set in one domain; whole when ``lack`` is 0 or less."""

    bound: Price
    lack: int
    number: int
    place: int = field(compare=False)
    node: int = field(compare=False)
    rows: tuple[int, ...] = field(compare=False)
    whole: bool = field(compare=False, default=False)


@dataclass(slots=True)
class _Ground:
    """One field with what bounds need: the cheapest places on the nodes from each one on."""

    ground: DomainOptions
    prices: MovePrices
    least_priority: int = NOTHING.priority
    nodes: list[NodeOptions] = field(default_factory=list)
    _share: dict[int, int] = field(default_factory=dict)
    _rest: dict[int, tuple[list[int], list[float], list[float]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Share out what gangs cost, and put the nodes with the cheapest places first."""
        rows = {row for node in self.ground.nodes for o in node.options for row in o.rows}
        for gang, mine in self.prices.by_gang(sorted(rows)).items():
            for row in mine:
                whole = self.prices.crew(gang).devices // len(mine)
                stops = self.prices.stops(gang, [row])
                self._share[row] = whole if stops else min(whole, self.prices.devices(row))
        self.nodes = sorted(
            (node for node in self.ground.nodes if node.options),
            key=lambda node: (min(map(self._ratio, node.options)), node.row),
        )
        self.least_priority = self._least_priority()

    def share(self, rows: Sequence[int]) -> int:
        """Return a lower bound of what these pods interrupt, as a sum over them."""
        return sum(self._share[row] for row in rows)

    def rest(self, node: int, lack: int) -> float | None:
        """Return the least that ``lack`` places on the nodes from ``node`` on cost; None: none."""
        if lack <= 0:
            return 0.0
        if node not in self._rest:
            self._rest[node] = self._sorted_from(node)
        places, ratios, costs = self._rest[node]
        at = bisect_left(places, lack)
        if at == len(places):
            return None
        before = places[at - 1] if at else 0
        spent = costs[at - 1] if at else 0.0
        return spent + (lack - before) * ratios[at]

    def _sorted_from(self, node: int) -> tuple[list[int], list[float], list[float]]:
        places: list[int] = []
        ratios: list[float] = []
        costs: list[float] = []
        total, spent = 0, 0.0
        offers = sorted(
            (min(map(self._ratio, n.options)), max(o.gain for o in n.options))
            for n in self.nodes[node:]
        )
        for ratio, gain in offers:
            total, spent = total + gain, spent + ratio * gain
            places.append(total)
            ratios.append(ratio)
            costs.append(spent)
        return places, ratios, costs

    def _ratio(self, option: MoveOption) -> float:
        return self.share(option.rows) / option.gain

    def _least_priority(self) -> int:
        """Return the least highest priority with which the field could be made to do."""
        priority = self.prices.snapshot.pods.priority
        offers = [
            (max(int(priority[row]) for row in option.rows), number, option.gain)
            for number, node in enumerate(self.nodes)
            for option in node.options
        ]
        best: dict[int, int] = {}
        for most, number, gain in sorted(offers):
            best[number] = max(best.get(number, 0), gain)
            if sum(best.values()) >= self.ground.lack:
                return most
        return NOTHING.priority


@dataclass(slots=True)
class Search:
    """One search; see the module's docstring. ``support``: pods that may be added to a set."""

    fields: AllOptions
    prices: MovePrices
    trial: Trial
    support: Rows
    _heap: list[_Part] = field(default_factory=list)
    _grounds: list[_Ground] = field(default_factory=list)
    _tried: set[frozenset[int]] = field(default_factory=set)
    _number: int = 0
    _certain: bool = True

    def run(self) -> Steps[FoundMoves]:
        """Return the cheapest set of moves with a place for every pod."""
        self._certain = self.fields.complete and self.trial.plain
        self._grounds = [_Ground(each, self.prices) for each in self.fields.fields]
        for place, ground in enumerate(self._grounds):
            self._push(place, 0, (), ground.ground.lack)
        yield
        for pops in range(POPS):
            if not self._heap:
                return FoundMoves(None, None, self._certain)
            if pops % _POPS_PER_STEP == _POPS_PER_STEP - 1:
                yield
            part = heapq.heappop(self._heap)
            if not part.whole:
                self._grow(part)
                continue
            if len(self._tried) >= self._most_settled():
                break
            found = yield from self._settle(part)
            if found is not None:
                return found
        return FoundMoves(None, None, certain=False)

    def _most_settled(self) -> int:
        """Where no pod is ever added to a set, further sets differ little from those tried."""
        return SETTLED if len(self.support) <= MOST_SUPPORT else SETTLED_LARGE

    def _grow(self, part: _Part) -> None:
        ground = self._grounds[part.place]
        if part.node == len(ground.nodes):
            return
        self._push(part.place, part.node + 1, part.rows, part.lack)
        for option in ground.nodes[part.node].options:
            lack = part.lack - option.gain
            self._push(part.place, part.node + 1, (*part.rows, *option.rows), lack)

    def _push(self, place: int, node: int, rows: tuple[int, ...], lack: int) -> None:
        ground, price = self._grounds[place], self.prices.of(rows)
        self._number += 1
        if lack <= 0:
            part = _Part(price, 0, -self._number, place, node, rows, whole=True)
            heapq.heappush(self._heap, part)
            return
        rest = ground.rest(node, lack)
        if rest is None:
            return
        bound = price._replace(
            priority=max(price.priority, ground.least_priority),
            interrupted=max(price.interrupted, int(ground.share(rows) + rest)),
        )
        heapq.heappush(self._heap, _Part(bound, lack, -self._number, place, node, rows))

    def _settle(self, part: _Part) -> Steps[FoundMoves | None]:
        key = frozenset(part.rows)
        if key in self._tried:
            return None
        self._tried.add(key)
        places = [node.row for node in self._meant(part)]
        settled, sure = yield from self.trial.settle(part.rows, places)
        if settled is not None:
            return FoundMoves(part.rows, settled, self._certain)
        self._certain = self._certain and sure
        for rows in self._with_one_more(part.rows):
            self._number += 1
            price = self.prices.of(rows)
            whole = _Part(price, 0, -self._number, part.place, part.node, rows, whole=True)
            heapq.heappush(self._heap, whole)
        return None

    def _meant(self, part: _Part) -> Iterator[NodeOptions]:
        """Yield the nodes of the field where the gang is to sit: those with room, then."""
        at = self.prices.snapshot.pods.node
        freed = {int(at[row]) for row in part.rows}
        return (
            node
            for node in self._grounds[part.place].ground.nodes
            if node.base or node.row in freed
        )

    def _with_one_more(self, rows: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(self.support) > MOST_SUPPORT:
            self._certain = False
            return
        for row in self.support.tolist():
            if row not in rows:
                yield (*rows, row)
