"""The objects that a watch has reported, so that a new list can be reconciled with them.

Objects are identified by UID and found by name. An object that was deleted and created again
under the same name while no watch was open is first reported as gone, then as present, in
this order, so consumers that identify by name (nodes, namespaces) end with the new one.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

from muster.kube.changes import Change, ObjectGone, Upserted
from muster.kube.resources import KubeObject, Meta
from muster.kube.wire import ObjectMeta

T = TypeVar("T", bound=KubeObject)
_Key = tuple[str, str]


class KnownObjects(Generic[T]):
    """Names and UIDs reported. Without ``tracks`` only the UIDs of the list that is being read."""

    def __init__(self, *, tracks: bool) -> None:
        self._tracks = tracks
        self._told: dict[_Key, str] = {}
        self._told_any = False
        self._reconciles = False
        self._misses = False
        self._listed: set[_Key] = set()
        self._seen: set[str] = set()

    def begin(self) -> None:
        """Prepare for a list that begins, or begins again."""
        self._reconciles = self._told_any
        self._misses = bool(self._told)  # a first list has everything
        self._listed.clear()
        self._seen.clear()

    def listed(self, items: Sequence[T]) -> list[Change[T]]:
        """Return the changes that a page of the list means."""
        changes: list[Change[T]] = []
        self._told_any |= bool(items)
        for item in items:
            meta = item.metadata
            if self._tracks:
                key = meta.namespace, meta.name
                before = self._told.get(key)
                if before is not None and before != meta.uid:
                    changes.append(_gone(key, before))
                if self._misses:
                    self._listed.add(key)
                self._told[key] = meta.uid
            if self._reconciles:
                self._seen.add(meta.uid)
            changes.append(Upserted(item, listed=True))
        return changes

    def missing(self) -> list[ObjectGone]:
        """Return the objects that were reported before and are not in the list; ends the list."""
        gone = [key for key in self._told if key not in self._listed] if self._misses else []
        self._listed.clear()
        return [_gone(key, self._told.pop(key)) for key in gone]

    def seen(self) -> frozenset[str] | None:
        """Return the UIDs of the list, ``None`` if no object was reported before it."""
        found = frozenset(self._seen) if self._reconciles else None
        self._seen.clear()
        return found

    def upserted(self, meta: Meta) -> None:
        """Note that an object was reported."""
        self._told_any = True
        if self._tracks:
            self._told[meta.namespace, meta.name] = meta.uid

    def deleted(self, meta: Meta) -> None:
        """Note that an object was reported as gone."""
        self._told.pop((meta.namespace, meta.name), None)


def _gone(key: _Key, uid: str) -> ObjectGone:
    namespace, name = key
    return ObjectGone(ObjectMeta(namespace=namespace, name=name, uid=uid))
