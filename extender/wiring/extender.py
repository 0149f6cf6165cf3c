"""The extender of one cluster: all its parts, wired but not started.

A part may only get parts that were built before it. So the chain from a gang's plan to its release
is built from its end (see the drawing in ``extender.wiring``).
"""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from extender.access.accesscheck import Gate
from extender.app import ExtenderParts
from extender.config.settings import ExtenderConfig
from extender.engine import Clock, Engine, SteadyClock
from extender.evictions.drains import NodeDrains
from extender.evictions.evictor import Evictor
from extender.evictions.nodenotices import NodeNotices
from extender.evictions.nominations import RoomNominations
from extender.intake.checkpoints import Checkpoints
from extender.intake.objects import Feed, Namespaces
from extender.intake.planchecks import PlanChecks
from extender.intake.podwatchers import PodWatchers
from extender.intake.servertime import ServerTime
from extender.intake.sync import Sync
from extender.jobnetworks.assignment import JobNetworks
from extender.jobnetworks.records import NetworkRecords
from extender.leadership.candidacy import Candidacy
from extender.leadership.term import Leadership
from extender.metrics import StateCollector
from extender.pendingpods import PendingPods
from extender.planning.autoscaler import Provisioner
from extender.planning.bindtimes import BindTimes
from extender.planning.gangages import GangAges
from extender.planning.holding import PlanHolder
from extender.planning.planner import Planner
from extender.planning.roommaker import RoomMaker
from extender.planning.vacancies import Vacancies
from extender.planning.worklist import WorkList
from extender.queues.averageuse import turns_of
from extender.queues.queuegauges import QueueGauges
from extender.queues.queuestatuses import QueueStatusWriter
from extender.readapi.dump import StateDumper
from extender.readapi.nodepods import NodePodsApi
from extender.releases.forgedplans import ForgedPlans
from extender.releases.partialgangs import PartialGangs
from extender.releases.plankeys import KeyHome, PlanKeyStore
from extender.releases.releaser import Releaser
from extender.releases.repairer import Repairer
from extender.reservations.expectedrows import ExpectedRows
from extender.reservations.reservations import Reservations
from extender.reservations.route import ReservationApi
from extender.reservations.suspendedjobs import SuspendedJobs
from extender.timeslice import Pace
from extender.watchover.bypassedpods import BypassedPods
from extender.watchover.census import Census
from extender.watchover.conditions import Conditions
from extender.watchover.devicetroubles import DeviceWatch
from extender.watchover.groupstatuses import GroupStatusWriter
from extender.wiring import departures, rooms
from extender.wiring.jobs import Gates, JobGroups, Plans, Ticker
from extender.wiring.rooms import Common, KueueClaims, Shown, Surface
from muster.kube.client import KubeClient
from muster.kube.writing.events import Regarding
from muster.kube.writing.podwrites import PodRef
from muster.observability.health import Health
from muster.observability.memory import Collector
from muster.observability.metrics import watch_loop

STANDBY_TIDY_S: Final = 60.0  # between cleanups; some thousand gangs are created in a day


