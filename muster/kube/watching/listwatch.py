"""List once, then follow every change: the life of one watch.

::

              ┌──────────── wait ◄──────────┐
              ▼                             │ failed
        ┌──────────┐   last page     ┌──────┴─────┐  stream ended or lost:
   ───► │ LISTING  ├───────────────► │  WATCHING  ├──────┐ resumed at the last
        └─┬────▲───┘  Synced         └──────┬─────┘ ◄────┘ version, without a list
      404 │    │ slowly                     │
          ▼    │                            │ 410; or nothing at all has come for a
     ┌─────────┴──┐                         │ whole watch; or it failed time and again
     │ NOT SERVED │        LISTING ◄────────┘ (what is known then is reconciled by UID)
     └────────────┘

*Reading a watch never waits*: the API server disconnects a reader that is late by a few hundred
milliseconds. What has been read waits as bytes (``muster.kube.watching.readahead``) until there is
``room``. Then ``sink`` is called with its frames; it only stores them
(``muster.kube.watching.inbox.Inbox``).

*Versions.* A watch without a version begins with events in no order, so it cannot be resumed at
any of them. So a watch here always begins at the version of a finished list, and bookmarks keep
that version young. The server does not refuse a watch at a version that it has not reached yet
(etcd was restored from a backup); it is silent for ever. Hence the rule "nothing at all has come":
an idle watch gets a bookmark every minute.

*Versions of a kind.* A kind may be served in one version or another (``others``). The first one
that is served is watched. When it goes, as in an upgrade of the cluster, the next one is listed
and reconciled with the known objects, so no object appears or vanishes because of that. Only when
no version is served the kind counts as not served, and all are asked for again later.

*Reconciling.* After a list, a known object that is not in it is gone. With ``tracks`` the watch
remembers name and UID of every object and reports ``ObjectGone`` itself. Without it (pods: the
model knows them, and 1,000,000 names would take more memory than the model) the consumer compares
with ``Synced.seen``, or, with a ``ListSink``, with what it stored of the list itself.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from muster.kube.changes import Change, NotServed, ObjectGone, Sink, Synced, Upserted
from muster.kube.errors import (
    APIError,
    DecodeError,
    KubeError,
    NotFound,
    TransportError,
    from_status,
)
from muster.kube.errors import VersionExpired as VersionGone
from muster.kube.resources import KubeObject, Resource
from muster.kube.watching.frames import (
    Added,
    Batch,
    Bookmark,
    Codec,
    Deleted,
    Failed,
    Modified,
    Page,
)
from muster.kube.watching.knownobjects import KnownObjects
from muster.kube.watching.ownwrites import without
from muster.kube.watching.readahead import BodyStream, ReadAhead

T = TypeVar("T", bound=KubeObject)
L = TypeVar("L", bound=KubeObject)


def _keeps_up() -> bool:
    """Return that the consumer is not behind."""
    return False


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds, and how often a watch is resumed."""

    #: shortest and longest that a watch is asked for (client-go: 5 to 10 minutes)
    watch_s: tuple[float, float] = (300.0, 600.0)
    #: silence after which the connection counts as dead; bookmarks come every minute
    idle_s: float = 150.0
    #: first and longest wait after failures
    back_off_s: tuple[float, float] = (0.25, 30.0)
    #: between two requests for a resource that is not served: so late, at most, a CRD is noticed
    #: that is installed while objects of its kind are already needed
    absent_s: float = 20.0
    #: failed watches in a row at one version before the list is read again
    resumes: int = 5
    #: a watch that was open for so long did not fail, even if nothing came: a load balancer may cut
    #: idle connections, and a quiet kind must not wait longer and longer because of that
    steady_s: float = 10.0


@dataclass(frozen=True, slots=True)
class ListSink(Generic[T]):
    """How a list is handed on page by page, for a consumer that itself finds the objects gone."""

    #: the same objects, decoded as a consumer of very many wants them
    resource: Resource[T]
    #: called with a page, and with whether the list begins with it, or begins again
    sink: Callable[[Sequence[T], bool], None]


@dataclass(frozen=True, slots=True)
class WatchScope(Generic[T]):
    """Which objects of a resource are followed, and how they are listed."""

    #: further versions of the same kind, best first
    others: Sequence[Resource[T]] = ()
    #: None: those of all namespaces
    namespace: str | None = None
    #: ``labelSelector`` and ``fieldSelector``
    selectors: Mapping[str, str] | None = None
    #: whether the watch remembers every object, so that it can report what is missing from a list
    tracks: bool = True
    #: how lists are handed on, if not as changes; needs ``tracks=False``
    listing: ListSink[Any] | None = None


