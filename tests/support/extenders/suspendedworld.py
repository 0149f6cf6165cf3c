"""An extender without an API server, and what that would have stored: jobs that wait suspended.

::

    n0 n1 n2 n3     8 GPUs each, one pod fills a host
    queue q         entitled 24 GPUs, at most 24: three pods

    Job ──► pods    RayJob ──► RayCluster ──► pods    TrainJob ──► JobSet ──► pods

Feed, planner, charges and resumptions are the real ones.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import jsonpatch
import msgspec
from prometheus_client import CollectorRegistry
from support.clusters.feeds import NotWatched, feed_of
from support.extenders.owningkinds import APIS, made_of, pods_of, ray_job, train_job

from extender.config.settings import ExtenderConfig
from extender.engine import Engine
from extender.intake.sources import WatchedKind, first_sources
from extender.metrics import ExtenderMetrics
from extender.pendingpods import PendingPods
from extender.planning.bindtimes import BindTimes
from extender.planning.holding import PlanHolder
from extender.planning.planner import Planner
from extender.planning.worklist import WorkList
from extender.reporting.boundgangs import DueEvents
from extender.reporting.reporter import DecisionReporter
from extender.reservations.expectedrows import ExpectedRows
from extender.reservations.priorityclasses import PriorityClass
from extender.reservations.suspendedjobs import SuspendedJobs, SuspendedParts
from extender.timeslice import Pace
from loadtest.queuereplay.planner import UNRESTRICTED
from loadtest.testbed.client.nodes import GPU, node
from muster.cluster.events import QueueUpserted
from muster.cluster.ids import PodUid
from muster.cluster.quota.aliases import Spelling
from muster.cluster.quota.cells import Cell, Quota
from muster.cluster.quota.queuespec import QueueName, QueueSpec
from muster.cluster.state import ClusterState
from muster.kube import names, wire
from muster.kube.errors import Invalid, NotFound, ServerError, Status
from muster.kube.resources import Resource
from muster.kube.writing.events import EventRecorder, Regarding
from muster.workloads.managedpods import ManagedPolicy

JSON = dict[str, Any]
NODES, QUOTA = 4, 3
CELL = Cell("", GPU)
QUEUE = QueueName("muster/q")
POD = msgspec.json.Decoder(wire.Pod)
_NODE = msgspec.json.Decoder(wire.Node)


class Statuses(NotWatched):
    """Of groups; none is written."""

    def seen(self, *_: object) -> None:
        """Do nothing."""

    def gone(self, _uid: str) -> None:
        """Do nothing."""


@dataclass
class Api:
    """What the API server has stored; it outlives the extender."""

    now: float = 1_767_323_000.0
    numbers: int = 0
    jobs: dict[str, JSON] = field(default_factory=dict)
    #: what RayJobs and TrainJobs have made, by the name of the job
    made: dict[str, JSON] = field(default_factory=dict)
    pods: dict[str, dict[int, JSON]] = field(default_factory=dict)
    #: names of jobs that were resumed, as often as they were
    resumed: list[str] = field(default_factory=list)
    #: UIDs of jobs of which a PATCH was refused: with all of its pods one is not resumed then
    refused: set[str] = field(default_factory=set)
    #: PriorityClasses
    classes: list[PriorityClass] = field(default_factory=list)
    #: what becomes of the next PATCHes
    mood: list[str] = field(default_factory=list)

    def number(self) -> str:
        self.numbers += 1
        return str(UUID(int=self.numbers))

    def create(
        self, name: str, pods: int, least: int = 0, priority: str = "", kind: str = "Job"
    ) -> None:
        notes = {names.SUSPENDED_BY: names.MUSTER}
        if least and kind == "Job":
            notes[names.MIN_PARALLELISM] = str(least)
        meta = {"name": name, "namespace": "ns", "uid": self.number(), "annotations": notes}
        spec = {
            "Job": lambda: _job(pods, priority),
            "RayJob": lambda: ray_job(pods, least if least > 1 else 0),
            "TrainJob": lambda: train_job(pods),
        }[kind]()
        self.jobs[name] = {
            "apiVersion": APIS[kind],
            "kind": kind,
            "metadata": {**meta, "creationTimestamp": "2026-01-02T03:00:00Z"},
            "spec": {**spec, "suspend": True},
        }

    def reconcile(self, name: str) -> bool:
        """Do as KubeRay and Trainer do; return whether a job has made something."""
        job = self.jobs[name]
        suspended, found = bool(job["spec"]["suspend"]), self.made.get(name)
        if job["kind"] == "TrainJob":
            meta = made_of(job, name)["metadata"] if found is None else found["metadata"]
            meta.setdefault("uid", self.number())
            meta.setdefault("creationTimestamp", "2026-01-02T03:00:00Z")
            self.made[name] = {**made_of(job, name), "metadata": meta}
        elif job["kind"] == "RayJob" and not suspended and found is None:
            uid = self.number()
            made = made_of(job, f"{name}-{uid[-5:]}")
            made["metadata"] |= {"uid": uid, "creationTimestamp": "2026-01-02T03:00:00Z"}
            self.made[name] = made
        return name in self.made

    async def patch(
        self, resource: Resource[Any], name: str, body: bytes, **_: object
    ) -> wire.PartialObject:
        """Apply a JSON patch as the API server does."""
        mood = self.mood.pop(0) if self.mood else ""
        if mood == "refused":
            self.refused.add(self.jobs[name]["metadata"]["uid"])
            raise Invalid(422, Status(message="not with so few"))
        if mood == "unsent":
            raise ServerError(500, Status())
        assert resource.plural == f"{self.jobs[name]['kind'].lower()}s"
        try:
            self.jobs[name] = jsonpatch.apply_patch(self.jobs[name], json.loads(body))
        except (KeyError, jsonpatch.JsonPatchException) as error:
            raise Invalid(422, Status()) from error
        self.resumed.append(self.jobs[name]["metadata"]["uid"])
        if mood == "unanswered":
            raise ServerError(504, Status())
        return wire.PartialObject()

    async def get(self, resource: Resource[Any], name: str, **_: object) -> Any:
        """Return a job."""
        if name not in self.jobs:
            raise NotFound(404, Status())
        return msgspec.convert(self.jobs[name], resource.type)

    async def list(self, _resource: Resource[Any]) -> list[Any]:
        """Return the PriorityClasses."""
        return self.classes

    def running(self) -> Mapping[str, int]:
        """Return how many pods each resumed job has or will have."""
        return {name: _size(job) for name, job in self.jobs.items() if not job["spec"]["suspend"]}

    def next_pod(self, name: str) -> tuple[int, JSON] | None:
        """Make the next pod of a resumed job, gated, as controllers and the webhook do."""
        count = self.running().get(name, 0)
        there = self.pods.setdefault(name, {})
        number = next((n for n in range(count) if n not in there), None)
        if number is None:
            return None
        if self.reconcile(name):
            pod = pods_of(self.made[name])[number]
        else:
            pod = self._job_pod(name, number)
        pod["metadata"] |= {"uid": self.number()}
        pod["spec"] |= {"schedulingGates": [{"name": names.PLAN_GATE}]}
        there[number] = pod
        return number, pod

    def _job_pod(self, name: str, number: int) -> JSON:
        job = self.jobs[name]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "controller": True}
        index = {"batch.kubernetes.io/job-completion-index": str(number)}
        labels = job["spec"]["template"]["metadata"]["labels"]
        container = {"name": "main", "resources": {"limits": {GPU: "8"}, "requests": {GPU: "8"}}}
        meta = {"namespace": "ns", "annotations": index, "name": f"{name}-{number}"}
        return {
            "metadata": {**meta, "labels": labels, "ownerReferences": [owner]},
            "spec": {"containers": [container]},
        }


def _job(pods: int, priority: str) -> JSON:
    """The spec of an Indexed Job."""
    container = {"name": "main", "resources": {"limits": {GPU: "8"}}}
    pod = {"containers": [container], "priorityClassName": priority}
    template = {"metadata": {"labels": {names.QUEUE: "q"}}, "spec": pod}
    counts = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    return {**counts, "template": template}


def _size(job: JSON) -> int:
    """How many pods a job has when all have come."""
    spec = job["spec"]
    if job["kind"] == "RayJob":
        return 1 + int(spec["rayClusterSpec"]["workerGroupSpecs"][0]["replicas"])
    return int(spec["trainer"]["numNodes"] if job["kind"] == "TrainJob" else spec["parallelism"])


class Recorder(EventRecorder):
    """Keeps what is recorded about jobs."""

    def record(self, regarding: Regarding, reason: str, note: str, **how: Any) -> None:
        """Keep an Event."""
        super().record(regarding, reason, note, **how)
        if regarding.kind in ("Job", "RayJob", "TrainJob"):
            self.__dict__.setdefault("said", []).append((regarding.name, reason, note))

    @property
    def about_jobs(self) -> list[tuple[str, str, str]]:
        """(name, reason, text) of each."""
        return list(self.__dict__.get("said", ()))


class World:
    """An extender that has just listed what is stored."""

    def __init__(self, api: Api, *, makes: bool = True) -> None:
        """``makes``: controllers have made what they make of jobs that were resumed."""
        self.api = api
        self.state = ClusterState("test", levels=names.DEFAULT_LEVELS, gate=names.PLAN_GATE)
        self.engine = engine = Engine(self.state, lambda: api.now)
        pending, metrics = PendingPods(), ExtenderMetrics(CollectorRegistry())
        self.recorder = recorder = Recorder(None, controller="test", instance="test")  # type: ignore[arg-type]
        self.metrics = metrics
        reporter = DecisionReporter(self.state, pending, recorder, metrics, DueEvents())
        self.feed = feed_of(engine, pending, reporter)
        worklist, pace = WorkList(engine), Pace(asyncio.get_running_loop().time)
        self.rows, self.released = ExpectedRows(), list[PodUid]()
        self.suspended = SuspendedJobs(
            SuspendedParts(
                engine, self.feed, api, worklist, recorder, metrics, pace,  # type: ignore[arg-type]
                ManagedPolicy(), self.rows, self.released.extend, 60.0,
            )
        )  # fmt: skip
        self.kinds: dict[str, WatchedKind[Any]] = {
            kind.resource.plural: kind
            for kind in first_sources(self.feed, Statuses(), self.suspended)  # type: ignore[arg-type]
            if kind.resource.group != "batch.volcano.sh"
        }
        self.jobs = self.kinds["jobs"]
        self.planner = Planner(
            engine,
            ExtenderConfig(debounce_seconds=0.0, spare_count=0),
            worklist,
            PlanHolder(engine),
            restrictions=UNRESTRICTED,
            release=self._planned,
            bind_times=BindTimes(engine, metrics.gang_bound, reporter.bound),
            reporter=reporter,
            metrics=metrics,
            pace=pace,
        )
        quota = {CELL: Quota(entitled=8 * QUOTA, limit=8 * QUOTA)}
        engine.apply(QueueUpserted(QueueSpec(QUEUE, None, quota), (Spelling("", "q"),)))
        for number in range(NODES):
            self.node(f"n{number}")
        for name in api.jobs if makes else ():
            self.see_made(name)
        for name in api.jobs:
            self.see(name)
        for found in api.pods.values():
            for pod in found.values():
                self.feed.pod(POD.decode(json.dumps(pod)))

    def _planned(self, uids: list[PodUid]) -> None:
        for uid in uids:
            found = self.rows.reserved.get(uid)
            if found is not None:
                found.got_room(uid)

    def node(self, name: str) -> None:
        """Show a node."""
        self.feed.node(_NODE.decode(json.dumps(node(name, {names.ZONE: "z"}))))

    def see(self, name: str) -> None:
        """Show a job as it is stored."""
        self._show(self.api.jobs[name])

    def see_made(self, name: str) -> None:
        """Have a RayJob or TrainJob reconciled, and show what it has made."""
        if self.api.reconcile(name):
            self._show(self.api.made[name])

    def _show(self, found: JSON) -> None:
        kind = self.kinds[f"{found['kind'].lower()}s"]
        kind.upserted(msgspec.convert(found, kind.resource.type))

    async def settled(self) -> None:
        for _ in range(4):
            await self.planner.settle()
            await self.suspended.look()
            self.state.validate()
            used = self.state.charges.tree.find(QUEUE)
            assert used is not None
            assert used.usage.get(CELL, 0) <= 8 * QUOTA

    def pod(self, name: str) -> bool:
        """Make the next pod of a resumed job, and show it; return whether there was one to make."""
        made = self.api.next_pod(name)
        if made is not None:
            self.feed.pod(POD.decode(json.dumps(made[1])))
        return made is not None

    def delete(self, name: str) -> None:
        for found in (self.api.jobs.pop(name), self.api.made.pop(name, None)):
            if found is not None:
                meta = msgspec.convert(found["metadata"], wire.ObjectMeta)
                self.kinds[f"{found['kind'].lower()}s"].gone(meta)
        self.end_pods(name)

    def end_pods(self, name: str) -> None:
        """Have the pods of a job be gone."""
        for pod in self.api.pods.pop(name, {}).values():
            self.feed.pod_gone(wire.ObjectMeta(uid=pod["metadata"]["uid"]))
