"""GET: one object, a list in pages, a watch.

A paged list shows one moment: the first page takes a snapshot (references to immutable
entries), the continue token names it. Only the last few snapshots are stored; a token
without its snapshot gets 410, as after etcd's compaction.
"""

import base64
import itertools
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import orjson

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins import packing
from loadtest.testbed.standins.apiserver.requests import JSON, Request
from loadtest.testbed.standins.apiserver.resources import Resource
from loadtest.testbed.standins.apiserver.selectors import Predicate, parse
from loadtest.testbed.standins.apiserver.status import FieldProblem as Problem
from loadtest.testbed.standins.apiserver.status import StatusError, bad_request, expired, invalid
from loadtest.testbed.standins.apiserver.store import Entry, Key, Store, partial_metadata
from loadtest.testbed.standins.apiserver.watch import WatchOptions
from muster.kube.http.mediatypes import PROTOBUF

# Paged lists in progress at a time; older ones get 410.
SNAPSHOTS: Final = 64
# Resources with lists in protobuf for clients that ask for it; ``packing`` knows their fields.
PACKED: Final = {"Node", "Pod"}
# Watches end after this long, seconds, unless the client asks otherwise (real: 1,800-3,600).
WATCH_TIMEOUT: Final = 1_800


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rest of a list, in key order, as of ``revision``."""

    revision: int
    rows: list[tuple[Key, Entry]]


class Reader:
    """Serves lists; ``bookmark_every``: seconds between bookmarks of a watch."""

    def __init__(self, store: Store, bookmark_every: float) -> None:
        self._store = store
        self._bookmark_every = bookmark_every
        self._snapshots: OrderedDict[int, Snapshot] = OrderedDict()
        self._ids = itertools.count(1)

    def forget_snapshots(self) -> None:
        """Compaction: lists in progress cannot go on."""
        self._snapshots.clear()

    def list(self, request: Request) -> tuple[bytes, str]:
        """Return the encoded list, or one page of it, and its media type.

        It is in protobuf where that was asked for and the number of every field is known.
        """
        predicate = _predicate(request)
        self._check_revision(request)
        limit = request.number("limit", 0)
        token = request.query.get("continue", "")
        if request.query.get("resourceVersion") == "0" and not token:
            limit = 0  # the watch cache answers, and it does not page
        number, start, snapshot = self._resume(request, token, predicate.node)
        page, following = _page(snapshot, predicate, start, limit)
        metadata: JsonObject = {"resourceVersion": str(snapshot.revision)}
        if following is not None:
            metadata["continue"] = self._token(number, following, snapshot)
            if not predicate.tests:
                metadata["remainingItemCount"] = len(snapshot.rows) - following
        packed = _packed(request, metadata, page) if request.packed else None
        return (_encode(request, metadata, page), JSON) if packed is None else (packed, PROTOBUF)

    def _check_revision(self, request: Request) -> None:
        asked, present = request.number("resourceVersion", 0), self._store.revision
        if asked > present:
            message = f"Timeout: Too large resource version: {asked}, current: {present}"
            cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            details = {"causes": [cause], "retryAfterSeconds": 1}
            raise StatusError(504, "Timeout", message, details)
        exact = request.query.get("resourceVersionMatch") == "Exact"
        collection = self._store.collection(request.target.resource)
        if exact and next(collection.since(asked), None) is not None:
            message = "The resourceVersion for the provided list is too old."
            raise expired(message)

    def _resume(self, request: Request, token: str, node: str) -> tuple[int, int, Snapshot]:
        if not token:
            collection = self._store.collection(request.target.resource)
            keys = collection.keys_on(node) if node else collection.sorted_keys()
            rows = [(key, collection.entries[key]) for key in keys]
            namespace = request.target.namespace
            if namespace:
                rows = [row for row in rows if row[0][0] == namespace]
            return next(self._ids), 0, Snapshot(self._store.revision, rows)
        try:
            number, start = orjson.loads(base64.urlsafe_b64decode(token))
        except (ValueError, TypeError) as error:
            raise bad_request("invalid continue token: continue key is not valid") from error
        snapshot = self._snapshots.get(number)
        if snapshot is None:
            raise expired(
                "The provided continue parameter is too old to display a consistent list "
                "result. You must start a new list without the continue parameter."
            )
        return number, start, snapshot

    def _token(self, number: int, following: int, snapshot: Snapshot) -> str:
        self._snapshots[number] = snapshot
        self._snapshots.move_to_end(number)
        while len(self._snapshots) > SNAPSHOTS:
            self._snapshots.popitem(last=False)
        return base64.urlsafe_b64encode(orjson.dumps([number, following])).decode()

    def watch_options(self, request: Request) -> WatchOptions:
        """Read the parameters of a watch; raises 400 or 422."""
        initial = request.flag("sendInitialEvents")
        match = request.query.get("resourceVersionMatch", "")
        if initial and match != "NotOlderThan":
            raise _bad_match(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        if match and not initial:
            raise _bad_match(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        revision = request.number("resourceVersion", 0)
        return WatchOptions(
            resource=request.target.resource,
            predicate=_predicate(request),
            partial=request.partial,
            bookmarks=request.flag("allowWatchBookmarks"),
            revision=revision or None,
            send_initial=initial,
            timeout=float(request.number("timeoutSeconds", WATCH_TIMEOUT)),
            bookmark_every=self._bookmark_every,
        )


def _bad_match(detail: str) -> StatusError:
    problem = Problem("Forbidden", "resourceVersionMatch", detail)
    return invalid("ListOptions", "meta.k8s.io", "", [problem])


def _predicate(request: Request) -> Predicate:
    query, target = request.query, request.target
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    return parse(target.resource.plural, target.namespace, labels, fields)


def _page(
    snapshot: Snapshot, predicate: Predicate, start: int, limit: int
) -> tuple[list[Entry], int | None]:
    """Return up to ``limit`` matching entries and where the next page starts."""
    page: list[Entry] = []
    for at in range(start, len(snapshot.rows)):
        key, entry = snapshot.rows[at]
        if not predicate.covers(*key) or (
            predicate.tests and not predicate.matches(entry.decode())
        ):
            continue
        if limit and len(page) == limit:
            return page, at
        page.append(entry)
    return page, None


def _encode(request: Request, metadata: JsonObject, page: list[Entry]) -> bytes:
    resource = request.target.resource
    if request.partial:
        kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        items = [orjson.dumps(partial_metadata(entry.decode())) for entry in page]
    else:
        kind, version = f"{resource.kind}List", resource.api_version
        items = [_list_item(resource, entry) for entry in page]
    head = orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
    return head[:-1] + b',"items":[' + b",".join(items) + b"]}"


def _packed(request: Request, metadata: JsonObject, page: list[Entry]) -> bytes | None:
    """Return a page in protobuf, if each of its objects can be."""
    kind = request.target.resource.kind
    if kind not in PACKED:
        return None
    items: list[bytes] = []
    for entry in page:
        item = entry.packed()
        if item is None:
            return None
        items.append(item)
    return packing.page(f"{kind}List", metadata, items)


def _list_item(resource: Resource, entry: Entry) -> bytes:
    """Drop the type from items of built-in lists, as Go's typed lists do."""
    if not resource.builtin:
        return entry.data
    typed = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}",'.encode()
    return b"{" + entry.data.removeprefix(typed) if entry.data.startswith(typed) else entry.data
