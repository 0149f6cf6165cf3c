"""Builders for the parts of each room of the extender; nothing runs yet."""

import random
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Self

from extender.app import Job
from extender.calls.binding import Binder
from extender.calls.handlers import Handlers
from extender.calls.namespacelabels import labels_of
from extender.calls.verbs import Verbs
from extender.config.settings import ExtenderConfig
from extender.engine import Clock, Engine
from extender.evictions.drains import NodeDrains
from extender.evictions.nodenotices import NodeNotices
from extender.intake.firstlist.reader import reader_of
from extender.intake.objects import Feed, Namespaces
from extender.intake.planchecks import PlanChecks
from extender.intake.podwatchers import PodWatchers
from extender.intake.sources import (
    network_sources,
    queue_file_sources,
    queue_sources,
    workload_sources,
)
from extender.intake.sync import Sync, SyncParts
from extender.jobnetworks.assignment import JobNetworks
from extender.jobnetworks.records import NetworkRecords
from extender.leadership.candidacy import AGENT, Candidacy
from extender.metrics import ExtenderMetrics, Readings
from extender.pendingpods import PendingPods
from extender.planning.autoscaler import Provisioner
from extender.planning.bindtimes import BindTimes
from extender.planning.gangages import GangAges
from extender.planning.holding import PlanHolder
from extender.planning.planner import Planner, Release, Restrictions
from extender.planning.queueturns import QueueTurns
from extender.planning.roommaker import RoomMaker
from extender.planning.vacancies import Vacancies
from extender.planning.worklist import WorkList
from extender.queues.averageuse import AverageUse
from extender.queues.learnedruns import LearnedRuns
from extender.queues.localuse import LocalUse
from extender.queues.queueevents import QueueEvents
from extender.queues.queueobjects import QueueObjects
from extender.queues.queuestatuses import QueueStatusWriter, StatusParts
from extender.queues.summaries import QueueSummaries
from extender.queues.workloadadmission import WorkloadAdmission, WorkloadParts
from extender.queues.workloadqueues import WorkloadQueues
from extender.readapi.drains import DrainApi
from extender.readapi.dump import StateDumper, replica
from extender.readapi.dumprequests import DumpRequests
from extender.readapi.queues import QueueApi
from extender.readapi.routes import ReadApi
from extender.readapi.stories import StoryApi
from extender.readapi.whatif import WhatIf
from extender.releases.forgedplans import ForgedPlans
from extender.releases.partialgangs import PartialGangs
from extender.releases.releaser import ReleaseParts, Releaser
from extender.releases.repairer import Repairer
from extender.reporting.boundgangs import BoundGangs, DueEvents
from extender.reporting.reporter import DecisionReporter
from extender.reservations.expectedrows import ExpectedRows, seen_pods
from extender.reservations.reservations import ReservationParts, Reservations
from extender.reservations.suspendedjobs import SuspendedJobs, SuspendedParts
from extender.story.story import Story
from extender.timeslice import Pace
from extender.watchover.admissionfacts import AdmissionFacts
from extender.watchover.bypassedpods import BypassedPods
from extender.watchover.census import Census
from extender.watchover.conditions import Conditions
from extender.watchover.devicetroubles import DeviceWatch
from extender.watchover.groupstatuses import GroupStatusWriter
from muster.cluster.specs.podconstraints import Taint
from muster.cluster.state import ClusterState
from muster.kube.client import KubeClient
from muster.kube.names import PLAN_GATE
from muster.kube.translation.planseal import PlanKeys
from muster.kube.wire import Pod
from muster.kube.writing.events import EventRecorder
from muster.observability.memory import Collector
from muster.observability.metrics import new_registry
from muster.queueing.backfill.runtimes import RunTimes
from muster.workloads.managedpods import ManagedPolicy
from muster.workloads.queues.describedqueues import DescribedQueues

CONTROLLER: Final = "muster.dev/extender"  # ``reportingController`` of our Events

Asked = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Surface:
    """What an extender needs from outside: its configuration, its client and its clocks."""

    config: ExtenderConfig
    client: KubeClient
    #: seconds since the epoch, never decreasing
    clock: Clock
    #: monotonic seconds, for time slices
    monotonic: Clock
    #: a random number in [0, 1)
    jitter: Callable[[], float] = random.random
    #: what an election needs; without it this replica always leads
    candidacy: Candidacy | None = None
    #: the collector of this process, if it has one
    collector: Collector | None = None

    def leads(self) -> bool:
        """Return whether this replica may write now."""
        return self.candidacy is None or self.candidacy.fence.is_open()


