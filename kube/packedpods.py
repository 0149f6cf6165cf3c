"""A page of pods in protobuf, looked at in columns: what most of them say is found, not decoded.

::

    page ──► items ──► metadata, spec, status, containers   (``kube.fieldtable``: where they are)
                              │
             own ◄────────────┴──────────► shared, as ranges of bytes
             uid, node, times              compared with those of the pod before it:
                                           equal bytes, the same kind

In a list the pods of one owner follow each other (etcd's keys: namespace, then name), so a kind is
met in stretches, and only the first pod of each is decoded. A pod with anything that
``kube.fieldtable`` does not read is decoded by itself.

Of a spec all counts that does not differ from pod to pod of one owner, whether Muster reads it or
not: volumes, node, hostname, node affinity (a DaemonSet's names the node) and most of a container
are left out, as nothing of a bound stranger is judged by them (``kube.podclass``).
"""

import re
from collections.abc import Hashable, Sequence
from typing import Final, overload

import numpy as np
from google.protobuf.message import DecodeError as BadMessage
from numpy.typing import NDArray

from cluster.ids import PodUid
from kube import wire
from kube.errors import DecodeError
from kube.fieldtable import (
    Buffer,
    Fields,
    Flags,
    Ranges,
    Wanted,
    alike,
    entries,
    varints,
    walk,
)
from kube.listed import (
    NO_VERSION,
    VERSION_DIGITS,
    ListedMeta,
    ListedPage,
    ListedPod,
    Times,
    Versions,
)
from kube.names import DEVICES_HEALTHY, PLAN
from kube.ownkeys import shared
from kube.packed import BAD_INPUT, reader
from kube.packedechoes import Shapes, Tree
from kube.resources import PODS
from kube.translate import pod_uid
from protogen import kubernetes_v1_pb2 as messages

