"""Members of gangs on a page of the first list: those of one gang are read once.

::

    planned pods of one kin ──► their own bytes ──► alike but for rank, node, plan? ──no──► new run
      (``PackedPage.kin``)   (``kube.packedkeys``)    │ yes
                                                      ▼
                          a run ──► too short? ──► Siblings.judge of its first ──None──► alone
                                                      │
                                                      ▼
                                  each: rank, plan ──► Telling, and what the feed keeps of it

An API server lists the pods of a gang next to each other, since their names begin alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.ids import PodUid
from extender.feed import Feed
from extender.siblings import Sibling, planned
from extender.telling import Telling
from kube import wire
from kube.errors import DecodeError
from kube.listed import ListedPage, Times
from kube.ownbytes import Apart, OwnBytes
from kube.ownkeys import shared
from kube.packedkeys import SiblingKeys
from kube.packedpods import PackedPage
from kube.quantity import QuantityError

_Run = list[tuple[int, str, wire.ObjectMeta]]
"""Alike pods: each one's place on its page, its node and its metadata."""
_FEWEST: Final = 3  # that are worth to be judged together
UNREADABLE: Final = (DecodeError, QuantityError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class Listed:
    """A page, and what has been read of all its pods. ``may``: bool[n], whom one may tell of."""

    page: ListedPage
    uids: Sequence[PodUid]
    nodes: Sequence[str]
    created: Times
    may: NDArray[np.bool_]


class _First:
    """The first of a run, for the others to be read by."""

    def __init__(self, meta: wire.ObjectMeta, own: OwnBytes, node: str) -> None:
        """Find its keys. Raises ``ValueError``, ``IndexError`` where there are none."""
        self._meta, self._apart = meta, Apart.of(own, node)
        self._keys = SiblingKeys.of(meta, own.labels)

    def is_apart_as(self, own: OwnBytes, node: str) -> bool:
        """Tell whether nothing but its metadata can tell a pod from this one."""
        return self._apart.is_of(own, node)

    def read(self, own: OwnBytes) -> wire.ObjectMeta | None:
        """Return the metadata of a pod that is alike by its bytes, ``None`` of another one."""
        return self._keys.read(own.name, own.uid, own.labels)

    def is_like(self, meta: wire.ObjectMeta) -> bool:
        """Tell of others: not every pod has an address of a network plugin's, say."""
        return shared(meta) == shared(self._meta)


class ListedMembers:
    """Tells of members of gangs that run already."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def tell(self, listed: Listed, begin: int, telling: Telling) -> int:
        """Tell of a planned pod and of those of its kin that follow it; return where they end."""
        page = listed.page
        if not isinstance(page, PackedPage):
            return begin  # in JSON every pod is looked at for itself
        after = int(np.searchsorted(page.kin, begin, side="right"))
        end = int(page.kin[after]) if after < len(page.kin) else len(page)
        planned_ones = list(takewhile(OwnBytes.is_planned, page.own(begin, end)))
        for run in _runs(page, listed, begin, planned_ones):
            if len(run) >= _FEWEST:
                self._tell_run(listed, run, telling)
        return begin + max(len(planned_ones), 1)

    def _tell_run(self, listed: Listed, run: _Run, telling: Telling) -> None:
        first, *_ = run[0]
        like = self._judge(listed.page, first)
        if like is None:
            return
        number = telling.number(like.event)
        for place, node, meta in run:
            # What a pod asks for its gang was submitted when the pod was made: nobody's before
            # the first one's.
            if listed.created[place] < listed.created[first]:
                continue
            note = planned(meta, node)
            member = None if note is None else self._feed.siblings.member(like, meta)
            if note is None or member is None:
                continue
            telling.add(number, place, member.rank, note)
            self._feed.runs(listed.uids[place], meta, like.placed, member)

    def _judge(self, page: ListedPage, place: int) -> Sibling | None:
        try:
            return self._feed.siblings.judge(page.pod(place))
        except UNREADABLE:
            return None  # told by the one-by-one way


def _runs(page: PackedPage, listed: Listed, begin: int, owns: Sequence[OwnBytes]) -> Iterator[_Run]:
    """Yield planned pods, from a place on, that follow each other and are alike."""
    run: _Run = []
    first: _First | None = None
    some = slice(begin, begin + len(owns))
    each = zip(owns, listed.nodes[some], listed.may[some].tolist(), strict=True)
    for place, (own, node, may) in enumerate(each, begin):
        if not may or own.says_of_devices():
            yield run
            run, first = [], None
            continue
        if first is not None and not first.is_apart_as(own, node):
            yield run
            run, first = [], None
        meta = None if first is None else first.read(own)
        if meta is None:
            meta = _meta(page, place)
            if first is None or meta is None or not first.is_like(meta):
                yield run
                run, first = [], _first(meta, own, node)
        if meta is not None:
            run.append((place, node, meta))
    yield run


def _first(meta: wire.ObjectMeta | None, own: OwnBytes, node: str) -> _First | None:
    try:
        return None if meta is None else _First(meta, own, node)
    except (ValueError, IndexError):
        return None


def _meta(page: PackedPage, place: int) -> wire.ObjectMeta | None:
    try:
        return page.meta(place)
    except DecodeError:
        return None
