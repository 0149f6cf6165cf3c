"""One watch: from the moment the request is accepted until the stream ends.

::

    history since RV ─┐
                      ▼
    write ──► offer ──► pending ──► socket          pending grows beyond the limit:
                          ▲                         nothing more is taken, what is there
               bookmark ──┘ (only when it is empty) is sent, the stream ends, the reader
                                                    resumes from its last revision

The limit and the way it ends are the real watch cache's: it buffers some hundred events
for a reader and closes the stream of one that does not keep up
(staging/src/k8s.io/apiserver/pkg/storage/cacher, ``forceCloseWatcher``).
"""

import asyncio
from dataclasses import dataclass
from typing import Final

import orjson
from aiohttp import web

from loadtest.testbed.client.wirejson import JsonObject
from loadtest.testbed.standins.apiserver.resources import Resource
from loadtest.testbed.standins.apiserver.selectors import Predicate
from loadtest.testbed.standins.apiserver.store import (
    Change,
    Collection,
    Entry,
    Store,
    frame,
    partial_metadata,
)

# Events waiting for one reader before it is disconnected.
BUFFER_LIMIT: Final = 1_000
# Seconds before the end of a watch at which the last bookmark is sent.
_BEFORE_END: Final = 2.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What the request asked for. Times in seconds; ``revision`` None starts from the present."""

    resource: Resource
    predicate: Predicate
    partial: bool
    bookmarks: bool
    revision: int | None
    send_initial: bool
    timeout: float
    bookmark_every: float


class Watcher:
    """Turns changes into lines for one reader."""

    def __init__(
        self, store: Store, collection: Collection, options: WatchOptions, limit: int
    ) -> None:
        self._store, self._collection, self._options = store, collection, options
        self._limit = limit
        self._pending: list[bytes] = []
        self._live = 0
        self._wake = asyncio.Event()
        self.closing = False

    def close(self) -> None:
        """End the stream after what is pending."""
        self.closing = True
        self._wake.set()

    def offer(self, change: Change) -> None:
        """Take a change in, if the selectors want it."""
        if self.closing or not self._options.predicate.covers(*change.key):
            return
        line = self._line(change)
        if line is None:
            return
        self._pending.append(line)
        self._live += 1
        if self._live > self._limit:
            self.closing = True
        self._wake.set()

    def _line(self, change: Change) -> bytes | None:
        """Word the change for this reader.

        An object that stops matching is DELETED for the reader and one that starts to
        match is ADDED; a deletion shows the last state that matched, with the
        revision of the deletion.
        """
        options = self._options
        if not options.predicate.tests:
            return change.line(change.verb, partial=options.partial)
        now = change.verb != "DELETED" and options.predicate.matches(change.obj)
        old = change.before_obj
        before = old is not None and options.predicate.matches(old)
        if now:
            return change.line("MODIFIED" if before else "ADDED", partial=options.partial)
        return change.gone_line(partial=options.partial) if before else None

    def start(self) -> None:
        """Queue the initial events or the missed changes, and listen from now on."""
        options = self._options
        if options.revision is None or options.send_initial:
            self._pending.extend(self._initial())
        elif options.revision < self._collection.compacted:
            self._pending.append(frame("ERROR", _too_old(options.revision, self._collection)))
            self.closing = True
        else:
            self._replay(options.revision)
        if options.send_initial and options.bookmarks:
            self._pending.append(self._bookmark(initial_end=True))
        self._collection.listeners.append(self.offer)

    def _replay(self, revision: int) -> None:
        """Queue what was missed; the buffer limit counts from the first live event."""
        for change in self._collection.since(revision):
            line = self._line(change) if self._options.predicate.covers(*change.key) else None
            change.forget_decoded()
            if line is not None:
                self._pending.append(line)

    def stop(self) -> None:
        """Listen no longer."""
        self._collection.listeners.remove(self.offer)

    def _initial(self) -> list[bytes]:
        predicate, found = self._options.predicate, []
        for key in self._collection.sorted_keys():
            entry = self._collection.entries[key]
            if predicate.covers(*key) and (
                not predicate.tests or predicate.matches(entry.decode())
            ):
                found.append(frame("ADDED", self._encode(entry)))
        return found

    def _encode(self, entry: Entry) -> bytes:
        return (
            orjson.dumps(partial_metadata(entry.decode())) if self._options.partial else entry.data
        )

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        resource = self._options.resource
        kind, version = resource.kind, resource.api_version
        if self._options.partial:
            kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
        metadata: JsonObject = {"resourceVersion": str(self._store.revision)}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        return frame(
            "BOOKMARK",
            orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata}),
        )

    async def stream(self, response: web.StreamResponse) -> None:
        """Write until the reader is slow, the time is over, or the stream is closed."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._options.timeout
        bookmark_at = self._next_bookmark(loop.time(), end)
        while True:
            if self._pending:
                lines, self._pending, self._live = self._pending, [], 0
                await response.write(b"".join(lines))
                continue
            now = loop.time()
            if self.closing or now >= end:
                return
            if self._options.bookmarks and now >= bookmark_at:
                bookmark_at = self._next_bookmark(now, end)
                self._pending.append(self._bookmark())
                continue
            await self._sleep(min(end, bookmark_at) - now)

    def _next_bookmark(self, now: float, end: float) -> float:
        """Every so often, and once shortly before the end (cache_watcher.go)."""
        regular, last = now + self._options.bookmark_every, end - _BEFORE_END
        return last if now < last < regular else regular

    async def _sleep(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return


def _too_old(revision: int, collection: Collection) -> bytes:
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": f"too old resource version: {revision} ({collection.compacted})",
            "reason": "Expired",
            "code": 410,
        }
    )