@dataclass(frozen=True, slots=True)
class Common:
    """The parts that several rooms share."""

    base: Surface
    config: ExtenderConfig
    client: KubeClient
    metrics: ExtenderMetrics
    state: ClusterState
    engine: Engine
    policy: ManagedPolicy
    pace: Pace
    pods: PendingPods
    worklist: WorkList
    #: since when gangs wait that gave way
    ages: GangAges
    #: what plans are sealed with
    keys: PlanKeys
    recorder: EventRecorder
    #: Events of gangs with only bound members
    due: DueEvents
    reporter: DecisionReporter
    #: requests for dumps
    dumps: DumpRequests
    #: what queues used on average; ``None``: past use does not count
    averages: AverageUse | None
    #: how long gangs ran
    run_times: RunTimes

    @classmethod
    def of(cls, base: Surface) -> Self:
        """Build the state, its engine, the recorder of Events, and the other shared parts."""
        config, metrics = base.config, ExtenderMetrics(new_registry())
        state = ClusterState(config.cluster, levels=config.levels, gate=PLAN_GATE)
        engine = Engine(state, base.clock, Story(config.story.entries))
        pods, due = PendingPods(), DueEvents()
        dumps = DumpRequests(config.dump.directory, config.cluster, replica(), base.clock)
        pace, usage = Pace(base.monotonic), config.queueing.usage
        recorder = EventRecorder(
            base.client,
            controller=CONTROLLER,
            instance=socket.gethostname(),
            wanted=None if base.candidacy is None else base.leads,
        )
        return cls(
            base=base,
            config=config,
            client=base.client,
            metrics=metrics,
            state=state,
            engine=engine,
            policy=ManagedPolicy.of(config.managed),
            pace=pace,
            pods=pods,
            worklist=WorkList(engine),
            ages=GangAges(base.clock),
            keys=PlanKeys(),
            recorder=recorder,
            due=due,
            reporter=DecisionReporter(state, pods, recorder, metrics, due, dumps.fault),
            dumps=dumps,
            averages=AverageUse(engine, usage, pace) if usage.is_on else None,
            run_times=RunTimes(config.backfill.quantile),
        )


# -- watchover -----------------------------------------------------------------------------------


def slipped_pods(it: Common, namespaces: Namespaces) -> BypassedPods:
    """Build the part that finds pods that slipped past admission."""
    admission = it.config.admission
    facts = AdmissionFacts(admission, it.config.cluster, it.policy.accelerators, namespaces)
    return BypassedPods(it.client, facts, admission.webhook, it.metrics, it.reporter, it.pace)


def device_watch(it: Common) -> DeviceWatch:
    """Build the part that watches the devices of running members."""
    writes = it.config.conditions.patches_per_second > 0
    return DeviceWatch(it.engine, it.client, it.metrics, it.reporter, writes=writes)


def conditions_of(it: Common) -> Conditions:
    """Build the part that writes into pods why they wait."""
    return Conditions(
        it.engine,
        it.pods,
        it.client,
        it.config.conditions,
        it.metrics,
        it.reporter,
        it.worklist.decisions,
    )


def statuses_of(it: Common, feed: Feed, conditions: Conditions) -> GroupStatusWriter:
    """Build the part that writes the statuses of group objects."""
    return GroupStatusWriter(it.engine, it.policy, feed.covers, it.client, it.metrics, conditions)


def queue_statuses_of(it: Common) -> QueueStatusWriter:
    """Build the part that writes the statuses of queue objects."""
    learns = it.config.backfill.enabled and it.config.backfill.learn
    parts = StatusParts(
        engine=it.engine,
        objects=QueueObjects(it.engine),
        client=it.client,
        events=QueueEvents(it.recorder),
        metrics=it.metrics,
        pace=it.pace,
        program=AGENT,
        averages=it.averages,
        runs=LearnedRuns(it.run_times, it.engine.clock) if learns else None,
    )
    return QueueStatusWriter(parts, it.config.queue_statuses)


@dataclass(frozen=True, slots=True)
class KueueClaims:
    """What admits Kueue's Workloads; ``None``: nothing does."""

    admission: WorkloadAdmission | None = None
    queues: WorkloadQueues | None = None

    def jobs(self) -> dict[str, Job]:
        """Return the jobs by name."""
        if self.admission is None or self.queues is None:
            return {}
        return {
            "workloads": self.admission.run,
            "workload-reasons": self.admission.run_reasons,
            "workload-queues": self.queues.run,
            **self.queues.use_jobs(),
        }


def claims_of(it: Common, namespaces: Namespaces) -> KueueClaims:
    """Build the parts that admit Kueue's Workloads, where the configuration asks for that."""
    config = it.config.queueing.kueue
    if not config.workloads:
        return KueueClaims()
    described = DescribedQueues()

    def taints(flavor: str) -> tuple[Taint, ...]:
        reading = described.catalogue.flavor(flavor)
        return () if reading is None else reading.taints

    parts = WorkloadParts(
        client=it.client,
        clock=it.engine.clock,
        labels=lambda namespace: namespaces.get(namespace, {}),
        taints=taints,
    )
    usage, clock = it.config.queueing.usage, it.engine.clock
    admission = WorkloadAdmission(parts, config, usage.terms if usage.is_on else None)
    past = admission.book.past
    local_use = None if past is None else LocalUse(past, clock, usage.interval_seconds)
    queues = WorkloadQueues(admission, it.client, clock, config, described, local_use)
    return KueueClaims(admission, queues)


