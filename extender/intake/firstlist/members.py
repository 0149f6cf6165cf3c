"""Members of gangs that run, on a page of a first list: one of them is read for its siblings.

::

    planned pods that are similar ──► the first of each row of identical pods, and all others
      (``PackedPage.similar``)          │            (``muster.kube.firstlist.identicalpods``)
                                        ▼
                        their own bytes ──► alike but for rank, node and plan? ──no──► new run
                         (``muster.kube.firstlist.siblingkeys``)   │ yes
                                                                   ▼
              a run ──► long enough? ──► its first is judged; by the run before it,
                                         if only metadata, node and token differ ──None──► alone
                                                                   │
                                                                   ▼
              each, and those identical to it: rank and plan ──► ``BoundBatch``, and the feed

An API server lists the pods of a gang next to each other, since their names begin alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.intake.firstlist.batch import BoundBatch
from extender.intake.firstlist.siblings import Sibling, planned
from extender.intake.objects import Feed
from muster.cluster.columns.uids import Uids
from muster.kube import wire
from muster.kube.errors import DecodeError
from muster.kube.firstlist.identicalpods import FEWEST, IdenticalPods
from muster.kube.firstlist.ownbytes import Apart, OwnBytes
from muster.kube.firstlist.ownkeys import shared
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.siblingkeys import SiblingKeys
from muster.kube.firstlist.versions import Times
from muster.kube.quantity import QuantityError
from muster.workloads.dialect import NO_RANK
from muster.workloads.keys.ranks import told_by

_Pod = tuple[int, str, wire.ObjectMeta]
"""A pod's place on its page, its node and its metadata."""
UNREADABLE: Final = (DecodeError, QuantityError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page of n pods, and columns that were read of it."""

    page: PackedPage
    uids: Uids
    nodes: Sequence[str]
    created: Times
    #: bool[n]: which pods may go together, as far as these columns show: bound, with good times.
    may: NDArray[np.bool_]


class _First:
    """The first of a run, for the others to be read by."""

    def __init__(self, meta: wire.ObjectMeta, own: OwnBytes, node: str) -> None:
        """Find its keys. Raises ``ValueError``, ``IndexError`` where there are none."""
        self._meta, self.apart = meta, Apart.of(own, node, _spares(meta, node))
        self._keys = SiblingKeys.of(meta, own.labels)

    def is_apart_as(self, own: OwnBytes, meta: wire.ObjectMeta, node: str) -> bool:
        """Return whether a pod can differ from this one in its metadata only."""
        return self.apart.is_of(own, node, _spares(meta, node))

    def read(self, own: OwnBytes) -> wire.ObjectMeta | None:
        """Return the metadata of a pod that is alike by its bytes, ``None`` of another one."""
        return self._keys.read(own.name, own.uid, own.labels)

    def differs_by_metadata(self, other: "_First | None") -> bool:
        """Return whether two similar pods differ in metadata and nodes only."""
        return other is not None and self.apart == other.apart

    def is_like(self, meta: wire.ObjectMeta) -> bool:
        """Return whether other metadata says the same; its keys may be others than this one's.

        Not every pod has an address of a network plugin, for example.
        """
        return shared(meta) == shared(self._meta)


@dataclass(frozen=True, slots=True)
class _Group:
    """Members that are added as one kind."""

    #: The member that was judged for all of them.
    like: Sibling
    #: Of the kind, in the batch.
    number: int
    batch: BoundBatch


@dataclass(frozen=True, slots=True)
class _Judged:
    """The first of a run, judged."""

    like: Sibling
    #: What sets it apart from others, ``None`` where that cannot be read.
    first: _First | None


@dataclass(slots=True)
class _Run:
    """Pods that are alike."""

    page: PackedPage
    #: ``None`` where the others cannot be read by it.
    first: _First | None = None
    pods: list[_Pod] = field(default_factory=list)

    def read(self, listed: ReadPage, places: NDArray[np.intp]) -> Iterator[_Pod]:
        """Yield other pods that are alike."""
        for place, own in zip(places.tolist(), self.page.own(places), strict=True):
            meta = None if self.first is None else self.first.read(own)
            if meta is not None:
                yield place, listed.nodes[place], meta


class ListedMembers:
    """Adds members of gangs that run to a batch."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    def add(self, listed: ReadPage, begin: int, batch: BoundBatch) -> int:
        """Add a planned pod and the similar ones behind it, as far as they go together.

        ``begin``: the place of the first. Returns where the pods end that were looked at.
        """
        page = listed.page
        after = int(np.searchsorted(page.similar, begin, side="right"))
        end = int(page.similar[after]) if after < len(page.similar) else len(page)
        found = list(page.identical(begin + np.flatnonzero(listed.may[begin:end])))
        read = np.ones(end - begin, dtype=np.bool_)
        for one in found:
            read[one.places[1:] - begin] = False
        places = begin + np.flatnonzero(read)
        owns = list(takewhile(OwnBytes.is_planned, page.own(places)))
        stop = end if len(owns) == len(places) else int(places[len(owns)])
        identical = {int(one.places[0]): one.before(stop) for one in found}
        before: _Judged | None = None
        for run in _runs(listed, page, places[: len(owns)].tolist(), owns):
            if len(run.pods) >= FEWEST or any(place in identical for place, _, _ in run.pods):
                judged = self._judge(run, before)
                if judged is not None:
                    self._add_run(listed, run, judged.like, identical, batch)
                    before = judged
        return max(stop, begin + 1)

    def _add_run(
        self,
        listed: ReadPage,
        run: _Run,
        like: Sibling,
        identical: Mapping[int, IdenticalPods],
        batch: BoundBatch,
    ) -> None:
        first, *_ = run.pods[0]
        group = _Group(like, batch.number(like.event), batch)
        # What a pod asks for its gang was submitted when the pod was made, so a pod that is older
        # than the judged one goes by itself.
        may = listed.created >= listed.created[first]
        for one in run.pods:
            place, _, meta = one
            if may[place] and self._add_one(listed, group, one) and place in identical:
                others = may[identical[place].places]
                others[0] = False
                self._add_identical(listed, group, meta, identical[place].those(others), run)

    def _add_one(self, listed: ReadPage, group: _Group, one: _Pod) -> bool:
        """Add a pod; return ``False`` if all of it has to be read."""
        place, node, meta = one
        note = planned(meta, node)
        member = None if note is None else self._feed.siblings.member(group.like, meta)
        if note is None or member is None:
            return False
        group.batch.add_member(group.number, place, member.rank, note)
        self._feed.runs(listed.uids[place], meta, group.like.placed, member)
        return True

    def _add_identical(
        self,
        listed: ReadPage,
        group: _Group,
        meta: wire.ObjectMeta,
        identical: IdenticalPods,
        run: _Run,
    ) -> None:
        """Add identical pods by numbers, or one by one where more than a rank sets them apart.

        ``meta``: of the first of them, which has been added.
        """
        like, places = group.like, identical.places
        if like.rank is None:
            for one in run.read(listed, places):
                self._add_one(listed, group, one)
            return
        source = told_by(meta, like.rank_keys)
        own = np.full(len(places), NO_RANK) if source is None else identical.numbers[source]
        ranks = identical.planned if source is None else own
        group.batch.add_members(group.number, places, ranks)
        uids = list(listed.uids.at(places))
        self._feed.run_together(uids, like.placed, own.tolist())

    def _judge(self, run: _Run, before: _Judged | None) -> _Judged | None:
        """Judge the first of a run. ``before``: a judged pod that is similar to it."""
        (place, node, meta), own = run.pods[0], run.first
        siblings = self._feed.siblings
        try:
            if before is not None and own is not None and own.differs_by_metadata(before.first):
                like = siblings.judge_as(before.like, meta, node)
            else:
                like = siblings.judge(run.page.pod(place))
        except UNREADABLE:
            return None  # by itself it is reported
        return None if like is None else _Judged(like, own)


def _runs(
    listed: ReadPage, page: PackedPage, places: Sequence[int], owns: Sequence[OwnBytes]
) -> Iterator[_Run]:
    """Yield planned pods that follow each other and are alike, none of them without any."""
    run = _Run(page)
    for place, own in zip(places, owns, strict=True):
        node = listed.nodes[place]
        if not listed.may[place] or own.reports_devices():
            yield run
            run = _Run(page)
            continue
        meta = _read_by(run.first, own, node)
        if meta is None:
            meta = _meta(page, place)
            if meta is None or not _is_like(run.first, own, meta, node):
                yield run
                run = _Run(page, _first(meta, own, node))
        if meta is not None:
            run.pods.append((place, node, meta))
    yield run


def _read_by(first: _First | None, own: OwnBytes, node: str) -> wire.ObjectMeta | None:
    """Return the metadata of a pod that is alike by its bytes, ``None`` of another one."""
    meta = None if first is None else first.read(own)
    if first is None or meta is None or not first.is_apart_as(own, meta, node):
        return None
    return meta


def _is_like(first: _First | None, own: OwnBytes, meta: wire.ObjectMeta, node: str) -> bool:
    """Return whether a pod that has other bytes says the same all the same."""
    return first is not None and first.is_apart_as(own, meta, node) and first.is_like(meta)


def _spares(meta: wire.ObjectMeta, node: str) -> tuple[str, ...]:
    note = planned(meta, node)
    return () if note is None else note.spares


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
