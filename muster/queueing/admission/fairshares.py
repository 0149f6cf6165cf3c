"""What queues get of what is divided among them: Volcano's and KAI's divisions on the tree.

::

    whole      12 GPUs ──► divided among its queues by what they have and ask for
    ├── a      5       ──► divided among the queues below
    │   ├── c  2
    │   └── d  3
    └── b      7

A gang that is admitted asks for less and has more: nothing is divided anew. Where a gang comes or
ends, the divisions above its queue are, and those below where they gave another result. So a
decision costs nothing that grows with the number of queues.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import numpy as np

from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuespec import QueueName, ShareFunction
from muster.queueing.admission.quotacolumns import ORDERS, PLENTY, Amounts, QuotaColumns
from muster.queueing.admission.wantedamounts import WantedAmounts
from muster.queueing.shares.division import Claim, Division
from muster.queueing.shares.twophases import two_phases
from muster.queueing.shares.waterfilling import waterfilling

#: The functions that divide, and how.
DIVISIONS: Final[dict[ShareFunction, Division]] = {
    ShareFunction.WATER_FILLING: waterfilling,
    ShareFunction.TWO_PHASES: two_phases,
}


class GivenShares:
    """What each queue got at one moment: computed at the first question, and the same since."""

    def __init__(self, shares: "FairShares", queues: QuotaColumns) -> None:
        """Nothing is computed yet."""
        self._shares = shares
        self._queues = queues
        self._row: Mapping[QueueName, int] | None = None
        self._place: Mapping[Cell, int] = {}
        #: int64[queues, cells]
        self._given: Amounts = np.zeros((0, 0), np.int64)

    def of(self, queue: QueueName, cell: Cell) -> int | None:
        """Return what a queue gets of a cell, ``None``: there is no such queue or cell."""
        if self._row is None:
            self._given = self._shares.given()
            self._row = self._queues.row
            self._place = {each: place for place, each in enumerate(self._queues.cells)}
        row, place = self._row.get(queue), self._place.get(cell)
        return None if row is None or place is None else int(self._given[row, place])


class FairShares:
    """What each queue gets, computed when it is asked for and something has changed."""

    def __init__(self, queues: QuotaColumns) -> None:
        """Begin with nothing divided."""
        self._queues = queues
        self._wanted = WantedAmounts()
        #: queues that use more or less, or whose gangs ask for more or less
        self._touched: set[QueueName] = set()
        self._numbers = -1
        #: int64[queues, cells]: what a queue's own gangs have and ask for
        self._own: Amounts = np.zeros((0, 0), np.int64)
        #: int64[queues, cells]: the same with what counts of the queues below
        self._demand: Amounts = self._own
        self._given: Amounts = self._own

    def seat(self, wanted: WantedAmounts) -> None:
        """Count what others ask for now."""
        self._touched.update(self._wanted.queues(), wanted.queues())
        self._wanted = wanted

    def used(self, queues: Iterable[QueueName]) -> None:
        """Take note that queues use more or less."""
        self._touched.update(queues)

    def snapshot(self) -> "GivenShares":
        """Return what each queue gets, as it is when somebody first asks."""
        return GivenShares(self, self._queues)

    def given(self) -> Amounts:
        """Return int64[queues, cells]: what each queue gets.

        Where nothing is divided it is what the queue is entitled to.
        """
        if self._numbers != self._queues.numbers:
            self._numbers = self._queues.numbers
            self._own = np.zeros_like(self._queues.used)
            self._touched.clear()
            self._count(self._queues.row)
            self._divide(None)
        elif self._touched or self._wanted.touched:
            touched = self._touched | self._wanted.touched
            self._touched = set()
            if self._count(touched):
                self._divide(self._demand)
        self._wanted.touched.clear()
        return self._given

    # --- what is asked for ------------------------------------------------------------------

    def _count(self, names: Iterable[QueueName]) -> bool:
        """Count anew what queues have and ask for; returns whether that is another amount."""
        changed = False
        for name in names:
            row = self._queues.row.get(name)
            if row is None:
                continue
            asked = self._wanted.of(name)
            own = self._queues.used_by_own(row)
            found = [
                min(have + asked.get(cell, 0), PLENTY)
                for have, cell in zip(own, self._queues.cells, strict=True)
            ]
            changed |= found != self._own[row].tolist()
            self._own[row] = found
        return changed

    def _demands(self) -> Amounts:
        """Return int64[queues, cells]: own, and of queues below what is above what they keep."""
        found = self._own.copy()
        for level in reversed(self._queues.levels[1:]):
            over = np.maximum(found[level] - self._queues.kept[level], 0)
            parents = self._queues.parent[level]
            np.add.at(found, parents, np.minimum(over, PLENTY // len(parents)))
        return np.minimum(found, PLENTY)

    # --- what is given ----------------------------------------------------------------------

    def _divide(self, before: Amounts | None) -> None:
        """Divide level by level; ``before``: of former demands, only where something changed."""
        queues, self._demand, former = self._queues, self._demands(), self._given
        given, orders, most = queues.entitled.copy(), queues.orders(), queues.potential()
        changed = None if before is None else (self._demand != before).any(axis=1)
        for group in _siblings(queues):
            parent = int(queues.parent[group.start])
            division = DIVISIONS.get(ORDERS[orders[group.start]])
            if division is None:
                continue
            if (
                changed is not None
                and not changed[group].any()
                and (given[parent] == former[parent]).all()
            ):
                given[group] = former[group]
                continue
            whole = np.where(given[parent] > 0, given[parent], most[parent])
            for cell in range(len(queues.cells)):
                given[group, cell] = self._group(division, group, cell, int(whole[cell]))
        self._given = given

    def _group(self, division: Division, rows: slice, cell: int, whole: int) -> list[int]:
        """Return what the queues of one parent get of a cell."""
        queues = self._queues
        entitled, kept = queues.entitled[rows, cell], queues.kept[rows, cell]
        if division is waterfilling and (entitled > kept).any():
            return [int(amount) for amount in entitled]  # the plugin ``capacity``: as it is written
        columns = (
            self._demand[rows, cell], entitled, queues.limit[rows, cell],
            queues.weight[rows], queues.priority[rows],
        )  # fmt: skip
        claims = [Claim(*one) for one in zip(*(column.tolist() for column in columns), strict=True)]
        whole = min(whole + int(np.minimum(kept, PLENTY // len(kept)).sum()), PLENTY)
        by_name = queues.by_name(rows)  # what rounding leaves goes by name, not by arrival
        parts = division(whole, [claims[place] for place in by_name])
        return [part for _, part in sorted(zip(by_name, parts, strict=True))]


def _siblings(queues: QuotaColumns) -> Iterator[slice]:
    """Yield the rows of each parent's queues, level by level; they stand together."""
    for level in queues.levels[1:]:
        starts = np.flatnonzero(np.diff(queues.parent[level], prepend=-1)) + level.start
        yield from map(slice, starts.tolist(), [*starts[1:].tolist(), level.stop])