@dataclass(slots=True)
class Extender:
    """One cluster's extender."""

    config: ExtenderConfig
    client: KubeClient
    #: seconds since the epoch, never decreasing
    clock: Clock = field(default_factory=SteadyClock)
    #: sets ``clock`` before the cluster is listed; None: it is right as it is
    server_time: ServerTime | None = None
    #: monotonic seconds, for time slices
    monotonic: Clock = time.perf_counter
    #: a random number in [0, 1)
    jitter: Callable[[], float] = random.random
    #: what an election needs; None: this replica always leads
    candidacy: Candidacy | None = None
    #: called once this replica has lost its lease
    on_deposed: Callable[[], None] | None = None
    #: the collector of the process; None if the process runs other things, too
    collector: Collector | None = None
    #: where the key of plans is kept
    key_home: KeyHome = field(default_factory=KeyHome)
    engine: Engine = field(init=False)
    pace: Pace = field(init=False)
    pods: PendingPods = field(init=False)
    worklist: WorkList = field(init=False)
    ages: GangAges = field(init=False)
    feed: Feed = field(init=False)
    sync: Sync = field(init=False)
    planner: Planner = field(init=False)
    releaser: Releaser = field(init=False)
    reservations: Reservations = field(init=False)
    repairer: Repairer = field(init=False)
    plan_keys: PlanKeyStore = field(init=False)
    forged: ForgedPlans = field(init=False)
    plan_checks: PlanChecks = field(init=False)
    checkpoints: Checkpoints = field(init=False)
    statuses: GroupStatusWriter = field(init=False)
    queues: QueueStatusWriter = field(init=False)
    suspended: SuspendedJobs = field(init=False)
    evictor: Evictor = field(init=False)
    nominations: RoomNominations | None = field(init=False)
    room_maker: RoomMaker = field(init=False)
    notices: NodeNotices = field(init=False)
    drains: NodeDrains = field(init=False)
    claims: KueueClaims = field(init=False)
    partial: PartialGangs = field(init=False)
    conditions: Conditions = field(init=False)
    bind_times: BindTimes = field(init=False)
    provisioner: Provisioner = field(init=False)
    networks: JobNetworks = field(init=False)
    census: Census = field(init=False)
    dumper: StateDumper = field(init=False)
    slipped: BypassedPods = field(init=False)
    devices: DeviceWatch = field(init=False)
    parts: ExtenderParts = field(init=False)
    leadership: Leadership | None = field(init=False, default=None)
    #: set once this replica may plan and write
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    #: whether the process is stopping
    draining: bool = False
    #: why the process must end, "" as long as it need not
    deposed: str = ""

    def __post_init__(self) -> None:
        """Build everything; nothing runs yet."""
        it = Common.of(
            Surface(
                self.config,
                self.client,
                self.clock,
                self.monotonic,
                self.jitter,
                self.candidacy,
                self.collector,
            )
        )
        self.client.observe(it.metrics.api_calls.note)
        self.engine, self.pace, self.pods, self.worklist = it.engine, it.pace, it.pods, it.worklist
        self.ages = it.ages
        self.plan_keys = PlanKeyStore(self.client, self.key_home, it.keys, self.clock)
        lost, expected = self._build_intake(it)
        holding = self._build_chain(it, lost, expected)
        shown = self._build_watchers(it)
        self._build_servers(it, holding, shown)
        self._build_leadership(it)

    def _build_intake(self, it: Common) -> tuple[Vacancies, ExpectedRows]:
        """Build the parts between the watches and the state, and the parts that get the pods.

        Then the end of the chain of ``_build_chain``: pods of resumed jobs are handed to it, too.
        """
        namespaces: Namespaces = {}
        lost = Vacancies(it.engine, self.config.keep_vacancy_seconds)
        records, expected = NetworkRecords(it.engine, self.client), ExpectedRows()
        self.slipped = rooms.slipped_pods(it, namespaces)
        self.devices = rooms.device_watch(it)
        self.repairer = rooms.repairer_of(it)
        self.forged = ForgedPlans(self.client)
        self.plan_checks = rooms.plan_checks_of(it, self.forged)
        self.checkpoints = Checkpoints(it.engine, it.reporter)
        self.notices = departures.notices_of(it)

        def node_changed(node: str) -> None:
            self.repairer.node_changed(node)
            self.notices.node_changed(node)

        watchers = PodWatchers(
            lost=lost.note,
            slipped=self.slipped,
            devices=self.devices,
            networks=records.attached,
            node_changed=node_changed,
            plans=self.plan_checks,
            checkpoints=self.checkpoints,
            notices=self.config.draining.conditions,
        )
        self.feed = rooms.feed_of(it, namespaces, watchers)
        self.conditions = rooms.conditions_of(it)
        self.statuses = rooms.statuses_of(it, self.feed, self.conditions)
        self.queues = rooms.queue_statuses_of(it)
        self.releaser = rooms.releaser_of(it, self.feed, records)
        self.networks = rooms.networks_of(it, records, self.releaser)
        self.suspended = rooms.suspended_jobs_of(it, self.feed, expected, self.networks)
        self.nominations = departures.nominations_of(it)
        lost.leaving = self.evictor = departures.evictor_of(it, self.suspended, self.nominations)
        self.claims = rooms.claims_of(it, namespaces)
        self.sync = rooms.sync_of(
            it,
            self.feed,
            self.statuses,
            records,
            expected,
            self.queues,
            self.suspended,
            claims=self.claims,
            prepare=self._prepare,
        )
        return lost, expected

    def _build_chain(self, it: Common, lost: Vacancies, expected: ExpectedRows) -> PlanHolder:
        """Build the start of the chain planner → reservations → networks → releaser."""
        holding = PlanHolder(it.engine)
        self.reservations = rooms.reservations_of(it, self.feed, self.sync, expected, self.networks)
        turns = turns_of(it.engine, it.averages)
        self.room_maker = departures.room_maker_of(
            it, self.evictor, self.checkpoints, self.reservations, self.nominations, turns
        )
        restrictions = rooms.restrictions_of(self.repairer, lost, self.networks, self.notices)
        self.planner = rooms.planner_of(
            it, holding, restrictions, self.reservations.planned, self.room_maker, turns
        )
        self.drains = departures.drains_of(
            it, self.notices, self.evictor, self.planner, self.checkpoints
        )
        self.bind_times = self.planner.bind_times
        return holding

    def _build_watchers(self, it: Common) -> Shown:
        """Build the parts that look at all gangs from time to time; return what others read."""
        self.partial = rooms.partial_gangs_of(it)
        self.provisioner = rooms.provisioner_of(it)
        self.census = rooms.census_of(it, self.planner, self.partial, self.conditions)
        return Shown(
            planner=self.planner,
            rooms=self.room_maker,
            drains=self.drains,
            census=self.census,
            partial_gangs=self.partial,
            repairer=self.repairer,
            slipped=self.slipped,
            devices=self.devices,
            sync=self.sync,
        )

    def _build_servers(self, it: Common, holding: PlanHolder, shown: Shown) -> None:
        """Build the parts that answer calls, and the jobs."""
        it.metrics.registry.register(StateCollector(rooms.gauges_of(it, shown)))
        it.metrics.registry.register(QueueGauges(self.queues.gauges))
        self.dumper = rooms.dumper_of(it, shown)
        self.parts = ExtenderParts(
            config=self.config,
            handlers=rooms.handlers_of(
                it, holding, self.feed, self.plan_checks.counts, self._ready
            ),
            api=rooms.read_api(it, shown, self._ready),
            reservations=ReservationApi(self.reservations, self._ready),
            node_pods=NodePodsApi(self.client),
            gate=Gate.of(self.config, self.client, it.metrics),
            live=Health(),
            ready=Health({"listed": self.sync.problem, "draining": self._draining}),
            metrics=it.metrics,
            jobs=self._job_groups(it).behind(Gates(self.sync.synced, self.begun)),
            drain=self._drain,
        )

    def _job_groups(self, it: Common) -> JobGroups:
        """Return every job in the group of what it waits for."""
        gates = Gates(self.sync.synced, self.begun)
        asks = {"provisioner": self.provisioner.run} if self.provisioner.wanted else {}
        looks = {} if it.averages is None else {"averages": it.averages.run}
        return JobGroups(
            at_once={
                "sync": self.sync.run,
                "planner": Plans(gates, self.planner, self.collector).run,  # waits by itself
                "releaser": self.releaser.run,
                "reservations": self.reservations.run,
                "ticker": Ticker(it.engine, it.pace, self.collector).run,
                "slipped": self.slipped.run,
                "dumper": self.dumper.run,
                "events": it.recorder.run,
                "loop-lag": partial(watch_loop, it.metrics.loop_lag, time.perf_counter),
            },
            once_listed={"census": self.census.run},
            as_leader={
                "repairer": self.repairer.run,
                "forged": self.forged.run,
                "partial": self.partial.run,
                "conditions": self.conditions.run,
                "bound-gangs": rooms.bound_gangs_of(it).run,
                **asks,
            },
            informed={
                "statuses": self.statuses.run,
                "queues": self.queues.run,
                **looks,
                **self.claims.jobs(),
                "suspended": self.suspended.run,
                "evictor": self.evictor.run,
                "drains": self.drains.run,
                "networks": self.networks.run,
                "devices": self.devices.run,
            },
        )

    def _build_leadership(self, it: Common) -> None:
        """Build the part that takes part in the election; without an election lead at once."""
        it.metrics.leader.set_function(it.base.leads)
        if self.candidacy is None:
            self.begun.set()
            return

        def report(ref: PodRef, text: str) -> None:
            about = Regarding.pod(ref.namespace, ref.name, ref.uid)
            it.recorder.record(about, "LeaderElection", text, action="Electing")

        self.candidacy.fence.listen(it.metrics.fenced_writes.inc)
        self.leadership = Leadership(
            self.candidacy,
            self.sync,
            self.client,
            it.metrics,
            self.begun,
            self._end,
            report,
            self.plan_keys.begin,
        )
        self.parts.jobs["election"] = self.leadership.run
        self.parts.jobs["standby"] = self._tidy

    # -- life ------------------------------------------------------------------------------------

    def is_quiet(self) -> bool:
        """Return whether every event is applied and nothing is left to plan or release now."""
        sent = self.networks.is_idle and self.releaser.is_idle
        return not self.sync.backlog and self.planner.is_idle and sent

    async def _prepare(self) -> None:
        """Do what comes before the first list: the clock, then the keys of plans."""
        if self.server_time is not None:
            await self.server_time.begin()
        self.partial.begin()
        await (self.plan_keys.begin if self.candidacy is None else self.plan_keys.read)()

    def _ready(self) -> bool:
        """Return whether the cluster is listed and this replica leads; the fence may expire."""
        listed = self.sync.synced.is_set()
        return listed and (self.candidacy is None or self.candidacy.fence.is_open())

    def _draining(self) -> str | None:
        return "the process is stopping" if self.draining else None

    def _end(self, reason: str) -> None:
        self.deposed = reason
        if self.on_deposed is not None:
            self.on_deposed()

    async def _drain(self) -> None:
        """Finish the queued releases; a deposed replica must not write."""
        if not self.deposed:
            await self.releaser.drain()

    async def _tidy(self) -> None:
        """Drop what is known about deleted objects, as long as this replica is a standby."""
        while not self.begun.is_set():
            await asyncio.sleep(STANDBY_TIDY_S)
            self.planner.forget_gone()
            self.repairer.forget_mended()
            self.partial.forget_gone()
            self.conditions.forget_gone()
