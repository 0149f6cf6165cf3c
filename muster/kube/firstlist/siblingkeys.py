"""Labels and annotations of siblings in protobuf, read with the layout of the first of them.

::

    the first   │ labels … │ size, key, 12, size, "3" │ … │ size, key, 12, size, plan │ owners │
                └─ before ─┘ └── its own key ───────┘ └───┘ └── its own key ──────┘   └ after ┘
    a sibling     the same       any value             the same     any value          the same

Members of a gang differ in the values of a few keys of their own
(``muster.kube.firstlist.ownkeys``). A pod that has the same bytes everywhere else is a sibling, and
only these values are read of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

import msgspec

from muster.kube.firstlist import ownkeys
from muster.kube.firstlist.onemessage import BYTES, MORE, MessageField, fields_of, varint
from muster.kube.wire import ObjectMeta
from muster.protogen import kubernetes_v1_pb2 as messages

_META = messages.ObjectMeta
_MAPS: Final = {
    _META.LABELS_FIELD_NUMBER << 3 | 2: True,
    _META.ANNOTATIONS_FIELD_NUMBER << 3 | 2: False,
}
"""Tag of an entry → whether it is a label."""
_KEY: Final = b"\x0a"  # tag of a map entry's key
_VALUE: Final = 0x12  # and of its value


class MapEntry(NamedTuple):
    """A label or an annotation, and its places in the bytes."""

    key: str
    is_label: bool
    #: Where its tag is.
    tag: int
    #: Where its bytes begin.
    begin: int
    #: Where the size of its value is.
    size: int
    #: Where its bytes end.
    end: int

    def value(self, raw: bytes) -> tuple[int, int]:
        """Return where its value is. Raises ``ValueError``, ``IndexError`` for none."""
        length, begin = varint(raw, self.size)
        if begin + length != self.end:
            raise ValueError(f"the value of {self.key} ends at {begin + length}, not {self.end}")
        return begin, self.end


def own_entries(raw: bytes) -> Iterator[MapEntry]:
    """Yield the entries with a pod's own keys among its labels, annotations and owners.

    Raises ``ValueError``, ``IndexError`` for other bytes.
    """
    for entry in fields_of(raw, 0, len(raw)):
        key = _key(raw, entry.begin) if raw[entry.at] in _MAPS else ""
        if ownkeys.is_own(key):
            yield _entry(raw, entry, key)


def other_values(raw: bytes) -> Iterator[tuple[int, int]]:
    """Yield where all other values are, and owners. Raises ``ValueError``, ``IndexError``."""
    for one in fields_of(raw, 0, len(raw)):
        if one.kind != BYTES:
            continue
        if raw[one.at] not in _MAPS:
            yield one.begin, one.end
            continue
        key = _key(raw, one.begin)
        if key and not ownkeys.is_own(key):
            yield _entry(raw, one, key).value(raw)


def _entry(raw: bytes, found: MessageField, key: str) -> MapEntry:
    size = found.begin + len(_KEY) + 1 + len(key.encode()) + 1
    return MapEntry(key, _MAPS[raw[found.at]], found.at, found.begin, size, found.end)


@dataclass(frozen=True, slots=True)
class _Own:
    """A key with a value of the pod's own."""

    #: The bytes from the own value before it to the size of this entry.
    before: bytes
    #: The bytes from there to the size of the value.
    within: bytes
    key: str
    is_label: bool


class _Layout(NamedTuple):
    """Where values stand in bytes of one length.

    The sizes of values are among the bytes that must be the same, so the values have these sizes.
    """

    #: The bytes before, between and behind the values, and where they stand.
    same: tuple[tuple[bytes, int], ...]
    values: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SiblingKeys:
    """Reads the labels, annotations and owners of siblings by those of one pod."""

    meta: ObjectMeta
    _own: tuple[_Own, ...]
    _after: bytes
    _layouts: dict[int, _Layout] = field(default_factory=dict)
    """By length: a rank has one digit or two, and most plans have the same length."""

    @classmethod
    def of(cls, meta: ObjectMeta, raw: bytes) -> Self:
        """``meta``: what was read of a pod; ``raw``: its labels, annotations and owners."""
        own, seen = list[_Own](), 0
        for one in own_entries(raw):
            before, within = raw[seen : one.tag + 1], raw[one.begin : one.size]
            own.append(_Own(before, within, one.key, one.is_label))
            seen = one.end
        return cls(meta, tuple(own), raw[seen:])

    def read(self, name: bytes, uid: bytes, raw: bytes) -> ObjectMeta | None:
        """Return a sibling's metadata, ``None`` for a pod that has other bytes.

        Times, version and ``generateName`` are those of the first pod.
        """
        try:
            values, called, known_as = self._values(raw), name.decode(), uid.decode()
        except (ValueError, IndexError):
            return None
        if values is None:
            return None
        labels, annotations = dict(self.meta.labels), self.meta.annotations.copy()
        for one, value in zip(self._own, values, strict=True):
            (labels if one.is_label else annotations)[one.key] = value
        return msgspec.structs.replace(
            self.meta, name=called, uid=known_as, labels=labels, annotations=annotations
        )

    def _values(self, raw: bytes) -> list[str] | None:
        """Return the values of its own keys. Raises ``ValueError``, ``IndexError``."""
        layout = self._layouts.get(len(raw))
        if layout is None or not _fits(layout, raw):
            places = self._places(raw)
            if places is None:
                return None
            layout = self._layouts[len(raw)] = _layout(raw, places)
        return [raw[begin:end].decode() for begin, end in layout.values]

    def _places(self, raw: bytes) -> list[tuple[int, int]] | None:
        """Return where the values of its own keys are. Raises ``ValueError``, ``IndexError``."""
        found, at = list[tuple[int, int]](), 0
        for one in self._own:
            begin = at + len(one.before)
            size, begin = (raw[begin], begin + 1) if raw[begin] < MORE else varint(raw, begin)
            value = begin + len(one.within)
            length, value = (raw[value], value + 1) if raw[value] < MORE else varint(raw, value)
            end = value + length
            same = raw.startswith(one.before, at) and raw.startswith(one.within, begin)
            if not same or end != begin + size:
                return None
            found.append((value, end))
            at = end
        whole = at + len(self._after) == len(raw) and raw.endswith(self._after)
        return found if whole else None


def _layout(raw: bytes, values: list[tuple[int, int]]) -> _Layout:
    begins = [0, *(end for _, end in values)]
    ends = [*(begin for begin, _ in values), len(raw)]
    same = tuple((raw[begin:end], begin) for begin, end in zip(begins, ends, strict=True))
    return _Layout(same, tuple(values))


def _fits(layout: _Layout, raw: bytes) -> bool:
    for text, at in layout.same:  # noqa: SIM110  a generator takes twice as long
        if not raw.startswith(text, at):
            return False
    return True


def _key(raw: bytes, begin: int) -> str:
    """Return the key of a map's entry; "" for one of a form that is not read here."""
    size = raw[begin + 1]
    behind = begin + 2 + size
    plain = raw[begin : begin + 1] == _KEY and size < MORE and raw[behind] == _VALUE
    return raw[begin + 2 : behind].decode() if plain else ""
