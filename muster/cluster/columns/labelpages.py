"""Labels of nodes that have most of them alike: one page for all, a row of it per node.

::

    page    same  {arch: amd64, pool: train, hostname: host-0, rack: r0}      once
            own    hostname ── host-0 │ host-1 │ host-2 │ …                   a column a key
                   rack ────── r0     │ r0     │ r1     │ …
                                 ▲
    row 1 of the page ───────────┘   reads like a dict: {arch: amd64, …, hostname: host-1, rack: r0}

Hosts of one model have two dozen labels and differ in four. With a dict for each of 130,000 nodes,
the other twenty would be copied each time; as rows of a page they are written once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

_NOWHERE: Final = -1


class Values(Sequence[str]):
    """The values of one label on the nodes of a page; runs of equal values are stored once.

    ``distinct``: texts, each other than the one before it; ``of``: int[n], the index into them.
    """

    __slots__ = ("distinct", "of")

    def __init__(self, distinct: Sequence[str], of: NDArray[np.intp]) -> None:
        self.distinct = distinct
        self.of = of

    def __len__(self) -> int:
        return len(self.of)

    @overload
    def __getitem__(self, row: int, /) -> str: ...
    @overload
    def __getitem__(self, row: slice, /) -> Sequence[str]: ...
    def __getitem__(self, row: int | slice, /) -> str | Sequence[str]:
        """Return the value of a node, or a tuple for a slice."""
        if isinstance(row, slice):
            return Values(self.distinct, self.of[row])
        value: str = self.distinct[self.of[row]]
        return value


class _Pick(NamedTuple):
    """Some labels of a page."""

    #: A value for each key, ``None`` where the nodes lack the label. Those in ``own`` are replaced.
    same: tuple[str | None, ...]
    #: (index of the key, its column) of the labels that differ.
    own: list[tuple[int, Sequence[str]]]


class LabelPage:
    """The labels of nodes that have the same keys. ``rows`` returns the mapping of each node."""

    __slots__ = ("_picks", "own", "same")

    def __init__(self, same: Mapping[str, str], own: Mapping[str, Sequence[str]]) -> None:
        """Take the labels of one node (``same``), and a value per node where they differ."""
        self.same = same
        self.own = own
        self._picks: dict[tuple[str, ...], _Pick] = {}

    def rows(self, count: int) -> Iterable["LabelRow"]:
        """Return the labels of each of ``count`` nodes."""
        return map(LabelRow, repeat(self), range(count))

    def pick(self, row: int, keys: tuple[str, ...]) -> tuple[str | None, ...]:
        """Return some labels of a node; one tuple object for all nodes where they are equal."""
        pick = self._picks.get(keys)
        if pick is None:
            own = [(place, self.own[key]) for place, key in enumerate(keys) if key in self.own]
            pick = self._picks[keys] = _Pick(tuple(map(self.same.get, keys)), own)
        if not pick.own:
            return pick.same
        found = list(pick.same)
        for place, column in pick.own:
            found[place] = column[row]
        return tuple(found)


class LabelRow(Mapping[str, str]):
    """The labels of one node."""

    __slots__ = ("page", "row")

    def __init__(self, page: LabelPage, row: int) -> None:
        self.page = page
        self.row = row

    def __getitem__(self, key: str) -> str:
        """Return a label."""
        own = self.page.own.get(key)
        return self.page.same[key] if own is None else own[self.row]

    def __iter__(self) -> Iterator[str]:
        """Yield the keys."""
        return iter(self.page.same)

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self.page.same)

    def __repr__(self) -> str:
        """Show the labels like a dict."""
        return repr(dict(self))


class OneKey(NamedTuple):
    """One label key on some nodes."""

    #: The label key.
    key: str
    #: The distinct values, in the order in which nodes have them first.
    values: Sequence[str]
    #: int[n]: an index into ``values`` for each node, -1 where the node lacks the label.
    value: NDArray[np.intp]


def by_key(labels: Sequence[Mapping[str, str]]) -> Iterator[OneKey]:
    """Yield each key, in the order in which nodes have them first, with its values."""
    parts = _parts(labels)
    for key in dict.fromkeys(key for part in parts for key in part.page.same):
        yield _one_key(key, parts, len(labels))


class _Part(NamedTuple):
    """Nodes of one page."""

    page: LabelPage
    #: Their rows on the page.
    rows: list[int]
    #: Their indices among the nodes that were asked about.
    places: list[int]

    def values(self, key: str) -> str | list[str] | None:
        """Return the values of a label: one for all of the nodes or one for each."""
        own = self.page.own.get(key)
        return self.page.same.get(key) if own is None else [own[row] for row in self.rows]


def _parts(labels: Sequence[Mapping[str, str]]) -> list[_Part]:
    """Return the nodes by page, in the order of first use; equal keys of dicts make a page."""
    found: dict[int | tuple[str, ...], list[int]] = {}
    for place, one in enumerate(labels):
        page = id(one.page) if isinstance(one, LabelRow) else tuple(one)
        found.setdefault(page, []).append(place)
    return [_part([labels[place] for place in places], places) for places in found.values()]


def _part(labels: list[Mapping[str, str]], places: list[int]) -> _Part:
    first = labels[0]
    if isinstance(first, LabelRow):
        return _Part(first.page, [one.row for one in labels if isinstance(one, LabelRow)], places)
    columns = zip(first, zip(*(one.values() for one in labels), strict=True), strict=True)
    own = {key: each for key, each in columns if each.count(each[0]) < len(each)}
    return _Part(LabelPage(first, own), list(range(len(labels))), places)


def _one_key(key: str, parts: list[_Part], count: int) -> OneKey:
    column = parts[0].page.own.get(key)
    if isinstance(column, Values) and len(parts) == 1:
        return _one_key_once(key, column, parts[0].rows)
    by_part = [part.values(key) for part in parts]
    first = by_part[0]
    if isinstance(first, str) and all(values == first for values in by_part):
        return OneKey(key, [first], np.zeros(count, dtype=np.intp))
    texts: list[str | None] = [None] * count
    for part, values in zip(parts, by_part, strict=True):
        each = values if isinstance(values, list) else repeat(values)
        for place, text in zip(part.places, each, strict=False):  # ``repeat`` never ends
            texts[place] = text
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    number: dict[str | None, int] = {text: place for place, text in enumerate(distinct)}
    number[None] = _NOWHERE
    return OneKey(key, distinct, np.array([number[text] for text in texts], dtype=np.intp))


def _one_key_once(key: str, column: Values, rows: list[int]) -> OneKey:
    """Return the same for nodes of one page; looks at each distinct value once."""
    of = column.of[np.array(rows, dtype=np.intp)]
    begins = np.append(True, of[1:] != of[:-1])
    number: dict[str, int] = {}
    each = [number.setdefault(column.distinct[place], len(number)) for place in of[begins].tolist()]
    value = np.array(each, dtype=np.intp)[begins.cumsum() - 1]
    return OneKey(key, list(number), value)
