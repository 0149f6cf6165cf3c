"""Taking over the first list of pods a page at a time: alike pods are read once.

::

    page ──► known? unbound? ──yes──────────────────────────────► left to be taken one by one
               │ no                                                          ▲
               ▼ the first of a stretch of alike pods                        │
             kind (its bytes) ──► judged before? ──no──► Feed.stranger ──None┤
               │ yes                                         │ event         │ refused
               ▼                                             ▼               │
             the kind's event ───────────────────► PodsBound, all of the page

A pod that nobody asks Muster about, and of which everything but name, node, times and volumes is
byte for byte what another one's was, is told by that other one's event. The others, and every
pod that is Muster's own, go the way that any change goes.
"""

from collections.abc import Hashable, Mapping
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster.events import PodsBound, PodUpserted
from cluster.ids import PodUid
from extender.engine import Engine
from extender.feed import Feed
from kube.errors import DecodeError
from kube.listed import ListedPage
from kube.names import TERM
from kube.quantity import QuantityError
from kube.requests import resized_containers
from workloads.managed import takes

MOST_KINDS: Final = 4096  # of some KB each, then they are forgotten: owners' pods come in a row
_NO_LABELS: Final[Mapping[str, str]] = {}
_ALONE: Final = -1
_Kind = tuple[bool, Hashable]


class ListedPods:
    """Takes pages of a list over; remembers the kinds of pods it has seen."""

    def __init__(self, engine: Engine, feed: Feed) -> None:
        self._engine = engine
        self._feed = feed
        self._kinds: dict[_Kind, PodUpserted | None] = {}

    def take(self, page: ListedPage) -> list[int]:
        """Take over what can be taken together; return the places of the others, ascending."""
        everyone = range(len(page))
        if not self._feed.rejudging.is_idle():
            return list(everyone)  # every pod of such a namespace is noted by itself
        uids, nodes = page.uids(), page.nodes()
        created, started = page.created(), page.started()
        may = self._may(uids, nodes) & ~np.isnan(created) & ~np.isnan(started)
        kinds, kind = self._kinds_of(page, may)
        told = np.flatnonzero(kind != _ALONE)
        if not len(told):
            return list(everyone)
        places = told.tolist()
        event = PodsBound(
            kinds=tuple(kinds),
            kind=kind[told],
            uids=[uids[place] for place in places],
            nodes=[nodes[place] for place in places],
            created=created[told],
            started=started[told],
        )
        try:
            self._engine.apply(event)
        except ValueError:
            return list(everyone)  # one of them cannot be; by itself it is told of
        left: list[int] = np.flatnonzero(kind == _ALONE).tolist()
        return left

    def forget(self) -> None:
        """Forget the kinds: the list is over."""
        self._kinds.clear()

    def _may(self, uids: list[PodUid], nodes: list[str]) -> NDArray[np.bool_]:
        """Tell which pods are bound, and news."""
        row = self._engine.state.pod_row
        pairs = zip(uids, nodes, strict=True)
        return np.array([node != "" and row(uid) is None for uid, node in pairs], dtype=np.bool_)

    def _kinds_of(
        self, page: ListedPage, may: NDArray[np.bool_]
    ) -> tuple[list[PodUpserted], NDArray[np.intp]]:
        """Return the kinds there are, and each pod's: an index, or ``_ALONE``."""
        kinds: list[PodUpserted] = []
        number: dict[int, int] = {}  # by identity: alike events may be of different namespaces
        kind = np.full(len(page), _ALONE, dtype=np.intp)
        ends = [*page.leaders.tolist(), len(page)]
        for begin, end in pairwise(ends):
            those = np.flatnonzero(may[begin:end])
            if not len(those):
                continue
            event = self._event(page, begin + int(those[0]))
            if event is None:
                continue
            found = number.setdefault(id(event), len(kinds))
            if found == len(kinds):
                kinds.append(event)
            kind[begin + those] = found
        return kinds, kind

    def _event(self, page: ListedPage, place: int) -> PodUpserted | None:
        if page.is_planned(place):
            return None  # ours, and no two of these are alike
        own = page.kind(place)
        if own is None:
            return None
        labels = self._feed.namespaces.get(page.namespace(place), _NO_LABELS)
        key = takes(labels), own
        if key in self._kinds:
            return self._kinds[key]
        if len(self._kinds) >= MOST_KINDS:
            self._kinds.clear()
        found = self._kinds[key] = self._judge(page, place)
        return found

    def _judge(self, page: ListedPage, place: int) -> PodUpserted | None:
        try:
            pod = page.pod(place)
            # What a resize left behind depends on the pod's conditions, which are its own; a
            # replica of ours waits for its mark.
            if TERM in pod.metadata.annotations or resized_containers(pod.spec, pod.status):
                return None
            event = self._feed.stranger(pod)
        except (DecodeError, QuantityError, ValueError, RecursionError):
            return None  # told by the one-by-one way
        return None if event is None or event.finished or event.terminating else event
