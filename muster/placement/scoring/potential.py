"""The worth of a node's free room, and what placing a shape takes from it.

In devices, for a node with holes h_1.. and free CPU c::

    worth(node) = sum worth[h_i]  +  slots[number of free devices]  -  stranded(x, var)

    x   = sum cpu[h_i] - c      CPU missing to use all its holes up, negative: to spare
    var = sum cpu_var[h_i]
    stranded = stranding * (x + sqrt(x*x + var)) / 2

``stranded`` is Scarf's bound: the largest expected shortage that any distribution of this
mean and variance can have (Scarf, "A min-max solution of an inventory problem", 1958). It
costs a square root where a normal distribution costs an error function, it assumes no
distribution, and its slow tail orders nodes that are all far from short, so that no tie is
left to chance and CPU-rich nodes are kept for the shapes that need it.

A shape goes where ``worth`` falls least. The whole table (``Worths``) and the rows and
scalars below do the same operations in the same order, so they agree to the last bit; a
choice therefore does not depend on what was cached.
"""

import math

import numpy as np

from muster.placement.scoring.holes import Floats
from muster.placement.scoring.prices import RoomPrices
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import Ints, Mask, NodeStock

_LEAST_VARIANCE = 1.0
"""Keeps the root defined under rounding; one (milli-CPU) squared."""


class Worths:
    """Per node row: ``short`` (x above), ``var`` and ``stranded``, float64[n] each."""

    __slots__ = ("_cpu", "_var", "prices", "short", "stranded", "var")

    def __init__(self, stock: NodeStock, prices: RoomPrices) -> None:
        """Evaluate every node of a stock."""
        self.prices = prices
        self._cpu: list[float] = prices.cpu.tolist()
        self._var: list[float] = prices.cpu_var.tolist()
        need, var = np.zeros(stock.nodes), np.full(stock.nodes, _LEAST_VARIANCE)
        for column in stock.holes.T:  # one by one: the order in which ``refresh`` adds
            need += prices.cpu[column]
            var += prices.cpu_var[column]
        self.short = need - stock.cpu
        self.var = var
        self.stranded = stranded(prices, self.short, var)

    def refresh(self, stock: NodeStock, node: int) -> None:
        """Evaluate one node anew."""
        need, var = 0.0, _LEAST_VARIANCE
        for hole in stock.holes[node].tolist():
            need += self._cpu[hole]
            var += self._var[hole]
        short = need - int(stock.cpu[node])
        self.short[node] = short
        self.var[node] = var
        self.stranded[node] = self.prices.stranding * (short + math.sqrt(short * short + var)) * 0.5


def stranded(prices: RoomPrices, short: Floats, var: Floats) -> Floats:
    """Return Scarf's bound in devices, elementwise."""
    found: Floats = prices.stranding * (short + np.sqrt(short * short + var)) * 0.5
    return found


def total(stock: NodeStock, prices: RoomPrices) -> float:
    """Return the worth of a whole stock, in devices, from nothing but stock and prices."""
    worths = Worths(stock, prices)
    rooms = prices.worth[stock.holes].sum(axis=1) + prices.slots[stock.whole]
    return float((rooms - worths.stranded).sum())


