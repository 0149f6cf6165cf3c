"""Columns in pages: numbers, objects, and names with dense ids.

All three are copied on write, page by page, through the states drawn in
``muster.cluster.columns.columns``: a frozen view never changes. Pages suit columns that are long
and change a row at a time (a pod event must not copy 8 MB)::

    PagedColumn   numbers of one dtype            ──freeze()──► PagedView
    PagedList     immutable objects               ──freeze()──► PagedListView
    NameTable     values ↔ ids: node names, gang  ──freeze()──► NameView
                  keys, pod classes, taint sets

An id of a ``NameTable`` is an index into a ``PagedList``, so the ids of a
frozen ``NameView`` stay valid while the live table changes. Ids of removed values are reused. A
column that stores an id must count as its user (``acquire``, ``release``), so that the value is not
removed. A frozen view finds ids through the *live* dictionary, because a copy of 130,000 entries
per snapshot would be waste, and accepts an answer only if its own list confirms it.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Generic, TypeVar, cast, overload
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.columns import Cells, read_only
from muster.cluster.columns.texts import ABSENT, TextIndex, Texts

S = TypeVar("S", bound=np.generic)
V = TypeVar("V")
T = TypeVar("T")
N = TypeVar("N", bound=Hashable)

PAGE_SHIFT: Final = 13
PAGE_ROWS: Final = 1 << PAGE_SHIFT
"""Rows in a page: 32 KiB of int32 are copied in about 2 µs, one page event."""
_PAGE_MASK: Final = PAGE_ROWS - 1

_LIST_SHIFT: Final = 10
_LIST_ROWS: Final = 1 << _LIST_SHIFT
_LIST_MASK: Final = _LIST_ROWS - 1

_BORROWED: Final = 1 << 40
_TOGETHER: Final = 100  # texts from which an index pays


class PagedColumn(Generic[S, V]):
    """A growing column in pages of ``PAGE_ROWS`` rows, copied page by page."""

    __slots__ = ("_cells", "_dtype", "_fill", "_frozen", "_pages", "_shared", "_views")

    def __init__(self, dtype: type[S], fill: V, *, like: "PagedView[S, V] | None" = None) -> None:
        self._dtype: type[S] = dtype
        self._fill: V = fill
        self._pages: list[NDArray[S]] = [] if like is None else list(like.pages)
        self._views: list[NDArray[S]] = list(self._pages)
        self._cells: list[Cells[V]] = [cast("Cells[V]", page.data) for page in self._pages]
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
            self._cells.append(cast("Cells[V]", page.data))
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
            view = self._pages[page].view()
            view.flags.writeable = False
            self._views[page] = view
            self._shared[page] = 1
            page = self._shared.find(0, page)

    def _put(self, page: int, array: NDArray[S]) -> None:
        self._pages[page] = array
        self._cells[page] = cast("Cells[V]", array.data)
        self._shared[page] = 0
        self._frozen = None


def distinct(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the distinct values among small numbers >= 0, ascending.

    Counts instead of sorting: there are few pages, classes and label sets, with many uses.
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
        """Return the whole column as one read-only array; joined at the first call."""
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
        if len(rows) and len(turns) < len(self.pages):  # consecutive rows
            for low, high in pairwise([0, *turns.tolist(), len(rows)]):
                out[low:high] = self.pages[page_of[low]][rows[low:high] & _PAGE_MASK]
            return out
        for page in distinct(page_of).tolist():
            here = page_of == page
            out[here] = self.pages[page][rows[here] & _PAGE_MASK]
        return out


class PagedList(Generic[T]):
    """A growing list of immutable objects, copied page by page like ``PagedColumn``.

    Pages that only hold ``fill`` are one shared object, so a list with few entries costs
    next to nothing.
    """

    __slots__ = ("_blank", "_fill", "_frozen", "_pages", "_shared")

    def __init__(self, fill: T, *, like: "PagedListView[T] | None" = None) -> None:
        self._fill = fill
        self._blank = [fill] * _LIST_ROWS
        self._pages: list[list[T]] = [] if like is None else list(like.pages)
        self._shared = bytearray(b"\1" * len(self._pages))
        self._frozen: PagedListView[T] | None = None

    def __getitem__(self, row: int) -> T:
        return self._pages[row >> _LIST_SHIFT][row & _LIST_MASK]

    def __setitem__(self, row: int, value: T) -> None:
        page = row >> _LIST_SHIFT
        if self._shared[page]:
            self._pages[page] = self._pages[page].copy()
            self._shared[page] = 0
            self._frozen = None
        self._pages[page][row & _LIST_MASK] = value

    def those(self, rows: Iterable[int]) -> list[T]:
        """Return the values of some rows."""
        pages = self._pages
        return [pages[row >> _LIST_SHIFT][row & _LIST_MASK] for row in rows]

    def put_those(self, rows: Iterable[int], values: Iterable[T]) -> None:
        """Write some rows."""
        pages, shared = self._pages, self._shared
        for row, value in zip(rows, values, strict=True):
            number = row >> _LIST_SHIFT
            if shared[number]:
                self[row] = value
            else:
                pages[number][row & _LIST_MASK] = value

    def put(self, first: int, values: Sequence[T]) -> None:
        """Write the rows from ``first`` on."""
        begin = 0
        while begin < len(values):
            page, cell = (first + begin) >> _LIST_SHIFT, (first + begin) & _LIST_MASK
            if self._shared[page]:
                self._pages[page] = self._pages[page].copy()
                self._shared[page] = 0
                self._frozen = None
            end = min(len(values), begin + _LIST_ROWS - cell)
            self._pages[page][cell : cell + end - begin] = values[begin:end]
            begin = end

    def grow(self, count: int) -> None:
        """Make room for ``count`` rows."""
        while len(self._pages) << _LIST_SHIFT < count:
            self._pages.append(self._blank)
            self._shared.append(1)
            self._frozen = None

    def freeze(self, count: int) -> "PagedListView[T]":
        """Return the first ``count`` rows as a view that never changes again."""
        if self._frozen is None or self._frozen.count != count:
            self._frozen = PagedListView(tuple(self._pages), count)
            self._shared = bytearray(b"\1" * len(self._pages))
        return self._frozen

    def peek(self, count: int) -> "PagedListView[T]":
        """Return a view to be read at once and dropped: nothing is copied for it later."""
        return PagedListView(tuple(self._pages), count)

    @property
    def capacity(self) -> int:
        """Rows there is room for."""
        return len(self._pages) << _LIST_SHIFT

    def items(self) -> Iterator[tuple[int, T]]:
        """Yield (row, value) of every row; pages that were never written are skipped."""
        for number, page in enumerate(self._pages):
            if page is not self._blank:
                yield from enumerate(page, number << _LIST_SHIFT)


class PagedListView(Generic[T]):
    """A frozen ``PagedList``; read it by row."""

    __slots__ = ("count", "pages")

    def __init__(self, pages: tuple[list[T], ...], count: int) -> None:
        self.pages = pages
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, row: int) -> T:
        if not 0 <= row < self.count:
            raise IndexError(f"row {row} of a column of {self.count} rows")
        return self.pages[row >> _LIST_SHIFT][row & _LIST_MASK]

    def __iter__(self) -> Iterator[T]:
        left = self.count
        for page in self.pages:
            yield from page[:left]
            left -= _LIST_ROWS
            if left <= 0:
                return


class NameTable(Generic[N]):
    """The live, growing side. ``None`` cannot be a value."""

    __slots__ = (
        "_base", "_free", "_frozen", "_ids", "_index", "_indexed", "_refs", "_values", "count",
    )  # fmt: skip

    def __init__(self, *, like: "NameView[N] | None" = None) -> None:
        self._base = like or None  # an empty one finds nothing
        self._ids: dict[N, int] = {}
        self._values: PagedList[N | None] = PagedList(
            None, like=None if like is None else like.values
        )
        self.count = len(like) if like is not None else 0
        self._free: list[int] = []
        # A copy never frees the ids of its base: their users are not counted here.
        self._refs: list[int] = [_BORROWED] * self.count
        # Weak: a view refers to its table, and a cycle would wait for the garbage collector.
        self._frozen: ref[NameView[N]] | None = None
        self._index: TextIndex | None = None
        self._indexed = 0

    def __len__(self) -> int:
        """Return the number of ids ever handed out, free ones included."""
        return self.count

    def __getitem__(self, number: int) -> N:
        """Return the value behind an id in use."""
        value: N = self._values[number]  # type: ignore[assignment]  # None only for a free id
        return value

    def find(self, value: N) -> int | None:
        """Return the id of ``value``, ``None`` when it has none."""
        number = self._ids.get(value)
        if number is None and self._base is not None:
            number = self._base.find(value)
            if number is not None and self._values[number] != value:
                return None
        return number

    def find_all(self, values: Sequence[N]) -> NDArray[np.intp]:
        """Return int[n]: the ids of many values, ``ABSENT`` for those that have none."""
        if self._base is None and isinstance(values, Texts) and len(values) >= _TOGETHER:
            return self._find_texts(values)
        ids = map(self._ids.get if self._base is None else self.find, values)
        return np.array([ABSENT if number is None else number for number in ids], dtype=np.intp)

    def _find_texts(self, texts: Texts) -> NDArray[np.intp]:
        """Return the same for texts of a page; the index may lack new values."""
        if self._index is None or 2 * self._indexed < self.count:
            self._index = TextIndex(cast("Iterable[str | None]", self._values.peek(self.count)))
            self._indexed = self.count
        found = self._index.find(texts)
        for place in np.flatnonzero(found == ABSENT).tolist():
            number = self._ids.get(cast("N", texts[place]))
            found[place] = ABSENT if number is None else number
        return found

    def add(self, value: N) -> int:
        """Return the id of ``value``, a new one when it has none yet."""
        number = self.find(value)
        return self._new(value) if number is None else number

    def extend(self, values: Sequence[N]) -> int:
        """Give consecutive new ids to values without one; return the first. No id may be free."""
        first = self.count
        self.count += len(values)
        self._values.grow(self.count)
        self._values.put(first, values)
        self._refs += [0] * len(values)
        self._ids.update(zip(values, range(first, self.count), strict=True))
        self._frozen = None
        return first

    @property
    def has_free_ids(self) -> bool:
        """Whether ids wait for reuse, so that the next value does not get a new one."""
        return bool(self._free)

    def remove(self, number: int) -> None:
        """Free an id for reuse."""
        self._index = None  # its number may belong to another value next
        self._ids.pop(self[number], None)
        self._values[number] = None
        self._free.append(number)
        self._frozen = None

    def acquire(self, value: N, users: int = 1) -> int:
        """``add``, and count one more user, or several."""
        number = self._ids.get(value)
        if number is None:
            number = self.add(value)
        self._refs[number] += users
        return number

    def acquire_all(self, users: Mapping[N, int]) -> dict[N, int]:
        """``acquire`` each value for so many users; return the ids."""
        new = [value for value in users if self.find(value) is None]
        if new and not self._free:
            self.extend(new)
        return {value: self.acquire(value, count) for value, count in users.items()}

    def release(self, number: int) -> bool:
        """Count one user less; free the id and return True if it was the last."""
        self._refs[number] -= 1
        if self._refs[number]:
            return False
        self.remove(number)
        return True

    def refs(self, number: int) -> int:
        """Return how many users an id has."""
        return self._refs[number]

    def used(self) -> int:
        """Return the number of ids in use."""
        return self.count - len(self._free)

    def live(self) -> Iterator[tuple[int, N]]:
        """Yield (id, value) in use, in id order."""
        for number in range(self.count):
            value = self._values[number]
            if value is not None:
                yield number, value

    def freeze(self) -> "NameView[N]":
        """Return a view that never changes again."""
        view = None if self._frozen is None else self._frozen()
        if view is None:
            view = NameView(self._values.freeze(self.count), self)
            self._frozen = ref(view)
        return view

    def free_ids(self) -> list[int]:
        """Return the ids waiting for reuse, the next one last (for ``dump``)."""
        return list(self._free)

    def restore(self, values: list[N | None], free: list[int], refs: list[int]) -> None:
        """Fill an empty table with what ``dump`` wrote, id for id."""
        self.count = len(values)
        self._values.grow(self.count)
        for number, value in enumerate(values):
            if value is not None:
                self._values[number] = value
                self._ids[value] = number
        self._free = list(free)
        self._refs = list(refs)
        self._frozen = None

    def _new(self, value: N) -> int:
        if self._free:
            number = self._free.pop()
        else:
            number = self.count
            self.count += 1
            self._values.grow(self.count)
            self._refs.append(0)
        self._values[number] = value
        self._ids[value] = number
        self._frozen = None
        return number


class NameView(Generic[N]):
    """The frozen side: a sequence of values by id; a freed id reads as ``None``."""

    __slots__ = ("__weakref__", "_live", "_own", "count", "values")

    def __init__(self, values: PagedListView[N | None], live: NameTable[N]) -> None:
        self.values = values
        self.count = values.count
        self._live = live
        self._own: dict[N, int] | None = None

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> N:
        """Return the value behind an id in use."""
        return cast("N", self.values[number])

    def __iter__(self) -> Iterator[N | None]:
        return iter(self.values)

    def find(self, value: N) -> int | None:
        """Return the id of ``value``, ``None`` when it had none when this was frozen."""
        number = self._live.find(value)
        if number is not None and number < self.count and self.values[number] == value:
            return number
        return None if self._live.freeze() is self else self._search(value)

    def _search(self, value: N) -> int | None:
        # The table has changed since: build the dictionary of that time, once.
        if self._own is None:
            self._own = {v: i for i, v in enumerate(self.values) if v is not None}
        return self._own.get(value)