def census_of(
    it: Common, planner: Planner, partial_gangs: PartialGangs, conditions: Conditions
) -> Census:
    """Build the part that counts gangs and shows each to the parts that check all gangs."""
    return Census(
        it.state,
        planner.why,
        shows=(partial_gangs.notice, conditions.notice),
        after=planner.bind_times.review,
        pace=it.pace,
    )


# -- intake --------------------------------------------------------------------------------------


def plan_checks_of(it: Common, forged: ForgedPlans) -> PlanChecks:
    """Build the part that says which plans count."""
    return PlanChecks(it.keys, it.base.clock, forged, it.reporter.unfounded_plan)


def feed_of(it: Common, namespaces: Namespaces, watchers: PodWatchers) -> Feed:
    """Build the part that turns objects into events."""
    levels, pods, reporter = it.config.levels, it.pods, it.reporter
    return Feed(it.engine, it.policy, levels, pods, reporter, namespaces, watchers, it.ages)


def suspended_jobs_of(
    it: Common, feed: Feed, rows: ExpectedRows, networks: JobNetworks
) -> SuspendedJobs:
    """Build the part that resumes jobs that Muster suspended."""
    parts = SuspendedParts(
        engine=it.engine,
        feed=feed,
        client=it.client,
        worklist=it.worklist,
        recorder=it.recorder,
        metrics=it.metrics,
        pace=it.pace,
        policy=it.policy,
        rows=rows,
        release=networks.submit,
        hold_seconds=it.config.hold_seconds,
    )
    return SuspendedJobs(parts)


def sync_of(
    it: Common,
    feed: Feed,
    statuses: GroupStatusWriter,
    networks: NetworkRecords,
    expected: ExpectedRows,
    queues: QueueStatusWriter,
    suspended: SuspendedJobs,
    *,
    claims: KueueClaims,
    prepare: Callable[[], Awaitable[None]],
) -> Sync:
    """Build the watches and the writer. ``prepare``: called before anything is listed."""
    base, permitted = it.base, it.config.making_room.permitted()
    parts = SyncParts(
        prepare=prepare,
        feed=feed,
        statuses=statuses,
        suspended=suspended,
        listed=reader_of(it.config.first_list, it.engine, feed),
        known=partial(seen_pods, it.state, expected),
        unreadable=it.reporter.unreadable,
        pod_applied=None if base.candidacy is None else base.candidacy.mark.applied,
        listed_again=None if base.collector is None else base.collector.listed,
        more=[
            *network_sources(networks.pools),
            *queue_sources(
                queues.objects,
                queues,
                permitted,
                claims.queues,
                kueue_shares=it.config.queueing.kueue.fair_sharing is not False,
            ),
            *workload_sources(claims.admission, claims.queues),
            *queue_file_sources(queues.objects, it.config.yunikorn_queues, permitted),
        ],
    )
    return Sync(it.client, parts, it.metrics, it.pace, base.jitter)


# -- releases, networks, reservations: the chain, its end first ----------------------------------


def repairer_of(it: Common) -> Repairer:
    """Build the part that repairs plans that cannot be carried out."""
    return Repairer(it.engine, it.pods, it.client, it.config, it.metrics, it.reporter)


def releaser_of(it: Common, feed: Feed, networks: NetworkRecords) -> Releaser:
    """Build the end of the chain: the part that sends the PATCHes."""
    parts = ReleaseParts(
        worklist=it.worklist,
        read_again=feed.pod,
        vanished=feed.forget,
        addition=networks.extra,
        keys=it.keys,
    )
    return Releaser(
        it.engine, it.pods, it.client, it.config, it.metrics, it.reporter, it.pace, parts
    )


def networks_of(it: Common, records: NetworkRecords, releaser: Releaser) -> JobNetworks:
    """Build the part that makes a gang's network before the gang is released."""
    return JobNetworks(
        it.engine,
        it.client,
        it.metrics,
        it.reporter,
        known=records,
        release=releaser.submit,
        look_again=it.worklist.look_again,
    )


def reservations_of(
    it: Common, feed: Feed, sync: Sync, rows: ExpectedRows, networks: JobNetworks
) -> Reservations:
    """Build the part that reserves room for pods that do not exist yet."""
    parts = ReservationParts(
        release=networks.submit,
        set_aside=it.worklist.reason,
        is_isolated=networks.is_isolated,
        caught_up=sync.caught_up,
        keys=it.keys,
        partial_s=it.config.partial_after_seconds,
    )
    return Reservations(it.engine, feed, it.metrics, it.pace, rows, parts)


