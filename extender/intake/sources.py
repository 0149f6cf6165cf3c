"""The kinds that are watched, and the functions that apply their changes."""

import asyncio
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from extender.config.queuefiles import YuniKornQueuesConfig
from extender.intake.objects import Feed
from extender.jobnetworks.pools import NetPools
from extender.queues.queuefiles import WatchedQueueFile
from extender.queues.queueobjects import QueueObjects
from extender.queues.queuestatuses import QueueStatusWriter
from extender.queues.workloadadmission import WorkloadAdmission
from extender.queues.workloadqueues import WorkloadQueues
from extender.watchover.groupstatuses import GroupStatusWriter
from muster.cluster.specs.gangspec import GangSpec
from muster.kube import resources, wire
from muster.kube.kinds import jobnetworks
from muster.kube.resources import KubeObject, Resource
from muster.kube.reviews import CONFIG_MAPS
from muster.kube.watching.listwatch import ListWatch
from muster.workloads.claims.admissioncheck import ADMISSION_CHECKS
from muster.workloads.claims.kueueworkload import WORKLOADS
from muster.workloads.dialect import Watched, gang_key
from muster.workloads.dialects.batchjob import Job
from muster.workloads.jobowners import OWNERS
from muster.workloads.queues.kueue import GROUP as KUEUE
from muster.workloads.queues.reading import as_obeyed, without_fair_sharing
from muster.workloads.queues.registry import KINDS as QUEUE_KINDS
from muster.workloads.queues.registry import QueueKind, is_elsewhere
from muster.workloads.queues.yunikorn import DIALECT as YUNIKORN
from muster.workloads.registry import DIALECTS
from muster.workloads.suspendablekinds import KINDS

T = TypeVar("T", bound=KubeObject)


@dataclass(slots=True)
class WatchedKind(Generic[T]):
    """One kind: its resource, and the functions that apply its changes."""

    resource: Resource[T]
    #: applies a created or changed object
    upserted: Callable[[T], None]
    #: applies a deletion
    gone: Callable[[wire.ObjectMeta], None]
    #: whether the watch remembers all objects, to find those that a later list lacks
    tracks: bool = True
    #: further versions of the kind, best first
    others: tuple[Resource[T], ...] = ()
    #: None: objects of all namespaces
    namespace: str | None = None
    #: ``labelSelector`` and ``fieldSelector``
    selectors: Mapping[str, str] | None = None
    #: returns whether an object is the result of our own write, which is applied already
    is_echo: Callable[[T], bool] | None = None
    #: the running watch, None before it starts
    watch: ListWatch[T] | None = None
    #: whether the API server does not serve it (a CRD that is not installed)
    absent: bool = False
    #: changes that are not counted in the metrics yet: each call of a counter takes a lock
    applied: int = 0
    #: set when the kind has been listed and applied, or is absent
    synced: asyncio.Event = field(default_factory=asyncio.Event)


class SuspendableObjects(Protocol):
    """What is called with objects that can be suspended."""

    def seen(self, resource: Resource[Any], found: Any) -> GangSpec | None:
        """Note an object; return what it asks for if Muster suspended it, else ``None``."""

    def gone(self, uid: str) -> None:
        """Forget a deleted object."""


def first_sources(
    feed: Feed, statuses: GroupStatusWriter, suspended: SuspendableObjects
) -> list[WatchedKind[Any]]:
    """Return every kind that is listed before the pods, but for the nodes."""
    core: list[WatchedKind[Any]] = [
        WatchedKind(resources.NAMESPACES, feed.namespace, feed.namespace_gone),
        WatchedKind(resources.VOLUMES, feed.volume, feed.volume_gone),
        WatchedKind(resources.CLAIMS, feed.claim, feed.claim_gone),
        WatchedKind(resources.CSI_NODES, feed.csi_node, feed.csi_node_gone),
    ]
    gangs = [
        _gang_source(feed, statuses, suspended, dialect.name, watched)
        for dialect in DIALECTS
        for watched in dialect.watched
    ]
    return core + gangs + [_owner_source(feed, suspended, each) for each in OWNERS]


def _owner_source(
    feed: Feed, suspended: SuspendableObjects, resource: Resource[Any]
) -> WatchedKind[Any]:
    """Return a kind of jobs that make the objects that describe gangs."""

    def upserted(found: Any) -> None:
        served = resource if source.watch is None else source.watch.resource
        feed.gang_object(found.metadata.uid, suspended.seen(served, found))

    def gone(meta: wire.ObjectMeta) -> None:
        feed.gang_object_gone(meta)
        suspended.gone(meta.uid)

    source: WatchedKind[Any] = WatchedKind(resource, upserted, gone)
    return source