class Gain:
    """What placing one shape does to nodes: tables over the hole it would go into.

    ``of_rows`` returns the change of worth (0 or less, -inf: does not fit) and the device.
    """

    __slots__ = ("_cpu", "_lists", "_var", "_worth", "prices", "shape")

    def __init__(self, shape: Shape, prices: RoomPrices) -> None:
        """Tabulate a shape under some prices."""
        self.shape = shape
        self.prices = prices
        self._lists: tuple[list[float], list[float], list[float]] | None = None
        if shape.fractional:
            ask = shape.milli
            self._worth = np.full(DEVICE + 1, -np.inf)
            self._worth[ask:] = prices.worth[: DEVICE + 1 - ask] - prices.worth[ask:]
            self._cpu = np.zeros(DEVICE + 1)
            self._cpu[ask:] = prices.cpu[: DEVICE + 1 - ask] - prices.cpu[ask:]
            self._var = np.zeros(DEVICE + 1)
            self._var[ask:] = prices.cpu_var[: DEVICE + 1 - ask] - prices.cpu_var[ask:]

    def of_rows(self, stock: NodeStock, worths: Worths, rows: Ints) -> tuple[Floats, Ints]:
        """Return (float64[t] change of worth, int64[t] device or -1) for node rows."""
        if self.shape.fractional:
            gain, device = self._part(stock, worths, rows)
        else:
            gain, device = self._whole(stock, worths, rows), np.full(len(rows), -1)
        gain[stock.cpu.take(rows) < self.shape.cpu] = -np.inf
        gain[stock.memory.take(rows) < self.shape.memory] = -np.inf
        return gain, device

    def everywhere(
        self, stock: NodeStock, worths: Worths, allowed: Mask | None
    ) -> tuple[Ints, Floats, Ints]:
        """Return (rows that the shape fits, of ``allowed`` ones; their change; the device)."""
        shape = self.shape
        room = (stock.cpu >= shape.cpu) & (stock.memory >= shape.memory)
        if allowed is not None:
            room &= allowed
        if shape.fractional:
            return self._parts(stock, worths, room)
        rows = np.flatnonzero(room & (stock.whole >= shape.devices))
        return rows, self._whole(stock, worths, rows), np.full(len(rows), -1)

    def _parts(self, stock: NodeStock, worths: Worths, room: Mask) -> tuple[Ints, Floats, Ints]:
        """As ``_part``, for holes that are large enough, and one of free devices side by side."""
        large = np.flatnonzero(stock.holes >= self.shape.milli)
        rows, hole = stock.row_of.take(large), stock.holes.take(large)
        free = hole == DEVICE
        counts = room.take(rows)
        counts[1:] &= ~(free[1:] & free[:-1] & (rows[1:] == rows[:-1]))
        kept = np.flatnonzero(counts)
        rows, hole = rows.take(kept), hole.take(kept)
        gain = self._of_holes(stock, worths, rows, hole)
        device = large.take(kept) % stock.holes.shape[1]
        if not len(rows):
            return rows, gain, device
        first = np.flatnonzero(_changes(rows))
        best = np.maximum.reduceat(gain, first)
        highest = np.flatnonzero(gain == best.repeat(np.diff(first, append=len(rows))))
        highest = highest[_changes(rows.take(highest))]
        nodes = rows.take(first)
        return nodes, best + worths.stranded.take(nodes), device.take(highest)

    def _of_holes(self, stock: NodeStock, worths: Worths, rows: Ints, hole: Ints) -> Floats:
        """Return float64[t], the change of worth but for ``stranded``, of holes of rows."""
        short = self._cpu.take(hole) + (worths.short.take(rows) + self.shape.cpu)
        root = short + np.sqrt(short * short + (self._var.take(hole) + worths.var.take(rows)))
        gain: Floats = self._worth.take(hole) - self.prices.stranding * root * 0.5
        opened = np.flatnonzero(hole == DEVICE)
        free, slots = stock.whole.take(rows.take(opened)), self.prices.slots
        gain[opened] += slots[free - 1] - slots[free]
        return gain

    def _part(self, stock: NodeStock, worths: Worths, rows: Ints) -> tuple[Floats, Ints]:
        half = self.prices.stranding
        hole = stock.holes.take(rows, axis=0)
        short = self._cpu.take(hole)
        short += (worths.short.take(rows) + self.shape.cpu)[:, None]
        root = self._var.take(hole)
        root += worths.var.take(rows)[:, None]
        root += short * short
        np.sqrt(root, out=root)
        root += short
        gain = self._worth.take(hole)
        gain -= half * root * 0.5
        free, slots = stock.whole.take(rows), self.prices.slots
        opened = slots[free - 1] - slots[free]
        gain += (hole == DEVICE) * opened[:, None]
        device = gain.argmax(axis=1)
        best: Floats = gain[np.arange(len(rows)), device] + worths.stranded.take(rows)
        return best, device

    def _whole(self, stock: NodeStock, worths: Worths, rows: Ints) -> Floats:
        count, prices = self.shape.devices, self.prices
        free = stock.whole.take(rows)
        short = (worths.short.take(rows) + self.shape.cpu) - count * prices.cpu[DEVICE]
        var = np.maximum(worths.var.take(rows) - count * prices.cpu_var[DEVICE], 0.0)
        gain = -count * prices.worth[DEVICE] - (
            prices.stranding * (short + np.sqrt(short * short + var)) * 0.5
        )
        gain += prices.slots[free - count] - prices.slots[free]
        gain += worths.stranded.take(rows)
        found: Floats = np.where(free < count, -np.inf, gain)
        return found

    def of_node(self, stock: NodeStock, worths: Worths, node: int) -> tuple[float, int]:
        """As ``of_rows`` for one node, without arrays: several times faster for one."""
        shape = self.shape
        if stock.cpu[node] < shape.cpu or stock.memory[node] < shape.memory:
            return -math.inf, -1 if not shape.fractional else 0
        if shape.fractional:
            return self._part_of_node(stock, worths, node)
        return self._whole_of_node(stock, worths, node), -1

    def _part_of_node(self, stock: NodeStock, worths: Worths, node: int) -> tuple[float, int]:
        if self._lists is None:
            self._lists = (self._worth.tolist(), self._cpu.tolist(), self._var.tolist())
        worth, cpu, var_of = self._lists
        ask, half, slots = self.shape.milli, self.prices.stranding, self.prices.slots
        base = float(worths.short[node]) + self.shape.cpu
        var0 = float(worths.var[node])
        free = int(stock.whole[node])
        opened = float(slots[free - 1] - slots[free])
        best, device, seen = -math.inf, 0, -1
        for number, hole in enumerate(stock.holes[node].tolist()):
            if hole < ask or hole == seen:
                continue
            seen = hole
            short = base + cpu[hole]
            root = math.sqrt(short * short + (var0 + var_of[hole]))
            gain = worth[hole] - half * (short + root) * 0.5
            if hole == DEVICE:
                gain += opened
            if gain > best:
                best, device = gain, number
        return best + float(worths.stranded[node]), device

    def _whole_of_node(self, stock: NodeStock, worths: Worths, node: int) -> float:
        count, prices = self.shape.devices, self.prices
        free = int(stock.whole[node])
        if free < count:
            return -math.inf
        short = (float(worths.short[node]) + self.shape.cpu) - count * float(prices.cpu[DEVICE])
        var = max(float(worths.var[node]) - count * float(prices.cpu_var[DEVICE]), 0.0)
        gain = -count * float(prices.worth[DEVICE]) - (
            prices.stranding * (short + math.sqrt(short * short + var)) * 0.5
        )
        gain += float(prices.slots[free - count] - prices.slots[free])
        return gain + float(worths.stranded[node])


def _changes(rows: Ints) -> Mask:
    """Return bool[t]: where another number begins than the one before, the first among them."""
    found = np.ones(len(rows), dtype=np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=found[1:])
    return found