@dataclass(frozen=True, slots=True)
class WatchConsumer:
    """How much the consumer of a watch can take now. By default it is never behind."""

    #: returns when another page of a list can be taken: lists may wait, and may be larger than the
    #: memory; None: there is always room
    room: Callable[[], Awaitable[None]] | None = None
    #: returns whether events should wait as bytes for now
    is_behind: Callable[[], bool] = _keeps_up
    #: returns as soon as ``is_behind`` is False
    room_for_events: Callable[[], Awaitable[None]] | None = None
    #: awaited between batches of events, so that other tasks can run; must not take long
    breathe: Callable[[], Awaitable[None]] | None = None
    #: returns versions that the consumer has taken over already
    #: (``muster.kube.watching.ownwrites``)
    ours: Callable[[], AbstractSet[bytes]] = frozenset
    #: called once per failure and per object that cannot be decoded
    on_problem: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """The clock of a watch and its source of random numbers."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    #: seconds, only ever growing
    clock: Callable[[], float] = time.monotonic
    #: a random number in [0, 1)
    jitter: Callable[[], float] = random.random


class WatchState(StrEnum):
    """See the drawing in the module's docstring."""

    LISTING = "listing"
    WATCHING = "watching"
    NOT_SERVED = "not served"


@dataclass(slots=True)
class WatchStats:
    """For metrics and readiness; only ever written by the watch."""

    state: WatchState = WatchState.LISTING
    synced: bool = False
    lists: int = 0
    watches: int = 0
    events: int = 0
    bookmarks: int = 0
    problems: int = 0
    #: lines of watches that have come in; without those that a cut watch has lost, which come again
    received: int = 0
    #: those of them that the consumer has received, or does not need
    handed_on: int = 0
    last_error: str = ""


class WatchClient(Protocol):
    """What is needed of ``KubeClient``."""

    def codec(self, resource: Resource[T]) -> Codec[T]:
        """See ``KubeClient``."""
        ...

    def pages(
        self,
        resource: Resource[T],
        *,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Page[T]]:
        """See ``KubeClient``."""
        ...

    def watch(
        self,
        resource: Resource[T],
        *,
        resource_version: str,
        timeout_s: int,
        idle_s: float,
        namespace: str | None = None,
        selectors: Mapping[str, str] | None = None,
    ) -> AbstractAsyncContextManager[BodyStream]:
        """See ``KubeClient``."""
        ...


