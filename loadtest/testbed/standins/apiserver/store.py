"""Objects, their history, and the fan-out of changes to watchers.

One revision counter orders all writes of all resources, as etcd's does. Every collection
keeps

* ``entries``: the present object of each key, as the bytes that go on the wire;
* ``history``: the changes since ``compacted``, so that a watch can resume;
* ``watchers``: called with each change before the write returns.

An object is encoded once per write; lists, watches and replies share those bytes. In protobuf it
is encoded when a list first asks for it so, and once.
"""

import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

import orjson

from loadtest.testbed.client.wirejson import JsonObject, encoded
from loadtest.testbed.standins import packers
from loadtest.testbed.standins.apiserver.resources import Resource

Key = tuple[str, str]  # namespace ("" for cluster scope), name

# Changes stored per collection. kube-apiserver's watch cache grows to 102,400
# (staging/src/k8s.io/apiserver/pkg/storage/cacher, defaultUpperBoundCapacity).
HISTORY_LIMIT: Final = 102_400


@dataclass(slots=True, eq=False)
class Entry:
    """A stored object: its encoding and the revision that wrote it. Nothing of it changes."""

    data: bytes
    revision: int
    _packed: bytes | None = field(default=None, init=False, repr=False)

    def decode(self) -> JsonObject:
        """Return a fresh copy of the object."""
        obj: JsonObject = orjson.loads(self.data)
        return obj

    def packed(self) -> bytes | None:
        """Return the object in protobuf; none if it has a field without a known number."""
        if self._packed is None:
            obj = self.decode()
            kind = obj.pop("kind")
            del obj["apiVersion"]  # a list says both, once
            try:
                self._packed = packers.packed(kind, obj)
            except KeyError:
                self._packed = b""
        return self._packed or None


class Change:
    """One write: ``verb`` is ADDED, MODIFIED or DELETED; ``before`` is the object it replaced."""

    __slots__ = ("_before_obj", "_lines", "_obj", "before", "data", "key", "revision", "verb")

    def __init__(
        self, revision: int, verb: str, key: Key, data: bytes, before: bytes | None
    ) -> None:
        self.revision, self.verb, self.key = revision, verb, key
        self.data, self.before = data, before
        self._obj: JsonObject | None = None
        self._before_obj: JsonObject | None = None
        self._lines: dict[tuple[str, bool], bytes] = {}

    @property
    def obj(self) -> JsonObject:
        """The object, decoded at most once for all watchers."""
        if self._obj is None:
            self._obj = orjson.loads(self.data)
        return self._obj

    @property
    def before_obj(self) -> JsonObject | None:
        """The object before the change."""
        if self._before_obj is None and self.before is not None:
            self._before_obj = orjson.loads(self.before)
        return self._before_obj

    def line(self, verb: str, *, partial: bool) -> bytes:
        """Return the change as a line of a watch stream, encoded once for all watchers."""
        found = self._lines.get((verb, partial))
        if found is None:
            data = orjson.dumps(partial_metadata(self.obj)) if partial else self.data
            found = self._lines[verb, partial] = frame(verb, data)
        return found

    def gone_line(self, *, partial: bool) -> bytes:
        """Return the line that says the object left a selection: its last state, new revision."""
        before = self.before_obj or self.obj
        before["metadata"]["resourceVersion"] = str(self.revision)
        return frame("DELETED", orjson.dumps(partial_metadata(before) if partial else before))

    def forget_decoded(self) -> None:
        """Drop everything derived: the history keeps the plain bytes only."""
        self._obj = self._before_obj = None
        self._lines = {}


