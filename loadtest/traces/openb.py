"""The openb trace and the protocol of its published results.

The trace is Alibaba's GPU cluster of 2023 (1,213 nodes, 6,212 GPUs), the protocol that of
"Beware of Fragmentation" (Weng et al., USENIX ATC 2023): shuffle the tasks, append uniform
re-draws until the demand is 130 % of the GPUs, offer them one by one; nothing ends, nothing
is retried, what fits nowhere is dropped. CPU and memory are hard limits too. Equal scores
go to the first node of an order that is random per run.
"""

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from muster.placement.scoring.shape import DEVICE, Shape
from muster.placement.scoring.stock import NodeStock

ARRIVAL: Final = 1.3
"""Demand offered, as a multiple of the GPUs there are."""
NODES_FILE: Final = "openb_node_list_gpu_node.csv"


class OpenbError(Exception):
    """A file of the trace cannot be read."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of the trace: CPU in milli, memory in MiB."""

    cpu: int
    memory: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class Trace:
    """The tasks and the machines of the published files."""

    #: One shape per task of the file.
    tasks: tuple[Shape, ...]
    #: In the file's order.
    machines: tuple[Machine, ...]

    @property
    def capacity(self) -> int:
        """Milli-GPU of all machines."""
        return DEVICE * sum(machine.gpus for machine in self.machines)


def read(tasks: Path, machines: Path | None = None) -> Trace:
    """Read a trace; ``machines`` is the node list beside the tasks unless named.

    Raises ``OpenbError`` naming file, row and column of what cannot be read.
    """
    nodes = machines or tasks.parent / NODES_FILE
    known: dict[Shape, Shape] = {}  # one object per shape, as one class per kind of pod
    shapes = (_task(row) for row in _rows(tasks))
    found = Trace(
        tuple(known.setdefault(shape, shape) for shape in shapes),
        tuple(_machine(row) for row in _rows(nodes)),
    )
    if not found.tasks or not found.capacity:
        raise OpenbError(f"{tasks}, {nodes}: no tasks or no GPUs in them")
    return found


def read_machines(path: Path) -> tuple[Machine, ...]:
    """Read a node list, in the file's order; raises ``OpenbError`` as ``read``."""
    found = tuple(_machine(row) for row in _rows(path))
    if not found:
        raise OpenbError(f"{path}: no machines in it")
    return found


def arrivals(trace: Trace, seed: int) -> list[Shape]:
    """Return the tasks of one run in the order in which they are offered."""
    draw = random.Random(seed)
    order = list(trace.tasks)
    draw.shuffle(order)
    demand = sum(shape.gpu for shape in order)
    while demand < ARRIVAL * trace.capacity:
        order.append(draw.choice(trace.tasks))
        demand += order[-1].gpu
    return order


def empty_stock(trace: Trace, seed: int) -> NodeStock:
    """Return the machines of one run, all free, in that run's order."""
    machines = list(trace.machines)
    random.Random(seed + 1_000_000).shuffle(machines)
    width = max(machine.gpus for machine in machines)
    holes = [[DEVICE] * m.gpus + [0] * (width - m.gpus) for m in machines]
    return NodeStock(
        cpu=np.array([m.cpu for m in machines]),
        memory=np.array([m.memory for m in machines]),
        holes=np.array(holes),
        models=[m.model for m in machines],
        capacity=trace.capacity,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One row of a file and where it stands, for errors."""

    path: Path
    line: int
    cells: Mapping[str, str | None]

    def number(self, column: str) -> int:
        text = self.cells.get(column)
        try:
            return int(text or "")
        except ValueError:
            raise OpenbError(
                f"{self.path}, line {self.line}, column {column}: {text!r} is no whole number"
            ) from None


def _rows(path: Path) -> Iterator[_Row]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for line, cells in enumerate(csv.DictReader(file), start=2):
                yield _Row(path, line, cells)
    except OSError as error:
        raise OpenbError(f"{path}: {error.strerror}") from error


def _task(row: _Row) -> Shape:
    devices = row.number("num_gpu")
    spec = row.cells.get("gpu_spec") or ""  # some variants lack the column
    try:
        return Shape(
            cpu=row.number("cpu_milli"),
            memory=row.number("memory_mib"),
            devices=devices,
            milli=row.number("gpu_milli") if devices else 0,
            models=frozenset(filter(None, spec.split("|"))),
        )
    except ValueError as error:
        raise OpenbError(f"{row.path}, line {row.line}: {error}") from error


def _machine(row: _Row) -> Machine:
    return Machine(
        cpu=row.number("cpu_milli"),
        memory=row.number("memory_mib"),
        gpus=row.number("gpu"),
        model=row.cells.get("model") or "",
    )


def allocation(trace: Trace, placed: Sequence[Shape]) -> float:
    """Return the milli-GPU granted, in percent of all there are."""
    return 100.0 * sum(shape.gpu for shape in placed) / trace.capacity