class ListWatch(Generic[T]):
    """Follows one resource for ever. ``run`` is one task."""

    def __init__(
        self,
        client: WatchClient,
        resource: Resource[T],
        *,
        scope: WatchScope[T] | None = None,
        consumer: WatchConsumer | None = None,
        timing: Timing | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        scope, consumer, runtime = (
            scope or WatchScope(),
            consumer or WatchConsumer(),
            runtime or Runtime(),
        )
        #: the version of the kind that is followed now
        self.resource = resource
        self._versions = (resource, *scope.others)
        self._absent_versions = 0
        self.stats = WatchStats()
        self._client = client
        self._codec = client.codec(resource)
        self._namespace, self._selectors = scope.namespace, scope.selectors
        self._listing = scope.listing
        self._room = consumer.room
        self._is_behind = consumer.is_behind
        self._room_for_events = consumer.room_for_events
        self._breathe = consumer.breathe
        self._ours = consumer.ours
        self._on_problem = consumer.on_problem
        self._timing = timing or Timing()
        self._sleep, self._clock, self._jitter = runtime.sleep, runtime.clock, runtime.jitter
        self._absence_reported = False
        self._known: KnownObjects[T] = KnownObjects(tracks=scope.tracks)
        self._version = ""
        self._failures = 0

    @property
    def waiting(self) -> int:
        """Number of events that have been received and not handed on yet."""
        return self.stats.received - self.stats.handed_on

    def has_reported(self, version: str) -> bool:
        """Return whether everything up to a resource version has been handed on.

        Versions are integers that grow (KEP-5504). A version that is no integer counts as handed on
        as soon as one list has been.
        """
        if not (version.isdecimal() and self._version.isdecimal()):
            return bool(self._version)
        return int(self._version) >= int(version)

    async def run(self, sink: Sink[T]) -> NoReturn:
        """List and watch until cancelled. ``sink`` must not block; what it raises is raised."""
        while True:
            try:
                if not self._version:
                    await self._list(sink)
                await self._watch(sink)
            except NotFound as error:
                await self._absent(sink, error)
            except VersionGone as error:
                self._start_over(str(error))
            except KubeError as error:
                await self._failed(error)

    # -- listing ---------------------------------------------------------------------------------

    async def _list(self, sink: Sink[T]) -> None:
        self.stats.state = WatchState.LISTING
        self.stats.lists += 1
        self._known.begin()
        if self._listing is None:
            version = await self._pages(
                self.resource, lambda items, _begins: sink(self._known.listed(items))
            )
        else:
            version = await self._pages(self._listing.resource, self._listing.sink)
        if not version:
            raise DecodeError(f"list of {self.resource}: metadata.resourceVersion is missing")
        seen = self._known.seen() if self._listing is None else None
        sink([*self._known.missing(), Synced(version, seen)])
        self._version = version
        self._absence_reported = False
        self._absent_versions = 0
        self.stats.synced = True

    async def _pages(self, resource: Resource[L], sink: Callable[[Sequence[L], bool], None]) -> str:
        """Hand on all pages, each when there is room for it; return the version of the list."""
        version, begins = "", True
        pages = self._client.pages(resource, namespace=self._namespace, selectors=self._selectors)
        async for page in pages:
            if page.anew:
                self._known.begin()
            version = page.meta.resource_version
            self._report(page.problems)
            sink(page.items, begins or page.anew)
            begins = False
            if self._breathe is not None:
                await self._breathe()
            if self._room is not None:
                await self._room()
        return version

    # -- watching --------------------------------------------------------------------------------

    async def _watch(self, sink: Sink[T]) -> None:
        """Follow one watch to its end."""
        self.stats.state = WatchState.WATCHING
        self.stats.watches += 1
        shortest, longest = self._timing.watch_s
        asked_s = round(shortest + (longest - shortest) * self._jitter())
        opening = self._client.watch(
            self.resource,
            resource_version=self._version,
            timeout_s=asked_s,
            idle_s=self._timing.idle_s,
            namespace=self._namespace,
            selectors=self._selectors,
        )
        began = self._clock()
        async with opening as stream:
            try:
                came = await self._read(stream, sink)
            finally:
                if self._clock() - began >= self._timing.steady_s:
                    self._failures = 0
        if came:
            return
        if self._clock() - began < asked_s / 2:
            raise TransportError("the watch ended before it had begun")
        self._start_over("the watch ended and not even a bookmark was heard")

    async def _read(self, stream: BodyStream, sink: Sink[T]) -> bool:
        """Hand on frames until the server ends the stream; return whether there were any."""
        came = False
        ahead = ReadAhead(stream, f"watch of {self.resource}", self._came)
        try:
            while lines := await ahead.next():
                if self._room_for_events is not None and self._is_behind():
                    await ahead.read_on_until(self._room_for_events)
                self._decode(lines, sink)
                self.stats.handed_on += lines.count(b"\n")
                if self._breathe is not None:
                    await self._breathe()
                came = True
                self._failures = 0
        finally:
            self.stats.received = self.stats.handed_on  # what is left will come again
        return came

    def _came(self, lines: int) -> None:
        self.stats.received += lines

    def _decode(self, lines: bytes, sink: Sink[T]) -> None:
        last, ours = "", self._ours()
        if ours:
            lines, last = without(lines, ours)
        self._take(self._codec.frames(lines), sink)
        self._version = last or self._version

    def _take(self, batch: Batch[T], sink: Sink[T]) -> None:
        """Hand on one batch, then raise the error that ends it, if there is one."""
        self._report(batch.problems)
        changes: list[Change[T]] = []
        failed: Failed | None = None
        for frame in batch.frames:
            if isinstance(frame, Failed):
                failed = frame
                break
            self._version = frame.object.metadata.resource_version or self._version
            if isinstance(frame, Added | Modified):
                changes.append(Upserted(frame.object))
                self._known.upserted(frame.object.metadata)
            elif isinstance(frame, Deleted):
                changes.append(ObjectGone(frame.object.metadata))
                self._known.deleted(frame.object.metadata)
            elif isinstance(frame, Bookmark):
                self.stats.bookmarks += 1
        if changes:
            self.stats.events += len(changes)
            sink(changes)
        if failed is not None:
            raise from_status(failed.object)

    # -- failing ---------------------------------------------------------------------------------

    def _start_over(self, why: str) -> None:
        self._report((f"{self.resource}: {why}; the list is read again",))
        self._version = ""

    async def _absent(self, sink: Sink[T], error: NotFound) -> None:
        """Turn to the kind's next version; after the last one, report all its objects as gone."""
        self._version = ""
        self._absent_versions += 1
        place = self._versions.index(self.resource) + 1
        self._turn_to(self._versions[place % len(self._versions)])
        if self._absent_versions < len(self._versions):
            return
        self._absent_versions = 0
        self.stats.state = WatchState.NOT_SERVED
        if not self._absence_reported:
            self._absence_reported = True
            self._known.begin()
            sink([*self._known.missing(), NotServed()])
            self.stats.last_error = f"{self.resource} is not served: {error}"
        await self._sleep(self._timing.absent_s * (0.5 + self._jitter()))

    def _turn_to(self, resource: Resource[T]) -> None:
        self.resource, self._codec = resource, self._client.codec(resource)

    async def _failed(self, error: KubeError) -> None:
        """Wait, longer each time until something comes; list again after some failures."""
        self._failures += 1
        self._report((f"{self.resource}: {error}; attempt {self._failures}",))
        if self._failures % self._timing.resumes == 0:
            self._version = ""
        first, longest = self._timing.back_off_s
        wait = min(longest, first * (1 << min(self._failures - 1, 16)))
        asked = error.retry_after if isinstance(error, APIError) else None
        await self._sleep((asked or 0.0) + wait * (0.5 + 0.5 * self._jitter()))

    def _report(self, problems: tuple[str, ...]) -> None:
        for problem in problems:
            self.stats.problems += 1
            self.stats.last_error = problem
            if self._on_problem is not None:
                self._on_problem(problem)
