"""What was measured, in columns: one row for each pod, one for each sample. No object per pod.

Times are seconds since the clock of the run was started, NaN while a thing has not happened.
"""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]
Ids = NDArray[np.int32]

_FIRST_ROWS: Final = 1024
TIMES: Final = ("created", "bound", "running", "done", "gone")


class PodColumns:
    """Rows of pods, in the order in which they were expected.

    ``times[name][row]``: float64 seconds, for each name of ``TIMES``. ``gang[row]``: int32 index
    of the gang's plan. ``node[row]``: int32 id of the node, -1 while there is none.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._times = {name: np.full(_FIRST_ROWS, math.nan) for name in TIMES}
        self._gang = np.full(_FIRST_ROWS, -1, np.int32)
        self._node = np.full(_FIRST_ROWS, -1, np.int32)

    def add(self, gang: int, count: int) -> int:
        """Append ``count`` rows of one gang; returns the first."""
        first, self.rows = self.rows, self.rows + count
        while self.rows > len(self._gang):
            self._grow()
        self._gang[first : self.rows] = gang
        return first

    def _grow(self) -> None:
        more = len(self._gang)
        self._times = {n: np.append(c, np.full(more, math.nan)) for n, c in self._times.items()}
        self._gang = np.append(self._gang, np.full(more, -1, np.int32))
        self._node = np.append(self._node, np.full(more, -1, np.int32))

    def note(self, name: str, row: int, at: float) -> bool:
        """Note the first time of a thing; returns whether it was the first."""
        column = self._times[name]
        if not math.isnan(column[row]):
            return False
        column[row] = at
        return True

    def has(self, name: str, row: int) -> bool:
        """Return whether a thing has happened to a pod."""
        return not math.isnan(self._times[name][row])

    def place(self, row: int, node: int) -> None:
        """Note the node of a pod."""
        self._node[row] = node

    def time(self, name: str) -> Times:
        """Return a column of times, float64[rows]."""
        return self._times[name][: self.rows]

    @property
    def gang(self) -> Ids:
        """Return the gang of each pod, int32[rows]."""
        return self._gang[: self.rows]

    @property
    def node(self) -> Ids:
        """Return the node of each pod, int32[rows], -1 for none."""
        return self._node[: self.rows]

    def on_nodes(self, nodes: Ids) -> Ids:
        """Return the rows of pods that are on one of these nodes and not done, in order."""
        rows = self.not_done()
        return rows[np.isin(self.node[rows], nodes)]

    def not_done(self) -> Ids:
        """Return the rows of pods that are neither done nor gone, in order."""
        there = np.isnan(self.time("done")) & np.isnan(self.time("gone"))
        return np.flatnonzero(there).astype(np.int32)


class Samples:
    """Rows of figures taken at one moment each; columns are named by the first row."""

    def __init__(self) -> None:
        self.rows = 0
        self._columns: dict[str, Times] = {}

    def add(self, figures: Mapping[str, float]) -> None:
        """Append a row; where a row lacks a column, now or before the column came, there is NaN."""
        for name in figures:
            if name not in self._columns:
                self._columns[name] = np.full(max(_FIRST_ROWS, self.rows + 1), math.nan)
        for name, column in self._columns.items():
            if self.rows >= len(column):
                self._columns[name] = np.append(column, np.full(len(column), math.nan))
            self._columns[name][self.rows] = figures.get(name, math.nan)
        self.rows += 1

    def column(self, name: str) -> Times:
        """Return a column, float64[rows]; empty when it was never sampled."""
        return self._columns.get(name, np.empty(0))[: self.rows]

    @property
    def names(self) -> list[str]:
        """Return the names of all columns."""
        return list(self._columns)
