"""Lists of nodes in protobuf → wire structs: nodes of one layout are read together.

::

    a node │ metadata │ spec │ status: allocatable, conditions │ addresses, images …
           └────────── *head*: all that is read of it ─────────┘ └─ not looked at ──┘
                │
                ▼ walked once
    layout: a mask of what must be the same in others ── tags, sizes, keys, taints, conditions
            where the texts of its own are ─────────── name, UID, labels' values, amounts …
                │
                ▼
    nodes as long up to there ──► XOR, AND mask, all at once ──► nothing is left: *alike*
                                                                     │
            what differs among these is read, a column at a time ◄───┘

Hosts of one model differ in their names, their place and a few amounts. Their images, which differ
most, come after all that is read. A node that is like no other is decoded by itself.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.kube import wire
from muster.kube.firstlist.fieldtable import PADDING, Buffer, Places, Ranges, heads
from muster.kube.firstlist.items import is_whole, parts, read_list
from muster.kube.firstlist.nodelayouts import Layout, layout_of
from muster.kube.firstlist.plain import PlainLists
from muster.kube.firstlist.protobuf import ACCEPT, BAD_INPUT, reader
from muster.kube.http.mediatypes import MAGIC
from muster.kube.resources import NODES
from muster.kube.watching.frames import Page
from muster.protogen import kubernetes_v1_pb2 as messages

FIRST_NODES: Final = 5000  # a whole answer: before the first list is applied no call is answered
PART_NODES: Final = 500  # of later ones: takes some 2 ms, so the event loop stays free
_FEWEST: Final = 16  # nodes for which it pays to walk one by hand
_TRIED: Final = 8  # layouts of one length
_MOST: Final = 256  # layouts, of some 10 KB each; then they are forgotten
_ODD: Final = -1
_TOP: Final = (
    messages.Node.METADATA_FIELD_NUMBER,
    messages.Node.SPEC_FIELD_NUMBER,
    messages.Node.STATUS_FIELD_NUMBER,
)
Rows = NDArray[np.intp]


class NodeLists:
    """Reads lists of nodes."""

    accept: Final = ACCEPT
    behind: Final = PADDING
    is_whole = staticmethod(is_whole)

    def __init__(self, *, fewest: int = _FEWEST) -> None:
        """``fewest``: nodes of one length that it takes to make a layout."""
        self._plain = PlainLists(NODES, messages.Node)
        self._fewest = fewest
        self._size = FIRST_NODES
        self._layouts: dict[int, list[Layout]] = {}

    def pages(self, body: bytes | memoryview) -> Iterator[Page[wire.Node]]:
        """Decode an answer, a part at a time. Raises ``DecodeError`` if it is no list."""
        if body[: len(MAGIC)] != MAGIC:
            yield from self._plain.pages(bytes(body).removesuffix(PADDING))
            return
        meta, items = read_list(NODES, body)
        for buffer, part in parts(body, items, self._size):
            together = self._alike(buffer, part)
            found: list[wire.Node] = []
            problems: list[str] = []
            for row in range(len(part)):
                try:
                    found.append(together.get(row) or _alone(buffer, part, row))
                except BAD_INPUT as error:
                    problems.append(f"{NODES} after {_name(found)}: {error}; left out")
            yield Page(found, meta, tuple(problems))
        if not meta.next_page:
            self._size = PART_NODES

    def _alike(self, buffer: Buffer, items: Ranges) -> dict[int, wire.Node]:
        """Return the nodes of a page that share a layout, by their places on the page."""
        if sum(map(len, self._layouts.values())) > _MOST:
            self._layouts.clear()
        found: dict[int, wire.Node] = {}
        lengths = _lengths(buffer, items)
        for length, count in Counter(lengths.tolist()).items():
            known = self._layouts.get(length, [])
            if length == _ODD or (not known and count < self._fewest):
                continue
            rows = np.flatnonzero(lengths == length)
            for layout in known[: -_TRIED - 1 : -1]:
                rows = _take(layout, buffer, items, rows, found)
            while len(rows) >= self._fewest:
                new = _first(buffer, items, int(rows[len(rows) // 2]))
                if new is None:
                    break
                others = _take(new, buffer, items, rows, found)
                if len(rows) - len(others) < self._fewest:
                    break
                self._layouts.setdefault(length, []).append(new)
                rows = others
        return found


def _take(
    layout: Layout, buffer: Buffer, items: Ranges, rows: Rows, found: dict[int, wire.Node]
) -> Rows:
    """Read the nodes of a layout; return the places of the others."""
    same, nodes = layout.read(buffer, items.at(rows))
    found.update(zip(rows[same].tolist(), nodes, strict=True))
    return rows[~same]


def _first(buffer: Buffer, items: Ranges, row: int) -> Layout | None:
    """Return the layout of a node, ``None`` if it has none that others could be read with."""
    try:
        return layout_of(_item(buffer, items, row), _alone(buffer, items, row))
    except (*BAD_INPUT, IndexError):
        return None


def _alone(buffer: Buffer, items: Ranges, row: int) -> wire.Node:
    found: wire.Node = _READ(messages.Node.FromString(_item(buffer, items, row)))
    return found


def _item(buffer: Buffer, items: Ranges, row: int) -> bytes:
    return buffer.cut(items.begin[row], items.end[row])


def _name(found: list[wire.Node]) -> str:
    """Return the name of the last node that could be read."""
    return found[-1].metadata.name if found else "the first ones"


def _lengths(buffer: Buffer, items: Ranges) -> Places:
    """Return int64[n]: one number for the sizes of metadata and spec, ``_ODD`` for odd nodes.

    A node that is not odd is metadata, spec and status, in this order, and nothing else.
    """
    found = np.full(len(items), _ODD, dtype=np.int64)
    rows, at, sizes = np.arange(len(items)), items.begin, np.zeros(len(items), dtype=np.int64)
    begin = at
    for number in _TOP:
        there = at < items.end[rows]
        rows, at, sizes = rows[there], at[there], sizes[there]
        if not len(rows):
            return found
        head = heads(buffer, at)
        begin = head.begin - items.begin[rows]
        fits = ~head.broken & (head.number == number) & (head.after <= items.end[rows])
        sizes = sizes << 20 ^ begin
        rows, at, sizes = rows[fits], head.after[fits], sizes[fits]
    whole = at == items.end[rows]
    found[rows[whole]] = sizes[whole]
    return found


_READ: Final = reader(wire.Node, messages.Node)
