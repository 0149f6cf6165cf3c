"""Copy-on-write columns: the one storage the model is made of.

Two kinds (lists of objects: ``muster.cluster.columns.pagedlists``) with the same life::

      write ──► [owned] ──freeze()──► [shared with a frozen view] ──write──► copy ──► [owned]

``freeze()`` hands out read-only arrays in O(1) for a column that was not written since the
last call, and the first write after that copies what it is about to change: a *flat* column
as a whole (node columns: placement wants one contiguous array), a *paged* one just one page
(pod columns: a pod event must not copy 8 MB). A frozen view therefore never changes.

Who is about to take a snapshot has flat columns copied part by part before it (``prepare``). What
is written meanwhile goes to column and copy, so that no event in between waits for a copy::

      [owned] ──prepare()──► [owned, with a copy] ──freeze()──► [shared] ──write──► the copy is
                               every write goes to both                             the column

Single cells are read and written through ``memoryview``, which is three times faster than
indexing a numpy array from Python.
"""

from itertools import pairwise
from typing import Final, Generic, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

S = TypeVar("S", bound=np.generic)
V = TypeVar("V")
Amounts = NDArray[np.int64]

PAGE_SHIFT: Final = 13
PAGE_ROWS: Final = 1 << PAGE_SHIFT
"""Rows in a page: 32 KiB of int32 are copied in about 2 µs, one page event."""
_PAGE_MASK: Final = PAGE_ROWS - 1
_FIRST_CAPACITY: Final = 64
_MANY_ROWS: Final = 1 << 14  # room for twice as many nodes as a large cluster has is for nobody
PREPARED_ROWS: Final = 1 << 15
"""Rows of a flat column that are copied at a time: a tenth of a millisecond for int64."""


class _Cells(Protocol[V]):
    """What typeshed's ``memoryview`` says for int only: indexing, over any scalar."""

    def __getitem__(self, row: int, /) -> V: ...
    def __setitem__(self, row: int, value: V, /) -> None: ...


def _cells(array: NDArray[S], like: V) -> _Cells[V]:  # noqa: ARG001  # binds the scalar type
    return cast("_Cells[V]", array.data)


def read_only(array: NDArray[S]) -> NDArray[S]:
    """Return a view of ``array`` that cannot be written through."""
    view = array.view()
    view.flags.writeable = False
    return view


class Column(Generic[S, V]):
    """A growing contiguous column, one value of one dtype per row.

    Rows never written hold ``fill``.
    """

    __slots__ = ("_array", "_cells", "_copied", "_copy", "_fill", "_frozen", "_shared", "_twin")

    def __init__(self, dtype: type[S], fill: V, *, like: NDArray[S] | None = None) -> None:
        self._fill: V = fill
        self._array: NDArray[S] = (
            np.full(_FIRST_CAPACITY, fill, dtype=dtype) if like is None else like
        )
        self._shared = like is not None
        self._frozen: NDArray[S] | None = None
        self._copy: NDArray[S] | None = None  # for the first write once the array is shared
        self._copied = 0  # rows of it that are there already
        self._twin: _Cells[V] | None = None  # its cells
        self._cells = _cells(self._array, fill)

    def __getitem__(self, row: int) -> V:
        return self._cells[row]

    def __setitem__(self, row: int, value: V) -> None:
        if self._shared:
            self._own()
        self._cells[row] = value
        if self._twin is not None:
            self._twin[row] = value

    def add(self: "Column[S, int]", row: int, delta: int) -> int:
        """Add ``delta`` to one cell and return the sum."""
        if self._shared:
            self._own()
        total = self._cells[row] + delta
        self._cells[row] = total
        if self._twin is not None:
            self._twin[row] = total
        return total

    def at(self, rows: NDArray[np.integer]) -> NDArray[S]:
        """Return the values of ``rows``, copied."""
        found: NDArray[S] = self._array[rows]
        return found

    def add_at(self: "Column[np.int64, int]", rows: NDArray[np.integer], more: Amounts) -> None:
        """Add int64[n] to the cells of n distinct rows."""
        self._own_alone()
        self._array[rows] += more

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows; capacity doubles, and of many rows grows by a quarter."""
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

        Return whether one was due: none is for a column that was not written since the last
        ``freeze``, as the next one returns the same view.
        """
        if self._frozen is not None:
            return False
        if self._copy is None:
            self._copy, self._copied = np.empty_like(self._array), 0
            self._twin = _cells(self._copy, self._fill)
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
        """Own the array, and no copy of it: for writes of many rows."""
        if self._shared:
            self._own()
        self._copy = self._twin = None

    def _own(self) -> None:
        if self._copy is None:
            self._replace(self._array.copy())
        else:
            self._copy_until(self._copy, len(self._array))
            self._replace(self._copy)

    def _copy_until(self, copy: NDArray[S], end: int) -> int:
        """Copy the rows that are not in ``copy`` yet, up to ``end``; return where they end."""
        end = min(end, len(self._array))
        copy[self._copied : end] = self._array[self._copied : end]
        return end

    def _replace(self, array: NDArray[S]) -> None:
        self._array = array
        self._copy = self._twin = None
        self._cells = _cells(array, self._fill)
        self._shared = False
        self._frozen = None


