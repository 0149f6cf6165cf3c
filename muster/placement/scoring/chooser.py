"""The best node for a shape, with scores kept per shape.

A score changes where the node changed, or everywhere when the prices were learned anew::

    stock.changed   3 7 7 2 9 ...            rows in the order they were touched
    scores(shape A)       ^ known up to here: at A's next turn rows 2, 9 .. are evaluated
    scores(shape B)   ^

Prices are learned anew once the arrivals since the last time asked for a thirtieth of the
fleet, sooner while little is known: after as much again as all before.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from muster.placement.scoring.holes import Floats
from muster.placement.scoring.mix import RequestMix
from muster.placement.scoring.potential import Gain, Worths
from muster.placement.scoring.prices import RoomPrices, learn, untrained
from muster.placement.scoring.shape import Shape
from muster.placement.scoring.stock import Ints, Mask, NodeStock

RELEARN_SHARE: Final = 30
"""Prices are learned anew when arrivals ask for one part in this many of the fleet."""
_FEW: Final = 10
"""Up to this many changed nodes are evaluated one by one, which is faster than in arrays."""
_MANY: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """Where a shape goes."""

    #: Row.
    node: int
    #: Devices that it takes there.
    devices: tuple[int, ...]
    #: Change of worth, in devices.
    change: float


@dataclass(slots=True)
class _Scores:
    """Scores of one shape."""

    change: Floats
    device: Ints
    allowed: Mask | None
    gain: Gain
    #: How many entries of ``stock.changed`` are in; -1: nothing is.
    known: int = -1


@dataclass(slots=True)
class NodeChooser:
    """Chooses nodes of one stock; learns from ``arrived``, sees what happens to the stock."""

    stock: NodeStock
    mix: RequestMix = field(default_factory=RequestMix)
    prices: RoomPrices = field(init=False)
    _worths: Worths = field(init=False)
    _known: int = field(init=False, default=0)
    _learned_at: int = field(init=False, default=0)
    _scores: dict[Shape, _Scores] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.prices = untrained(self.stock.holes.shape[1])
        self._adopt(learn(self.mix, self.stock, self.prices))

    def arrived(self, shape: Shape, count: int = 1) -> None:
        """Count an arrival; learn the prices anew when enough has arrived since."""
        self._learn_if_due()
        self.mix.arrived(shape, count)

    def choose(self, shape: Shape) -> NodeChoice | None:
        """Return the node whose worth falls least, ``None`` when the shape fits nowhere."""
        scores = self._up_to_date(shape)
        node = int(scores.change.argmax())
        change = float(scores.change[node])
        if change == -np.inf:
            return None
        return NodeChoice(
            node, self.stock.devices_for(shape, node, int(scores.device[node])), change
        )

    def place(self, shape: Shape) -> NodeChoice | None:
        """Choose a node and take its room."""
        choice = self.choose(shape)
        if choice is not None:
            self.stock.take(shape, choice.node, choice.devices)
        return choice

    def place_run(self, shape: Shape, count: int) -> list[NodeChoice]:
        """Let ``count`` pods of one shape arrive and place them, as one by one but faster.

        Returns the choices of those that fit: the first ones, since nothing comes free.
        """
        placed: list[NodeChoice] = []
        while count:
            self._learn_if_due()
            step = min(count, self._until_due(shape))
            self.mix.arrived(shape, step)
            count -= step
            placed += self._run(shape, step)
        return placed

    def _run(self, shape: Shape, count: int) -> list[NodeChoice]:
        stock, worths, scores = self.stock, self._worths, self._up_to_date(shape)
        gain = scores.gain
        placed: list[NodeChoice] = []
        for _ in range(count):
            node = int(scores.change.argmax())
            change = float(scores.change[node])
            if change == -np.inf:
                break
            devices = stock.devices_for(shape, node, int(scores.device[node]))
            stock.take(shape, node, devices)
            worths.refresh(stock, node)
            scores.change[node], scores.device[node] = gain.of_node(stock, worths, node)
            placed.append(NodeChoice(node, devices, change))
        self._known = scores.known = len(stock.changed)
        return placed

    def changes(self, shape: Shape) -> Floats:
        """Return float64[n]: change of worth if the shape went there, -inf: it cannot."""
        return self._up_to_date(shape).change

    def _learn_if_due(self) -> None:
        if self.mix.milli > self._learned_at and self._lack() <= 0:
            self._adopt(learn(self.mix, self.stock, self.prices))

    def _lack(self) -> int:
        """Return how much milli-GPU must still arrive before prices are learned anew."""
        enough = min(self._learned_at, self.stock.capacity // RELEARN_SHARE)
        return self._learned_at + enough - self.mix.milli

    def _until_due(self, shape: Shape) -> int:
        """Return after how many arrivals of a shape prices are due."""
        return max(1, -(-self._lack() // shape.gpu)) if shape.gpu else _MANY

    def _adopt(self, prices: RoomPrices) -> None:
        self.prices = prices
        self._learned_at = self.mix.milli
        self._worths = Worths(self.stock, prices)
        self.stock.changed.clear()
        self._known = 0
        for scores in self._scores.values():
            scores.known = -1

    def _up_to_date(self, shape: Shape) -> _Scores:
        stock = self.stock
        changed = stock.changed
        if len(changed) > self._known:
            for node in changed[self._known :]:
                self._worths.refresh(stock, node)
            self._known = len(changed)
        scores = self._scores.get(shape)
        if scores is None:
            scores = self._scores[shape] = self._new(shape)
        behind = len(changed) - scores.known
        if scores.known < 0 or behind > stock.nodes:
            self._all(shape, scores)
        elif behind:
            self._some(scores, set(changed[scores.known :]))
        scores.known = len(changed)
        return scores

    def _new(self, shape: Shape) -> _Scores:
        nodes = self.stock.nodes
        device = np.full(nodes, -1, dtype=np.int64)
        gain = Gain(shape, self.prices)
        return _Scores(np.full(nodes, -np.inf), device, self.stock.allowed(shape), gain)

    def _all(self, shape: Shape, scores: _Scores) -> None:
        stock = self.stock
        scores.gain = Gain(shape, self.prices)
        rows, change, device = scores.gain.everywhere(stock, self._worths, scores.allowed)
        scores.change.fill(-np.inf)
        scores.change[rows] = change
        scores.device[rows] = device

    def _some(self, scores: _Scores, rows: set[int]) -> None:
        if len(rows) <= _FEW:
            for node in rows:
                if scores.allowed is None or scores.allowed[node]:
                    found = scores.gain.of_node(self.stock, self._worths, node)
                    scores.change[node], scores.device[node] = found
            return
        touched = np.fromiter(rows, dtype=np.int64, count=len(rows))
        if scores.allowed is not None:
            touched = touched[scores.allowed[touched]]
        change, device = scores.gain.of_rows(self.stock, self._worths, touched)
        scores.change[touched] = change
        scores.device[touched] = device