def partial_gangs_of(it: Common) -> PartialGangs:
    """Build the part that reports and rolls back gangs that run in part."""
    return PartialGangs(it.engine, it.client, it.config, it.metrics, it.reporter, it.worklist)


# -- planning ------------------------------------------------------------------------------------


def restrictions_of(
    repairer: Repairer, lost: Vacancies, networks: JobNetworks, notices: NodeNotices
) -> Restrictions:
    """Return the functions that restrict a gang's plans."""
    return Restrictions(repairer.refused, lost.kept_from, networks.lack, notices.closed)


def planner_of(
    it: Common,
    holding: PlanHolder,
    restrictions: Restrictions,
    release: Release,
    rooms: RoomMaker,
    turns: QueueTurns,
) -> Planner:
    """Build the planner, the start of the chain."""
    return Planner(
        it.engine,
        it.config,
        it.worklist,
        holding,
        restrictions=restrictions,
        release=release,
        bind_times=BindTimes(it.engine, it.metrics.gang_bound, it.reporter.bound),
        reporter=it.reporter,
        metrics=it.metrics,
        pace=it.pace,
        rooms=rooms if it.config.making_room.enabled else None,
        queues=turns,
        run_times=it.run_times,
    )


def provisioner_of(it: Common) -> Provisioner:
    """Build the part that asks an autoscaler for nodes."""
    return Provisioner(
        it.engine,
        it.pods,
        it.client,
        it.config.autoscaler,
        it.metrics,
        it.reporter,
        it.worklist.decisions,
        it.policy.accelerators,
        it.pace,
    )


# -- reporting, calls, readapi -------------------------------------------------------------------


def bound_gangs_of(it: Common) -> BoundGangs:
    """Build the part that records Events on bound members."""
    return BoundGangs(it.engine, it.client, it.due, it.reporter.record_bound)


def handlers_of(
    it: Common, holding: PlanHolder, feed: Feed, counts: Callable[[Pod], bool], ready: Asked
) -> Handlers:
    """Build the handlers of kube-scheduler's calls."""
    return Handlers(
        Verbs(it.state, holding, feed.is_managed, feed.namespaces.__contains__, counts, ready),
        Binder(it.state, holding, it.client, feed.is_managed, ready),
        partial(labels_of, it.client),
        it.metrics,
        it.base.leads,
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """The parts that the read API and the gauges read."""

    planner: Planner
    rooms: RoomMaker
    drains: NodeDrains
    census: Census
    partial_gangs: PartialGangs
    repairer: Repairer
    slipped: BypassedPods
    devices: DeviceWatch
    sync: Sync

    def backlog(self) -> int:
        """Return the number of changes that were received and are not applied yet."""
        return self.sync.backlog


def read_api(it: Common, shown: Shown, ready: Asked) -> ReadApi:
    """Build the read-only API."""
    whatif = WhatIf(it.engine, shown.planner, shown.rooms, it.client, it.policy, ready, it.pace)
    summaries = QueueSummaries(it.state, it.worklist, shown.planner.promises.of, it.averages)
    return ReadApi(
        state=it.state,
        planner=shown.planner,
        client=it.client,
        census=shown.census,
        whatif=whatif,
        stories=StoryApi(it.engine, it.client, it.pace),
        queues=QueueApi(summaries, it.pace),
        drains=DrainApi(it.engine, shown.drains, whatif.turns),
        ready=ready,
        backlog=shown.backlog,
        pace=it.pace,
        leads=it.base.leads,
        partial_since=shown.partial_gangs.since,
        trouble=shown.repairer.trouble,
        slipped=shown.slipped.problems,
        devices=shown.devices,
    )


def dumper_of(it: Common, shown: Shown) -> StateDumper:
    """Build the part that writes dumps."""
    return StateDumper(
        it.engine,
        shown.planner,
        it.config,
        it.dumps,
        it.base.leads,
        shown.sync.synced.is_set,
        it.pace,
    )


def gauges_of(it: Common, shown: Shown) -> Readings:
    """Return the functions that read the gauges of the state."""
    census, planner, partial_gangs = shown.census, shown.planner, shown.partial_gangs

    def oldest_s() -> float:
        since = census.queue.oldest
        return 0.0 if since is None else max(0.0, it.engine.clock() - since)

    return Readings(
        gangs=lambda: census.gangs,
        holds=lambda: census.holds,
        queued_gangs=lambda: census.queue.gangs,
        queued_pods=lambda: census.queue.pods,
        oldest_s=oldest_s,
        waiting=lambda: planner.waiting,
        backlog=shown.backlog,
        partial=lambda: partial_gangs.reported,
        spares=lambda: census.spares,
    )