class PagedColumn(Generic[S, V]):
    """A growing column kept in pages of ``PAGE_ROWS`` rows, copied page by page."""

    __slots__ = ("_cells", "_dtype", "_fill", "_frozen", "_pages", "_shared", "_views")

    def __init__(self, dtype: type[S], fill: V, *, like: "PagedView[S, V] | None" = None) -> None:
        self._dtype: type[S] = dtype
        self._fill: V = fill
        self._pages: list[NDArray[S]] = [] if like is None else list(like.pages)
        self._views: list[NDArray[S]] = list(self._pages)
        self._cells: list[_Cells[V]] = [_cells(page, fill) for page in self._pages]
        self._shared = bytearray(b"\1" * len(self._pages))
        self._frozen: PagedView[S, V] | None = None

    def __getitem__(self, row: int) -> V:
        return self._cells[row >> PAGE_SHIFT][row & _PAGE_MASK]

    def __setitem__(self, row: int, value: V) -> None:
        page = row >> PAGE_SHIFT
        if self._shared[page]:
            self._put(page, self._pages[page].copy())
        self._cells[page][row & _PAGE_MASK] = value

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows, a page at a time."""
        while len(self._pages) << PAGE_SHIFT < count:
            page: NDArray[S] = np.full(PAGE_ROWS, self._fill, dtype=self._dtype)
            self._pages.append(page)
            self._views.append(page)
            self._cells.append(_cells(page, self._fill))
            self._shared.append(0)
            self._frozen = None

    def freeze(self, count: int) -> "PagedView[S, V]":
        """Return the first ``count`` rows as a view that never changes again."""
        if self._frozen is None or self._frozen.count != count:
            self._share()
            self._frozen = PagedView(tuple(self._views), count, self._dtype)
        return self._frozen

    def fill(self, values: NDArray[S]) -> None:
        """Write the first ``len(values)`` rows at once."""
        self.grow(len(values))
        for page in range(len(self._pages)):
            part = values[page << PAGE_SHIFT : (page + 1) << PAGE_SHIFT]
            self._put(page, self._pages[page].copy())
            self._pages[page][: len(part)] = part

    def put(self, first: int, values: NDArray[np.generic]) -> None:
        """Write the rows from ``first`` on."""
        begin = 0
        while begin < len(values):
            page, cell = (first + begin) >> PAGE_SHIFT, (first + begin) & _PAGE_MASK
            if self._shared[page]:
                self._put(page, self._pages[page].copy())
            end = min(len(values), begin + PAGE_ROWS - cell)
            self._pages[page][cell : cell + end - begin] = values[begin:end]
            begin = end

    def add_at(
        self: "PagedColumn[np.int32, int]", rows: NDArray[np.integer], more: NDArray[np.integer]
    ) -> None:
        """Add to the cells of distinct rows, ascending."""
        pages = rows >> PAGE_SHIFT
        for page in distinct(pages).tolist():
            low, high = np.searchsorted(pages, (page, page + 1)).tolist()
            if self._shared[page]:
                self._put(page, self._pages[page].copy())
            self._pages[page][rows[low:high] & _PAGE_MASK] += more[low:high].astype(np.int32)

    def peek(self, count: int) -> "PagedView[S, V]":
        """Return a view to be read at once and dropped: nothing is copied for it later."""
        return PagedView(tuple(self._pages), count, self._dtype)

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self._pages) << PAGE_SHIFT

    def _share(self) -> None:
        page = self._shared.find(0)
        while page >= 0:
            self._views[page] = read_only(self._pages[page])
            self._shared[page] = 1
            page = self._shared.find(0, page)

    def _put(self, page: int, array: NDArray[S]) -> None:
        self._pages[page] = array
        self._cells[page] = _cells(array, self._fill)
        self._shared[page] = 0
        self._frozen = None


def distinct(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the distinct ones of small numbers from 0 up, ascending.

    Counted, not sorted or hashed: pages, classes and label sets are few, their uses many.
    """
    return np.flatnonzero(np.bincount(numbers)) if len(numbers) else np.zeros(0, dtype=np.intp)


class PagedView(Generic[S, V]):
    """A frozen paged column. Index it with one row or with an array of rows."""

    __slots__ = ("_dtype", "_whole", "count", "pages")

    def __init__(self, pages: tuple[NDArray[S], ...], count: int, dtype: type[S]) -> None:
        self.pages = pages
        self.count = count
        self._dtype = dtype
        self._whole: NDArray[S] | None = None

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, rows: int) -> V: ...
    @overload
    def __getitem__(self, rows: NDArray[np.integer]) -> NDArray[S]: ...
    def __getitem__(self, rows: int | NDArray[np.integer]) -> V | NDArray[S]:
        """Return the value of one row, or an array of the values of ``rows`` (a copy)."""
        if isinstance(rows, np.ndarray):
            return self._gather(rows)
        return cast("V", self.pages[rows >> PAGE_SHIFT].data[rows & _PAGE_MASK])

    def array(self) -> NDArray[S]:
        """Return the whole column as one read-only array; joined once, then kept."""
        if self._whole is None:
            if len(self.pages) == 1:
                self._whole = self.pages[0][: self.count]
            else:
                empty: NDArray[S] = np.empty(0, dtype=self._dtype)
                self._whole = read_only(np.concatenate([empty, *self.pages])[: self.count])
        return self._whole

    def _gather(self, rows: NDArray[np.integer]) -> NDArray[S]:
        if self._whole is not None or len(self.pages) <= 1:
            found: NDArray[S] = self.array()[rows]
            return found
        out: NDArray[S] = np.empty(rows.shape, dtype=self._dtype)
        page_of = rows >> PAGE_SHIFT
        turns = np.flatnonzero(page_of[1:] != page_of[:-1]) + 1
        if len(rows) and len(turns) < len(self.pages):  # rows that came one after the other
            for low, high in pairwise([0, *turns.tolist(), len(rows)]):
                out[low:high] = self.pages[page_of[low]][rows[low:high] & _PAGE_MASK]
            return out
        for page in distinct(page_of).tolist():
            here = page_of == page
            out[here] = self.pages[page][rows[here] & _PAGE_MASK]
        return out
