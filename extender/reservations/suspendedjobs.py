"""Resumes jobs that Muster suspended, each when the whole of it has room.

The pods of a suspended job do not exist. Rows without pods stand for them in the state, in the gang
that the pods will be in. So such a gang takes its turn in its queue, is planned, charged and
explained like any other::

    watch: suspended by Muster ──► rows ──► planned, charged ──► PATCH: resumed ──► its pods come,
             │ changed, gone        │ waits for its turn,           │                each takes the
             ▼                      │ quota or room                 │ refused        room of a row
        rows removed                └─► Event on the job            ▼
                                                               rows removed

Only the PATCH is written, and it tests that the job is still suspended by Muster. A job that takes
fewer pods than it asks for is resumed with as many as have room (docs/queues.md).

From the plan until its pods come, a job's rows hold its room and are charged to its queue, so no
other job is resumed into the same room. They are given up ``ARRIVE_S`` after the last pod came.

**A TrainJob's** pods are those of the JobSet that is suspended with it; of that nothing is written.
**A RayJob's** pods come in the gang of a RayCluster, whose name nobody knows before. When that is
seen, the rows move into its gang with their room, in one step without a decision in between.

**After a restart** a suspended job gets new rows, wherever the old leader stopped before the PATCH.
One that was resumed lately (``muster.dev/resumed-at``) gets rows for the pods that have not come.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from extender.engine import Engine
from extender.intake.objects import Feed
from extender.metrics import ExtenderMetrics
from extender.planning.worklist import WorkList
from extender.reservations.expectedrows import ExpectedRows
from extender.reservations.ownedobjects import OwnedObjects
from extender.reservations.priorityclasses import PriorityClasses
from extender.reservations.rowroom import RowRoom
from extender.reservations.suspendedrows import Step, SuspendedRows, members
from extender.timeslice import Pace
from muster.cluster.effects import Effect, GangChanged
from muster.cluster.events import PodReleased, PodUpserted
from muster.cluster.ids import GangKey, PodUid
from muster.cluster.specs.gangspec import GangSpec
from muster.kube.client import JSON_PATCH, KubeClient
from muster.kube.errors import APIError, KubeError, NotFound, ServerError, TooManyRequests
from muster.kube.names import PLAN_GATE
from muster.kube.resources import KubeObject, Resource
from muster.kube.translation.translate import Translator
from muster.kube.writing.events import EventRecorder
from muster.placement.decision import Reject, Wait
from muster.workloads.dialect import NO_RANK
from muster.workloads.dialects.ray import RayCluster
from muster.workloads.jobowners import RayJob
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.suspendablekinds import JOBSETS, RAY_JOBS, TRAIN_JOBS, owner_of
from muster.workloads.suspendedjobs import (
    SuspendedJob,
    read,
    resumed_at,
    resumption,
    stands_suspended,
)

log = logging.getLogger(__name__)

ARRIVE_S: Final = 60.0  # for the next pod of a resumed job; controllers make many a second
MOST_ROWS: Final = 20_000  # of one namespace: its other jobs get rows when these have gone
PERIOD_S: Final = 1.0  # between looks at jobs that are late, or whose PATCH failed
RESUMED: Final = "Resumed"
WAITING: Final = "Waiting"
NOT_RESUMED: Final = "NotResumed"
_ACTION: Final = "Queueing"
_GATES: Final = frozenset({PLAN_GATE})
_NONCE_BYTES: Final = 12
_UID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class SuspendedParts:
    """The parts that suspended jobs need."""

    engine: Engine
    feed: Feed
    client: KubeClient
    worklist: WorkList
    recorder: EventRecorder
    metrics: ExtenderMetrics
    pace: Pace
    policy: ManagedPolicy
    rows: ExpectedRows
    #: releases pods whose plan is held
    release: Callable[[list[PodUid]], None]
    #: how long a plan is held until its release, in seconds
    hold_seconds: float


class SuspendedJobs:
    """All jobs of one cluster that Muster suspended, or has just resumed."""

    def __init__(self, parts: SuspendedParts) -> None:
        self._parts, self._engine = parts, parts.engine
        self._translator = Translator(parts.policy.devices)
        self._priorities = PriorityClasses(parts.client, parts.engine.clock)
        self._listens = False
        #: the jobs as the watch showed them last, by UID
        self._latest: dict[str, tuple[Resource[Any], SuspendedJob]] = {}
        #: UIDs of jobs that are to get rows
        self._due: dict[str, None] = {}
        self._entries: dict[str, SuspendedRows] = {}
        self._by_gang: dict[GangKey, SuspendedRows] = {}
        #: UIDs of jobs that the API server refused to have with fewer pods
        self._whole_only: set[str] = set()
        self._wake = asyncio.Event()
        self._owned = OwnedObjects()
        self._room = RowRoom(parts.engine, parts.rows, parts.release, parts.hold_seconds)
        #: what kinds are served as, by (group, plural), once there is an object
        self.served: dict[tuple[str, str], Resource[Any]] = {}

    def __len__(self) -> int:
        """Return the number of jobs that have rows."""
        return len(self._entries)

    # -- the watches -----------------------------------------------------------------------------

    def seen(self, resource: Resource[Any], found: KubeObject) -> GangSpec | None:
        """Note an object as it is now; return what a suspended one asks for, else ``None``.

        An object that another job made is noted for that job.
        """
        at = resource.group, resource.plural
        self.served[at] = resource
        owner = owner_of(found)
        if owner is not None and owner.at == TRAIN_JOBS and at == JOBSETS:
            self._owned.jobset(owner.uid, found)
            return self._joined(owner.uid)
        if owner is not None and owner.at == RAY_JOBS and isinstance(found, RayCluster):
            return self._cluster_seen(owner.uid, found)
        if at == TRAIN_JOBS:
            self._owned.train_job(resource, found, is_ours=self._is_ours(found))
            self._joined(found.metadata.uid)
            return None
        if isinstance(found, RayJob):
            self._ray_job_seen(found)
        return self._job_seen(found.metadata.uid, resource, self._read(resource, found))

    def _ray_job_seen(self, found: RayJob) -> None:
        """Take a RayJob's deadline over, for its cluster, too, if that was seen before."""
        uid = found.metadata.uid
        made = self._owned.clusters.get(uid)
        if self._owned.ray_job(found) and made is not None:
            self._parts.feed.gang_object(made.uid, self._owned.in_time(uid, made.spec))

    def _cluster_seen(self, owner: str, found: RayCluster) -> GangSpec | None:
        """Note the cluster of a RayJob: rows of a resumed one move into its gang."""
        asks = self._owned.cluster(owner, found)
        entry = self._entries.get(owner)
        if asks is None or entry is None or not entry.may_have_pods or entry.gang == asks.key:
            return asks
        self._parts.feed.gang_object(found.metadata.uid, asks)
        if entry.is_whole:
            self._move(entry, asks)
        else:  # after a restart its rows are being entered: they are anew, in the right gang
            self._parts.feed.gang_object(entry.job.describer, None)
            self._drop(entry)
            self._due[owner] = None
            self._wake.set()
        return asks

    def _read(self, resource: Resource[Any], found: KubeObject) -> SuspendedJob | None:
        """Return what an object is; what cannot be read is none."""
        made = self._owned.made(found.metadata.uid)
        try:
            return read(resource.group, resource.plural, found, made)
        except ValueError as error:
            log.warning("suspended job not read", extra={"error": str(error)})
            return None

    def _is_ours(self, found: KubeObject) -> bool:
        """Return whether Muster suspended a TrainJob, or resumed it lately."""
        if stands_suspended(*TRAIN_JOBS, found):
            return True
        at = resumed_at(found)
        return at is not None and self._engine.clock() < at + ARRIVE_S

    def _joined(self, uid: str) -> GangSpec | None:
        """Look at a TrainJob with its JobSet; return what the JobSet asks for, else ``None``."""
        resource, found = self._owned.train_jobs.get(uid, (None, None))
        if resource is None or found is None:
            self._forget(uid)
            return None
        return self._job_seen(uid, resource, self._read(resource, found))

    def _job_seen(
        self, uid: str, resource: Resource[Any], job: SuspendedJob | None
    ) -> GangSpec | None:
        if job is None:
            self._forget(uid)
            return None
        before = self._latest.get(uid)
        self._latest[uid] = resource, job
        if before is None or before[1] != job:
            self._changed(uid, job, is_new=before is None)
        entry = self._entries.get(uid)
        if job.resumed_at is not None:
            return entry.asks_itself if entry is not None else None
        if entry is not None and entry.resumed_spec is not None:
            return entry.resumed_spec  # the object is older than the PATCH
        return job.whole().spec if uid in self._whole_only else job.spec

    def gone(self, uid: str) -> None:
        """Forget a deleted object."""
        owner = self._owned.gone(uid)
        if owner:
            self._joined(owner)
        if uid in self._latest or uid in self._entries:
            self._forget(uid)
            entry = self._entries.get(uid)
            if entry is not None:
                self._drop(entry)
        self._whole_only.discard(uid)

    def _forget(self, uid: str) -> None:
        """Note that a job is not suspended by Muster; one that it has resumed keeps its rows."""
        self._latest.pop(uid, None)
        self._due.pop(uid, None)
        entry = self._entries.get(uid)
        if entry is not None and entry.step is Step.WAITING:
            self._drop(entry)

    def _changed(self, uid: str, job: SuspendedJob, *, is_new: bool) -> None:
        entry = self._entries.get(uid)
        if entry is not None and entry.step is Step.RESUMING:
            if job.resumed_at is not None:
                self._resumed(entry)
            return  # else it is older than the PATCH, which tests what it relies on
        if job.resumed_at is None or (entry is None and is_new):
            if entry is not None:
                self._drop(entry)
            self._due[uid] = None
            self._wake.set()

    # -- the job ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Give jobs rows, and resume those that have room, forever."""
        while True:
            try:
                async with asyncio.timeout(PERIOD_S if self._entries or self._due else None):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            await self.look()

    async def look(self) -> None:
        """Give rows to jobs, resume those that have room, and give up those that are late."""
        await self._enter_due()
        for entry in list(self._entries.values()):
            if self._entries.get(entry.job.uid) is entry:
                await self._look_at(entry)
        self._tell()

    async def _look_at(self, entry: SuspendedRows) -> None:
        now = self._engine.clock()
        match entry.step:
            case Step.WAITING if entry.is_whole and entry.has_news:
                entry.has_news = False
                if entry.has_room(self._engine.state):
                    await self._resume(entry)
            case Step.RESUMING if now >= entry.until:
                await self._send(entry)
            case Step.RESUMED if now >= entry.until:
                self._parts.metrics.resumed_jobs.labels("late").inc()
                self._drop(entry)
                if entry.job.is_renamed:  # it describes no gang any more
                    self._parts.feed.gang_object(entry.job.uid, None)
            case Step.RESUMED:
                self._keep(entry)
            case _:
                return

    def _keep(self, entry: SuspendedRows) -> None:
        """Keep the room of rows that were planned after a restart."""
        if entry.has_news:
            entry.has_news = False
            for uid in entry.held(self._engine.state):
                self._engine.apply(PodReleased(uid))
        if not entry.rows and entry.is_whole and not entry.is_recovering(self._engine.state):
            self._drop(entry)

    # -- rows ------------------------------------------------------------------------------------

    async def _enter_due(self) -> None:
        """Give rows to jobs that are due, first to those that were resumed before a restart.

        Others get theirs once the members of these have their places: they had them before.
        """
        if self._due:
            await self._priorities.refresh()
        for uid in [uid for uid in self._due if self._was_resumed(uid)]:
            await self._enter_if_wanted(uid)
        if not any(entry.is_recovering(self._engine.state) for entry in self._entries.values()):
            await self._enter_waiting()

    async def _enter_waiting(self) -> None:
        """Give rows to the oldest jobs of each namespace, as many as it may have."""
        taken = Counter[str]()
        for entry in self._entries.values():
            taken[entry.job.namespace] += len(entry.rows)
        due = [(uid, self._latest[uid][1]) for uid in self._due if uid in self._latest]
        for uid, job in sorted(due, key=lambda each: each[1].spec.submitted_at):
            rows = taken[job.namespace] + job.size
            if rows <= MOST_ROWS or not taken[job.namespace]:
                taken[job.namespace] = rows
                await self._enter_if_wanted(uid)

    def _was_resumed(self, uid: str) -> bool:
        latest = self._latest.get(uid)
        return latest is not None and latest[1].resumed_at is not None

    async def _enter_if_wanted(self, uid: str) -> None:
        latest = self._latest.get(uid)
        if latest is not None and self._has_pods(latest[1]):
            return  # of an earlier run, which are leaving
        self._due.pop(uid, None)
        if latest is not None and self._is_wanted(latest[1]):
            await self._enter(*latest)

    def _has_pods(self, job: SuspendedJob) -> bool:
        if job.resumed_at is not None or job.uid in self._entries:
            return False
        made = self._owned.clusters.get(job.uid)
        return any(
            map(self._is_alive, (job.spec.key, job.spec.key if made is None else made.spec.key))
        )

    def _is_alive(self, gang: GangKey) -> bool:
        view = self._engine.state.gang(gang)
        if view is None:
            return False
        alive = (view.waiting, view.blocked, view.assumed, view.released, view.bound, view.leaving)
        return any(map(len, alive))

    def _is_wanted(self, job: SuspendedJob) -> bool:
        return job.resumed_at is None or self._engine.clock() < job.resumed_at + ARRIVE_S

    async def _enter(self, resource: Resource[Any], job: SuspendedJob) -> None:
        """Enter a row for each pod of a job that does not exist."""
        if job.uid in self._whole_only:
            job = job.whole()
        made = self._owned.clusters.get(job.uid)
        if job.resumed_at is not None and made is not None:
            job = replace(job, spec=self._owned.in_time(job.uid, made.spec))
        elif job.resumed_at is None or job.is_renamed:
            self._parts.feed.gang_object(job.describer, job.spec)
        entry = SuspendedRows(job, resource, self._wake.set)
        if job.resumed_at is not None:
            self._resumed(entry)
        self._entries[job.uid] = self._by_gang[entry.gang] = entry
        if not self._listens:  # where no job is suspended nobody is called for each pod
            self._parts.feed.listen(self.arrived)
            self._engine.listen(self.notice, GangChanged)
            self._listens = True
        there = len(self._engine.state.members(entry.gang))
        for row in self._rows(entry)[there:]:
            if self._entries.get(job.uid) is not entry:
                return
            self._room.put_in(entry, row)
            await self._parts.pace.breathe()
        entry.is_whole = True
        self._wake.set()

    def _rows(self, entry: SuspendedRows) -> list[PodUpserted]:
        """Return a row for each pod; where that raises an error only this job waits."""
        try:
            return list(members(entry.job, self._translator, self._priorities))
        except Exception:
            log.exception("suspended job not read", extra={"gang": entry.gang})
            self._parts.metrics.faults.labels("suspended").inc()
            return []

    def arrived(self, gang: GangKey, ranks: Sequence[int]) -> None:
        """Note members that the watch shows for the first time; they are not in the state yet."""
        entry = self._by_gang.get(gang)
        if entry is None:
            return
        if entry.step is Step.WAITING:
            self._drop(entry)  # somebody else has resumed it
            return
        self._resumed(entry)
        entry.coming += ranks

    def notice(self, effect: Effect) -> None:
        """Hand the room of rows over to pods that are in the state now; called by the engine."""
        entry = self._by_gang.get(effect.key) if isinstance(effect, GangChanged) else None
        if entry is not None and entry.coming:
            self._take_over(entry)

    def _take_over(self, entry: SuspendedRows) -> None:
        coming, entry.coming = entry.coming, []
        pods = self._without_room(entry)
        for rank in coming:
            row = entry.row_of(rank)
            if row is not None:
                self._room.hand_over(entry, row, pods.pop() if pods else None)
        if not entry.rows and entry.job.resumed_at is None:
            self._drop(entry)

    def _without_room(self, entry: SuspendedRows) -> list[PodUid]:
        """Return the pods of a gang that wait, the newest last."""
        state = self._engine.state
        view = state.gang(entry.gang)
        found = () if view is None else (state.pod_uid(row) for row in view.waiting.tolist())
        return [uid for uid in found if uid not in entry.rows]

    def _move(self, entry: SuspendedRows, spec: GangSpec) -> None:
        """Move the rows of a resumed job into the gang in which its pods come.

        Pods that came before their RayCluster was seen take their places over at once.
        """
        self._resumed(entry)
        there = self._engine.state.members(spec.key)
        self._parts.feed.gang_object(entry.job.describer, None)
        del self._by_gang[entry.gang]
        self._by_gang[spec.key] = entry
        rows = members(replace(entry.job, spec=spec), self._translator, self._priorities)
        self._room.move(entry, spec, list(rows))
        entry.coming += [NO_RANK] * len(there)
        self._take_over(entry)

    def _drop(self, entry: SuspendedRows) -> None:
        """Remove a job's rows."""
        self._entries.pop(entry.job.uid, None)
        if self._by_gang.get(entry.gang) is entry:
            del self._by_gang[entry.gang]
        for uid in list(entry.rows):
            self._room.remove(entry, uid)

    # -- resuming --------------------------------------------------------------------------------

    async def _resume(self, entry: SuspendedRows) -> None:
        """Keep the room of a planned job, and resume it with the pods that have some."""
        held, job = set(entry.held(self._engine.state)), entry.job
        entry.step = Step.RESUMING
        for uid in list(entry.rows):
            if uid in held:
                self._engine.apply(PodReleased(uid))
            else:
                self._room.remove(entry, uid)
            await self._parts.pace.breathe()
        # its members wait for all of these now, and are not behind other gangs' minima
        entry.resumed_spec = job.with_count(entry.count)
        self._parts.feed.gang_object(job.describer, entry.resumed_spec)
        await self._send(entry)

    async def _send(self, entry: SuspendedRows) -> None:
        """Send the PATCH; without an answer it is sent again, since it tests what it changes."""
        job, count = entry.job, entry.count
        now = datetime.fromtimestamp(self._engine.clock(), UTC).isoformat()
        entry.until = self._engine.clock() + PERIOD_S
        try:
            await self._parts.client.patch(
                entry.resource,
                job.name,
                msgspec.json.encode(resumption(job, count, now)),
                namespace=job.namespace,
                content_type=JSON_PATCH,
            )
        except (ServerError, TooManyRequests) as error:
            log.warning("job not resumed", extra={"job": job.name, "error": str(error)})
        except APIError as error:
            await self._find_out(entry, count, error)
        except KubeError as error:
            log.warning("job not resumed", extra={"job": job.name, "error": str(error)})
        else:
            self._done(entry, count)

    async def _find_out(self, entry: SuspendedRows, count: int | None, error: APIError) -> None:
        """Look at a job whose PATCH was refused: one that was not answered may have resumed it."""
        at, uid = entry.resource, entry.job.uid
        try:
            found = await self._parts.client.get(at, entry.job.name, namespace=entry.job.namespace)
        except NotFound:
            found = None
        except KubeError as problem:
            log.warning("job not read", extra={"job": entry.job.name, "error": str(problem)})
            return
        if self._entries.get(uid) is not entry:
            return
        job = None if found is None else self._read(at, found)
        if job is not None and job.uid == uid and job.resumed_at is not None:
            self._done(entry, count)
        else:
            self._not_resumed(entry, count, error)

    def _done(self, entry: SuspendedRows, count: int | None) -> None:
        self._resumed(entry)
        self._record(entry, RESUMED, entry.resumed_text(count))
        outcome = "resumed" if entry.is_all(count) else "smaller"
        self._parts.metrics.resumed_jobs.labels(outcome).inc()

    def _resumed(self, entry: SuspendedRows) -> None:
        """Wait for the pods of a job."""
        entry.step, entry.until = Step.RESUMED, self._engine.clock() + ARRIVE_S

    def _not_resumed(self, entry: SuspendedRows, count: int | None, error: APIError) -> None:
        """Give the rows of a job up that the API server refuses to have changed.

        Where it has changed meanwhile, the watch shows how. Where a smaller one is refused (some
        controllers keep the number of pods as it is), it is tried with all.
        """
        job, latest = entry.job, self._latest.get(entry.job.uid)
        self._parts.metrics.resumed_jobs.labels("refused").inc()
        self._drop(entry)
        if latest is None or self._entries.get(job.uid) is not None:
            return
        if job.shrinkage is not None and not entry.is_all(count):
            self._whole_only.add(job.uid)
            self._due[job.uid] = None
            self._wake.set()
            return
        self._record(
            entry, NOT_RESUMED, f"it has room, but cannot be resumed: {error}", warning=True
        )

    # -- what people see -------------------------------------------------------------------------

    def _tell(self) -> None:
        """Record why jobs wait, where that is new."""
        for entry in self._entries.values():
            decision = self._parts.worklist.decisions.get(entry.gang)
            if entry.step is not Step.WAITING or not isinstance(decision, Wait | Reject):
                continue
            why = decision.reason.value
            if why != entry.said:
                entry.said = why
                cause = decision.explanation.cause if isinstance(decision, Wait) else ""
                self._record(entry, WAITING, cause or why)

    def _record(
        self, entry: SuspendedRows, reason: str, text: str, *, warning: bool = False
    ) -> None:
        self._parts.recorder.record(entry.about(), reason, text, action=_ACTION, warning=warning)
