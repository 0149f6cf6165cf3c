"""Keeps the state up to date with the API server: reads watches, applies events, in one writer.

::

    ListWatch ──► Inbox ──► writer: a slice of events, then the loop runs others
    (one task     (never        │
     per kind)     waits)       └──► Feed ──► Engine.apply

Pods are listed last, because they depend on other objects: whether a pod is managed on its
namespace, its requests on its volumes, its gang on the objects that describe gangs. Until the
list of pods is applied no call is answered and no gang is planned.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar, assert_never

from extender.intake.firstlist.reader import FirstListReader
from extender.intake.objects import Feed
from extender.intake.sources import SuspendableObjects, WatchedKind, first_sources
from extender.metrics import ExtenderMetrics
from extender.timeslice import Pace
from extender.watchover.groupstatuses import GroupStatusWriter
from muster.cluster.columns.uids import Uids
from muster.cluster.ids import PodUid
from muster.kube import names, resources, wire
from muster.kube.changes import Change, NotServed, ObjectGone, Synced, Upserted
from muster.kube.client import KubeClient
from muster.kube.errors import DecodeError, KubeError
from muster.kube.firstlist.decoders import LISTED_PODS
from muster.kube.resources import KubeObject, Resource
from muster.kube.translation.planannotation import unsealed
from muster.kube.watching.inbox import Inbox
from muster.kube.watching.listwatch import (
    ListSink,
    ListWatch,
    Runtime,
    WatchConsumer,
    WatchScope,
    WatchState,
    WatchStats,
)

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)
RETRY_S: Final = 1.0  # on top of the client's own retries
_METADATA: Final = Resource(
    "", "v1", "pods", wire.PartialObject
)  # an unreadable spec must not hide
UNBOUND: Final = {"fieldSelector": "spec.nodeName="}
FLUSH_STEP_S: Final = 0.01  # between checks of the writer's progress; only at a take-over
CATCH_UP_STEP_S: Final = 0.1  # between checks of the watch's progress; only at a take-over
MOST_BEHIND: Final = 1000  # if more changes wait for the writer, no watch reads on
MOST_PAGES: Final = 2  # pages of pods that wait: one is read while the other is applied
NODES_PER_STEP: Final = 5000  # one page of the first list: some 20 ms, in which no call is served
ITEMS_PER_STEP: Final = 64  # measured together; the event loop may run other tasks after each


@dataclass(frozen=True, slots=True)
class PodPage:
    """A page of a list of pods."""

    pods: Sequence[wire.Pod]
    #: whether it is the first page of a list, which may be a repeated list
    begins: bool


Item = tuple[WatchedKind[Any], Change[Any] | PodPage]


@dataclass(frozen=True, slots=True)
class SyncParts:
    """The parts that the writer calls."""

    #: called before anything is listed
    prepare: Callable[[], Awaitable[None]]
    feed: Feed
    statuses: GroupStatusWriter
    #: called with jobs that can be suspended
    suspended: SuspendableObjects
    #: applies lists of pods by the page, as far as it can
    listed: FirstListReader
    #: returns the UIDs of all pods in the state, for comparison with a list
    known: Callable[[], Uids]
    #: called with the resource and what is wrong with one of its objects
    unreadable: Callable[[str, str], None]
    #: called with each pod after it was applied by itself
    pod_applied: Callable[[wire.Pod], None] | None
    #: called when a repeated list of pods has been applied completely
    listed_again: Callable[[], None] | None
    #: further kinds that are listed before the pods
    more: Sequence[WatchedKind[Any]]


class Sync:
    """All watches of one cluster, and the writer that applies their changes."""

    def __init__(
        self,
        client: KubeClient,
        parts: SyncParts,
        metrics: ExtenderMetrics,
        pace: Pace,
        jitter: Callable[[], float],
    ) -> None:
        """``jitter`` returns a number in [0, 1); simulations pass a fixed one."""
        self._client = client
        self._parts = parts
        self._feed = feed = parts.feed
        self._unreadable = parts.unreadable
        self._metrics = metrics
        self._pace = pace
        self._jitter = jitter
        self._inbox: Inbox[Item] = Inbox()
        self._applied = 0  # number of items of the inbox that were applied
        self._pages = 0  # number of pages in the inbox that are not applied yet
        self._has_room = asyncio.Event()
        self._listed = parts.listed
        self._nodes = WatchedKind(resources.NODES, feed.node, feed.node_gone)
        kinds = first_sources(feed, parts.statuses, parts.suspended)
        self._first: list[WatchedKind[Any]] = [self._nodes, *kinds, *parts.more]
        self._pods = WatchedKind(
            resources.PODS,
            _then(feed.pod, parts.pod_applied, parts.listed.applied),
            feed.pod_gone,
            tracks=False,
            is_echo=feed.is_echo,
        )
        self._pod_stats = WatchStats()  # of the watch of pods, once it runs
        #: set when every kind has been listed and applied
        self.synced = asyncio.Event()

    @property
    def backlog(self) -> int:
        """Number of changes that were received and are not applied yet."""
        watches = (source.watch for source in (*self._first, self._pods))
        return len(self._inbox.items) + sum(watch.waiting for watch in watches if watch is not None)

    def problem(self) -> str | None:
        """Return which kinds are not listed yet, None when all are; for ``/readyz``."""
        if self.synced.is_set():
            return None
        missing = [str(s.resource) for s in (*self._first, self._pods) if not s.synced.is_set()]
        return f"not listed yet: {', '.join(missing)}"

    async def run(self) -> None:
        """Watch and apply forever."""
        await self._parts.prepare()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(), name="writer")
            for source in self._first:
                group.create_task(self._watch(source), name=f"watch {source.resource}")
            for source in self._first:
                await source.synced.wait()
            group.create_task(self._judge_again(), name="judge again")
            group.create_task(self._watch(self._pods), name="watch pods")
            await self._pods.synced.wait()
            absent = [str(s.resource) for s in self._first if s.absent]
            log.info("cluster listed", extra={"events": self._inbox.total, "not_served": absent})
            self.synced.set()

    async def caught_up(self, namespace: str, plans: AbstractSet[str]) -> None:
        """Wait until the pods of a namespace that are stored with these plans are applied.

        ``plans``: without their seals, which a binding of ours leaves out.
        The namespace is listed: where there are none, nothing is waited for. Raises ``KubeError``.
        """
        version, unseen = await self._stored(namespace, plans)
        while unseen and not self._has_reached(version):
            unseen = {uid for uid in unseen if not self._feed.has(uid)}
            if unseen:
                await asyncio.sleep(CATCH_UP_STEP_S)
        if unseen:  # they were deleted, or are on their way from the watch
            await self.flushed()

    async def _stored(self, namespace: str, plans: AbstractSet[str]) -> tuple[str, set[str]]:
        """Return the version of the namespace's pods, and the UIDs of those with these plans."""
        version, found = "", set[str]()
        async for page in self._client.pages(_METADATA, namespace=namespace):
            if page.anew:
                found.clear()
            version = page.meta.resource_version
            found.update(
                pod.metadata.uid
                for pod in page.items
                if unsealed(pod.metadata.annotations.get(names.PLAN, "")) in plans
            )
        return version, found

    def _has_reached(self, version: str) -> bool:
        return self._pods.watch is not None and self._pods.watch.has_reported(version)

    async def flushed(self) -> None:
        """Wait until no list of pods is being read, and everything received is applied."""
        await _until(lambda: self._pod_stats.state is WatchState.WATCHING)
        stats = self._pod_stats
        received, lists = stats.received, stats.lists
        # A list that begins in the meantime has the changes that the watch will not show any more.
        await _until(lambda: stats.handed_on >= received or stats.lists > lists)
        await _until(lambda: stats.state is WatchState.WATCHING)
        received = self._inbox.total
        await _until(lambda: self._applied >= received)

    def _watch(self, source: WatchedKind[T]) -> Coroutine[Any, Any, None]:
        def sink(changes: Sequence[Change[T]]) -> None:
            if not self._inbox.items:
                self._pace.begin()
            self._inbox.put([(source, change) for change in changes])

        def problem(text: str) -> None:
            log.warning("watch", extra={"resource": str(source.resource), "problem": text})

        def page(pods: Sequence[wire.Pod], begins: bool) -> None:  # noqa: FBT001  a listener
            self._pages += 1
            self._inbox.put([(source, PodPage(pods, begins))])

        together = source.resource is resources.PODS
        scope = WatchScope(
            others=source.others,
            namespace=source.namespace,
            selectors=source.selectors,
            tracks=source.tracks,
            listing=ListSink(LISTED_PODS, page) if together else None,
        )
        consumer = WatchConsumer(
            room=self._room,
            is_behind=self._is_behind,
            room_for_events=self._room_for_events,
            breathe=self._pace.breathe,
            ours=self._feed.echoes if together else frozenset,
            on_problem=problem,
        )
        runtime = Runtime(clock=self._pace.clock, jitter=self._jitter)
        watch = source.watch = ListWatch(
            self._client, source.resource, scope=scope, consumer=consumer, runtime=runtime
        )
        if together:
            self._pod_stats = watch.stats
        return watch.run(sink)

    async def _write(self) -> None:
        while True:
            most = ITEMS_PER_STEP if self._nodes.synced.is_set() else NODES_PER_STEP
            await self._write_some(await self._inbox.take(most))

    async def _write_some(self, items: list[Item]) -> None:
        """Apply items. A separate function: waiting for more must not hold a page in memory."""
        began = self._pace.clock()
        for are_nodes, some in groupby(items, self._is_first_node):
            for source, change in self._left_of(list(some)) if are_nodes else some:
                if isinstance(change, PodPage):
                    await self._apply_together(change)
                else:
                    await self._apply(source, change)
                self._applied += 1
                await self._pace.breathe()
        self._has_room.set()
        self._metrics.apply_seconds.observe(self._pace.clock() - began)
        self._count({id(source): source for source, _ in items}.values())

    def _count(self, sources: Iterable[WatchedKind[Any]]) -> None:
        for source in sources:
            self._metrics.applied.labels(source.resource.plural).inc(source.applied)
            source.applied = 0

    def _is_first_node(self, item: Item) -> bool:
        source, change = item
        if source is not self._nodes or self._nodes.synced.is_set():
            return False
        return isinstance(change, Upserted) and change.listed

    def _left_of(self, items: list[Item]) -> list[Item]:
        """Apply nodes of the first list together if that is possible; return the rest."""
        nodes = [change.object for _, change in items if isinstance(change, Upserted)]
        if not self._listed.take_nodes(nodes):
            return items
        self._metrics.applied.labels(resources.NODES.plural).inc(len(nodes))
        self._applied += len(nodes)
        return []

    async def _room(self) -> None:
        """Wait until the writer is not far behind; whole lists would not fit into memory."""
        await self._room_for_events()
        while self._pages > MOST_PAGES:
            self._has_room.clear()
            await self._has_room.wait()

    def _is_behind(self) -> bool:
        return len(self._inbox.items) > MOST_BEHIND

    async def _room_for_events(self) -> None:
        """Do the same without the limit on pages: events are applied between two pages."""
        while self._is_behind():
            self._has_room.clear()
            await self._has_room.wait()

    async def _apply_together(self, page: PodPage) -> None:
        """Apply a page of a list: most pods together, the rest one by one."""
        pods = page.pods
        if page.begins:
            self._listed.begin()
        left = self._taken(pods)
        self._metrics.applied.labels(resources.PODS.plural).inc(len(pods) - len(left))
        for place in left:
            try:
                await self._apply(self._pods, Upserted(pods[place], listed=True))
            except DecodeError as error:
                self._unreadable(str(resources.PODS), f"{error}; left out")
            await self._pace.breathe()
        self._pages -= 1
        self._has_room.set()

    def _taken(self, pods: Sequence[wire.Pod]) -> Sequence[int]:
        """Return the places of the pods that are applied one by one; all where one raises."""
        try:
            return self._listed.take(pods)
        except Exception as error:  # noqa: BLE001 - it is found out one by one which it is
            self._unreadable(str(resources.PODS), f"a page of them: {type(error).__name__}")
            return range(len(pods))

    async def _apply(self, source: WatchedKind[T], change: Change[T]) -> None:
        match change:
            case Upserted(object=found, listed=False) if (
                source.is_echo is not None and source.is_echo(found)
            ):
                return
            case Upserted(object=found):
                source.applied += 1
                self._upserted(source, found)
            case ObjectGone(meta=meta):
                source.applied += 1
                source.gone(meta)
            case Synced():
                if source.absent:
                    source.absent = False
                    log.info("now served", extra={"resource": str(source.resource)})
                self._metrics.relists.labels(source.resource.plural).inc()
                if source is self._pods:
                    await self._forget(self._listed.end(self._parts.known))
                    if self.synced.is_set() and self._parts.listed_again is not None:
                        self._parts.listed_again()
                source.synced.set()
            case NotServed():
                log.debug("not served", extra={"resource": str(source.resource)})
                source.absent = True
                source.synced.set()
            case _ as unreachable:
                assert_never(unreachable)

    def _upserted(self, source: WatchedKind[T], found: T) -> None:
        """Apply an object; one that cannot be read must not end the watch."""
        try:
            source.upserted(found)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are applied
            self._unreadable(str(source.resource), f"{type(error).__name__}: {error}")
            if isinstance(found, wire.Pod):
                self._occupy(found)

    def _occupy(self, pod: wire.Pod) -> None:
        """Have a pod that cannot be read take the room that it has on its node."""
        try:
            self._feed.unread(pod)
            self._listed.applied(pod)
        except Exception as error:  # noqa: BLE001 - its requests cannot be read either
            self._unreadable(str(resources.PODS), f"{error}; left out")

    async def _judge_again(self) -> None:
        """List the pending pods of namespaces that were opened or closed to Muster."""
        due = self._feed.rejudging
        due.begin()
        while True:
            namespace = await due.next()
            try:
                await self._judge_namespace(namespace)
            except KubeError as error:
                text = f"namespace {namespace}: its pods cannot be listed: {error}"
                log.warning("judge again", extra={"problem": text})
                await asyncio.sleep(RETRY_S)
                due.again(namespace)
            else:
                due.listed(namespace)

    async def _judge_namespace(self, namespace: str) -> None:
        pages = self._client.pages(resources.PODS, namespace=namespace, selectors=UNBOUND)
        async for page in pages:
            for pod in page.items:
                self._judge_one(pod)
                await self._pace.breathe()

    def _judge_one(self, pod: wire.Pod) -> None:
        try:
            self._feed.judge_again(pod)
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are judged
            self._unreadable(str(resources.PODS), f"{type(error).__name__}: {error}")

    async def _forget(self, gone: Iterable[PodUid]) -> None:
        """Drop pods from the state that a list does not have any more."""
        for uid in gone:
            self._feed.forget(uid)
            await self._pace.breathe()


async def _until(reached: Callable[[], bool], step_s: float = FLUSH_STEP_S) -> None:
    """Check a condition every ``step_s`` seconds until it holds."""
    while not reached():  # noqa: ASYNC110  setting an Event would cost time with every item
        await asyncio.sleep(step_s)


def _then(
    apply: Callable[[wire.Pod], None], *further: Callable[[wire.Pod], None] | None
) -> Callable[[wire.Pod], None]:
    listeners = [listener for listener in further if listener is not None]

    def each(pod: wire.Pod) -> None:
        apply(pod)
        for listener in listeners:
            listener(pod)

    return each
