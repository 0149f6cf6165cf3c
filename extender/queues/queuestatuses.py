"""Writes the statuses of queue objects, in every dialect, on the leader.

::

    objects seen ─┐  every few seconds, if anything changed
    model ────────┴─► sights ──► wanted fields ──► those that differ: due ──► PATCH …/status
                        └──► Events: what is wrong, which field is not obeyed

However many queues change, at most ``patchesPerSecond`` PATCHes are sent, in turn, and looking
takes at most a tenth of the time. A status that somebody else writes is left alone
(``muster.workloads.queues.statusmeta``), but for that of Muster's own kind.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from heapq import nsmallest
from http import HTTPStatus
from itertools import islice
from math import ceil
from typing import Any, Final

from extender.config.settings import QueueStatusConfig
from extender.engine import Engine
from extender.metrics import ExtenderMetrics
from extender.queues.averageuse import AverageUse
from extender.queues.gangtally import GangTally
from extender.queues.learnedruns import LearnedRuns
from extender.queues.queueevents import QueueEvents
from extender.queues.queuegauges import CellGauge, QueueGauge
from extender.queues.queueobjects import QueueObjects
from extender.timeslice import Pace
from muster.cluster.quota.aliases import QueueUser
from muster.cluster.quota.cells import Cell
from muster.cluster.quota.queuenode import QueueNode
from muster.cluster.quota.queuespec import QueueName
from muster.kube import wire
from muster.kube.client import MERGE, KubeClient
from muster.kube.errors import APIError, Conflict, KubeError, NotFound
from muster.kube.resources import Resource
from muster.kube.writing.events import Regarding
from muster.workloads.queues import kai, koordinator, muster
from muster.workloads.queues.describedqueues import source
from muster.workloads.queues.kueue import LocalQueue
from muster.workloads.queues.reading import QueueReading
from muster.workloads.queues.registry import QueueKind
from muster.workloads.queues.sight import (
    READY,
    AverageSight,
    CellSums,
    Fields,
    GangCounts,
    QueueSight,
    changes,
    verdict,
    whole_uses,
)
from muster.workloads.queues.statuses import STATUSES
from muster.workloads.queues.statusmeta import StatusMeta, is_ours

log = logging.getLogger(__name__)

_NO_GANGS: Final = GangCounts()
REST: Final = 9  # times as long as a look took until the next: 10,000 queues take a second
PAUSE_S: Final = 30.0  # after a failure, to leave an API server in trouble alone


@dataclass(slots=True)
class _Tracked:
    """An object that describes queues."""

    kind: QueueKind[Any]
    resource: Resource[Any]
    #: the object as last seen
    found: Any
    reading: QueueReading
    #: fields that the API server drops
    dropped: set[str] = field(default_factory=set)
    #: the version that our last write made, "" once the watch has shown it
    awaited: str = ""

    @property
    def meta(self) -> StatusMeta:
        """Its metadata."""
        meta: StatusMeta = self.found.metadata
        return meta

    @property
    def queue(self) -> QueueName | None:
        """The queue that it describes, or gives a name; ``None``: it does neither."""
        return _described(self.reading)

    def about(self) -> Regarding:
        """Return the reference to it."""
        meta, version = self.meta, self.resource.api_version
        return Regarding(version, self.kind.kind, meta.namespace, meta.name, meta.uid)

    def __str__(self) -> str:
        return source(self.kind.name, self.meta)


@dataclass(slots=True)
class _Look:
    """The queues as they were found at one time."""

    used: Mapping[QueueName, CellSums] = field(default_factory=dict)
    users: Mapping[QueueName, list[QueueUser]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatusParts:
    """The parts that the writer calls."""

    engine: Engine
    objects: QueueObjects
    client: KubeClient
    events: QueueEvents
    metrics: ExtenderMetrics
    pace: Pace
    #: the name of this program in requests
    program: str
    #: what queues used on average; ``None``: past use does not count
    averages: AverageUse | None = None
    #: run times that were learned; ``None``: none are
    runs: LearnedRuns | None = None


class QueueStatusWriter:
    """Writes the statuses of all objects that describe queues."""

    def __init__(self, parts: StatusParts, config: QueueStatusConfig) -> None:
        self._parts = parts
        self._config = config
        self._engine = parts.engine
        self.objects = parts.objects
        self._tally = GangTally(parts.engine)
        self._tracked: dict[str, _Tracked] = {}  # by source
        self._due: dict[str, None] = {}  # sources, in order
        self._changes = 0  # of objects
        self._looked: tuple[object, ...] | None = None
        self._look = _Look()

    # -- the watches -----------------------------------------------------------------------------

    @property
    def program(self) -> str:
        """The name of this program in requests."""
        return self._parts.program

    @property
    def counts_past_use(self) -> bool:
        """Whether the order of queues depends on past use."""
        return self._parts.averages is not None

    def seen(
        self, kind: QueueKind[Any], served: Resource[Any], found: Any, reading: QueueReading
    ) -> None:
        """Note an object as it is now."""
        meta: wire.ObjectMeta = found.metadata
        name, resource = source(kind.name, meta), replace(served, namespaced=bool(meta.namespace))
        if self._parts.averages is not None:
            self._parts.averages.seen(found, _described(reading))
        if self._parts.runs is not None:
            self._parts.runs.seen(found, _described(reading))
        before = self._tracked.get(name)
        if before is None or before.meta.uid != meta.uid:
            self._tracked[name] = _Tracked(kind, resource, found, reading)
            if kind.group == kai.GROUP:
                self._tally.add_up()
        else:
            before.resource, before.found, before.reading = resource, found, reading
            before.awaited = ""
        self._changes += 1

    def gone(self, kind: QueueKind[Any], meta: wire.ObjectMeta) -> None:
        """Forget a deleted object."""
        name = source(kind.name, meta)
        self._due.pop(name, None)
        tracked = self._tracked.pop(name, None)
        if tracked is not None:
            self._parts.events.forget(tracked.meta.uid)
            if self._parts.runs is not None and tracked.queue is not None:
                self._parts.runs.gone(meta.name, tracked.queue)
        self._changes += 1

    # -- the job ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at the queues every few seconds and write what is due every second, forever."""
        clock, next_look = self._parts.pace.clock, 0.0
        while True:
            began = clock()
            if began >= next_look:
                await self.look()
                took_s = clock() - began
                next_look = began + max(self._config.every_seconds, took_s * (REST + 1))
            step_s = min(1.0, self._config.every_seconds)
            try:
                await self.write_due(ceil(self._config.patches_per_second * step_s))
            except KubeError as error:
                log.warning("statuses of queues not written", extra={"error": str(error)})
                await asyncio.sleep(PAUSE_S)
            await asyncio.sleep(step_s)

    async def look(self) -> None:
        """Find the statuses that are due, and record Events, if anything changed."""
        now = self._engine.state.generation, self._changes, *self._turns()
        if not self._tracked:
            self._tally.rest()
            self._look = _Look()
        if now == self._looked or not self._tracked:
            return
        self._looked = now
        await self._parts.pace.drive(self._tally.count())
        used = await self._parts.pace.drive(whole_uses(self._engine.state.charges.tree))
        self._look = _Look(used, self._tally.by_queue())
        for name, tracked in list(self._tracked.items()):
            if self._note(tracked):
                self._due[name] = None
            else:
                self._due.pop(name, None)
            await self._parts.pace.breathe()

    def _turns(self) -> Iterator[object]:
        """Yield what changes when something is due that nothing else shows."""
        for part in (self._parts.averages, self._parts.runs):
            yield None if part is None else part.turn

    def _note(self, tracked: _Tracked) -> bool:
        """Record what is new about an object; return whether its status is due."""
        sight = self._sight(tracked)
        # a status of Koordinator is part of its object: each write is another generation
        is_part = tracked.kind.group == koordinator.GROUP
        generation = 0 if is_part else tracked.meta.generation
        self._parts.events.notice(
            tracked.about(), generation, sight.verdict, tracked.reading.unobeyed
        )
        return bool(self._fields(tracked, sight))

    async def write_due(self, patches: int) -> int:
        """Write at most so many statuses; return how many. Raises ``KubeError``."""
        sent = 0
        for name in list(islice(self._due, patches)):
            del self._due[name]
            tracked = self._tracked.get(name)
            fields = {} if tracked is None else self._fields(tracked, self._sight(tracked))
            if tracked is not None and fields:
                self._due[name] = None  # until it is written
                await self._write(tracked, fields)
                self._due.pop(name, None)
                sent += 1
        return sent

    def gauges(self, most: int) -> Iterator[QueueGauge]:
        """Yield the first queues by name, as they were at the last look."""
        tree, look = self._engine.state.charges.tree, self._look
        for name in nsmallest(most, look.used):
            node = tree.find(name)
            if node is not None:
                waiting = self._tally.counts(look.users.get(name, [])).waiting
                yield QueueGauge(name, waiting, tuple(self._cells(node, look.used[name])))

    def _cells(self, node: QueueNode, used: Mapping[Cell, int]) -> Iterator[CellGauge]:
        past = None if self._parts.averages is None else self._parts.averages.of(node)
        for cell in sorted({*node.cells(), *used, *(() if past is None else past.used)}):
            average = None if past is None else past.used.get(cell, 0.0)
            in_all, entitled = used.get(cell, 0), node.entitled(cell)
            yield CellGauge(cell, in_all, entitled, node.borrowed(cell), average)

    # -- one object ------------------------------------------------------------------------------

    def _sight(self, tracked: _Tracked) -> QueueSight:
        """Return an object's queue as it was at the last look."""
        queue, tree = tracked.queue, self._engine.state.charges.tree
        catalogue, reading = self.objects.catalogue, tracked.reading
        problems = catalogue.problems(source(tracked.kind.name, tracked.meta))
        node = None if queue is None else tree.find(queue)
        says_nothing = queue is None and not problems
        users = [] if queue is None else self._users(queue, reading)
        return QueueSight(
            node=node,
            used={} if queue is None else self._look.used.get(queue, {}),
            named={} if reading.specs else self._charged(users),
            gangs=self._tally.counts(users) if users else _NO_GANGS,
            asked={} if node is None or tracked.kind.group != kai.GROUP else self._asked(node),
            verdict=READY if says_nothing else verdict(tree, queue, problems),
            problems=reading.problems,
            missing_flavors=() if queue is None else catalogue.missing_flavors(queue),
            unobeyed=reading.unobeyed,
            now=self._engine.clock(),
            version=tracked.resource.version,
            average=self._average(tracked, node),
            runs=None if self._parts.runs is None else self._parts.runs.sight(node),
        )

    def _average(self, tracked: _Tracked, node: QueueNode | None) -> AverageSight | None:
        """Return what was used on average, by a queue or by those who name it so."""
        averages = self._parts.averages
        if averages is None:
            return None
        if tracked.kind.type is LocalQueue:
            name = f"{tracked.meta.namespace}/{tracked.meta.name}"
            return averages.local.sight(node, name)
        return averages.sight(node)

    def _users(self, queue: QueueName, reading: QueueReading) -> list[QueueUser]:
        """Return those who name a queue; where an object only names it, those who do as it says."""
        users = self._look.users.get(queue, [])
        if reading.specs:
            return users
        calls = {(alias.namespace, alias.text) for alias in reading.aliases}
        return [user for user in users if (user.namespace, user.text) in calls]

    def _asked(self, node: QueueNode) -> dict[str, int]:
        """Return what the gangs ask for that wait in a queue and below it."""
        found: Counter[str] = Counter()
        for at in node.subtree():
            users = self._look.users.get(at.spec.name)
            if users:
                found.update(self._tally.counts(users).asked)
        return dict(found)

    def _charged(self, users: list[QueueUser]) -> dict[Cell, int]:
        found: dict[Cell, int] = {}
        accounts = self._engine.state.charges.accounts()
        for account in (accounts[user] for user in users if user in accounts):
            for cell, amount in account.charged.items():
                found[cell] = found.get(cell, 0) + amount
        return found

    def _fields(self, tracked: _Tracked, sight: QueueSight) -> Fields:
        """Return the fields that have to be written."""
        wanted = STATUSES.get(tracked.kind.name)
        if wanted is None or tracked.awaited or not self._may_write(tracked):
            return {}
        found = changes(tracked.found.status, wanted(tracked.found, sight))
        return {name: value for name, value in found.items() if name not in tracked.dropped}

    def _may_write(self, tracked: _Tracked) -> bool:
        return tracked.kind.group == muster.GROUP or is_ours(tracked.meta, self._parts.program)

    async def _write(self, tracked: _Tracked, fields: Fields) -> None:
        """Write the changes of a status. Raises ``KubeError`` where that has to be tried again."""
        meta, before = tracked.meta, tracked.found
        same = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": same, "status": dict(fields)}
        outcome = "failed"
        try:
            after = await self._patch(tracked, body)
            outcome = "written"
        except (Conflict, NotFound):
            outcome = "conflict"  # the watch shows the object as it is, or that it is gone
            return
        except APIError as error:
            if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            outcome = "refused"  # and not sent again before the object changes
            tracked.awaited = meta.resource_version
            log.warning("status refused", extra={"object": str(tracked), "error": str(error)})
            return
        finally:
            self._parts.metrics.queue_statuses.labels(outcome).inc()
        if after == meta.resource_version:
            tracked.dropped |= set(fields)
        elif tracked.found is before:
            tracked.awaited = after

    async def _patch(self, tracked: _Tracked, body: Mapping[str, object]) -> str:
        """Patch the status, or the object itself if the kind has no subresource ``status``."""
        try:
            return await self._patched(tracked, body, "status")
        except NotFound:
            return await self._patched(tracked, body, "")

    async def _patched(
        self, tracked: _Tracked, body: Mapping[str, object], subresource: str
    ) -> str:
        meta = tracked.meta
        after = await self._parts.client.patch(
            tracked.resource,
            meta.name,
            body,
            namespace=meta.namespace or None,
            content_type=MERGE,
            subresource=subresource,
        )
        return after.metadata.resource_version


def _described(reading: QueueReading) -> QueueName | None:
    """Return the queue that an object describes, or gives a name; ``None``: it does neither."""
    for spec in reading.specs:
        return spec.name
    return next((alias.queue for alias in reading.aliases), None)
