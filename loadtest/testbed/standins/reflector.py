"""List, then watch for ever: what every stand-in needs to follow a resource.

::

    LIST ──► SYNCED ──► WATCH ──┐ stream ended, connection lost: resume at the last version
      ▲                  ▲──────┘
      └───────────── 410: the history is gone; list again, report what vanished meanwhile
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Final, Protocol

import aiohttp

from loadtest.testbed.client.api import ApiFailed
from loadtest.testbed.client.wirejson import JsonObject, dig, name_of, namespace_of

_PAUSE: Final = 0.2  # seconds between attempts while the server is away


class Change(StrEnum):
    """What happened to an object."""

    PRESENT = "present"
    GONE = "gone"


Sink = Callable[[Change, JsonObject], None]


class Reads(Protocol):
    """What is needed of ``Api``."""

    async def list_all(self, path: str, **query: str) -> tuple[list[JsonObject], str]:
        """See ``Api``."""
        ...

    def pages(self, path: str, **query: str) -> AsyncIterator[tuple[list[JsonObject], str]]:
        """See ``Api``."""
        ...

    def watch(
        self, path: str, resource_version: str, **query: str
    ) -> AsyncIterator[tuple[str, JsonObject]]:
        """See ``Api``."""
        ...


class Reflector:
    """Follows one path. ``sink`` is called in order and must not wait.

    ``relists`` counts 410s: with more than the first list a history has a gap.
    """

    def __init__(self, api: Reads, path: str, sink: Sink, **query: str) -> None:
        self._api, self._path, self._sink = api, path, sink
        self._query = query
        self._known: dict[str, tuple[str, str]] = {}  # uid: namespace and name
        self._revision = ""
        self.synced = asyncio.Event()
        self.relists = 0

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                if not self._revision:
                    await self._list()
                await self._watch()
            except ApiFailed as failure:
                if failure.code == 410:
                    self._revision = ""
                    continue
                await asyncio.sleep(_PAUSE)
            except (aiohttp.ClientError, TimeoutError, ConnectionError):
                await asyncio.sleep(_PAUSE)

    async def _list(self) -> None:
        """Take a list in; the first a page at a time: decoded, a million pods are gigabytes."""
        if self._known:
            items, revision = await self._api.list_all(self._path, **self._query)
            self._drop_all_but({str(dig(obj, "metadata", "uid")) for obj in items})
            for obj in items:
                self._take(Change.PRESENT, obj)
        else:
            revision = await self._list_first()
        self.relists += 1
        self._revision = revision
        self.synced.set()

    async def _list_first(self) -> str:
        revision = ""
        async for page, revision in self._api.pages(self._path, **self._query):  # noqa: B007  the last
            for obj in page:
                self._take(Change.PRESENT, obj)
        return revision

    def _drop_all_but(self, present: set[str]) -> None:
        for uid in [uid for uid in self._known if uid not in present]:
            self._sink(Change.GONE, _metadata(uid, *self._known.pop(uid)))

    async def _watch(self) -> None:
        query = {"allowWatchBookmarks": "true", **self._query}
        async for verb, obj in self._api.watch(self._path, self._revision, **query):
            if verb == "ERROR":
                raise ApiFailed(int(obj.get("code", 500)), str(obj.get("message")), obj)
            if verb != "BOOKMARK":
                self._take(Change.GONE if verb == "DELETED" else Change.PRESENT, obj)
            self._revision = str(dig(obj, "metadata", "resourceVersion"))

    def _take(self, change: Change, obj: JsonObject) -> None:
        """Remember just enough of the object to report it gone later."""
        uid = str(dig(obj, "metadata", "uid"))
        if change is Change.GONE:
            self._known.pop(uid, None)
        else:
            self._known[uid] = sys.intern(namespace_of(obj)), name_of(obj)
        self._sink(change, obj)


def _metadata(uid: str, namespace: str, name: str) -> JsonObject:
    """Return what is known of an object whose deletion no watch has reported."""
    return {"metadata": {"uid": uid, "name": name, "namespace": namespace}}
