"""Labels and annotations of siblings in protobuf, read by those of the first of them.

::

    the first   │ labels … │ size, key, 12, size, "3" │ … │ size, key, 12, size, plan │ owners │
                └─ before ─┘ └── its own key ───────┘ └───┘ └── its own key ──────┘   └ after ┘
    a sibling     the same       any value             the same     any value          the same

Members of a gang differ in the values of a few keys of their own (``kube.ownkeys``). Whoever has
the same bytes everywhere else is a sibling, and only these values are read of it.
"""

from dataclasses import dataclass
from typing import Final, Self

import msgspec

from kube import ownkeys
from kube.fieldtable import MORE, varint
from kube.wire import ObjectMeta
from protogen import kubernetes_v1_pb2 as messages

_META = messages.ObjectMeta
_MAPS: Final = {
    _META.LABELS_FIELD_NUMBER << 3 | 2: True,
    _META.ANNOTATIONS_FIELD_NUMBER << 3 | 2: False,
}
"""Tag of an entry → whether it is a label."""
_KEY: Final = b"\x0a"  # tag of a map entry's key
_VALUE: Final = 0x12  # and of its value


@dataclass(frozen=True, slots=True)
class _Own:
    """A key with a value of the pod's own.

    ``before``: bytes from the last value of that sort up to the size of this entry. ``within``:
    from there to the size of the value.
    """

    before: bytes
    within: bytes
    key: str
    is_label: bool


@dataclass(frozen=True, slots=True)
class SiblingKeys:
    """What siblings of one pod say in their labels, annotations and owners, in that order."""

    meta: ObjectMeta
    _own: tuple[_Own, ...]
    _after: bytes

    @classmethod
    def of(cls, meta: ObjectMeta, raw: bytes) -> Self:
        """``meta``: what was read of a pod; ``raw``: its labels, annotations and owners."""
        own, at, seen = list[_Own](), 0, 0
        while at < len(raw):
            size, begin = varint(raw, at + 1)
            key = _key(raw, begin) if raw[at] in _MAPS else ""
            if ownkeys.is_own(key):
                within = begin + len(_KEY) + 1 + len(key.encode()) + 1
                is_label = _MAPS[raw[at]]
                own.append(_Own(raw[seen : at + 1], raw[begin:within], key, is_label))
                seen = begin + size
            at = begin + size
        return cls(meta, tuple(own), raw[seen:])

    def read(self, name: bytes, uid: bytes, raw: bytes) -> ObjectMeta | None:
        """Return a sibling's metadata, ``None`` for who has not the same bytes.

        Times, versions and the beginning of its name are the first one's.
        """
        try:
            values, called, known_as = self._values(raw), name.decode(), uid.decode()
        except (ValueError, IndexError):
            return None
        if values is None:
            return None
        labels, annotations = self.meta.labels.copy(), self.meta.annotations.copy()
        for one, value in zip(self._own, values, strict=True):
            (labels if one.is_label else annotations)[one.key] = value
        return msgspec.structs.replace(
            self.meta, name=called, uid=known_as, labels=labels, annotations=annotations
        )

    def _values(self, raw: bytes) -> list[str] | None:
        """Return the values of its own keys. Raises ``ValueError``, ``IndexError``."""
        found, at = list[str](), 0
        for one in self._own:
            begin = at + len(one.before)
            size, begin = (raw[begin], begin + 1) if raw[begin] < MORE else varint(raw, begin)
            value = begin + len(one.within)
            length, value = (raw[value], value + 1) if raw[value] < MORE else varint(raw, value)
            end = value + length
            same = raw.startswith(one.before, at) and raw.startswith(one.within, begin)
            if not same or end != begin + size:
                return None
            found.append(raw[value:end].decode())
            at = end
        whole = at + len(self._after) == len(raw) and raw.endswith(self._after)
        return found if whole else None


def _key(raw: bytes, begin: int) -> str:
    """Return the key of a map's entry; "" for one of a form that is not read here."""
    size = raw[begin + 1]
    behind = begin + 2 + size
    plain = raw[begin : begin + 1] == _KEY and size < MORE and raw[behind] == _VALUE
    return raw[begin + 2 : behind].decode() if plain else ""