def _gang_source(
    feed: Feed,
    statuses: GroupStatusWriter,
    suspended: SuspendableObjects,
    dialect: str,
    watched: Watched[Any],
) -> WatchedKind[Any]:
    is_suspendable = (watched.group, watched.plural) in KINDS

    def upserted(found: Any) -> None:
        if watched.pods is None:
            meta = found.metadata
            feed.group_object(gang_key(dialect, meta.namespace, meta.name), meta)
        served = resource if source.watch is None else source.watch.resource
        asks = suspended.seen(served, found) if is_suspendable else None
        feed.gang_object(found.metadata.uid, watched.spec(found) if asks is None else asks)
        if isinstance(found, Job):
            feed.job(found)
        statuses.seen(served, watched.status, found)

    def gone(meta: wire.ObjectMeta) -> None:
        feed.gang_object_gone(meta)
        suspended.gone(meta.uid)
        statuses.gone(meta.uid)

    resource, *others = (
        Resource(watched.group, version, watched.plural, watched.type)
        for version in (watched.version, *watched.others)
    )
    source: WatchedKind[Any] = WatchedKind(resource, upserted, gone, others=tuple(others))
    return source


def queue_sources(
    objects: QueueObjects,
    statuses: QueueStatusWriter,
    making_room: Container[str] = (),
    workloads: WorkloadQueues | None = None,
    *,
    kueue_shares: bool = True,
) -> list[WatchedKind[Any]]:
    """Return the kinds that describe queues, in every dialect.

    ``making_room``: the dialects whose gangs give way. ``workloads``: what reads and writes Kueue's
    queues, where its Workloads are admitted here. ``kueue_shares``: whether Kueue's queues go by
    what they borrow.
    """
    return [
        _queue_source(
            objects,
            statuses,
            kind if kueue_shares or kind.group != KUEUE else _without_shares(kind),
            making_room,
            workloads if kind.group == KUEUE else None,
        )
        for kind in QUEUE_KINDS
    ]


def _without_shares(kind: QueueKind[Any]) -> QueueKind[Any]:
    return replace(kind, read=lambda found: without_fair_sharing(kind.read(found)))


def workload_sources(
    admission: WorkloadAdmission | None, queues: WorkloadQueues | None
) -> list[WatchedKind[Any]]:
    """Return Kueue's Workloads and their checks; nothing where they are not admitted here."""
    if admission is None or queues is None:
        return []
    checks, *others = ADMISSION_CHECKS
    return [
        WatchedKind(checks, queues.check_seen, queues.check_gone, others=tuple(others)),
        WatchedKind(WORKLOADS, admission.seen, admission.gone),
    ]


def _queue_source(
    objects: QueueObjects,
    statuses: QueueStatusWriter,
    kind: QueueKind[Any],
    making_room: Container[str],
    workloads: WorkloadQueues | None = None,
) -> WatchedKind[Any]:
    """Return a kind of queues; with ``workloads`` those have its quotas, gangs are only placed."""
    resource, *others = (
        Resource(kind.group, version, kind.plural, kind.type) for version in kind.versions
    )

    def upserted(found: Any) -> None:
        makes_room = workloads is not None or kind.dialect in making_room
        reading = as_obeyed(
            kind.read(found),
            makes_room=makes_room,
            counts_past_use=statuses.counts_past_use,
            has_workloads=workloads is not None,
        )
        elsewhere = is_elsewhere(kind, found, statuses.program)
        admits_none = elsewhere if workloads is None else bool(reading.specs)
        objects.seen(kind.name, found.metadata, reading, is_elsewhere=admits_none)
        served = resource if source.watch is None else source.watch.resource
        if workloads is None:
            statuses.seen(kind, served, found, reading)
        else:
            workloads.seen(kind, served, found, reading, is_elsewhere=elsewhere)

    def gone(meta: wire.ObjectMeta) -> None:
        objects.gone(kind.name, meta)
        (statuses if workloads is None else workloads).gone(kind, meta)

    source: WatchedKind[Any] = WatchedKind(resource, upserted, gone, others=tuple(others))
    return source


def queue_file_sources(
    objects: QueueObjects, config: YuniKornQueuesConfig | None, making_room: Container[str] = ()
) -> list[WatchedKind[Any]]:
    """Return the one ConfigMap that describes queues; nothing where none is configured.

    It is asked for by its name: that is what lets ``resourceNames`` of a Role cover the watch.
    """
    if config is None:
        return []
    file = WatchedQueueFile(objects, config, makes_room=YUNIKORN in making_room)
    return [
        WatchedKind(
            CONFIG_MAPS,
            file.seen,
            file.gone,
            namespace=config.namespace,
            selectors={"fieldSelector": f"metadata.name={config.name}"},
        )
    ]


def network_sources(pools: NetPools) -> list[WatchedKind[Any]]:
    """Return the kinds of isolated networks; where the CRDs are not installed they are absent."""
    return [
        WatchedKind(jobnetworks.POOLS, pools.pool, pools.pool_gone),
        WatchedKind(jobnetworks.NODE_NETWORKS, pools.node, pools.node_gone),
    ]
