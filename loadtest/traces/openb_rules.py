"""The rules that the trace's results were published with, restated: first-fit, BestFit, FGD.

All act on a ``NodeStock`` whose row order breaks ties. BestFit and FGD score in whole numbers
0..100, as kube-scheduler's plugins do; with exact scores FGD is another, worse rule.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from muster.placement.scoring.chooser import NodeChooser
from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import Ints, Mask, NodeStock

Floats = NDArray[np.float64]

_SPEC_CPU: Final = 128_000
_SPEC_GPU: Final = 8_000
"""BestFit's scales, milli: MaxSpecCpu and MaxSpecGpu of the authors' simulator."""
_POPULAR: Final = 0.95
"""FGD judges by the most popular shapes that make up this share of the tasks."""


class Rule(Protocol):
    """Places shapes as they come."""

    def place(self, shape: Shape) -> bool:
        """Take a node's room for a shape; False: it fits nowhere."""


class Muster:
    """The product's own code, nothing added."""

    def __init__(self, stock: NodeStock) -> None:
        self.chooser = NodeChooser(stock)

    def place(self, shape: Shape) -> bool:
        """Let the shape arrive, then place it."""
        self.chooser.arrived(shape)
        return self.chooser.place(shape) is not None


class _Whole(ABC):
    """Rules that look at nodes only; the tightest device that fits is taken."""

    def __init__(self, stock: NodeStock) -> None:
        self.stock = stock

    def place(self, shape: Shape) -> bool:
        """Take the best node's room; False: the shape fits nowhere."""
        fits = fitting(self.stock, shape)
        if not fits.any():
            return False
        node = self.best(shape, fits)
        holes = self.stock.holes[node]
        device = int(np.where(holes >= shape.milli, holes, DEVICE + 1).argmin())
        self.stock.take(shape, node, self.stock.devices_for(shape, node, device))
        return True

    @abstractmethod
    def best(self, shape: Shape, fits: Mask) -> int:
        """Return the row to take among those that fit."""


class FirstFit(_Whole):
    """The first node of the order."""

    def best(self, shape: Shape, fits: Mask) -> int:  # noqa: ARG002  looks at nothing else
        """Return the first row that fits."""
        return int(fits.argmax())


class BestFit(_Whole):
    """Least CPU and GPU left, weighed alike."""

    def best(self, shape: Shape, fits: Mask) -> int:
        """Return the row with the highest normalised score."""
        stock = self.stock
        cpu = (stock.cpu - shape.cpu) / _SPEC_CPU
        gpu = (stock.holes.sum(axis=1) - shape.gpu) / _SPEC_GPU
        score = ((1 - (cpu * 0.5 + gpu * 0.5)) * 100).astype(np.int64)
        low, high = score[fits].min(), score[fits].max()
        if high > low:
            score = (score - low) * 100 // (high - low)
        return int(np.where(fits, score, -1).argmax())


def fitting(stock: NodeStock, shape: Shape) -> Mask:
    """Return bool[n]: rows that can take a shape now."""
    fits: Mask = (stock.cpu >= shape.cpu) & (stock.memory >= shape.memory)
    if shape.fractional:
        fits &= stock.holes.max(axis=1) >= shape.milli
    elif shape.devices:
        fits &= stock.whole >= shape.devices
    allowed = stock.allowed(shape)
    return fits if allowed is None else fits & allowed


