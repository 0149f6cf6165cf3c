"""Members of gangs on a page of the first list: those of one gang are read once.

::

    planned pods of one kin ──► metadata ──► alike but for rank, node and plan? ──no──► a new run
      (``PackedPage.kin``)                            │ yes
                                                      ▼
                          a run ──► too short? ──► Siblings.judge of its first ──None──► alone
                                                      │
                                                      ▼
                                  each: rank, plan ──► Telling, and what the feed keeps of it

An API server lists the pods of a gang next to each other, since their names begin alike.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.events import PlanNote
from cluster.ids import PodUid
from extender.feed import Feed
from extender.siblings import Sibling, planned
from extender.telling import Telling
from kube import wire
from kube.errors import DecodeError
from kube.listed import ListedPage, Times
from kube.ownkeys import shared
from kube.packedpods import PackedPage
from kube.quantity import QuantityError

_FEWEST: Final = 3  # that are worth to be judged together
UNREADABLE: Final = (DecodeError, QuantityError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One pod of a run. ``place``: on its page."""

    place: int
    meta: wire.ObjectMeta


@dataclass(frozen=True, slots=True)
class Listed:
    """A page, and what has been read of all its pods. ``may``: bool[n], whom one may tell of."""

    page: ListedPage
    uids: Sequence[PodUid]
    nodes: Sequence[str]
    created: Times
    may: NDArray[np.bool_]


class ListedMembers:
    """Tells of members of gangs that run already."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def tell(self, listed: Listed, begin: int, telling: Telling) -> int:
        """Tell of a planned pod and of those of its kin that follow it; return where they end."""
        page = listed.page
        if not isinstance(page, PackedPage):
            return begin  # in JSON every pod is looked at for itself
        end = _planned_end(page, begin)
        for run in _runs(page, listed, begin, end):
            if len(run) >= _FEWEST:
                self._tell_run(listed, run, telling)
        return end

    def _tell_run(self, listed: Listed, run: list[_Seen], telling: Telling) -> None:
        like = self._judge(listed.page, run[0].place)
        if like is None:
            return
        number = telling.number(like.event)
        for one in run:
            # What a pod asks for its gang was submitted when the pod was made: nobody's before
            # the first one's.
            if listed.created[one.place] < listed.created[run[0].place]:
                continue
            note = planned(one.meta, listed.nodes[one.place])
            if note is not None:
                self._tell_one(like, one, note, listed.uids[one.place], telling, number)

    def _tell_one(
        self,
        like: Sibling,
        one: _Seen,
        note: PlanNote,
        uid: PodUid,
        telling: Telling,
        number: int,
    ) -> None:
        member = self._feed.siblings.member(like, one.meta)
        if member is None:
            return
        telling.add(number, one.place, member.rank, note)
        self._feed.runs(uid, one.meta, like.placed, member)

    def _judge(self, page: ListedPage, place: int) -> Sibling | None:
        try:
            return self._feed.siblings.judge(page.pod(place))
        except UNREADABLE:
            return None  # told by the one-by-one way


def _planned_end(page: PackedPage, begin: int) -> int:
    """Return the end of the planned pods of one kin from a place on."""
    after = int(np.searchsorted(page.kin, begin, side="right"))
    stop = int(page.kin[after]) if after < len(page.kin) else len(page)
    end = begin + 1
    while end < stop and page.is_planned(end):
        end += 1
    return end


def _runs(page: PackedPage, listed: Listed, begin: int, end: int) -> Iterator[list[_Seen]]:
    """Yield pods that follow each other and are alike."""
    run, like = list[_Seen](), None
    for place in range(begin, end):
        seen = _seen(page, place) if listed.may[place] else None
        own = None if seen is None else (shared(seen.meta), page.apart(place, listed.nodes[place]))
        if own is None or own != like:
            yield run
            run, like = [], own
        if seen is not None:
            run.append(seen)
    yield run


def _seen(page: PackedPage, place: int) -> _Seen | None:
    try:
        return _Seen(place, page.meta(place))
    except DecodeError:
        return None
