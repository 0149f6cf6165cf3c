"""The API server of a run: the stand-in's store and rules, called and watched without HTTP.

Every write is an *action* here and its rules are those of ``loadtest.testbed.standins.apiserver``;
what a network and a server under stress add (time, refusals, lost answers) is
``loadtest.chaos.simulation.link``.
"""

import random
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Final

import orjson

from loadtest.chaos.simulation.loop import finish_now
from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.admission import Admission, User
from loadtest.testbed.standins.apiserver.objects import Objects
from loadtest.testbed.standins.apiserver.reads import Reader
from loadtest.testbed.standins.apiserver.requests import (
    Request,
    parse_target,
    wants_packed,
    wants_partial,
)
from loadtest.testbed.standins.apiserver.resources import Registry, Resource
from loadtest.testbed.standins.apiserver.status import StatusError, method_not_allowed
from loadtest.testbed.standins.apiserver.store import Collection, Store, frame, partial_metadata
from loadtest.testbed.standins.apiserver.writes import Writer

_ADMIN: Final = User("system:admin")
_BOOKMARK_S: Final = 60.0
_CRD: Final = {
    "metadata": {"name": "podgroups.scheduling.x-k8s.io"},
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {"plural": "podgroups", "kind": "PodGroup"},
        "scope": "Namespaced",
        "versions": [{"name": "v1alpha1", "served": True}],
    },
}


class Server:
    """Objects, requests, changes. ``clock``: the server's own, seconds since the epoch."""

    def __init__(self, clock: Callable[[], float], dice: random.Random) -> None:
        self.store, self.registry = Store(), Registry()
        self._clock = clock
        self._objects = Objects(self.store, self.registry, clock, dice.getrandbits(63))
        self._writer = Writer(self._objects, Admission(self.store))
        self._reader = Reader(self.store, _BOOKMARK_S)
        self.registry.add(_CRD)
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})

    def resource(self, path: str) -> Resource:
        """Return what a path is about; raises ``StatusError`` 404."""
        return parse_target(path, self.registry).resource

    def collection(self, path: str) -> Collection:
        """Return the collection of a path."""
        return self.store.collection(self.resource(path))

    def objects(self, path: str) -> list[JsonObject]:
        """Return every object of a collection, in the order of a list."""
        collection = self.collection(path)
        return [collection.entries[key].decode() for key in collection.sorted_keys()]

    def find(self, path: str) -> JsonObject | None:
        """Return the object at a path, None where there is none."""
        try:
            return self.request("GET", path)
        except StatusError:
            return None

    def request(
        self, method: str, path: str, body: JsonObject | None = None, content_type: str = ""
    ) -> JsonObject:
        """Do what the world outside Muster does: at once, and it always gets an answer."""
        data = b"" if body is None else orjson.dumps(body)
        answer: JsonObject = orjson.loads(self.answer(method, path, {}, data, content_type))
        return answer

    def answer(  # the parts of an HTTP request
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes,
        content_type: str,
        accept: str = "",
    ) -> bytes:
        """Return the encoded answer; raises ``StatusError``.

        Of ``/version`` only the Date header of its answer is of use; it is the answer here.
        """
        if path == "/version":
            return formatdate(self._clock(), usegmt=True).encode()
        request = Request(
            target=parse_target(path, self.registry),
            query=dict(query),
            body=body,
            content_type=content_type,
            partial=wants_partial(accept),
            packed=wants_packed(accept),
            user=_ADMIN,
        )
        if method == "GET":
            return self._read(request)
        data: bytes = self._write(method, request)
        if not request.partial:
            return data
        obj = orjson.loads(data)
        return data if obj.get("kind") == "Status" else orjson.dumps(partial_metadata(obj))

    def _read(self, request: Request) -> bytes:
        if not request.target.name:
            return self._reader.list(request)[0]  # which of the two it is, its first bytes say
        return self._objects.entry(request.target.resource, request.target.key).data

    def _write(self, method: str, request: Request) -> bytes:
        writers = {
            "POST": self._writer.post,
            "PUT": self._writer.put,
            "PATCH": self._writer.patch,
            "DELETE": self._writer.delete,
        }
        if method not in writers:
            raise method_not_allowed()
        data, _ = finish_now(writers[method](request))
        return bytes(data)

    def compact(self) -> None:
        """Forget the history: resuming from before now gets 410."""
        for collection in self.store.collections():
            collection.compact(self.store.revision)
        self._reader.forget_snapshots()

    def missed(self, path: str, revision: int) -> list[bytes]:
        """Return the lines of a watch that begins after ``revision``; an ERROR line for 410."""
        collection = self.collection(path)
        if revision < collection.compacted:
            status = StatusError(410, "Expired", "too old resource version")
            return [frame("ERROR", status.body())]
        lines = []
        for change in collection.since(revision):
            lines.append(change.line(change.verb, partial=False))
            change.forget_decoded()
        return lines

    def bookmark(self, path: str) -> bytes:
        """Return the line that says that nothing happened up to now."""
        resource = self.resource(path)
        metadata = {"resourceVersion": str(self.store.revision)}
        kind = {"kind": resource.kind, "apiVersion": resource.api_version}
        return frame("BOOKMARK", orjson.dumps({**kind, "metadata": metadata}))
