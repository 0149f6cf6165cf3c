"""What is free on every node, as scoring sees it: CPU, memory and the holes of devices.

A device's *hole* is what is left of it, in milli-GPU: 1000 for a free device, 0 for one that
is used up, unhealthy or not there. Rows are nodes in a fixed order that also breaks ties:
of equally good nodes the first row wins.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from muster.placement.scoring.shape import DEVICE, Shape

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


class NodeStock:
    """Mutable columns over n nodes with up to d devices each.

    ``nodes``: n. ``cpu`` (milli) and ``memory`` (any one unit): int64[n]; ``holes``:
    int64[n, d], milli; ``whole``, ``installed``: int64[n], devices free and in all;
    ``capacity``: milli-GPU of all devices together; ``all_cpu``, ``all_memory``: of a node,
    free or not; ``row_of``: int64[n * d], the row of each entry of ``holes``.
    ``changed`` lists the rows that ``take`` and ``give`` touched, in order.
    """

    __slots__ = (
        "_model_of",
        "all_cpu",
        "all_memory",
        "capacity",
        "changed",
        "cpu",
        "holes",
        "installed",
        "memory",
        "models",
        "nodes",
        "row_of",
        "whole",
    )

    def __init__(
        self,
        cpu: Ints,
        memory: Ints,
        holes: Ints,
        models: Sequence[str],
        capacity: int,
        installed: Ints | None = None,
        allocatable: tuple[Ints, Ints] | None = None,
    ) -> None:
        """Take over columns. ``models``: the GPU model of each row, "" where unknown.

        ``installed``: int64[n], devices of each node; by default those with a hole now.
        ``allocatable``: CPU and memory of each node, int64[n] each; by default what is free.
        """
        self.nodes = len(cpu)
        self.cpu = cpu.astype(np.int64)
        self.memory = memory.astype(np.int64)
        self.all_cpu, self.all_memory = allocatable or (self.cpu.copy(), self.memory.copy())
        self.holes = holes.astype(np.int64)
        self.whole = (self.holes == DEVICE).sum(axis=1)
        self.installed = (self.holes > 0).sum(axis=1) if installed is None else installed
        self.capacity = capacity
        self.models = tuple(models)
        self.row_of = np.arange(len(cpu)).repeat(self.holes.shape[1])
        self._model_of = np.array(self.models)
        self.changed: list[int] = []

    def allowed(self, shape: Shape) -> Mask | None:
        """Return bool[n]: rows of a model that will do; ``None``: all of them."""
        if not shape.models:
            return None
        return np.isin(self._model_of, sorted(shape.models))

    def fits(self, shape: Shape, node: int) -> bool:
        """Return whether a shape fits a row now, the model aside."""
        if self.cpu[node] < shape.cpu or self.memory[node] < shape.memory:
            return False
        if shape.fractional:
            return bool(self.holes[node].max() >= shape.milli)
        return bool(self.whole[node] >= shape.devices)

    def devices_for(self, shape: Shape, node: int, device: int = -1) -> tuple[int, ...]:
        """Return which devices a shape takes: ``device``, or the first free ones."""
        if shape.fractional:
            return (device,)
        if not shape.devices:
            return ()
        row = self.holes[node].tolist()
        if shape.devices == 1:
            return (row.index(DEVICE),)
        return tuple(i for i, hole in enumerate(row) if hole == DEVICE)[: shape.devices]

    def take(self, shape: Shape, node: int, devices: tuple[int, ...]) -> None:
        """Put a shape onto devices of a row."""
        self._move(shape, node, devices, -1)

    def give(self, shape: Shape, node: int, devices: tuple[int, ...]) -> None:
        """Take a shape away again."""
        self._move(shape, node, devices, 1)

    def _move(self, shape: Shape, node: int, devices: tuple[int, ...], sign: int) -> None:
        left, opened = self.holes[node].tolist(), 0
        for device in devices:
            before = left[device]
            after = before + sign * shape.milli
            if not 0 <= after <= DEVICE:
                raise ValueError(
                    f"node row {node}, device {device}: {after} milli-GPU would be free; "
                    f"allowed: 0..{DEVICE}"
                )
            left[device] = after
            opened += (after == DEVICE) - (before == DEVICE)
        self.cpu[node] += sign * shape.cpu
        self.memory[node] += sign * shape.memory
        if devices:
            self.holes[node] = left
            self.whole[node] += opened
        self.changed.append(node)
