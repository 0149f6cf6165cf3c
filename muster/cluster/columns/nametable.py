"""Values ↔ dense ids: node names, gang keys, label values, pod classes, taint sets.

An id is an index into a copy-on-write list, so a frozen ``NameView`` keeps telling the
truth about ids while the live table goes on. Ids of removed values are reused; whoever
stores an id in a column keeps the value alive (``acquire`` and ``release`` count for
those who share one).

A frozen view finds ids through the *live* dictionary (a copy of 130,000 entries per
snapshot would be waste) and believes an answer only when its own list confirms it.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Generic, TypeVar, cast
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from muster.cluster.columns.pagedlists import PagedList, PagedListView
from muster.cluster.columns.texts import ABSENT, TextIndex, Texts

T = TypeVar("T", bound=Hashable)

_BORROWED: Final = 1 << 40
_TOGETHER: Final = 100  # texts that are worth an index


class NameTable(Generic[T]):
    """The live, growing side. ``None`` cannot be a value."""

    __slots__ = (
        "_base", "_count", "_free", "_frozen", "_ids", "_index", "_indexed", "_refs", "_values",
    )  # fmt: skip

    def __init__(self, *, like: "NameView[T] | None" = None) -> None:
        self._base = like or None  # of an empty one nothing can be found
        self._ids: dict[T, int] = {}
        self._values: PagedList[T | None] = PagedList(
            None, like=None if like is None else like.values
        )
        self._count = len(like) if like is not None else 0
        self._free: list[int] = []
        # A fork never frees what it borrowed: its users are not counted here.
        self._refs: list[int] = [_BORROWED] * self._count
        # Weak: a view knows its table, and a cycle would wait for the garbage collector.
        self._frozen: ref[NameView[T]] | None = None
        self._index: TextIndex | None = None
        self._indexed = 0

    def __len__(self) -> int:
        """Return the number of ids ever handed out, free ones included."""
        return self._count

    def __getitem__(self, number: int) -> T:
        """Return the value behind an id in use."""
        value: T = self._values[number]  # type: ignore[assignment]  # None only for a free id
        return value

    def find(self, value: T) -> int | None:
        """Return the id of ``value``, ``None`` when it has none."""
        number = self._ids.get(value)
        if number is None and self._base is not None:
            number = self._base.find(value)
            if number is not None and self._values[number] != value:
                return None
        return number

    def find_all(self, values: Sequence[T]) -> NDArray[np.intp]:
        """Return int[n]: the ids of many values, ``ABSENT`` for those that have none."""
        if self._base is None and isinstance(values, Texts) and len(values) >= _TOGETHER:
            return self._find_texts(values)
        ids = map(self._ids.get if self._base is None else self.find, values)
        return np.array([ABSENT if number is None else number for number in ids], dtype=np.intp)

    def _find_texts(self, texts: Texts) -> NDArray[np.intp]:
        """Return the same for texts of a page; the index may lack what is new."""
        if self._index is None or 2 * self._indexed < self._count:
            self._index = TextIndex(cast("Iterable[str | None]", self._values.peek(self._count)))
            self._indexed = self._count
        found = self._index.find(texts)
        for place in np.flatnonzero(found == ABSENT).tolist():
            number = self._ids.get(cast("T", texts[place]))
            found[place] = ABSENT if number is None else number
        return found

    def add(self, value: T) -> int:
        """Return the id of ``value``, a new one when it has none yet."""
        number = self.find(value)
        return self._new(value) if number is None else number

    def extend(self, values: Sequence[T]) -> int:
        """Give new ids, in a row, to values that have none; return the first. None may be free."""
        first = self._count
        self._count += len(values)
        self._values.grow(self._count)
        self._values.put(first, values)
        self._refs += [0] * len(values)
        self._ids.update(zip(values, range(first, self._count), strict=True))
        self._frozen = None
        return first

    @property
    def has_free_ids(self) -> bool:
        """Whether ids wait for reuse: the next value does not get the highest one."""
        return bool(self._free)

    def remove(self, number: int) -> None:
        """Free an id for reuse."""
        self._index = None  # its number may be another one's next
        self._ids.pop(self[number], None)
        self._values[number] = None
        self._free.append(number)
        self._frozen = None

    def acquire(self, value: T, users: int = 1) -> int:
        """``add``, and count one more user, or several."""
        number = self._ids.get(value)
        if number is None:
            number = self.add(value)
        self._refs[number] += users
        return number

    def acquire_all(self, users: Mapping[T, int]) -> dict[T, int]:
        """``acquire`` each value for so many users; return the ids."""
        new = [value for value in users if self.find(value) is None]
        if new and not self._free:
            self.extend(new)
        return {value: self.acquire(value, count) for value, count in users.items()}

    def release(self, number: int) -> bool:
        """Count one user less; free the id and return True when that was the last."""
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
        return self._count - len(self._free)

    def live(self) -> Iterator[tuple[int, T]]:
        """Yield (id, value) in use, in id order."""
        for number in range(self._count):
            value = self._values[number]
            if value is not None:
                yield number, value

    def freeze(self) -> "NameView[T]":
        """Return a view that never changes again."""
        view = None if self._frozen is None else self._frozen()
        if view is None:
            view = NameView(self._values.freeze(self._count), self)
            self._frozen = ref(view)
        return view

    def free_ids(self) -> list[int]:
        """Return the ids waiting for reuse, the next one last (for ``dump``)."""
        return list(self._free)

    def restore(self, values: list[T | None], free: list[int], refs: list[int]) -> None:
        """Fill an empty table with what ``dump`` wrote, id for id."""
        self._count = len(values)
        self._values.grow(self._count)
        for number, value in enumerate(values):
            if value is not None:
                self._values[number] = value
                self._ids[value] = number
        self._free = list(free)
        self._refs = list(refs)
        self._frozen = None

    def _new(self, value: T) -> int:
        if self._free:
            number = self._free.pop()
        else:
            number = self._count
            self._count += 1
            self._values.grow(self._count)
            self._refs.append(0)
        self._values[number] = value
        self._ids[value] = number
        self._frozen = None
        return number


class NameView(Generic[T]):
    """The frozen side: a sequence of values by id; a freed id reads as ``None``."""

    __slots__ = ("__weakref__", "_live", "_own", "values")

    def __init__(self, values: PagedListView[T | None], live: NameTable[T]) -> None:
        self.values = values
        self._live = live
        self._own: dict[T, int] | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, number: int) -> T:
        """Return the value behind an id in use."""
        return cast("T", self.values[number])

    def __iter__(self) -> Iterator[T | None]:
        return iter(self.values)

    def find(self, value: T) -> int | None:
        """Return the id of ``value``, ``None`` when it had none when this was frozen."""
        number = self._live.find(value)
        if number is not None and number < len(self.values) and self.values[number] == value:
            return number
        return None if self._live.freeze() is self else self._search(value)

    def _search(self, value: T) -> int | None:
        # The table moved on since: build the dictionary of then, once.
        if self._own is None:
            self._own = {v: i for i, v in enumerate(self.values) if v is not None}
        return self._own.get(value)
