"""Putting the parts together; ``extender.process`` runs them."""

import asyncio
import random
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np

from extender.access.authorization import Gate
from extender.app import Job, Parts
from extender.calls.binding import Binder
from extender.calls.handlers import Handlers
from extender.calls.namespacelabels import labels_of
from extender.calls.verbs import Verbs
from extender.config.settings import ExtenderConfig
from extender.engine import Clock, Engine, SteadyClock
from extender.garbage import Collector
from extender.intake.firstlist.pods import ListedPods
from extender.intake.objects import Feed
from extender.intake.sources import network_sources
from extender.intake.sync import Sync
from extender.jobnetworks.assignment import JobNetworks
from extender.leadership.candidacy import Candidacy
from extender.leadership.term import Leadership
from extender.metrics import ExtenderMetrics, StateCollector
from extender.pendingpods import PendingPods
from extender.planning.autoscaler import Provisioner
from extender.planning.bindtimes import BindTimes
from extender.planning.holding import Holding
from extender.planning.lostseats import LostSeats
from extender.planning.planner import Planner
from extender.readapi.dump import Dumper, replica
from extender.readapi.routes import ReadApi
from extender.readapi.stories import StoryApi
from extender.readapi.whatif import WhatIf
from extender.readings import readings
from extender.releases.releaser import Releaser
from extender.releases.repairer import Repairer
from extender.releases.rollback import PartialGangs
from extender.reporting.boundgangs import BoundGangs
from extender.reporting.reporter import Reporter
from extender.reservations.reservations import Reservations
from extender.reservations.route import ReservationApi
from extender.story.story import Story
from extender.timeslice import Pace
from extender.watchover.admissionfacts import Given
from extender.watchover.bypassedpods import Slipped
from extender.watchover.census import Census
from extender.watchover.conditions import Conditions
from extender.watchover.devicetroubles import DeviceWatch
from extender.watchover.groupstatuses import StatusWriter
from muster.cluster.columns.uids import Uids
from muster.cluster.events import Tick
from muster.cluster.ids import NO_ROW, GangKey, PodUid
from muster.cluster.state import ClusterState
from muster.cluster.tables.pods import PodState
from muster.kube.client import KubeClient
from muster.kube.wire import ObjectMeta, Pod
from muster.kube.writing.events import EventRecorder, Regarding
from muster.kube.writing.podwrites import PodRef
from muster.observability.health import Health
from muster.observability.metrics import new_registry, watch_loop
from muster.placement.decision import Reject, Wait
from muster.workloads.managedpods import Policy

CONTROLLER: Final = "muster.dev/extender"  # who writes our Events
STANDBY_TIDY_S: Final = 60.0  # between forgetting what is gone; a day brings some thousand gangs
TICK_S: Final = 1.0  # holds live for tens of seconds; a second more does not matter
DEADLINES_AT_ONCE: Final = 128  # the pods of nearly all were released long ago: 1 us each


