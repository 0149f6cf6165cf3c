"""What counts as used where the shares of queues are compared: present use, or past use as well.

::

    row              used now   on average   counts
    muster/vision    8          2.0          2.0 + a small part of 8 - 2.0
    kueue/a          8          -            8

Muster's own queues go by averages where the configuration has a half-life. The queues of other
projects go as these projects have it, by present use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.quota.aliases import OWN
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import QueueName
from muster.cluster.resumable import Steps, run
from muster.queueing.admission.quotacolumns import Amounts, QuotaColumns, Rows
from muster.queueing.averageuse.queuehistory import QueueHistory

_OWN: Final = f"{OWN}/"
_ROWS_PER_STEP: Final = 16  # some 100 us

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PastUse:
    """Averages of a tree's queues."""

    #: float64[queues]: which part of present use counts; 1 where past use does not.
    parts: Floats
    #: float64[queues, cells]: used on average.
    used: Floats
    #: float64[queues, cells]: used above what they were entitled to, on average.
    borrowed: Floats

    def counted(self, rows: Rows, average: Floats, present: Amounts) -> Floats:
        """Return an average with a part of what is present: [rows, cells]."""
        parts = self.parts[rows, None]
        found: Floats = average[rows] * (1 - parts) + present * parts
        return found


def goes_by_average(queue: QueueName) -> bool:
    """Return whether past use counts in a queue's share, where there is a half-life."""
    return queue.startswith(_OWN)


class AverageColumns:
    """The averages of a tree's queues as columns, read again when somebody noted use."""

    def __init__(self, history: QueueHistory) -> None:
        """Begin with nothing read."""
        self._history = history
        #: seconds since the epoch, as of which averages are read
        self.now = 0.0
        self._version = -1
        self._rows: Mapping[QueueName, int] | None = None
        self._past = PastUse(np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0)))

    def of(self, queues: QuotaColumns) -> PastUse:
        """Return the averages of the queues of some columns, as they were read last."""
        if self._rows is not queues.row:  # queues came, went or moved
            run(self._read(queues))
        return self._past

    def refresh(self, queues: QuotaColumns) -> Steps[None]:
        """Read the averages again if somebody noted use since, in slices."""
        if self._version != self._history.version or self._rows is not queues.row:
            yield from self._read(queues)

    def _read(self, queues: QuotaColumns) -> Steps[None]:
        shape, rows, version = queues.used.shape, queues.row, self._history.version
        found = PastUse(np.ones(shape[0]), np.zeros(shape), np.zeros(shape))
        column = {cell: place for place, cell in enumerate(queues.cells)}
        for name, row in rows.items():
            if row % _ROWS_PER_STEP == 0:
                yield
            if goes_by_average(name):
                average = self._history.average(name, self.now)
                found.parts[row] = self._history.part
                _fill(found.used[row], average.used, column)
                _fill(found.borrowed[row], average.borrowed, column)
        self._rows, self._version, self._past = rows, version, found


def _fill(row: Floats, amounts: Mapping[Cell, float], column: Mapping[Cell, int]) -> None:
    for cell, amount in amounts.items():
        if cell in column:
            row[column[cell]] = amount
