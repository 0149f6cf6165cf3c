"""Applies a list of pods by columns, a page at a time: pods that are alike are judged once.

::

    page ──► a pod is known, or not bound? ──yes────────────────► left, to be applied one by one
               │ no                                                          ▲
               ▼ the first of a stretch of alike pods                        │
             kind (its bytes) ──► judged before? ──no──► unmanaged? ────no───┤
               │ yes                                         │ event         │ refused
               ▼                                             ▼               │
             the kind's event ───────────────────► ``PodsBound``, all of the page

Bound pods that are not managed share one event (``Feed.unmanaged_event``) if they are equal byte
for byte in all but name, node, times and volumes. So do running members of gangs
(``extender.intake.firstlist.members``). All other pods are applied one by one, like changes of a
watch: pods that wait for Muster, and all pods of a page in JSON.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.engine import Engine
from extender.intake.firstlist.batch import BoundBatch
from extender.intake.firstlist.members import UNREADABLE, ListedMembers, ReadPage
from extender.intake.firstlist.versions import AppliedVersions, Rows
from extender.intake.objects import Feed
from muster.cluster.columns.texts import are_empty
from muster.cluster.columns.uids import Uids
from muster.cluster.events import PodUpserted
from muster.cluster.ids import NO_ROW, PodUid
from muster.kube import wire
from muster.kube.firstlist import ownkeys
from muster.kube.firstlist.podpage import PackedPage
from muster.kube.firstlist.versions import Versions, version
from muster.kube.names import TERM
from muster.kube.translation.requests import resized_containers
from muster.kube.translation.translate import pod_uid, pod_uids
from muster.workloads.managedpods import takes

MOST_KINDS: Final = 4096  # some KB each; then all are dropped, since an owner's pods are adjacent
_NO_LABELS: Final[Mapping[str, str]] = {}
_Kind = tuple[bool, Hashable]


class ListedPods:
    """Applies lists by columns; a ``FirstListReader``. It stores the kinds of pods of one list."""

    def __init__(self, engine: Engine, feed: Feed) -> None:
        self._engine = engine
        self._feed = feed
        self._members = ListedMembers(feed)
        self._kinds: dict[_Kind, PodUpserted | None] = {}
        self._versions = AppliedVersions()
        self._alive: Rows | None = None

    def begin(self) -> None:
        """Prepare for a list that begins, or begins again."""
        self._alive = Rows() if self._engine.state.has_pods else None

    def take(self, pods: Sequence[wire.Pod]) -> list[int]:
        """Apply pods together where possible; return the places of the others, ascending.

        Pods that were applied before in the same version are skipped. Of the rest, only pods of a
        ``PackedPage`` can be applied together.
        """
        uids, versions = _uids_and_versions(pods)
        rows = self._engine.state.pod_rows(uids)
        self._mark(rows)
        if not self._feed.rejudging.is_idle():
            return list(range(len(pods)))  # the re-judging must see every pod by itself
        if (rows != NO_ROW).any() or not uids.are_distinct():
            changed = ~self._versions.are_applied(rows, versions)
            return np.flatnonzero(changed).tolist()
        if not isinstance(pods, PackedPage):
            return list(range(len(pods)))
        left = self._take_new(pods, uids)
        if len(left) < len(uids):
            rows = self._engine.state.pod_rows(uids)
            self._versions.note_all(rows, versions)
            self._mark(rows)
        return left

    def take_nodes(self, nodes: Sequence[wire.Node]) -> bool:
        """Apply nodes of the first list together; return ``False``, with none applied, on error."""
        try:
            self._feed.nodes.take_all(nodes)
        except (ValueError, RecursionError):
            return False  # the invalid one is reported when it is applied by itself
        return True

    def applied(self, pod: wire.Pod) -> None:
        """Note that a pod was applied by itself."""
        row = self._engine.state.pod_row(pod_uid(pod.metadata.uid))
        if row is not None:
            self._versions.note(row, version(pod.metadata.resource_version))
            if self._alive is not None:
                self._alive.add(row)

    def end(self, known: Callable[[], Uids]) -> Sequence[PodUid]:
        """Return which of the ``known`` pods are not in the list that ends."""
        alive, self._alive = self._alive, None
        self._kinds.clear()
        self._engine.state.settle()
        if alive is None:
            return []  # the model had no pods when the list began
        uids = known()
        lost = ~alive.have(self._engine.state.pod_rows(uids))
        return uids.at(lost)

    def _mark(self, rows: NDArray[np.int32]) -> None:
        if self._alive is not None:
            self._alive.add_all(rows)

    def _take_new(self, page: PackedPage, uids: Uids) -> list[int]:
        nodes, created, started = page.nodes(), page.created(), page.started()
        may = ~are_empty(nodes) & ~np.isnan(created) & ~np.isnan(started)
        batch = self._batch(ReadPage(page, uids, nodes, created, may))
        event = batch.event(uids, nodes, created, started)
        if event is None:
            return list(range(len(page)))
        try:
            self._engine.apply(event)
        except ValueError:
            return list(range(len(page)))  # one is invalid; it is reported when applied by itself
        return batch.alone()

    def _batch(self, listed: ReadPage) -> BoundBatch:
        """Return the pods of a page that can be applied together."""
        page, batch = listed.page, BoundBatch.of(len(listed.page))
        ends = [*page.leaders.tolist(), len(page)]
        members_end = 0  # members of gangs were read up to here
        for begin, end in pairwise(ends):
            if begin < members_end:
                continue
            those = begin + np.flatnonzero(listed.may[begin:end])
            if not len(those):
                continue
            first = int(those[0])
            if page.is_planned(first):
                members_end = self._members.add(listed, begin, batch)
                continue
            event = self._event(page, first)
            if event is not None:
                batch.add_alike(batch.number(event), those)
        return batch

    def _event(self, page: PackedPage, place: int) -> PodUpserted | None:
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

    def _judge(self, page: PackedPage, place: int) -> PodUpserted | None:
        try:
            pod = page.pod(place)
            # The state of a resize depends on the pod's own conditions. The mark on a replica's
            # own pod must be seen by itself.
            if TERM in pod.metadata.annotations or resized_containers(pod.spec, pod.status):
                return None
            if ownkeys.select(pod):
                return None
            event = self._feed.unmanaged_event(pod)
        except UNREADABLE:
            return None  # it is reported when it is applied by itself
        return None if event is None or event.finished or event.terminating else event


def _uids_and_versions(pods: Sequence[wire.Pod]) -> tuple[Uids, Versions]:
    """Return the UID and the resource version of each pod."""
    if isinstance(pods, PackedPage):
        return pods.uids(), pods.versions()
    metas = [pod.metadata for pod in pods]
    versions = [version(meta.resource_version) for meta in metas]
    return pod_uids([meta.uid for meta in metas]), np.array(versions, dtype=np.int64)
