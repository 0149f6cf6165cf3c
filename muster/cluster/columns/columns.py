"""Copy-on-write columns: the one storage the model is made of.

There are two kinds, flat ones here and paged ones in ``muster.cluster.columns.paged``. Both go
through the same states::

      write ──► [owned] ──freeze()──► [shared with a frozen view] ──write──► copy ──► [owned]

``freeze()`` hands out read-only arrays in O(1) for a column that was not written since the
last call, and the first write after that copies what it is about to change: a *flat* column
as a whole (node columns: placement wants one contiguous array), a *paged* one just one page
(pod columns: a pod event must not copy 8 MB). A frozen view therefore never changes.

Before a snapshot is taken, ``prepare`` copies flat columns part by part. Writes meanwhile go to the
column and to the copy, so that no event has to wait for a whole copy::

      [owned] ──prepare()──► [owned, with a copy] ──freeze()──► [shared] ──write──► the copy is
                               every write goes to both                             the column

Single cells are read and written through ``memoryview``, which is three times faster than
indexing a numpy array from Python.
"""

from collections.abc import Iterable
from typing import Final, Generic, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S", bound=np.generic)
V = TypeVar("V")
Amounts = NDArray[np.int64]

_FIRST_CAPACITY: Final = 64
_MANY_ROWS: Final = 1 << 14  # above it a column grows by a quarter
PREPARED_ROWS: Final = 1 << 15
"""Rows of a flat column that are copied at a time: a tenth of a millisecond for int64."""


class Cells(Protocol[V]):
    """Indexing over any scalar, which typeshed's ``memoryview`` has for int only."""

    def __getitem__(self, row: int, /) -> V: ...
    def __setitem__(self, row: int, value: V, /) -> None: ...


def read_only(array: NDArray[S]) -> NDArray[S]:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


def freeze_all(columns: "Iterable[Column[S, V]]", count: int) -> tuple[NDArray[S], ...]:
    """Return the first ``count`` rows of several columns, as ``Column.freeze`` does."""
    return tuple([column.freeze(count) for column in columns])


class Column(Generic[S, V]):
    """A growing contiguous column, one value of one dtype per row.

    Rows never written hold ``fill``.
    """

    __slots__ = (
        "_array",
        "_cells",
        "_copied",
        "_copy",
        "_copy_cells",
        "_fill",
        "_frozen",
        "_shared",
    )

    def __init__(self, dtype: type[S], fill: V, *, like: NDArray[S] | None = None) -> None:
        self._fill: V = fill
        self._array: NDArray[S] = (
            np.full(_FIRST_CAPACITY, fill, dtype=dtype) if like is None else like
        )
        self._shared = like is not None
        self._frozen: NDArray[S] | None = None
        self._copy: NDArray[S] | None = None  # used by the first write after the array is shared
        self._copied = 0  # rows of it that are copied already
        self._copy_cells: Cells[V] | None = None  # the cells of the copy
        self._cells = cast("Cells[V]", self._array.data)

    def __getitem__(self, row: int) -> V:
        return self._cells[row]

    def __setitem__(self, row: int, value: V) -> None:
        if self._shared:
            self._own()
        self._cells[row] = value
        if self._copy_cells is not None:
            self._copy_cells[row] = value

    def add(self: "Column[S, int]", row: int, delta: int) -> int:
        """Add ``delta`` to one cell and return the sum."""
        if self._shared:
            self._own()
        total = self._cells[row] + delta
        self._cells[row] = total
        if self._copy_cells is not None:
            self._copy_cells[row] = total
        return total

    def at(self, rows: NDArray[np.integer]) -> NDArray[S]:
        """Return a copy of the values of ``rows``."""
        found: NDArray[S] = self._array[rows]
        return found

    def add_at(self: "Column[np.int64, int]", rows: NDArray[np.integer], more: Amounts) -> None:
        """Add int64[n] to the cells of n distinct rows."""
        self._own_alone()
        self._array[rows] += more

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows. Capacity doubles; that of many rows grows by a quarter."""
        old = len(self._array)
        if count <= old:
            return
        more = old if old < _MANY_ROWS else old // 4
        capacity = max(old + more, count, _FIRST_CAPACITY)
        grown: NDArray[S] = np.full(capacity, self._fill, dtype=self._array.dtype)
        grown[:old] = self._array
        self._replace(grown)

    def fill(self, values: NDArray[S]) -> None:
        """Write the first ``len(values)`` rows at once."""
        self.grow(len(values))
        self.put(0, values)

    def put(self, first: int, values: NDArray[np.generic]) -> None:
        """Write the rows from ``first`` on; there must be room."""
        self._own_alone()
        self._array[first : first + len(values)] = values

    def widen(self, dtype: type[np.generic]) -> None:
        """Change to a wider dtype."""
        self._replace(self._array.astype(dtype))

    def freeze(self, count: int) -> NDArray[S]:
        """Return the first ``count`` rows read-only; they never change again."""
        if self._frozen is None or len(self._frozen) != count:
            self._frozen = read_only(self._array[:count])
            self._shared = True
        return self._frozen

    def prepare(self) -> bool:
        """Make a part of the copy that the first write after ``freeze`` needs.

        Return whether there was a part to copy. A column that was not written since the last
        ``freeze`` needs no copy, because the next ``freeze`` returns the same view.
        """
        if self._frozen is not None:
            return False
        if self._copy is None:
            self._copy, self._copied = np.empty_like(self._array), 0
            self._copy_cells = cast("Cells[V]", self._copy.data)
        if self._copied == len(self._array):
            return False
        self._copied = self._copy_until(self._copy, self._copied + PREPARED_ROWS)
        return True

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self._array)

    @property
    def dtype(self) -> np.dtype[S]:
        """The numpy dtype of the cells."""
        return self._array.dtype

    def _own_alone(self) -> None:
        """Own the array and drop the copy, before writes of many rows."""
        if self._shared:
            self._own()
        self._copy = self._copy_cells = None

    def _own(self) -> None:
        if self._copy is None:
            self._replace(self._array.copy())
        else:
            self._copy_until(self._copy, len(self._array))
            self._replace(self._copy)

    def _copy_until(self, copy: NDArray[S], end: int) -> int:
        """Copy the rows below ``end`` that are not in ``copy`` yet; return the end."""
        end = min(end, len(self._array))
        copy[self._copied : end] = self._array[self._copied : end]
        return end

    def _replace(self, array: NDArray[S]) -> None:
        self._array = array
        self._copy = self._copy_cells = None
        self._cells = cast("Cells[V]", array.data)
        self._shared = False
        self._frozen = None