_PLANNED: Final = PLAN.encode()
_DEVICES: Final = DEVICES_HEALTHY.encode()
_TOKEN: Final = re.compile(rb"kube-api-access-[a-z0-9]{5}")
"""The volume that kube-apiserver adds to each pod (plugin/pkg/admission/serviceaccount)."""
_OWN_NODE: Final = b"\xff\xff"  # stands where a name stood: no text has such bytes
_UID_TEXT: Final = 36
_UID_BYTES: Final = 16
_BASE: Final = 10  # of numbers in text
_NO_DIGIT: Final = 0xFF
_DIGITS: Final = np.array([n for n in range(_UID_TEXT) if n not in (8, 13, 18, 23)])
_DASHES: Final = np.array([8, 13, 18, 23])
_NIBBLES: Final = np.full(256, _NO_DIGIT, dtype=np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdef", dtype=np.uint8)] = np.arange(16)


def _one(*numbers: int) -> Wanted:
    return tuple((number, number) for number in numbers)


_POD, _META, _SPEC = messages.Pod, messages.ObjectMeta, messages.PodSpec
_STATUS, _CONTAINER, _CONTAINER_STATUS = (
    messages.PodStatus,
    messages.Container,
    messages.ContainerStatus,
)
_TOP: Final = _one(_POD.METADATA_FIELD_NUMBER, _POD.SPEC_FIELD_NUMBER, _POD.STATUS_FIELD_NUMBER)
_SHARED_META: Final = (
    *_one(_META.NAMESPACE_FIELD_NUMBER, _META.DELETIONTIMESTAMP_FIELD_NUMBER),
    (_META.LABELS_FIELD_NUMBER, _META.OWNERREFERENCES_FIELD_NUMBER),
)
_LABELS: Final = len(_SHARED_META) - 1  # place of labels, annotations and owners among them
_OWN_META: Final = _one(
    _META.UID_FIELD_NUMBER,
    _META.RESOURCEVERSION_FIELD_NUMBER,
    _META.CREATIONTIMESTAMP_FIELD_NUMBER,
)
_SHARED_SPEC: Final = (
    (3, 9),  # between containers and node
    (11, 15),  # up to hostname and subdomain
    (_SPEC.SCHEDULERNAME_FIELD_NUMBER, _SPEC.SCHEDULERNAME_FIELD_NUMBER),
    (21, 33),  # up to ephemeral containers, which ask for nothing
    (35, 63),
)
_OWN_SPEC: Final = _one(
    _SPEC.VOLUMES_FIELD_NUMBER,
    _SPEC.NODENAME_FIELD_NUMBER,
    _SPEC.AFFINITY_FIELD_NUMBER,
    _SPEC.CONTAINERS_FIELD_NUMBER,
    _SPEC.INITCONTAINERS_FIELD_NUMBER,
)
_AFFINITY: Final = (
    (messages.Affinity.PODAFFINITY_FIELD_NUMBER, messages.Affinity.PODANTIAFFINITY_FIELD_NUMBER),
)
_PIN: Final = messages.Affinity.NODEAFFINITY_FIELD_NUMBER
_SHARED_STATUS: Final = _one(_STATUS.PHASE_FIELD_NUMBER)
_OWN_STATUS: Final = _one(
    _STATUS.CONDITIONS_FIELD_NUMBER,
    _STATUS.STARTTIME_FIELD_NUMBER,
    _STATUS.CONTAINERSTATUSES_FIELD_NUMBER,
    _STATUS.INITCONTAINERSTATUSES_FIELD_NUMBER,
)
_OF_CONTAINER: Final = _one(
    _CONTAINER.NAME_FIELD_NUMBER,
    _CONTAINER.PORTS_FIELD_NUMBER,
    _CONTAINER.RESOURCES_FIELD_NUMBER,
    _CONTAINER.RESTARTPOLICY_FIELD_NUMBER,
)
_OF_STATUS: Final = (
    (_CONTAINER_STATUS.NAME_FIELD_NUMBER, _CONTAINER_STATUS.NAME_FIELD_NUMBER),
    (_CONTAINER_STATUS.ALLOCATEDRESOURCES_FIELD_NUMBER, _CONTAINER_STATUS.RESOURCES_FIELD_NUMBER),
)

_CONTAINERS: Final = (_SPEC.CONTAINERS_FIELD_NUMBER, _SPEC.INITCONTAINERS_FIELD_NUMBER)
_STATUSES: Final = (
    _STATUS.CONTAINERSTATUSES_FIELD_NUMBER,
    _STATUS.INITCONTAINERSTATUSES_FIELD_NUMBER,
)
_IN_SPEC: Final = dict.fromkeys(_CONTAINERS, Tree(_OF_CONTAINER)) | {
    _SPEC.AFFINITY_FIELD_NUMBER: Tree(_AFFINITY)
}
TREE: Final = Tree(
    (),
    {
        _POD.METADATA_FIELD_NUMBER: Tree(_SHARED_META),
        _POD.SPEC_FIELD_NUMBER: Tree(_SHARED_SPEC, _IN_SPEC),
        _POD.STATUS_FIELD_NUMBER: Tree(_SHARED_STATUS, dict.fromkeys(_STATUSES, Tree(_OF_STATUS))),
    },
)
"""What pods of a kind have in common."""


class _Parts:
    """The containers, or their statuses, of all pods: what of them counts."""

    def __init__(self, buffer: Buffer, stretch: Ranges, wanted: Wanted) -> None:
        self._buffer = buffer
        self._owner, each = entries(buffer, stretch)
        fields = walk(buffer, each, wanted)
        self._ranges = [fields.stretch(low) for low, _ in wanted]
        self._first = np.searchsorted(self._owner, np.arange(len(stretch) + 1))
        self.broken = np.zeros(len(stretch), dtype=np.bool_)
        self.broken[self._owner[fields.broken]] = True

    def same(self, these: NDArray[np.intp], those: NDArray[np.intp]) -> Flags:
        """Tell of pairs of pods whether both have the same."""
        count = np.diff(self._first)
        same: Flags = count[these] == count[those]
        (pairs,) = np.nonzero(same)
        size = count[these[pairs]]
        pair = np.repeat(pairs, size)
        within = np.arange(len(pair)) - np.repeat(size.cumsum() - size, size)
        one, other = self._first[these[pair]] + within, self._first[those[pair]] + within
        equal = alike(
            self._buffer,
            _joined([each.at(one) for each in self._ranges]),
            _joined([each.at(other) for each in self._ranges]),
        )
        differ = ~equal.reshape(len(self._ranges), len(pair)).all(axis=0)
        same[pair[differ]] = False
        return same

    def of(self, place: int) -> list[bytes]:
        """Return what counts of a pod's parts."""
        return [
            self._buffer.bytes[one.begin[part] : one.end[part]]
            for part in range(self._first[place], self._first[place + 1])
            for one in self._ranges
        ]


class PackedPage(ListedPage):
    """Pods of a page in protobuf.

    ``kin``: int[k], as ``leaders``, for pods whose labels, annotations and owners may differ.
    """

    def __init__(self, buffer: Buffer, items: Ranges, shapes: Shapes) -> None:
        """``items``: where the pods are; ``shapes``: of ``TREE``, those met so far."""
        self._buffer, self._items = buffer, items
        self._echoes = shapes.echoes(buffer, items)
        top = walk(buffer, items.at(self._echoes.walked), _TOP)
        meta = self._meta = walk(buffer, top.value(1), _SHARED_META + _OWN_META)
        spec = self._spec = walk(buffer, top.value(2), _SHARED_SPEC + _OWN_SPEC)
        status = self._status = walk(buffer, top.value(3), _SHARED_STATUS + _OWN_STATUS)
        affinity = walk(buffer, spec.value(_SPEC.AFFINITY_FIELD_NUMBER), _AFFINITY + _one(_PIN))
        self._each_meta = top.value(1)
        self._each = (
            affinity.stretch(_PIN),
            spec.stretch(_SPEC.VOLUMES_FIELD_NUMBER),
            status.stretch(_STATUS.CONDITIONS_FIELD_NUMBER),
        )
        levels = (meta, _SHARED_META), (spec, _SHARED_SPEC), (status, _SHARED_STATUS)
        self._shared = [
            fields.stretch(low)
            for fields, wanted in (*levels, (affinity, _AFFINITY))
            for low, _ in wanted
        ]
        self._parts = [_Parts(buffer, spec.stretch(n), _OF_CONTAINER) for n in _CONTAINERS]
        self._parts += [_Parts(buffer, status.stretch(n), _OF_STATUS) for n in _STATUSES]
        broken = [one.broken for one in (top, meta, spec, status, affinity)]
        broken += [one.broken for one in self._parts]
        self._broken: Flags = np.logical_or.reduce(broken)
        self.leaders, self.kin = self._leaders()

    def _leaders(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        if not len(self._items):
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp)
        # Echoes of one pod are alike, and of two pods as these are: so each two are compared once.
        source, count = self._echoes.source, len(self._echoes.walked)
        pairs, pair = np.unique(source[1:] * count + source[:-1], return_inverse=True)
        these, those = np.divmod(pairs, count)
        each = alike(
            self._buffer,
            _joined([one.at(these) for one in self._shared]),
            _joined([one.at(those) for one in self._shared]),
        ).reshape(len(self._shared), len(pairs))
        kin = np.delete(each, _LABELS, axis=0).all(axis=0)
        kin &= ~(self._broken[these] | self._broken[those])
        for parts in self._parts:
            kin &= parts.same(these, those)
        return _begins((kin & each[_LABELS])[pair]), _begins(kin[pair])

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> ListedPod: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[ListedPod]: ...
    def __getitem__(self, place: int | slice) -> ListedPod | Sequence[ListedPod]:
        """Return a pod as far as it is told apart from others; nothing of it if it is none.

        Raises ``IndexError``.
        """
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"pod {place} of a page of {len(self)}")
        try:
            meta = messages.Pod.FromString(self._item(place)).metadata
        except BadMessage:
            return ListedPod()
        found = ListedMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid)
        return ListedPod(metadata=found)

    def uids(self) -> list[PodUid]:
        """Return the UID of each; canonical ones all together (``kube.translate.pod_uid``)."""
        where = self._echoes.spread(self._meta.value(_META.UID_FIELD_NUMBER))
        chars = self._buffer.texts(where.begin, _UID_TEXT)
        nibbles = _NIBBLES[chars[:, _DIGITS]]
        raw = (nibbles[:, 0::2] << 4 | nibbles[:, 1::2]).tobytes()
        found = [PodUid(raw[n : n + _UID_BYTES]) for n in range(0, len(raw), _UID_BYTES)]
        odd = (where.end - where.begin != _UID_TEXT) | (nibbles == _NO_DIGIT).any(axis=1)
        odd |= (chars[:, _DASHES] != ord("-")).any(axis=1) | self._broken[self._echoes.source]
        for place in np.flatnonzero(odd).tolist():
            found[place] = pod_uid(self[place].metadata.uid)
        return found

    def nodes(self) -> list[str]:
        """Return the node of each, "" for one that is not bound."""
        where = self._echoes.spread(self._spec.value(_SPEC.NODENAME_FIELD_NUMBER))
        places = zip(where.begin.tolist(), where.end.tolist(), strict=True)
        return [self._text(begin, end) for begin, end in places]

    def versions(self) -> Versions:
        """Return the resource version of each."""
        where = self._echoes.spread(self._meta.value(_META.RESOURCEVERSION_FIELD_NUMBER))
        size = where.end - where.begin
        digits = self._buffer.texts(where.begin, VERSION_DIGITS).astype(np.int64) - ord("0")
        found = np.zeros(len(self), dtype=np.int64)
        odd = (size < 1) | (size > VERSION_DIGITS) | self._broken[self._echoes.source]
        for place in range(min(VERSION_DIGITS, int(size.max(initial=0)))):
            digit, there = digits[:, place], place < size
            found = np.where(there, found * _BASE + digit, found)
            odd |= there & ((digit < 0) | (digit >= _BASE))
        found[odd] = NO_VERSION
        return found

    def created(self) -> Times:
        """Return when each was made."""
        return self._times(self._meta, _META.CREATIONTIMESTAMP_FIELD_NUMBER)

    def started(self) -> Times:
        """Return when the kubelet first saw each."""
        return self._times(self._status, _STATUS.STARTTIME_FIELD_NUMBER)

    def kind(self, place: int) -> Hashable | None:
        """Return what pods have in common; ``None`` for one that is decoded by itself."""
        source = self._echoes.source[place]
        if self._broken[source]:
            return None
        try:
            meta = shared(self.meta(place))
        except DecodeError:
            return None
        body = self._buffer.bytes
        whole = [body[one.begin[source] : one.end[source]] for one in self._shared]
        whole[_LABELS] = b""
        return (meta, *whole, *(tuple(parts.of(source)) for parts in self._parts))

    def namespace(self, place: int) -> str:
        """Return a pod's namespace."""
        return self._text(*self._echoes.one(self._meta.value(_META.NAMESPACE_FIELD_NUMBER), place))

    def is_planned(self, place: int) -> bool:
        """Whether a pod carries a plan."""
        begin, end = self._echoes.one(self._meta.stretch(_META.LABELS_FIELD_NUMBER), place)
        return _PLANNED in self._buffer.bytes[begin:end]

    def meta(self, place: int) -> wire.ObjectMeta:
        """Return a pod's metadata. Raises ``DecodeError`` where it cannot be read."""
        begin, end = self._echoes.one(self._each_meta, place)
        try:
            message = messages.ObjectMeta.FromString(self._buffer.bytes[begin:end])
            found: wire.ObjectMeta = _READ_META(message)
        except BAD_INPUT as error:
            raise DecodeError(f"{PODS} {self._called(place)}: metadata: {error}") from error
        return found

    def apart(self, place: int, node: str) -> Hashable:
        """Return what may tell a planned pod from its kin, ``node`` being that of its plan.

        Its pin, without the node that it names; its volumes, without the name of its token; and
        the pod itself if it says something of its devices.
        """
        each = (self._echoes.one(one, place) for one in self._each)
        pin, volumes, conditions = (self._buffer.bytes[begin:end] for begin, end in each)
        says = place if _DEVICES in conditions else -1
        return pin.replace(node.encode(), _OWN_NODE), _TOKEN.sub(b"", volumes), says

    def pod(self, place: int) -> wire.Pod:
        """Return all of a pod. Raises ``DecodeError`` for what is no pod."""
        try:
            found: wire.Pod = _READ(messages.Pod.FromString(self._item(place)))
        except BAD_INPUT as error:
            raise DecodeError(f"{PODS} {self._called(place)}: {error}") from error
        return found

    def _called(self, place: int) -> str:
        meta = self[place].metadata
        return f"{meta.namespace}/{meta.name}" if meta.name else "(unreadable)"

    def _item(self, place: int) -> bytes:
        return self._buffer.bytes[self._items.begin[place] : self._items.end[place]]

    def _text(self, begin: int, end: int) -> str:
        return self._buffer.bytes[begin:end].decode(errors="replace")

    def _times(self, fields: Fields, number: int) -> Times:
        """Return times; one before 1970, or that cannot be read, is no time."""
        seconds = messages.Time.SECONDS_FIELD_NUMBER
        time = walk(self._buffer, self._echoes.spread(fields.value(number)), _one(seconds))
        found = varints(self._buffer, time.value(seconds)).astype(np.float64)
        found[time.broken | self._broken[self._echoes.source]] = np.nan
        return found


_READ: Final = reader(wire.Pod, messages.Pod)
_READ_META: Final = reader(wire.ObjectMeta, messages.ObjectMeta)


def _begins(same: Flags) -> NDArray[np.intp]:
    """Return where stretches begin. ``same``: of each pod but the first, as the one before."""
    return np.append(0, np.flatnonzero(~same) + 1)


def _joined(ranges: Sequence[Ranges]) -> Ranges:
    return Ranges(
        np.concatenate([one.begin for one in ranges]), np.concatenate([one.end for one in ranges])
    )
