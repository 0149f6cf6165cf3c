"""Copy-on-write lists of objects, page by page: for what ``columns.columns`` has no dtype for.

::

      write ──► [owned page] ──freeze()──► [shared with a frozen view] ──write──► copy of the page
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_LIST_SHIFT: Final = 10
_LIST_ROWS: Final = 1 << _LIST_SHIFT
_LIST_MASK: Final = _LIST_ROWS - 1


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
        """Yield (row, value) of every row that was ever written; whole blank pages are skipped."""
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