class Fgd:
    """Fragmentation gradient descent: the node, and device, with the least growth of fragments.

    A node's fragments for a popular shape: all its idle GPU when the shape does not fit,
    else what is idle on devices too small for it; the mean over the shapes counts.
    Scores are stored per shape and computed again for nodes that changed.
    """

    def __init__(self, stock: NodeStock, tasks: Sequence[Shape], *, exact: bool = False) -> None:
        self.stock = stock
        self._exact = exact
        self._typical = _Typical(stock, tasks)
        rows = np.arange(stock.nodes)
        self._now = self._typical.fragments(rows, stock.cpu, stock.holes)
        self._scores: dict[Shape, tuple[Floats, Ints]] = {}
        self._known: dict[Shape, int] = {}

    def place(self, shape: Shape) -> bool:
        """Take the room with the least growth of fragments; False: the shape fits nowhere."""
        score, device = self._up_to_date(shape)
        node = int(score.argmax())
        if score[node] < 0:
            return False
        stock = self.stock
        stock.take(shape, node, stock.devices_for(shape, node, int(device[node])))
        row = np.array([node])
        self._now[node] = self._typical.fragments(row, stock.cpu[row], stock.holes[row])[0]
        return True

    def _up_to_date(self, shape: Shape) -> tuple[Floats, Ints]:
        changed, stock = self.stock.changed, self.stock
        if shape in self._scores:
            rows = np.unique(np.array(changed[self._known[shape] :], dtype=np.int64))
        else:
            empty = np.full(stock.nodes, -1.0), np.zeros(stock.nodes, dtype=np.int64)
            self._scores[shape] = empty
            rows = np.arange(stock.nodes)
        self._known[shape] = len(changed)
        score, device = self._scores[shape]
        score[rows] = -1.0
        rows = rows[fitting(stock, shape)[rows]]
        if len(rows):
            score[rows], device[rows] = self._score(shape, rows)
        return score, device

    def _score(self, shape: Shape, rows: Ints) -> tuple[Floats, Ints]:
        stock = self.stock
        cpu, holes = stock.cpu[rows] - shape.cpu, stock.holes[rows]
        if not shape.fractional:
            free = holes == DEVICE
            taken = free & (np.cumsum(free, axis=1) <= shape.devices)
            after = self._typical.fragments(rows, cpu, np.where(taken, 0, holes))
            return self._grade(self._now[rows] - after), np.zeros(len(rows), dtype=np.int64)
        width = holes.shape[1]
        tried = np.repeat(holes[:, None, :], width, axis=1)
        tried[:, np.arange(width), np.arange(width)] -= shape.milli
        after = self._typical.fragments(
            np.repeat(rows, width), np.repeat(cpu, width), tried.reshape(-1, width)
        ).reshape(-1, width)
        grade = self._grade(self._now[rows][:, None] - after)
        grade[holes < shape.milli] = -1.0
        device = grade.argmax(axis=1)
        return grade[np.arange(len(rows)), device], device

    def _grade(self, gain: Floats) -> Floats:
        grade: Floats = 100.0 / (1.0 + np.exp(-gain / 1000.0))
        return grade if self._exact else np.floor(grade)


class _Typical:
    """The popular shapes, as arrays over them."""

    def __init__(self, stock: NodeStock, tasks: Sequence[Shape]) -> None:
        popular = _popular(tasks)
        self.share = np.array([share for _, share in popular])
        gpu = [(shape, share) for shape, share in popular if shape.devices]
        self._share = np.array([share for _, share in gpu])
        self._cpu = np.array([shape.cpu for shape, _ in gpu])
        self._devices = np.array([shape.devices for shape, _ in gpu])
        self._milli, self._which = np.unique([shape.milli for shape, _ in gpu], return_inverse=True)
        everywhere = np.ones(stock.nodes, dtype=np.bool_)
        allowed = [stock.allowed(shape) for shape, _ in gpu]
        self._allowed = np.stack([everywhere if a is None else a for a in allowed], axis=1)

    def fragments(self, rows: Ints, cpu: Ints, holes: Ints) -> Floats:
        """Return float64[t], the expected milli-GPU idle on node ``rows`` in these states."""
        idle = holes.sum(axis=1)
        enough = np.zeros((len(rows), len(self._milli)), dtype=np.int64)
        small = np.zeros_like(enough)
        for column in holes.T:
            fits = column[:, None] >= self._milli
            enough += fits
            small += np.where(fits, 0, column[:, None])
        served = self._allowed[rows] & (cpu[:, None] >= self._cpu)
        served &= enough[:, self._which] >= self._devices
        usable = np.where(served, idle[:, None] - small[:, self._which], 0)
        found: Floats = idle * self.share.sum() - (usable * self._share).sum(axis=1)
        return found


def _popular(tasks: Sequence[Shape]) -> list[tuple[Shape, float]]:
    """Return the most popular shapes and their shares, which add up to 1."""
    counts = Counter(tasks).most_common()
    found: list[tuple[Shape, int]] = []
    seen = 0
    for shape, count in counts:
        if seen >= _POPULAR * len(tasks):
            break
        found.append((shape, count))
        seen += count
    return [(shape, count / seen) for shape, count in found]
