"""Keeping the state in step with the API server: watches in, events out, one writer.

::

    ListWatch ──► Inbox ──► writer: a millisecond of events, then the loop runs others
    (one task     (never        │
     per kind)     waits)       └──► Feed ──► Engine.apply

Pods are listed last: whether a pod is ours depends on its namespace, what it asks on its
volumes, and its gang on the objects that describe gangs. Until the pods' list is applied
nothing is answered and nothing is planned.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, assert_never

from cluster.ids import PodUid
from extender.feed import Feed
from extender.metrics import ExtenderMetrics
from extender.pace import Pace
from kube import resources, translate, wire
from kube.changes import Change, Gone, NotServed, Synced, Upserted
from kube.client import KubeClient
from kube.inbox import Inbox
from kube.resources import KubeObject, Resource
from kube.watch import ListWatch
from workloads.dialect import Watched
from workloads.registry import DIALECTS

log = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObject)
ITEMS_PER_STEP: Final = 64  # observed together; the loop is given back between any two


@dataclass(slots=True)
class Source(Generic[T]):
    """One kind: its resource, and what its changes mean to the feed."""

    resource: Resource[T]
    upserted: Callable[[T], None]
    gone: Callable[[wire.ObjectMeta], None]
    tracks: bool = True
    synced: asyncio.Event = field(default_factory=asyncio.Event)


Item = tuple[Source[Any], Change[Any]]


class Sync:
    """All watches of one cluster and the writer that applies what they tell."""

    def __init__(
        self,
        client: KubeClient,
        feed: Feed,
        known: Callable[[], list[PodUid]],
        unreadable: Callable[[str, str], None],
        metrics: ExtenderMetrics,
        monotonic: Callable[[], float] = time.perf_counter,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``known`` returns the UIDs of all pods in the state, for comparison with a list.

        ``unreadable`` is told the resource and what is wrong with one of its objects.
        ``monotonic`` in seconds and ``jitter`` in [0, 1) are the simulation's to choose.
        """
        self._client = client
        self._feed = feed
        self._known = known
        self._unreadable = unreadable
        self._metrics = metrics
        self._monotonic = monotonic
        self._jitter = jitter
        self._inbox: Inbox[Item] = Inbox()
        self._first = _first_sources(feed)
        self._pods = Source(resources.PODS, feed.pod, feed.pod_gone, tracks=False)
        self.synced = asyncio.Event()

    @property
    def backlog(self) -> int:
        """Number of changes received and not applied yet."""
        return self._inbox.depth

    def problem(self) -> str | None:
        """Return what is still missing before answers mean anything, for ``/readyz``."""
        if self.synced.is_set():
            return None
        missing = [str(s.resource) for s in (*self._first, self._pods) if not s.synced.is_set()]
        return f"not listed yet: {', '.join(missing)}"

    async def run(self) -> None:
        """Watch and apply for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._write(), name="writer")
            for source in self._first:
                group.create_task(self._watch(source), name=f"watch {source.resource}")
            for source in self._first:
                await source.synced.wait()
            group.create_task(self._watch(self._pods), name="watch pods")
            await self._pods.synced.wait()
            log.info("cluster listed", extra={"events": self._inbox.total})
            self.synced.set()

    def _watch(self, source: Source[T]) -> Coroutine[Any, Any, None]:
        def sink(changes: Sequence[Change[T]]) -> None:
            self._inbox.put([(source, change) for change in changes])

        def problem(text: str) -> None:
            log.warning("watch", extra={"resource": str(source.resource), "problem": text})

        watch = ListWatch(
            self._client,
            source.resource,
            tracks=source.tracks,
            on_problem=problem,
            clock=self._monotonic,
            jitter=self._jitter,
        )
        return watch.run(sink)

    async def _write(self) -> None:
        pace = Pace(self._monotonic)
        while True:
            items = await self._inbox.take(ITEMS_PER_STEP)
            began = self._monotonic()
            for source, change in items:
                await self._apply(source, change)
                await pace.breathe()
            self._metrics.apply_seconds.observe(self._monotonic() - began)

    async def _apply(self, source: Source[T], change: Change[T]) -> None:
        match change:
            case Upserted(object=found):
                self._metrics.applied.labels(source.resource.plural).inc()
                try:
                    source.upserted(found)
                except ValueError as error:  # what no cluster can have; one object, not the watch
                    self._unreadable(str(source.resource), str(error))
            case Gone(meta=meta):
                self._metrics.applied.labels(source.resource.plural).inc()
                source.gone(meta)
            case Synced(seen=seen):
                self._metrics.relists.labels(source.resource.plural).inc()
                if seen is not None and not source.tracks:
                    await self._forget_all_but(seen)
                source.synced.set()
            case NotServed():
                source.synced.set()
            case _ as unreachable:
                assert_never(unreachable)

    async def _forget_all_but(self, seen: frozenset[str]) -> None:
        """Drop the pods of the state that a list does not have any more."""
        pace = Pace(self._monotonic)
        alive: set[PodUid] = set()
        for text in seen:
            alive.add(translate.pod_uid(text))
            await pace.breathe()
        for uid in self._known():
            if uid not in alive:
                self._feed.forget(uid)
            await pace.breathe()


def _first_sources(feed: Feed) -> list[Source[Any]]:
    """Return every kind that is listed before the pods."""
    core: list[Source[Any]] = [
        Source(resources.NAMESPACES, feed.namespace, feed.namespace_gone),
        Source(resources.NODES, feed.node, feed.node_gone),
        Source(resources.VOLUMES, feed.volume, feed.volume_gone),
        Source(resources.CLAIMS, feed.claim, feed.claim_gone),
        Source(resources.CSI_NODES, feed.csi_node, feed.csi_node_gone),
    ]
    gangs = [_gang_source(feed, watched) for dialect in DIALECTS for watched in dialect.watched]
    return core + gangs


def _gang_source(feed: Feed, watched: Watched[Any]) -> Source[Any]:
    def upserted(found: Any) -> None:
        feed.gang_object(found.metadata.uid, watched.spec(found))

    resource = Resource(watched.group, watched.version, watched.plural, watched.type)
    return Source(resource, upserted, feed.gang_object_gone)
