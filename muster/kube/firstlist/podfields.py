"""Which fields of a pod in protobuf count, and where they are in many pods.

::

    Pod ── metadata ── name, UID, times … │ labels, annotations, owners │ namespace … ┐
        ├─ spec ────── node, volumes, pin  │                             │ the rest    ├ *counted*
        │    └─ containers                 │                             │ amounts …   │
        └─ status ──── conditions, started │                             │ phase       ┘
                       own                   own, or of all of a gang      of all of a kind

The *counted* fields are those that pods of one kind must have in common. In a spec these are all
fields that do not differ between the pods of one owner, whether Muster reads them or not. Volumes,
node, hostname, node affinity (a DaemonSet's names the node) and most of a container are left out:
the class of a bound pod that Muster does not place does not depend on them
(``muster.kube.translation.podclass``).
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from muster.kube.firstlist.fieldtable import (
    Buffer,
    Flags,
    Ranges,
    Wanted,
    alike,
    entries,
    single,
    walk,
)
from muster.protogen import kubernetes_v1_pb2 as messages


@dataclass(frozen=True, slots=True)
class FieldTree:
    """The fields of a message that count."""

    #: Fields that count as a whole. Of fields in neither of the two only the size counts.
    shared: Wanted
    #: Inner messages that count in part, by the number of their field.
    inner: Mapping[int, "FieldTree"] = field(default_factory=dict)

    def shares(self, number: int) -> bool:
        """Return whether all of a field counts."""
        return any(low <= number <= high for low, high in self.shared)


_POD, _META, _SPEC = messages.Pod, messages.ObjectMeta, messages.PodSpec
_STATUS, _CONTAINER, _CONTAINER_STATUS = (
    messages.PodStatus,
    messages.Container,
    messages.ContainerStatus,
)
_TOP: Final = single(_POD.METADATA_FIELD_NUMBER, _POD.SPEC_FIELD_NUMBER, _POD.STATUS_FIELD_NUMBER)
_SHARED_META: Final = single(_META.NAMESPACE_FIELD_NUMBER, _META.DELETIONTIMESTAMP_FIELD_NUMBER)
LABELLING: Final = (_META.LABELS_FIELD_NUMBER, _META.OWNERREFERENCES_FIELD_NUMBER)
"""First and last field of the *labelling*: labels, annotations and owners; gangs depend on them."""
_LABELS: Final = (LABELLING,)
_OWN_META: Final = single(
    _META.NAME_FIELD_NUMBER,
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
_OWN_SPEC: Final = single(
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
_SHARED_STATUS: Final = single(_STATUS.PHASE_FIELD_NUMBER)
_OWN_STATUS: Final = single(
    _STATUS.CONDITIONS_FIELD_NUMBER,
    _STATUS.STARTTIME_FIELD_NUMBER,
    _STATUS.CONTAINERSTATUSES_FIELD_NUMBER,
    _STATUS.INITCONTAINERSTATUSES_FIELD_NUMBER,
)
_OF_CONTAINER: Final = single(
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
_IN_SPEC: Final = dict.fromkeys(_CONTAINERS, FieldTree(_OF_CONTAINER)) | {
    _SPEC.AFFINITY_FIELD_NUMBER: FieldTree(_AFFINITY)
}
TREE: Final = FieldTree(
    (),
    {
        _POD.METADATA_FIELD_NUMBER: FieldTree(_SHARED_META),
        _POD.SPEC_FIELD_NUMBER: FieldTree(_SHARED_SPEC, _IN_SPEC),
        _POD.STATUS_FIELD_NUMBER: FieldTree(
            _SHARED_STATUS, dict.fromkeys(_STATUSES, FieldTree(_OF_STATUS))
        ),
    },
)
"""What pods of one shape have in common: all counted fields without the labelling."""


class _Parts:
    """What counts of the containers, or of their statuses, of many pods."""

    def __init__(self, buffer: Buffer, stretch: Ranges, wanted: Wanted) -> None:
        self._buffer = buffer
        self._owner, each = entries(buffer, stretch)
        fields = walk(buffer, each, wanted)
        self._ranges = [fields.stretch(low) for low, _ in wanted]
        self._first = np.searchsorted(self._owner, np.arange(len(stretch) + 1))
        self.broken = np.zeros(len(stretch), dtype=np.bool_)
        self.broken[self._owner[fields.broken]] = True

    def same(self, these: NDArray[np.intp], those: NDArray[np.intp]) -> Flags:
        """Return bool[n]: whether the two of a pair have the same. Each of int[n], pods."""
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
        """Return what counts of the parts of one pod."""
        return [
            self._buffer.cut(one.begin[part], one.end[part])
            for part in range(self._first[place], self._first[place + 1])
            for one in self._ranges
        ]


class PodFields:
    """The places of the fields of m pods that count or are read."""

    #: bool[m]: which pods have to be decoded by themselves.
    broken: Flags

    def __init__(self, buffer: Buffer, items: Ranges) -> None:
        """``items``: where the pods are."""
        self._buffer, self.items = buffer, items
        top = walk(buffer, items, _TOP)
        self.meta = top.value(1)
        meta = walk(buffer, self.meta, _SHARED_META + _LABELS + _OWN_META)
        spec = walk(buffer, top.value(2), _SHARED_SPEC + _OWN_SPEC)
        status = walk(buffer, top.value(3), _SHARED_STATUS + _OWN_STATUS)
        affinity = walk(buffer, spec.value(_SPEC.AFFINITY_FIELD_NUMBER), _AFFINITY + single(_PIN))
        self.name = meta.value(_META.NAME_FIELD_NUMBER)
        self.uid = meta.value(_META.UID_FIELD_NUMBER)
        self.version = meta.value(_META.RESOURCEVERSION_FIELD_NUMBER)
        self.namespace = meta.value(_META.NAMESPACE_FIELD_NUMBER)
        self.labels = meta.stretch(_META.LABELS_FIELD_NUMBER)
        self.created = meta.value(_META.CREATIONTIMESTAMP_FIELD_NUMBER)
        self.started = status.value(_STATUS.STARTTIME_FIELD_NUMBER)
        self.node = spec.value(_SPEC.NODENAME_FIELD_NUMBER)
        self.pin = affinity.stretch(_PIN)
        self.volumes = spec.stretch(_SPEC.VOLUMES_FIELD_NUMBER)
        self.conditions = status.stretch(_STATUS.CONDITIONS_FIELD_NUMBER)
        levels = (meta, _SHARED_META), (spec, _SHARED_SPEC), (status, _SHARED_STATUS)
        self._shared = [
            fields.stretch(low)
            for fields, wanted in (*levels, (affinity, _AFFINITY))
            for low, _ in wanted
        ]
        self._parts = [_Parts(buffer, spec.stretch(n), _OF_CONTAINER) for n in _CONTAINERS]
        self._parts += [_Parts(buffer, status.stretch(n), _OF_STATUS) for n in _STATUSES]
        broken = [one.broken for one in (top, meta, spec, status, affinity)]
        self.broken = np.logical_or.reduce([*broken, *(one.broken for one in self._parts)])

    def __len__(self) -> int:
        return len(self.items)

    def same(self, these: NDArray[np.intp], those: NDArray[np.intp]) -> Flags:
        """Return bool[n]: whether what counts is the same in the two pods of a pair."""
        each = alike(
            self._buffer,
            _joined([one.at(these) for one in self._shared]),
            _joined([one.at(those) for one in self._shared]),
        )
        same: Flags = np.logical_and.reduce(each.reshape(len(self._shared), len(these)))
        for parts in self._parts:
            same &= parts.same(these, those)
        return same

    def counted(self, place: int) -> Hashable:
        """Return what counts of one pod."""
        cut = self._buffer.cut
        whole = tuple(cut(one.begin[place], one.end[place]) for one in self._shared)
        return (whole, *(tuple(parts.of(place)) for parts in self._parts))


def _joined(ranges: Sequence[Ranges]) -> Ranges:
    return Ranges(
        np.concatenate([one.begin for one in ranges]), np.concatenate([one.end for one in ranges])
    )
