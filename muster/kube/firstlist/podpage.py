"""A page of pods in protobuf, as columns: most fields of a pod are located and not decoded.

::

    page ──► items ──► where the fields of each pod are   (``shapes``, ``podfields``)
                              │
             own ◄────────────┴──────────► shared, as ranges of bytes
             UID, node, times              compared with those of the pod before it:
                                           equal bytes, the same kind

In a list the pods of one owner follow each other (etcd's keys: namespace, then name), so a kind
comes in stretches, and only the first pod of each is decoded. A pod with anything that
``muster.kube.firstlist.fieldtable`` does not read is decoded by itself.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, overload

import numpy as np
from google.protobuf.message import DecodeError as BadMessage
from numpy.typing import NDArray

from muster.cluster.columns.texts import LONGEST, Texts, laid_out
from muster.cluster.columns.uids import Uids
from muster.kube import wire
from muster.kube.errors import DecodeError
from muster.kube.firstlist.fieldtable import Buffer, Flags, Ranges, alike, seconds
from muster.kube.firstlist.identicalpods import FEWEST, IdenticalPods, OwnRanges, identical_pods
from muster.kube.firstlist.ownbytes import OwnBytes, looks_planned
from muster.kube.firstlist.ownkeys import shared
from muster.kube.firstlist.protobuf import BAD_INPUT, reader
from muster.kube.firstlist.shapes import Shapes
from muster.kube.firstlist.uids import UID_ROOM, UID_TEXT, read_uids
from muster.kube.firstlist.versions import NO_VERSION, VERSION_DIGITS, Times, Versions
from muster.kube.resources import PODS
from muster.kube.translation.translate import pod_uid
from muster.protogen import kubernetes_v1_pb2 as messages

_WORD: Final = 8
_BASE: Final = 10  # of numbers in text


class PackedPage(Sequence[wire.Pod]):
    """Some pods of a list in protobuf, in its order, and which of them are alike.

    As a sequence it decodes each pod that it is asked for, see ``pod``.
    """

    #: int[k], ascending, 0 first: where stretches begin of pods of one ``kind``.
    leaders: NDArray[np.intp]
    #: int[m], the same for *similar* pods: they may differ in labels, annotations and owners, too.
    similar: NDArray[np.intp]

    def __init__(self, buffer: Buffer, items: Ranges, shapes: Shapes) -> None:
        """``items``: where the pods are; ``shapes``: those of the pages before."""
        self._buffer, self._items = buffer, items
        located = self._located = shapes.locate(buffer, items)
        self._fields, self._broken = located.fields, located.broken
        self.leaders, self.similar = self._stretches()

    def _stretches(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if not len(self._items):
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        similar, texts = self._located.similar, self._located.labelling
        one, other = texts[1:], texts[:-1]
        known = (one >= 0) & (other >= 0)
        same = similar & known & (one == other)
        (rows,) = np.nonzero(similar & ~known)
        labels = self._located.spread(self._fields.labels)
        same[rows] = alike(self._buffer, labels.at(rows + 1), labels.at(rows))
        return _begins(same), _begins(similar)

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> wire.Pod: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[wire.Pod]: ...
    def __getitem__(self, place: int | slice) -> wire.Pod | Sequence[wire.Pod]:
        """Return all of a pod. Raises ``IndexError``, and what ``pod`` raises."""
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"pod {place} of a page of {len(self)}")
        return self.pod(place)

    def uids(self) -> Uids:
        """Return the UID of each; canonical ones together, others by ``translate.pod_uid``."""
        where = self._located.spread(self._fields.uid)
        words, odd = read_uids(self._buffer.texts(where.begin, UID_ROOM))
        odd |= (where.end - where.begin != UID_TEXT) | self._broken
        for place in np.flatnonzero(odd).tolist():
            uid = pod_uid(self._raw_meta(place).uid)
            words[place] = np.frombuffer(uid, dtype=np.uint64)
        return Uids(words)

    def nodes(self) -> Sequence[str]:
        """Return the node of each, "" for one that is not bound."""
        where = self._located.spread(self._fields.node)
        sizes = where.end - where.begin
        width = -(-int(sizes.max(initial=1)) // _WORD) * _WORD
        if width > LONGEST:
            places = zip(where.begin.tolist(), where.end.tolist(), strict=True)
            return [self._text(begin, end) for begin, end in places]
        raw = self._buffer.texts(where.begin, width)
        raw[np.arange(width) >= sizes[:, None]] = 0
        return Texts(laid_out(sizes, raw.view(np.uint64)))

    def versions(self) -> Versions:
        """Return the resource version of each."""
        where = self._located.spread(self._fields.version)
        size = where.end - where.begin
        odd = (size < 1) | (size > VERSION_DIGITS) | self._broken
        width = min(VERSION_DIGITS, int(size.max(initial=1)))
        # From the last digit backwards, so that a place is worth the same in all of them.
        digits = self._buffer.texts(np.maximum(where.end - width, 0), width) - np.uint8(ord("0"))
        digits[np.arange(width) < width - size[:, None]] = 0
        odd |= (digits >= _BASE).any(axis=1)
        found: Versions = digits @ _BASE ** np.arange(width - 1, -1, -1, dtype=np.int64)
        found[odd] = NO_VERSION
        return found

    def created(self) -> Times:
        """Return when each was made."""
        return self._times(self._fields.created)

    def started(self) -> Times:
        """Return when the kubelet first saw each."""
        return self._times(self._fields.started)

    def kind(self, place: int) -> Hashable | None:
        """Return a key that is equal for pods that only differ in name, node, times and volumes.

        ``None``: the pod has to be decoded by itself.
        """
        if self._broken[place]:
            return None
        try:
            meta = shared(self.meta(place))
        except DecodeError:
            return None
        return meta, self._fields.counted(int(self._located.source[place]))

    def namespace(self, place: int) -> str:
        """Return a pod's namespace."""
        return self._text(*self._located.one(self._fields.namespace, place))

    def is_planned(self, place: int) -> bool:
        """Return whether a pod carries a plan, or bytes that look like one."""
        begin, end = self._located.one(self._fields.labels, place)
        return looks_planned(self._buffer.cut(begin, end))

    def meta(self, place: int) -> wire.ObjectMeta:
        """Return a pod's metadata. Raises ``DecodeError`` where it cannot be read."""
        begin, end = self._located.one(self._fields.meta, place)
        try:
            message = messages.ObjectMeta.FromString(self._buffer.cut(begin, end))
            found: wire.ObjectMeta = _READ_META(message)
        except BAD_INPUT as error:
            raise DecodeError(f"{PODS} {self._called(place)}: metadata: {error}") from error
        return found

    def identical(self, some: NDArray[np.intp]) -> Iterator[IdenticalPods]:
        """Yield planned pods that are identical. ``some``: int[n], ascending, similar pods."""
        some = some[~self._broken[some]]
        fields = self._fields
        who = fields.name, fields.uid, fields.node
        own = *who, fields.labels, fields.pin, fields.volumes
        # These parts of identical pods have equal lengths. The rest, such as addresses, may differ.
        walked, source = np.unique(self._located.source[some], return_inverse=True)
        sizes = np.array([(one.end - one.begin)[walked] for one in own])
        _, number = np.unique(sizes, axis=1, return_inverse=True)
        kind = number[source]
        for one in range(int(kind.max(initial=-1)) + 1):
            those = some[kind == one]
            if len(those) >= FEWEST:
                each = (self._located.spread(part, those) for part in (*own, fields.conditions))
                yield from identical_pods(OwnRanges(self._buffer, *each), those)

    def own(self, some: NDArray[np.intp]) -> Iterator[OwnBytes]:
        """Yield the bytes that may differ between similar pods with a plan, for some places."""
        fields, cut = self._fields, self._buffer.cut
        who = fields.name, fields.uid, fields.labels
        what = fields.pin, fields.volumes, fields.conditions
        each = [self._located.spread(one, some) for one in (*who, *what)]
        columns = [zip(one.begin.tolist(), one.end.tolist(), strict=True) for one in each]
        for places in zip(*columns, strict=True):
            yield OwnBytes._make([cut(low, high) for low, high in places])

    def pod(self, place: int) -> wire.Pod:
        """Return a whole pod. Raises ``DecodeError`` for bytes that are no pod."""
        try:
            found: wire.Pod = _READ(messages.Pod.FromString(self._item(place)))
        except BAD_INPUT as error:
            raise DecodeError(f"{PODS} {self._called(place)}: {error}") from error
        return found

    def _called(self, place: int) -> str:
        meta = self._raw_meta(place)
        return f"{meta.namespace}/{meta.name}" if meta.name else "(unreadable)"

    def _raw_meta(self, place: int) -> messages.ObjectMeta:
        """Return a pod's metadata as it is in protobuf, empty if it cannot be read."""
        try:
            return messages.Pod.FromString(self._item(place)).metadata
        except BadMessage:
            return messages.ObjectMeta()

    def _item(self, place: int) -> bytes:
        return self._buffer.cut(self._items.begin[place], self._items.end[place])

    def _text(self, begin: int, end: int) -> str:
        return self._buffer.cut(begin, end).decode(errors="replace")

    def _times(self, where: Ranges) -> Times:
        """Return times; NaN for one before 1970, or that cannot be read."""
        read, broken = seconds(self._buffer, self._located.spread(where))
        found = read.astype(np.float64)
        found[broken | self._broken] = np.nan
        return found


_READ: Final = reader(wire.Pod, messages.Pod)
_READ_META: Final = reader(wire.ObjectMeta, messages.ObjectMeta)


def _begins(same: Flags) -> NDArray[np.intp]:
    """Return where stretches begin. ``same``: of each pod but the first, if it is as the last."""
    return np.append(0, np.flatnonzero(~same) + 1)