def partial_metadata(obj: JsonObject) -> JsonObject:
    """Return the object as ``PartialObjectMetadata``."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def frame(verb: str, data: bytes) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"' + verb.encode() + b'","object":' + data + b"}\n"


Listener = Callable[[Change], None]


@dataclass(slots=True)
class NodeIndex:
    """Which pods are bound to which node."""

    keys: dict[str, set[Key]] = field(default_factory=dict)
    _nodes: dict[Key, str] = field(default_factory=dict)

    def put(self, key: Key, obj: JsonObject | None) -> None:
        """Note where a pod is bound; ``None``: it is gone."""
        node = "" if obj is None else obj.get("spec", {}).get("nodeName", "")
        before = self._nodes.get(key, "")
        if node == before:
            return
        if before:
            self.keys[before].discard(key)
            del self._nodes[key]
        if node:
            self.keys.setdefault(node, set()).add(key)
            self._nodes[key] = node


class Collection:
    """All objects of one resource."""

    def __init__(self, history_limit: int = HISTORY_LIMIT) -> None:
        self.entries: dict[Key, Entry] = {}
        self.listeners: list[Listener] = []
        self.compacted = 0
        self._history: list[Change] = []
        self._limit = history_limit
        self._sorted: list[Key] | None = None
        #: ``None``: nobody asked for the pods of a node
        self._nodes: NodeIndex | None = None

    def keys_on(self, node: str) -> list[Key]:
        """Return the keys of pods that are bound to a node, in the order of a list.

        kube-apiserver has such an index (pkg/registry/core/pod/strategy.go, ``Indexers``).
        """
        if self._nodes is None:
            self._nodes = NodeIndex()
            for key, entry in self.entries.items():
                self._nodes.put(key, entry.decode())
        return sorted(self._nodes.keys.get(node, ()))

    def index(self, key: Key, obj: JsonObject | None) -> None:
        """Take note where a pod is bound that is written; ``None``: it is deleted."""
        if self._nodes is not None:
            self._nodes.put(key, obj)

    def sorted_keys(self) -> list[Key]:
        """Return the keys in the order of a list, which is etcd's key order."""
        if self._sorted is None:
            self._sorted = sorted(self.entries)
        return self._sorted

    def since(self, revision: int) -> Iterator[Change]:
        """Yield the changes after ``revision``, oldest first."""
        start = bisect.bisect_right(self._history, revision, key=lambda change: change.revision)
        return iter(self._history[start:])

    def compact(self, revision: int) -> None:
        """Forget the changes up to and including ``revision``."""
        keep = bisect.bisect_right(self._history, revision, key=lambda change: change.revision)
        del self._history[:keep]
        self.compacted = max(self.compacted, revision)

    def record(self, change: Change, entry: Entry | None) -> None:
        """Take one write in and tell the watchers."""
        if entry is None:
            del self.entries[change.key]
        else:
            self.entries[change.key] = entry
        if change.verb != "MODIFIED":
            self._sorted = None
        self._history.append(change)
        if len(self._history) > 2 * self._limit:
            self.compact(self._history[self._limit].revision)
        for listener in tuple(self.listeners):
            listener(change)
        change.forget_decoded()


class Store:
    """Every collection under one revision counter."""

    def __init__(self, history_limit: int = HISTORY_LIMIT) -> None:
        self.revision = 1
        self._limit = history_limit
        self._collections: dict[tuple[str, str], Collection] = {}

    def collection(self, resource: Resource) -> Collection:
        """Return the collection of a resource, made when first asked for.

        A new collection knows nothing of what was before it, so a watch from an older
        revision gets 410, as with a resource that was defined just before.
        """
        found = self._collections.get(resource.storage)
        if found is None:
            found = self._collections[resource.storage] = Collection(self._limit)
            found.compacted = 0 if resource.builtin else self.revision
        return found

    def collections(self) -> Iterator[Collection]:
        """Yield every collection."""
        return iter(self._collections.values())

    def drop(self, resource: Resource) -> None:
        """Forget a collection (its definition was deleted)."""
        self._collections.pop(resource.storage, None)

    def write(self, collection: Collection, key: Key, obj: JsonObject) -> Entry:
        """Create or replace an object; sets its resourceVersion. Returns the new entry."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        before = collection.entries.get(key)
        entry = Entry(encoded(obj), self.revision)
        verb = "MODIFIED" if before else "ADDED"
        previous = before.data if before else None
        collection.index(key, obj)
        collection.record(Change(self.revision, verb, key, entry.data, previous), entry)
        return entry

    def remove(self, collection: Collection, key: Key, obj: JsonObject) -> Entry:
        """Delete an object; the deletion is a revision of its own. Returns the last state."""
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        before = collection.entries[key].data
        data = encoded(obj)
        collection.index(key, None)
        collection.record(Change(self.revision, "DELETED", key, data, before), None)
        return Entry(data, self.revision)
