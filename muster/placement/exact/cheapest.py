"""Exact placement of one or several kinds of pods, in slices or not, within a budget.

The objective, most important first (docs/design/topology.md states it in full)::

    1  domains used       of the required and the preferred level, then of every level,
                          widest first; those with pods that stand already cost nothing
    2  kinds on hosts     pairs (kind, host): the fewer, the fewer ring crossings (``polish``)
    3  left over          in the narrowest domain that holds all, then in those around it,
                          then in the chosen domains below it down to the hosts

Two passes: the first finds the domains used, and with them the narrowest level whose one
domain holds all; the second, with those known, everything.

Slices are layers on the way down. A domain of a slice level is an item to the sweep above it,
and its options are numbers of whole slices, priced by a sweep of its own::

    blocks                      sweep of slices over racks
      └─ racks  = items         options: 1 slice for 5, 2 for 7, …
           └─ hosts = items     sweep of pods over the hosts of each rack
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.resumable import Steps
from muster.placement.exact.hostvectors import HostStock, with_fewer_kinds
from muster.placement.exact.polish import polished
from muster.placement.exact.treeprogram import (
    NEVER,
    HostOption,
    Item,
    SearchBudget,
    Shifts,
    Solved,
    TreeTask,
    Units,
    prices,
    states,
    sweep,
)
from muster.placement.tree import DomainTree, Ints

MOST_KINDS: Final = 4
MOST_HOSTS: Final = 1024
"""Hosts of an exact search: what is done once per host stays about a millisecond."""

ANYWHERE: Final = -1
"""The home of slices that have none."""

_ITEMS_PER_STEP: Final = 128

_OPTION_TICKS: Final = 4_000
"""Work for one number of slices of every make-up that a domain is priced for."""

_MOST_OPTIONS: Final = 128
"""Such numbers of one domain: they are priced in one go."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Slices of one level."""

    level: int
    #: What a slice consists of (slices of the layer inside, innermost pods per kind), and how many
    #: slices are like that.
    makeups: tuple[tuple[Units, int], ...]
    #: The only domain for slices of each make-up; ``ANYWHERE``: any. Empty: any for all.
    homes: tuple[int, ...] = ()

    @property
    def wanted(self) -> Units:
        """How many slices of each make-up there are."""
        return tuple(count for _, count in self.makeups)

    def units(self, slices: Units) -> Units:
        """Return what slices consist of together."""
        vectors = [vector for vector, _ in self.makeups]
        columns = zip(*vectors, strict=True)
        return tuple(sum(n * x for n, x in zip(slices, c, strict=True)) for c in columns)

    def most(self, domain: int, room: Units) -> Units:
        """Return how many slices of each make-up alone a domain with some room may take."""
        homes = self.homes or (ANYWHERE,) * len(self.makeups)
        return tuple(
            min([count, *(m // n for m, n in zip(room, vector, strict=True) if n)])
            if home in (ANYWHERE, domain)
            else 0
            for (vector, count), home in zip(self.makeups, homes, strict=True)
        )


@dataclass(frozen=True, slots=True)
class DomainShare:
    """What goes to one domain, or to one host."""

    #: The domain of a layer's level, or a host's position.
    place: int
    #: How many units of each kind.
    units: Units
    inside: tuple["DomainShare", ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CheapestAmounts:
    """The cheapest placement."""

    #: int64[kinds, positions]; ``None``: proven that nothing fits.
    amounts: NDArray[np.int64] | None
    #: The same by layer, in tree order.
    shares: tuple[DomainShare, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Quest:
    """What is to be placed, and from what."""

    tree: DomainTree
    #: What the hosts can take.
    stock: HostStock
    #: Pods per kind.
    wanted: Units
    #: Levels, the weightiest first.
    order: Sequence[int]
    #: Slices, widest first.
    layers: tuple[Layer, ...] = ()
    #: int64[positions], pods that stand already: it costs nothing to use the domains that they are
    #: in; ``None``: there are none.
    anchors: Ints | None = None


def cheapest(quest: Quest, budget: SearchBudget) -> Steps[CheapestAmounts | None]:
    """Return the best placement; ``None``: too large, or the budget is used up."""
    if len(quest.wanted) > MOST_KINDS:
        return None
    if not len(quest.stock.positions):
        return CheapestAmounts(None)
    plot = _Plot(quest)
    shares = yield from plot.solve(plot.cost(None), budget)
    if not shares:
        return None if shares is None else CheapestAmounts(None)
    found = plot.amounts(shares)
    finer = yield from plot.solve(plot.cost(plot.used(found)), budget)
    shares = finer or shares
    found = plot.amounts(shares)
    if len(quest.wanted) > 1 and not quest.layers:
        positions = np.flatnonzero(found.any(axis=0))
        found = yield from polished(quest.tree, found, quest.stock.of(positions))
    return CheapestAmounts(found, shares)


_Cost = dict[tuple[int, str], int]
"""Objectives, the weightiest first, with what each can be at most: (level, "used" …)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """A solved sweep."""

    solved: Solved
    layer: Layer | None
    #: Domain and table of each item; of hosts the position.
    inside: Sequence[tuple[int, "_Table | None"]]

    def shares(self, units: Units) -> Iterator[DomainShare]:
        """Yield the way of giving ``units`` away at the least price."""
        for item, given in self.solved.back(units):
            place, table = self.inside[item]
            inner: tuple[DomainShare, ...] = ()
            if table is not None and self.layer is not None:
                inner = tuple(table.shares(self.layer.units(given)))
            yield DomainShare(place, given, inner)


class _Plot:
    """Levels and prices of one search."""

    def __init__(self, quest: Quest) -> None:
        self._quest, self._stock = quest, quest.stock
        self._host = quest.tree.host
        self._at = [quest.tree.at(n, self._stock.positions) for n in range(self._host + 1)]
        counts = [1 + int(np.count_nonzero(np.diff(domains))) for domains in self._at]
        self._levels = [n for n in quest.order if counts[n] > 1 or n == self._host]
        self._most = {n: min(counts[n], sum(quest.wanted)) for n in self._levels}

    def cost(self, used: dict[int, int] | None) -> _Cost:
        """Return the objectives of the first pass, of the second where ``used`` is known."""
        cost = {(level, "used"): self._most[level] for level in self._levels}
        if used is None:
            return cost
        if len(self._quest.wanted) > 1:
            cost[self._host, "kinds"] = len(self._quest.wanted) * used[self._host]
        ordered = sorted(self._levels)
        whole = [level for level in ordered if used[level] == 1]
        for level in [*reversed(whole), *(level for level in ordered if used[level] > 1)]:
            cost[level, "left"] = int(self._stock.room.sum())
        return cost

    def used(self, amounts: NDArray[np.int64]) -> dict[int, int]:
        """Return the domains used per level that has several."""
        held = amounts.sum(axis=0)[self._stock.positions] > 0
        return {level: len(np.unique(self._at[level][held])) for level in self._levels}

    def amounts(self, shares: Sequence[DomainShare]) -> NDArray[np.int64]:
        """Return int64[kinds, positions]."""
        found = np.zeros((len(self._quest.wanted), self._quest.tree.size), dtype=np.int64)
        for share in _hosts(shares):
            found[:, share.place] = share.units
        return found

    def solve(self, cost: _Cost, budget: SearchBudget) -> Steps[tuple[DomainShare, ...] | None]:
        """Return the cheapest shares, ``()``: nothing fits, ``None``: too much work."""
        paid = dict(zip(cost, prices(list(cost.values())), strict=True))
        layers = self._quest.layers
        wanted = layers[0].wanted if layers else self._quest.wanted
        whole = (0, len(self._stock.positions))
        table = yield from _Pricing(self, paid, budget).table(0, whole, 0)
        if table is None:
            return None
        return tuple(table.shares(wanted)) if table.solved.price(wanted) < NEVER else ()

    # --- what a pricing reads -------------------------------------------------------------

    @property
    def quest(self) -> Quest:
        """What is asked."""
        return self._quest

    def swept(self, top: int, end: int) -> list[int]:
        """Return the levels with several domains from ``top`` to before ``end``."""
        return sorted(level for level in self._levels if top <= level < end)

    def at(self, level: int, low: int, high: int) -> list[int]:
        """Return the domains of some of the hosts."""
        domains: list[int] = self._at[level][low:high].tolist()
        return domains

    def opening(self, paid: _Cost, level: int) -> Ints:
        """Return int64[domains]: the price of using each domain of a level."""
        domains = self._quest.tree.domains(level)
        if level not in self._levels:
            return np.zeros(domains, dtype=np.int64)
        sizes = np.bincount(self._at[level], self._stock.room, minlength=domains)
        opening: Ints = paid.get((level, "left"), 0) * sizes.astype(np.int64)
        return opening + paid[level, "used"] * self._is_new(level)

    def _is_new(self, level: int) -> Ints:
        """Return int64[domains]: 1 for the domains of a level in which no pod stands yet."""
        tree, anchors = self._quest.tree, self._quest.anchors
        if anchors is None:
            return np.ones(tree.domains(level), dtype=np.int64)
        is_new: Ints = (tree.sums(anchors, level, tree.host) == 0).astype(np.int64)
        return is_new

    def runs(self, level: int, low: int, high: int) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield (domain, range of hosts) for every domain of a level among some hosts."""
        domains = self._at[level][low:high]
        starts = np.flatnonzero(np.diff(domains, prepend=-1))
        ends = [*(starts[1:] + low).tolist(), high]
        for domain, start, end in zip(domains[starts].tolist(), starts.tolist(), ends, strict=True):
            yield domain, (low + start, end)


class _Pricing:
    """The sweeps of one pass, layer inside layer."""

    def __init__(self, plot: _Plot, paid: _Cost, budget: SearchBudget) -> None:
        self._plot, self._paid, self._budget = plot, paid, budget
        self._quest = plot.quest
        host = self._quest.tree.host
        self._opening = [plot.opening(paid, level) for level in range(host + 1)]
        self._kinds = paid.get((host, "kinds"), 0)
        self._shifts: dict[Units, Shifts] = {}
        self._shared: dict[tuple[int, int], tuple[HostOption, ...]] = {}

    def table(self, depth: int, hosts: tuple[int, int], top: int) -> Steps[_Table | None]:
        """Price what a range of hosts can take, in the units of a depth of layers."""
        layers = self._quest.layers
        if depth == len(layers):
            return (yield from self._of_hosts(hosts, top))
        layer = layers[depth]
        swept = self._plot.swept(top, layer.level)
        paths = [self._plot.at(level, *hosts) for level in swept]
        items, inside = [], []
        for domain, part in self._plot.runs(layer.level, *hosts):
            inner = yield from self.table(depth + 1, part, layer.level + 1)
            if inner is None:
                return None
            most = layer.most(domain, inner.solved.field.wanted)
            count = states(most)
            if count > _MOST_OPTIONS or not self._budget.spend(count * _OPTION_TICKS):
                return None
            options = tuple(self._slices(layer, inner, domain, most))
            if options:
                path = tuple(each[part[0] - hosts[0]] for each in paths)
                items.append(Item(path, options))
                inside.append((domain, inner))
            yield
        task = TreeTask(layer.wanted, tuple(self._opening[level] for level in swept), items)
        solved = yield from self._sweep(task)
        return None if solved is None else _Table(solved, layer, inside)

    def _sweep(self, task: TreeTask) -> Steps[Solved | None]:
        if not task.is_kept:
            return None
        shifts = self._shifts.get(task.wanted)
        if shifts is None:
            shifts = self._shifts[task.wanted] = Shifts(task.wanted)
        return (yield from sweep(task, self._budget, shifts))

    def _slices(
        self, layer: Layer, inner: _Table, domain: int, most: Units
    ) -> Iterator[HostOption]:
        """Yield what a domain can take: every number of slices of every make-up."""
        is_host = layer.level == self._quest.tree.host  # its price is in the pods' already
        price = 0 if is_host else int(self._opening[layer.level][domain])
        room = inner.solved.field.wanted
        for slices in product(*(range(count + 1) for count in most)):
            units = layer.units(slices)
            if any(slices) and all(n <= m for n, m in zip(units, room, strict=True)):
                inside = inner.solved.price(units)
                if inside < NEVER:
                    yield HostOption(slices, price + inside)

    def _of_hosts(self, hosts: tuple[int, int], top: int) -> Steps[_Table | None]:
        low, high = hosts
        swept = self._plot.swept(top, self._quest.tree.host)
        paths = [self._plot.at(level, low, high) for level in swept]
        stock = self._quest.stock
        options = stock.options[low:high]
        positions: list[int] = stock.positions[low:high].tolist()
        items = []
        for i, vectors in enumerate(options):
            path = tuple(each[i] for each in paths)
            items.append(Item(path, self._host_options(vectors, positions[i])))
            if i % _ITEMS_PER_STEP == _ITEMS_PER_STEP - 1:
                yield
        opening = tuple(self._opening[level] for level in swept)
        solved = yield from self._sweep(TreeTask(self._wanted(options), opening, items))
        return None if solved is None else _Table(solved, None, [(p, None) for p in positions])

    def _wanted(self, options: Sequence[tuple[Units, ...]]) -> Units:
        """Return the pods wanted per kind; inside slices no more than the hosts could take."""
        if not self._quest.layers:
            return self._quest.wanted
        rooms = [[max(column) for column in zip(*each, strict=True)] for each in options]
        totals = [sum(column) for column in zip(*rooms, strict=True)]
        return tuple(min(n, m) for n, m in zip(self._quest.wanted, totals, strict=True))

    def _host_options(self, vectors: tuple[Units, ...], position: int) -> tuple[HostOption, ...]:
        price = int(self._opening[self._quest.tree.host][position])
        key = (id(vectors), price)  # equal hosts share the very tuple, which the stock keeps
        found = self._shared.get(key)
        if found is None:
            chosen = with_fewer_kinds(vectors) if self._kinds else vectors
            found = tuple(HostOption(u, price + self._kinds * sum(map(bool, u))) for u in chosen)
            self._shared[key] = found
        return found


def _hosts(shares: Sequence[DomainShare]) -> Iterator[DomainShare]:
    for share in shares:
        if share.inside:
            yield from _hosts(share.inside)
        else:
            yield share
