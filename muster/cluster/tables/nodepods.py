"""The pods of each node, lowest priority first, then by row: the order in which pods yield.

::

    one pod ───► put in its place at once                      ┐
    of a list ─► stored as two columns ───at the first read──► ┴► int32 rows of each node, packed

A page of a list has a few thousand pods on as many nodes, and the next page has others. Adding them
to their nodes page by page costs more than sorting all of them once.
"""

import struct
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.paged import PagedColumn, PagedList, PagedListView

_ROW: Final = struct.Struct("i")  # as numpy packs an int32
_ROWS: Final = np.dtype(np.int32)
_LARGEST: Final = (1 << 63) - 1  # the largest int64

Nodes = NDArray[np.intp]
Rows = NDArray[np.int32]


class NodePods:
    """Packed pod rows by node row, copied on write. ``priority``: of each pod row."""

    __slots__ = ("_later", "_lists", "_priority")

    def __init__(
        self, priority: PagedColumn[np.int32, int], like: PagedListView[bytes] | None = None
    ) -> None:
        self._priority = priority
        self._lists: PagedList[bytes] = PagedList(b"", like=like)
        self._later: list[tuple[Nodes, Rows]] = []

    def __getitem__(self, node: int) -> bytes:
        return self.settled()[node]

    def rows(self, node: int) -> list[int]:
        """Return the pod rows of a node."""
        return _unpacked(self[node])

    def insert(self, node: int, row: int) -> None:
        """Add a pod to those of a node."""
        # Most pods of a node share one priority, so look from the end.
        packed = self[node]
        if not packed:
            self._lists[node] = _ROW.pack(row)
            return
        rows, priority = _unpacked(packed), self._priority
        mine = priority[row]
        place = len(rows)
        while place:
            theirs = priority[rows[place - 1]]
            if theirs < mine or (theirs == mine and rows[place - 1] < row):
                break
            place -= 1
        cut = place * _ROW.size
        self._lists[node] = packed[:cut] + _ROW.pack(row) + packed[cut:]

    def remove(self, node: int, row: int) -> None:
        """Remove a pod from those of its node; its priority must not have changed."""
        rows = self.rows(node)
        rows.remove(row)
        self._lists[node] = b"".join(map(_ROW.pack, rows))

    def insert_all(self, nodes: Nodes, rows: Rows) -> None:
        """Add many pods to those of their nodes; ``nodes`` and ``rows`` are parallel.

        Their priorities must not change while they are on their nodes.
        """
        self._later.append((nodes, rows))

    def grow(self, count: int) -> None:
        """Make room for ``count`` nodes."""
        self._lists.grow(count)

    def freeze(self, count: int) -> PagedListView[bytes]:
        """Return the pods of the first ``count`` nodes as a view that never changes again."""
        return self.settled().freeze(count)

    def settled(self) -> PagedList[bytes]:
        """Return the lists by node, after all added pods are sorted in."""
        if self._later:
            nodes, rows = map(np.concatenate, zip(*self._later, strict=True))
            self._later.clear()
            self._merge(nodes, rows)
        return self._lists

    def _merge(self, nodes: Nodes, rows: Rows) -> None:
        there = np.flatnonzero(np.bincount(nodes))
        numbers: list[int] = there.tolist()
        before = self._lists.those(numbers)
        old = np.frombuffer(b"".join(before), dtype=_ROWS)
        if len(old):
            count = [len(one) // _ROW.size for one in before]
            nodes = np.concatenate((np.repeat(there, count), nodes))
            rows = np.concatenate((old, rows))
        size = np.bincount(nodes)[there]
        ends = (size.cumsum() * _ROW.size).tolist()
        packed = self._sorted(nodes, rows).tobytes()
        self._lists.put_those(numbers, _split(packed, ends))

    def _sorted(self, nodes: Nodes, rows: Rows) -> Rows:
        """Return rows by node, priority and row.

        Clusters have few priorities, so that all three fit in one number, which is sorted in a
        fifth of the time of a sort by three keys.
        """
        most = int(rows.max()) + 1
        priority = self._priority.peek(most)[rows]
        levels = np.unique(priority)
        if int(nodes.max()) + 1 > _LARGEST // (most * len(levels)):
            return rows[np.lexsort((rows, priority, nodes))]
        level = np.searchsorted(levels, priority)
        keys = (nodes * len(levels) + level) * most + rows
        keys.sort()
        found: Rows = (keys % most).astype(_ROWS)
        return found


def _split(packed: bytes, ends: Sequence[int]) -> list[bytes]:
    begins = (0, *ends[:-1])
    return [packed[begin:end] for begin, end in zip(begins, ends, strict=True)]


def _unpacked(packed: bytes) -> list[int]:
    return memoryview(packed).cast("i").tolist()