@dataclass(slots=True)
class Extender:
    """One cluster's extender, wired but not started. Without ``candidacy`` it always leads."""

    config: ExtenderConfig
    client: KubeClient
    clock: Clock = field(default_factory=SteadyClock)
    monotonic: Clock = time.perf_counter
    jitter: Callable[[], float] = random.random
    candidacy: Candidacy | None = None
    on_deposed: Callable[[], None] = lambda: None
    collector: Collector | None = None  # the process's own; who shares one leaves it alone
    engine: Engine = field(init=False)
    pace: Pace = field(init=False)
    pods: PendingPods = field(init=False)
    feed: Feed = field(init=False)
    sync: Sync = field(init=False)
    planner: Planner = field(init=False)
    releaser: Releaser = field(init=False)
    reservations: Reservations = field(init=False)
    repairer: Repairer = field(init=False)
    statuses: StatusWriter = field(init=False)
    partial: PartialGangs = field(init=False)
    conditions: Conditions = field(init=False)
    bind_times: BindTimes = field(init=False)
    provisioner: Provisioner = field(init=False)
    networks: JobNetworks = field(init=False)
    dumper: Dumper = field(init=False)
    slipped: Slipped = field(init=False)
    devices: DeviceWatch = field(init=False)
    parts: Parts = field(init=False)
    leadership: Leadership | None = field(init=False, default=None)
    begun: asyncio.Event = field(default_factory=asyncio.Event)  # it may plan and write
    draining: bool = False
    deposed: str = ""  # why the process must end

    def __post_init__(self) -> None:
        """Wire the parts. The order follows the path of an event."""
        config, client = self.config, self.client
        metrics = ExtenderMetrics(new_registry())
        state = ClusterState(config.cluster, levels=config.levels)
        engine = self.engine = Engine(state, self.clock, Story(config.story.entries))
        policy = Policy.of(config.managed)
        holding = Holding(engine)
        pace = self.pace = Pace(self.monotonic)
        pods = self.pods = PendingPods()
        leads = self._leads()
        recorder = EventRecorder(
            client, controller=CONTROLLER, instance=socket.gethostname(), wanted=leads
        )
        reporter = Reporter(state, pods, recorder, metrics)
        feed = self.feed = Feed(engine, policy, config.levels, pods, reporter)
        self.statuses = StatusWriter(engine, policy, feed.covers, client, metrics)
        nets = self.networks = JobNetworks(engine, client, metrics, reporter)
        writes = config.conditions.patches_per_second > 0
        devices = self.devices = DeviceWatch(engine, client, metrics, reporter, writes=writes)
        slipped = self.slipped = self._find_slipped(policy, metrics, reporter)
        mark = None if self.candidacy is None else self.candidacy.mark.applied
        sync = self.sync = Sync(
            client,
            feed,
            self.statuses,
            self._known_pods,
            reporter.unreadable,
            metrics,
            listed=ListedPods(engine, feed),
            pod_applied=mark,
            more=network_sources(nets.pools),
            pace=pace,
            jitter=self.jitter,
        )
        self.releaser = Releaser(engine, pods, client, config, metrics, reporter, pace)
        nets.release, self.releaser.extras = self.releaser.submit, nets.extras
        expected = self.reservations = Reservations(
            engine,
            feed,
            metrics,
            pace,
            nets.submit,
            self._set_aside,
            nets.is_isolated,
            sync.caught_up,
        )
        expected.partial_s = config.partial_after_seconds
        feed.expected = expected.came
        self.planner = Planner(engine, config, holding, expected.planned, reporter, metrics, pace)
        self.planner.network, nets.look_again = nets.lack, self.planner.look_again
        self.bind_times = self.planner.bind_times = BindTimes(
            engine, metrics.gang_bound, reporter.bound
        )
        client.observe(metrics.api_calls.note)
        self.releaser.read_again, self.releaser.defer = feed.pod, self.planner.defer
        self.releaser.vanished = feed.forget
        self.repairer = Repairer(engine, pods, client, config, metrics, reporter)
        self.planner.refused = self.repairer.refused
        feed.nodes.changed = self.repairer.node_changed
        lost = LostSeats(engine, config.keep_lost_seat_seconds)
        feed.lost, self.planner.kept = lost.note, lost.kept_from
        self.partial = PartialGangs(engine, client, config, metrics, reporter)
        self.partial.defer = self.planner.defer
        self.provisioner = Provisioner(
            engine,
            pods,
            client,
            config.autoscaler,
            metrics,
            reporter,
            lambda: self.planner.decisions,
            policy.accelerators,
            pace,
        )
        self.dumper = Dumper(
            engine, self.planner, config, replica(), leads, sync.synced.is_set, pace
        )
        conditions = self.conditions = Conditions(
            engine,
            pods,
            client,
            config.conditions,
            metrics,
            reporter,
            lambda: self.planner.decisions,
        )
        conditions.on_told, self.statuses.waits = self.statuses.gang_is_due, conditions.of
        census = Census(
            state,
            self.planner.why,
            self.partial.notice,
            conditions.notice,
            pace=pace,
        )
        census.after = self.bind_times.review
        gauges = readings(census, self.planner, self.partial, lambda: sync.backlog, self.clock)
        metrics.registry.register(StateCollector(gauges))
        ready = self._ready(leads)
        handlers = Handlers(
            Verbs(state, holding, feed.is_managed, feed.namespaces.__contains__, ready),
            Binder(state, holding, client, feed.is_managed, ready),
            partial(labels_of, client),
            metrics,
            leads,
            timed=config.echo,
        )
        self.parts = Parts(
            config=config,
            handlers=handlers,
            api=ReadApi(
                state,
                self.planner,
                client,
                census,
                WhatIf(engine, self.planner, client, policy, ready, pace),
                StoryApi(engine, client, pace),
                ready,
                lambda: sync.backlog,
                pace,
                leads,
                self.partial.since,
                self.repairer.trouble,
                slipped.problems,
                devices,
            ),
            reservations=ReservationApi(expected, ready),
            gate=Gate.of(config, client, metrics),
            live=Health(),
            ready=Health({"listed": sync.problem, "draining": self._draining}),
            metrics=metrics,
            jobs={
                "sync": sync.run,
                "planner": self._plan,
                "releaser": self.releaser.run,
                "reservations": expected.run,
                "repairer": lambda: self._as_leader(self.repairer.run),
                "partial": lambda: self._as_leader(self.partial.run),
                "statuses": lambda: self._informed(self.statuses.run),
                "conditions": lambda: self._as_leader(conditions.run),
                "networks": lambda: self._informed(nets.run),
                "devices": lambda: self._informed(devices.run),
                "bound-gangs": self._telling_bound(reporter),
                **self._asking(),
                "ticker": self._tick,
                "census": lambda: self._once_listed(census.run),
                "slipped": slipped.run,
                "dumper": self.dumper.run,
                "events": recorder.run,
                "loop-lag": lambda: watch_loop(metrics.loop_lag, time.perf_counter),
            },
            drain=self._drain,
        )
        self._stand(metrics, recorder)

    def _find_slipped(
        self, policy: Policy, metrics: ExtenderMetrics, reporter: Reporter
    ) -> Slipped:
        """Return what finds pods that slipped past admission; it hears of every pod."""
        feed, networks, admission = self.feed, self.networks.attached, self.config.admission
        given = Given(admission, self.config.cluster, policy.accelerators, feed.namespaces)
        found = Slipped(self.client, given, admission.webhook, metrics, reporter, self.pace)

        def attached(uid: PodUid, meta: ObjectMeta, ended: bool) -> None:  # noqa: FBT001 - a listener
            networks.see(uid, meta, ended)
            if ended:
                found.drop(uid)

        def detached(uid: PodUid) -> None:
            networks.drop(uid)
            found.drop(uid)

        def arrived(uid: PodUid, pod: Pod, gang: GangKey | None) -> None:
            found.see(uid, pod, gang)
            self.devices.arrived(pod)

        feed.arrived, feed.attached, feed.detached = arrived, attached, detached
        return found

    def _leads(self) -> Callable[[], bool]:
        return (lambda: True) if self.candidacy is None else self.candidacy.fence.is_open

    def _ready(self, leads: Callable[[], bool]) -> Callable[[], bool]:
        """Return the test that each answer makes; the fence is asked each time, it has a clock."""
        listed = self.sync.synced.is_set
        return listed if self.candidacy is None else lambda: listed() and leads()

    def _stand(self, metrics: ExtenderMetrics, recorder: EventRecorder) -> None:
        """Take part in the election, or lead at once where there is none."""
        metrics.leader.set_function(self._leads())
        if self.candidacy is None:
            self.begun.set()
            return

        def told(ref: PodRef, text: str) -> None:
            about = Regarding.pod(ref.namespace, ref.name, ref.uid)
            recorder.record(about, "LeaderElection", text, action="Electing")

        self.candidacy.fence.on_refused = metrics.fenced_writes.inc
        self.leadership = Leadership(
            self.candidacy, self.sync, self.client, metrics, self.begun, self._end, told
        )
        self.parts.jobs["election"] = self.leadership.run
        self.parts.jobs["standby"] = self._tidy

    def _end(self, reason: str) -> None:
        self.deposed = reason
        self.on_deposed()

    async def _drain(self) -> None:
        """Finish what was begun; a deposed replica may not."""
        if not self.deposed:
            await self.releaser.drain()

    async def _tidy(self) -> None:
        while not self.begun.is_set():
            await asyncio.sleep(STANDBY_TIDY_S)
            self.planner.forget_gone()
            self.repairer.forget_mended()
            self.partial.forget_gone()
            self.conditions.forget_gone()

    def _telling_bound(self, reporter: Reporter) -> Job:
        """Return the job that tells gangs which nobody of waits."""
        told = BoundGangs(self.engine, self.client, reporter.tell_bound)
        reporter.on_bound = told.put
        return lambda: self._as_leader(told.run)

    def _asking(self) -> dict[str, Job]:
        """Return the job that asks for nodes, where the operator wants it."""
        run = self.provisioner.run
        return {"provisioner": lambda: self._as_leader(run)} if self.provisioner.wanted else {}

    async def _as_leader(self, run: Job) -> None:
        await self.begun.wait()
        await run()

    def is_quiet(self) -> bool:
        """Whether every event is applied and nothing is left to plan or release now."""
        sent = self.networks.is_idle and self.releaser.is_idle
        return not self.sync.backlog and self.planner.is_idle and sent

    def _known_pods(self) -> Uids:
        pods = self.engine.state.snapshot().pods
        states = pods.state.array()
        there = (states != PodState.FREE) & (states != PodState.STANDBY)
        expected = self.engine.state.pod_rows(self.reservations.uids())
        there[expected[expected != NO_ROW]] = False
        return pods.uids.at(np.flatnonzero(there))

    def _set_aside(self, gang: GangKey) -> str | None:
        decision = self.planner.decisions.get(gang)
        return decision.reason.value if isinstance(decision, Wait | Reject) else None

    def _draining(self) -> str | None:
        return "the process is stopping" if self.draining else None

    async def _plan(self) -> None:
        """Plan once everything is known; what was listed stays, so it is not traced again."""
        await self.sync.synced.wait()
        if self.collector is not None:
            self.collector.settle()
            self.sync.on_listed = self.collector.listed
        await self.begun.wait()
        await self.planner.run()

    async def _once_listed(self, run: Job) -> None:
        """Run as leader or not: half a cluster is not worth counting, and a start has no time."""
        await self.sync.synced.wait()
        await run()

    async def _informed(self, run: Job) -> None:
        """Run once everything is known: half a gang looks broken, one unseen has not ended."""
        await self.sync.synced.wait()
        await self._as_leader(run)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.engine.apply(Tick(DEADLINES_AT_ONCE))
            while self.engine.state.is_due(self.engine.clock()):
                await self.pace.breathe()
                self.engine.apply(Tick(DEADLINES_AT_ONCE))
            if self.collector is not None:
                self.collector.tick()
